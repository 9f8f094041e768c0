#!/usr/bin/env bash
# A Docker Engine that can run privileged containers: the one that answers, or Debian's, started by hand where no
# init system would do it.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
docker info >/dev/null 2>&1 && exit 0
manual="Sandpod's cluster needs a running Docker Engine that this user may use"
[ "$(id -u)" = 0 ] || die "$manual (docker info: $(docker info 2>&1 | tail -1))"
if ! has dockerd; then
  has apt-get || die "$manual; install one"
  step "installing Docker Engine from Debian's packages" "$HERE/engine-install.sh"
fi
[ ! -d /run/systemd/system ] || die "$manual: systemctl start docker"
# An engine that was killed leaves its containers' ends of the wire. One stays in use when any process survives in such
# a container's network: then two nodes answer to one address, and a client is reset by the dead one.
if ! pgrep -x dockerd >/dev/null && has ip; then
  for left in /sys/class/net/docker0/brif/* /sys/class/net/br-*/brif/*; do
    [ ! -e "$left" ] || ip link delete "${left##*/}"
  done
fi
say "starting dockerd (log: $SANDPOD_CACHE/dockerd.log)"
# Its PATH is plain: containerd finds its shim there, and a newer one, such as a node's, speaks another protocol.
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
  setsid nohup dockerd >"$SANDPOD_CACHE/dockerd.log" 2>&1 </dev/null 3>&- 9>&- &
for _ in $(seq 150); do
  docker info >/dev/null 2>&1 && exit 0
  sleep 0.2
done
tail -n 5 "$SANDPOD_CACHE/dockerd.log" >&3
die "dockerd did not start: $SANDPOD_CACHE/dockerd.log"
