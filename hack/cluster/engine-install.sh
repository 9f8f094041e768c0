#!/usr/bin/env bash
# Docker Engine from Debian's packages. bookworm's 20.10 cannot start privileged containers where CAP_SYS_RESOURCE is
# missing; trixie's 26.1 can, and needs nothing newer than bookworm's libc.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
apt-get update -qq
release=
if grep -q '^VERSION_CODENAME=bookworm' /etc/os-release && ! apt-cache policy docker.io | grep -q ' 26\.'; then
  uri=$(apt-get indextargets --format '$(REPO_URI) $(CODENAME)' 'Created-By: Packages' | awk '$2 == "bookworm" {print $1; exit}')
  printf 'Types: deb\nURIs: %s\nSuites: trixie\nComponents: main\nSigned-By: %s\n' \
    "$uri" /usr/share/keyrings/debian-archive-keyring.gpg >/etc/apt/sources.list.d/trixie.sources
  printf 'Package: *\nPin: release n=trixie\nPin-Priority: 100\n' >/etc/apt/preferences.d/trixie
  apt-get update -qq
  release=/trixie
fi
# RUNLEVEL=1: the package must not try to start a service where there is no init system.
RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
  "docker.io$release" "docker-cli$release" "docker-buildx$release"
