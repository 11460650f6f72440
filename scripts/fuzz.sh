#!/bin/sh
# Runs every fuzz target for FUZZTIME each (default 20s), one after another: go test takes one target at a time. What
# reads bytes of clients comes first, then what reads bytes of workers, then templates, tokenizers and texts; what only
# reads the operator's own files comes last. A target that fails does not end the run: its input is then in testdata/fuzz
# of its package, and the run ends with a list of those that failed and exit code 1.
#
#   scripts/fuzz.sh [REGEXP]     only targets of which "package Target" matches, e.g. '^proxy ' or FuzzRequest
set -eu
cd "$(dirname "$0")/.."

# rank is a package's place in that order.
rank() {
  case $1 in
    proxy | openai* | wire | header) echo 1 ;;
    upstream | coalesce | zmtp | kvroute/kvevents) echo 2 ;;
    kvroute/template | tokenize | kvroute/prompt) echo 3 ;;
    classify*) echo 4 ;;
    cache*) echo 5 ;;
    kvroute*) echo 6 ;;
    *) echo 7 ;;
  esac
}

targets=$(git ls-files --cached --others --exclude-standard '*_test.go' | xargs grep -H '^func Fuzz' |
  sed 's/^\(.*\)\/[^/]*:func \(Fuzz[A-Za-z0-9_]*\).*/\1 \2/; s/^[^/ ]*:func \(Fuzz[A-Za-z0-9_]*\).*/. \1/' |
  while read -r package target; do echo "$(rank "$package") $package $target"; done |
  sort | cut -d' ' -f2- | grep -E -- "${1:-}")

failed=$(mktemp)
trap 'rm -f "$failed"' EXIT
echo "$targets" | while read -r package target; do
  echo "== $package $target"
  go test -run '^$' -fuzz "^$target\$" -fuzztime "${FUZZTIME:-20s}" "./$package" < /dev/null || echo "$package $target" >> "$failed"
done
if [ -s "$failed" ]; then
  echo "fuzz: these failed, each with its input under testdata/fuzz of its package:" >&2
  sed 's/^/  /' "$failed" >&2
  exit 1
fi
