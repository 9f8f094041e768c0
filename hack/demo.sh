#!/usr/bin/env bash
# The shortest way through all of Sandpod, on the cluster that `make install` left: each step says what it does, then
# shows the command and what it printed. It can be run again and again.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/cluster/env.sh
export PATH="$PWD/.venv/bin:$PATH"
door=/apis/run.sandpod.dev/v1alpha1/namespaces/default/sandboxes/hello/proxy

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
show() { printf '$ %s\n' "$1"; bash -c "$1"; }

say "1. Ask for a Linux computer: a Sandbox is a Kubernetes resource like any other."
show "cat examples/hello.yaml"
show "kubectl apply -f examples/hello.yaml"

say "2. Wait until its runtime answers, which is what Ready means."
show "time kubectl wait sandbox/hello --for=condition=Ready --timeout=120s"
show "kubectl get sandboxes"

say "3. Run a command in it. Output comes as it is written; the exit code is the command's own."
show "sandpod exec hello -- sh -c 'echo hello from \$(hostname); for i in 1 2 3; do echo \$i; sleep 0.3; done'"
show "sandpod exec hello -- sh -c 'exit 3' || echo \"exit code \$?\""

say "4. The same by plain kubectl: the Kubernetes API is the way in, RBAC says who may."
show "echo '{\"command\": \"python3 --version; node --version; gcc --version | head -n 1\"}' |
    kubectl create -f - --raw $door/api/execute; echo"
show "kubectl get --raw $door/api/ping; echo"
show "kubectl auth can-i create sandboxes.sandpod.dev --subresource=exec --as=somebody || true"

say "5. What happened, as Kubernetes tells it."
show "kubectl events --for sandbox/hello"

say "6. A web server in a sandbox: a declared process, and a port that is exposed. It answers after every wake, too."
show "sed -n '/^spec/,\$p' examples/preview.yaml"
show "kubectl apply -f examples/preview.yaml"
show "kubectl wait sandbox/preview --for=condition=Ready --timeout=120s"
show "kubectl wait sandbox/preview --for=condition=PreviewReady --timeout=120s"
show "kubectl get sandbox preview -o wide"
url=$(sandpod open preview --print)
# Not every machine finds names below localhost by itself; browsers do.
host=${url#*://} host=${host%%[:/]*} port=$(sed -nE 's|^[^:]*://[^:/]*:([0-9]+)/.*|\1|p' <<<"$url")
show "curl -sS --resolve $host:${port:-80}:127.0.0.1 --retry 20 --retry-delay 1 --retry-all-errors -o /dev/null \
    -w '%{http_code}, %{size_download} bytes\n' $url"

say "It is yours now. The cluster's kubeconfig and tools:  . hack/cluster/env.sh"
cat <<'END'
  a shell's worth of commands    sandpod exec hello -- bash -c '…'
  another sandbox                sandpod create mine
  away with these two            kubectl delete -f examples/hello.yaml -f examples/preview.yaml
  away with the cluster          make cluster-down
END
printf '\n\033[1mOpen this in your browser:\033[0m  %s\n' "$url"
