#!/usr/bin/env bash
# Debian's Chromium without a window, and the libraries that the machine lacks, unpacked in the cache and not installed.
# Prints where it is. For tests/e2e, which look at previews with it.
set -euo pipefail
. "$(dirname "$0")/../cluster/lib.sh"
program=chromium-headless-shell
out=$SANDPOD_CACHE/debian/$program
if [ ! -x "$out/run" ]; then
  has apt-get || die "on Debian only: $program"
  rm -rf "$out"
  mkdir -p "$out/packages" "$out/root"
  [ "$(id -u)" != 0 ] || step "asking which packages Debian has" apt-get update -qq
  packages=$(apt-get install --simulate --no-install-recommends $program fonts-dejavu-core | awk '/^Inst / {print $2}')
  cd "$out/packages"
  # shellcheck disable=SC2086
  step "fetching Chromium from Debian" apt-get download -qq $packages
  for package in *.deb; do dpkg-deb -x "$package" "$out/root"; done
  rm -rf "$out/packages"
  # Of a machine without fonts: their configuration names the paths that they would be installed to.
  fonts=$out/root/etc/fonts/fonts.conf
  [ ! -e "$fonts" ] || sed -i "s#<dir>/usr/#<dir>$out/root/usr/#" "$fonts"
  libraries=("$out"/root/usr/lib/*-linux-gnu*)
  cat >"$out/run.new" <<RUN
#!/bin/sh
export LD_LIBRARY_PATH='${libraries[0]}:${libraries[0]}/pulseaudio'
[ ! -e '$fonts' ] || export FONTCONFIG_FILE='$fonts'
exec '$out/root/usr/lib/chromium/chromium-headless-shell' "\$@"
RUN
  chmod +x "$out/run.new"
  mv "$out/run.new" "$out/run"
fi
echo "$out/run"
