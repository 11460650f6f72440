#!/bin/sh
# The attacks: every test named TestHostile..., one line each, and all that a failing one says. They need bin/kvasir;
# `make test` runs them too.
#
#   scripts/hostile.sh [REGEXP]     only those whose name matches
set -eu
cd "$(dirname "$0")/.."
only='^TestHostile'
if [ -n "${1:-}" ]; then only="^TestHostile.*($1)"; fi

status=$(mktemp)
trap 'rm -f "$status"' EXIT

# attack ARGUMENTS: go test, without the noise of tests that begin, wait and pass within others.
attack() {
  { go test -run "$only" -v -count=1 "$@" || echo failed >> "$status"; } |
    grep -vE '^=== (RUN|PAUSE|CONT|NAME) |^ +--- PASS|^PASS$|^testing: warning: no tests to run'
}

# Packages beside e2e that have some: the others would say that they have none.
packages=$(git ls-files --cached --others --exclude-standard '*_test.go' | grep -v '^e2e/' | xargs grep -l '^func TestHostile' |
  xargs -r -n1 dirname | sort -u | sed 's|^|./|') || true
# shellcheck disable=SC2086 # one word a package
[ -z "$packages" ] || attack $packages
cd e2e
attack -parallel 8 ./...
! [ -s "$status" ]
