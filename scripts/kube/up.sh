#!/usr/bin/env bash
# Starts a real Kubernetes API server with etcd on loopback, prints a line READY URL TOKEN CA, and ends
# both on SIGTERM or SIGINT. No kubelet: pods do not run, their endpoints and
# statuses are written by the test.
#
#   up.sh            build what is missing, then serve
#   up.sh --build    build only
#
# SIGUSR1 kills the API server as a crash would, SIGUSR2 starts it again and prints READY again.
#
# KUBE_DIR: where builds and state go (.cache/kube). WITH_HELM=1: build helm there, too.
# KUBE_PORT (26443), ETCD_PORT (23790; the next one is used as well).
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
dir=${KUBE_DIR:-.cache/kube} port=${KUBE_PORT:-26443} etcd=${ETCD_PORT:-23790}
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)

# A build is made anew where its pins have changed, or its flags.
built() { # NAME PACKAGE [LDFLAGS]
  [ -x "$dir/$1" ] && cmp -s <(cat "$here/$1/go.sum"; printf %s "${3:-}") "$dir/$1.sum" && return
  echo "kube: building $1" >&2
  (cd "$here/$1" && go build -ldflags "${3:-}" -o "$dir/$1" "$2")
  { cat "$here/$1/go.sum"; printf %s "${3:-}"; } > "$dir/$1.sum"
}
built etcd .
# It says its version, which charts look at, only where the build does.
version=$(sed -n 's/^.*k8s.io\/kubernetes \(v[^ ]*\).*$/\1/p' "$here/apiserver/go.mod")
built apiserver . "-X k8s.io/component-base/version.gitVersion=$version -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=$(cut -d. -f2 <<< "$version")"
[ -z "${WITH_HELM:-}" ] || built helm helm.sh/helm/v3/cmd/helm
[ "${1:-}" != --build ] || exit 0

run=$(mktemp -d "$dir/run.XXXXXX")
cd "$run"
openssl genrsa -out sa.key 2048 2>/dev/null
echo 'admin-token,admin,1,"system:masters"' > tokens.csv
"$dir/etcd" --data-dir data --listen-client-urls "http://127.0.0.1:$etcd" --advertise-client-urls "http://127.0.0.1:$etcd" \
  --listen-peer-urls "http://127.0.0.1:$((etcd + 1))" --log-level error > etcd.log 2>&1 &
store=$!
api() {
  "$dir/apiserver" --etcd-servers="http://127.0.0.1:$etcd" --bind-address=127.0.0.1 --secure-port="$port" --cert-dir=certs \
    --service-account-issuer=https://kube.local --service-account-key-file=sa.key --service-account-signing-key-file=sa.key \
    --service-cluster-ip-range=10.0.0.0/24 --authorization-mode=RBAC --token-auth-file=tokens.csv >> apiserver.log 2>&1 &
  server=$!
  for _ in $(seq 150); do
    if curl -fsk -H 'Authorization: Bearer admin-token' "$url/readyz" >/dev/null 2>&1; then
      echo "READY $url admin-token $run/certs/apiserver.crt"
      return 0 # of its own: in a trap it would else be that of the command before
    fi
    kill -0 $server 2>/dev/null || { tail -3 apiserver.log >&2; exit 1; }
    sleep 0.2
  done
  echo "kube: the API server was not ready within 30 s" >&2
  exit 1
}
url=https://127.0.0.1:$port server= away=
trap 'kill -9 $server $store 2>/dev/null || true; wait $server $store 2>/dev/null || true; rm -rf "$run"' EXIT
trap 'exit 0' TERM INT

trap 'away=1; kill -9 $server; wait $server 2>/dev/null || true' USR1
trap 'api; away=' USR2
api
while kill -0 $store 2>/dev/null && { [ -n "$away" ] || kill -0 $server 2>/dev/null; }; do
  # A signal that is trapped ends a wait, too.
  if [ -n "$away" ]; then wait $store || true; else wait -n $server $store || true; fi
done
echo "kube: a server died" >&2
exit 1
