//go:build tools

// Package tools names what is built here, so that Go keeps it in go.mod.
package tools

import _ "github.com/traefik/traefik/v3/cmd/traefik"
