#!/usr/bin/env bash
# Volumes of built nodes. Kubernetes' host-path provisioner only names a directory in /tmp, which here is neither on disk nor
# may programs run from it, and root alone could write to it. Like kind's own provisioner, let everybody write.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
for node in $(kind get nodes --name "$SANDPOD_CLUSTER"); do
  docker exec -i "$node" sh -e <<'SCRIPT'
mkdir -p /var/lib/volumes /tmp/hostpath_pv
mount --bind /var/lib/volumes /tmp/hostpath_pv
cat > /etc/systemd/system/open-volumes.service <<UNIT
[Unit]
# Five volumes within ten seconds would end it for good.
StartLimitIntervalSec=0
[Service]
Type=oneshot
ExecStart=/bin/sh -c 'chmod 0777 /var/lib/volumes/*'
UNIT
cat > /etc/systemd/system/open-volumes.path <<UNIT
[Path]
PathChanged=/var/lib/volumes
TriggerLimitBurst=0
UNIT
systemctl daemon-reload
systemctl start open-volumes.path
SCRIPT
done
