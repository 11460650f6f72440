#!/bin/sh
# All of `make test` after the build, the cheap checks first. Needs bin/kvasir.
set -eu
cd "$(dirname "$0")/.."

scripts/lint.sh
scripts/parts.sh race-detector python-sdk node-sdk python-clients node-clients openapi readme-curl milvus-lite zeromq starlette tokenizers tokenizer-files \
  encoder-tokenizers chromium

race=
if [ -e .cache/parts/race-detector ]; then race=-race; fi
# These compute in one goroutine, for long: under the race detector they take ten times as long, and
# it could find something only in the tests named, which do start others.
alone='kvasir/(planner|tokenize|kvroute/replay|kvroute/template)'
go test $race -shuffle=on $(go list ./... | grep -vxE "$alone")
go test -shuffle=on $(go list ./... | grep -xE "$alone")
if [ -n "$race" ]; then go test $race -run '^TestRecorderOfMany$|^TestConcurrent$' ./planner ./tokenize; fi
if [ -e .cache/parts/e2e-modules ]; then
  # Most of these tests wait: for clocks, for SDKs, for processes.
  cd e2e && go test $race -shuffle=on -count=1 -parallel 8 ./...
fi
