#!/usr/bin/env bash
# What building a node image needs from Debian.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
need=()
for program in mmdebstrap pkg-config gcc; do has $program || need+=("$program"); done
[ -e /usr/include/seccomp.h ] || need+=(libseccomp-dev)
[ ${#need[@]} -gt 0 ] || exit 0
has apt-get || die "no container registry answers, and without one a node can be built on Debian only"
[ "$(id -u)" = 0 ] || die "as root: apt-get install ${need[*]}"
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "${need[@]}"
