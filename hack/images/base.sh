#!/usr/bin/env bash
# base.sh TAG: an image like Debian's slim one, from Debian's packages, for where no registry answers.
set -euo pipefail
. "$(dirname "$0")/../cluster/lib.sh"
"$HERE/packages.sh"
# From where this machine itself has its packages: a mirror may be all that it reaches.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
apt-get indextargets --format '$(REPO_URI) $(CODENAME) $(COMPONENT)' 'Created-By: Packages' |
  awk -v debian="$DEBIAN" '$2 ~ "^" debian "(-updates|-security)?$" && $3 == "main" {print "deb", $1, $2, $3}' |
  sort -u >"$work/debian.list"
# usr-is-merged, or the package that merges it brings perl, 45 MB.
options=(--quiet --format=tar --variant=minbase --hook-dir=/usr/share/mmdebstrap/hooks/merged-usr --include=usr-is-merged)
for path in man doc info locale lintian; do options+=("--dpkgopt=path-exclude=/usr/share/$path/*"); done
options+=("--dpkgopt=path-include=/usr/share/doc/*/copyright")
[ ! -s "$work/debian.list" ] || from=$work/debian.list
mmdebstrap "${options[@]}" "$DEBIAN" "$work/root.tar" ${from:+"$from"}
docker import "$work/root.tar" "$1"
