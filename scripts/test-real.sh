#!/bin/sh
# `make test-real`: real vLLM on CPU and real Dynamo behind Kvasir, and its image in a Docker daemon. Installs them on
# the first run (about 1.5 GB to fetch, 7 GB on disk, some minutes); asked for explicitly, so a missing part is a
# failure. `make test-real REAL=image` (or engines) runs only those.
set -eu
cd "$(dirname "$0")/.."
export KVASIR_REAL=required REAL_VLLM_DIR="$PWD/.cache/real-vllm" DYNAMO_DIR="$PWD/.cache/dynamo"

scripts/parts.sh e2e-modules python-sdk node-sdk
image() {
  scripts/docker/install.sh
  scripts/docker/with.sh .cache/docker sh -euc 'scripts/docker/images.sh .cache/docker
    cd e2e && go test -tags real -run "^TestRealImage" -v -count=1 -timeout 25m ./...'
}
case ${1:-all} in
  image) image; exit ;;
  engines) ;;
  all) image ;;
  *) echo "test-real: image or engines, not $1" >&2; exit 2 ;;
esac
scripts/real-vllm/make-model.sh "$REAL_VLLM_DIR"
scripts/dynamo/install.sh "$DYNAMO_DIR"
go test -tags real -run '^TestReal' -v -count=1 -timeout 10m ./kvroute/holdings
cd e2e && go test -tags real -run '^TestReal' -skip '^TestRealImage' -v -count=1 -timeout 25m ./...
