#!/bin/sh
# Runs every fuzz target of the module for FUZZTIME each (default 20s), one after another: go test
# takes one target at a time. Stops at the first that fails; its input lies in testdata/fuzz then.
set -eu
cd "$(dirname "$0")/.."

list=$(git ls-files --cached --others --exclude-standard '*_test.go' | xargs grep -H '^func Fuzz')
echo "$list" | sed 's/^\(.*\)\/[^/]*:func \(Fuzz[A-Za-z0-9_]*\).*/\1 \2/; s/^[^/ ]*:func \(Fuzz[A-Za-z0-9_]*\).*/. \1/' |
while read -r package target; do
  echo "== $package $target"
  go test -run '^$' -fuzz "^$target\$" -fuzztime "${FUZZTIME:-20s}" "./$package" < /dev/null
done
