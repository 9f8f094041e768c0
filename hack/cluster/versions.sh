# shellcheck shell=bash disable=SC2034
# What a node is made of. Everything that is built from Go modules has its version in tools/node/go.mod; these must agree.
KIND_VERSION=v0.33.0
KUBE_VERSION=v1.36.4
CONTAINERD_VERSION=v2.3.4
RUNC_VERSION=1.4.3
PAUSE_IMAGE=registry.k8s.io/pause:3.10   # the one that kind's containerd configuration names
DEBIAN=bookworm                          # later ones bring a systemd that does not boot on cgroup v1
# kind's own of the same Kubernetes, made for KIND_VERSION: with a registry in reach a node is this, nothing is built.
PUBLISHED_NODE=kindest/node:v1.36.4@sha256:099e049362a1526b2db71494e1947aae99bd16290d7c895f2b7ea312e3cbfaed
