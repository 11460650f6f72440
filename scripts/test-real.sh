#!/bin/sh
# `make test-real`: real vLLM on CPU and real Dynamo behind Kvasir. Installs them on the first run (about
# 1.2 GB to fetch, 4 GB on disk, some minutes); asked for explicitly, so a missing part is a failure.
set -eu
cd "$(dirname "$0")/.."
export KVASIR_REAL=required REAL_VLLM_DIR="$PWD/.cache/real-vllm" DYNAMO_DIR="$PWD/.cache/dynamo"

scripts/parts.sh e2e-modules python-sdk node-sdk
scripts/real-vllm/make-model.sh "$REAL_VLLM_DIR"
scripts/dynamo/install.sh "$DYNAMO_DIR"
go test -tags real -run '^TestReal' -v -count=1 -timeout 10m ./kvroute/holdings
cd e2e && go test -tags real -run '^TestReal' -v -count=1 -timeout 25m ./...
