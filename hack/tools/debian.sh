#!/usr/bin/env bash
# debian.sh haproxy | nginx | shellcheck | wrk: a program of Debian's without installing it, which would start it as a
# service, too: its package and the libraries that the machine lacks, unpacked in the cache. Prints where it is. For tests,
# benchmarks and lint.
set -euo pipefail
. "$(dirname "$0")/../cluster/lib.sh"
case $1 in
  haproxy) packages="haproxy liblua5.3-0 libopentracing-c-wrapper0 libopentracing1" path=usr/sbin/haproxy ;;
  nginx) packages="nginx" path=usr/sbin/nginx ;;
  shellcheck) packages="shellcheck" path=usr/bin/shellcheck ;;
  wrk) packages="wrk libluajit-5.1-2" path=usr/bin/wrk ;;
  *) die "no such program here: $1" ;;
esac
out=$SANDPOD_CACHE/debian/$1
if [ ! -x "$out/run" ]; then
  has apt-get || die "on Debian only: $1"
  rm -rf "$out"
  mkdir -p "$out/packages" "$out/root"
  [ "$(id -u)" != 0 ] || step "asking which packages Debian has" apt-get update -qq
  cd "$out/packages"
  # shellcheck disable=SC2086
  step "fetching $1 from Debian" apt-get download -qq $packages
  for package in *.deb; do dpkg-deb -x "$package" "$out/root"; done
  rm -rf "$out/packages"
  libraries=("$out"/root/usr/lib/*-linux-gnu*)
  cat >"$out/run.new" <<RUN
#!/bin/sh
LD_LIBRARY_PATH='${libraries[0]}' exec '$out/root/$path' "\$@"
RUN
  chmod +x "$out/run.new"
  mv "$out/run.new" "$out/run"
fi
echo "$out/run"
