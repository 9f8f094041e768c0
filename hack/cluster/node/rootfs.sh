#!/usr/bin/env bash
# rootfs.sh FILE: a node's root file system from Debian's packages, as a tar.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"
packages=systemd,dbus,conntrack,iptables,nftables,iproute2,ethtool,kmod,mount,util-linux,procps,jq,curl
packages+=,ca-certificates,libseccomp2,pigz,socat,bash,e2fsprogs
# usr-is-merged, or the package that merges it brings perl, 45 MB.
mmdebstrap --quiet --format=tar --variant=minbase --hook-dir=/usr/share/mmdebstrap/hooks/merged-usr \
  --include=$packages,usr-is-merged "$DEBIAN" "$1.part"
mv "$1.part" "$1"
