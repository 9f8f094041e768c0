//go:build tools

// Package tools names what is built here, so that Go keeps it in go.mod.
package tools

import _ "sigs.k8s.io/kwok/cmd/kwok"
