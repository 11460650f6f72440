#!/bin/sh
# Looks at every Go file of both modules: gofmt, go vet and golangci-lint (.golangci.yml).
set -eu
cd "$(dirname "$0")/.."

files=$(git ls-files --cached --others --exclude-standard '*.go' 2>/dev/null || find . -name '*.go' -not -path './.cache/*')
unformatted=$(for f in $files; do [ -f "$f" ] && echo "$f"; done | xargs gofmt -l)
if [ -n "$unformatted" ]; then
  echo "not formatted (make fmt):" >&2
  echo "$unformatted" >&2
  exit 1
fi

# The NVML helper (gpu/helper) is cgo and is looked at where there is a C compiler, whatever CGO_ENABLED says.
if command -v "$(CGO_ENABLED=1 go env CC)" >/dev/null; then
  export CGO_ENABLED=1 CGO_CFLAGS="${CGO_CFLAGS:--O2 -g} -Wno-deprecated-declarations"
fi

scripts/parts.sh golangci-lint e2e-modules
for module in . e2e; do
  [ "$module" = . ] || [ -e .cache/parts/e2e-modules ] || continue
  (cd $module && go vet -tags real ./...)
  if [ -e .cache/parts/golangci-lint ]; then
    config=$PWD/.golangci.yml lint=$PWD/.cache/bin/golangci-lint
    (cd $module && "$lint" run --config "$config" ./...)
  fi
done
