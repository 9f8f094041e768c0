#!/usr/bin/env bash
# go build, saying now and then how far it is. Its arguments are go build's; the packages come last, after `-o DIR`.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
packages=("$@")
while [ "${packages[0]}" != -o ]; do packages=("${packages[@]:1}"); done
go mod download
total=$(go list -deps "${packages[@]:2}" | wc -l)
# -v names each package as it is compiled; those that the build cache holds are not named, so a resumed build jumps.
go build -v "$@" 2>&1 | while read -r line; do
  echo "$line"
  count=$((${count:-0} + 1))
  [ $((count * 10 / total)) = "${tenths:-0}" ] || say "  compiled $count packages of at most $total"
  tenths=$((count * 10 / total))
done
