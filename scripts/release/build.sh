#!/usr/bin/env bash
# `make release-snapshot`: archives for linux and darwin, amd64 and arm64, with checksums and a list of what is in each
# binary (CycloneDX), by GoReleaser (.goreleaser.yaml), into bin/release. Needs bin/kvasir. GoReleaser is built once, of
# the versions in scripts/release/go.mod, which takes some minutes. With arguments, GoReleaser gets these instead: `check`.
set -euo pipefail
cd "$(dirname "$0")/../.."
: "${VERSION:?}" "${DATE:?}"

tools=$PWD/.cache/release
if ! cmp -s scripts/release/go.sum "$tools/go.sum" || ! [ -x "$tools/goreleaser" ]; then
  echo "release: building GoReleaser, once (some minutes)" >&2
  (cd scripts/release && CGO_ENABLED=0 GOFLAGS="-trimpath ${GOFLAGS:-}" GOOS='' GOARCH='' GOBIN="$tools" go install -ldflags '-s -w' tool)
  cp scripts/release/go.sum "$tools/go.sum"
fi
export PATH="$tools:$PATH" VERSION DATE
if [ $# -gt 0 ]; then exec goreleaser "$@"; fi

rm -rf bin/extras
scripts/release/extras.sh bin/kvasir bin/extras
scripts/licences.sh bin/extras/licences
# One file in the archives, the same bytes each time.
tar --directory bin/extras --sort=name --owner=0 --group=0 --numeric-owner --mtime="$DATE" --create licences | gzip -9n > bin/extras/licences.tar.gz

# Each target takes the place of the helper that `make build` has put there.
trap 'scripts/helper.sh' EXIT
goreleaser release --snapshot --clean --parallelism 1
