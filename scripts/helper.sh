#!/bin/sh
# Builds the NVML helper (gpu/helper, cgo) into gpu/inside, from where it is embedded in Kvasir, for
# GOARCH (default: this machine's). Where there is no C compiler for it, it prints one line and
# leaves no helper: Kvasir works without, GPU telemetry is off. For another machine than this one
# it takes the cross compiler of Debian's name where there is one; CC names another:
#
#   GOARCH=arm64 CC="zig cc -target aarch64-linux-gnu" scripts/helper.sh
set -eu
cd "$(dirname "$0")/.."
unset CGO_ENABLED # Kvasir's own setting; go env would not name a compiler

arch=$(go env GOARCH)
cc=$(CGO_ENABLED=1 go env CC)
out=gpu/inside/helper-linux-$arch.gz

# One Kvasir carries one helper: no old one, and none for another machine.
rm -f gpu/inside/helper-*.gz

without() {
  echo "no NVML helper inside, so GPU telemetry will be off: $1" >&2
  exit 0
}

[ "$(go env GOOS)" = linux ] || without "it is for linux only"
case $arch in
  amd64) machine=x86_64 ;;
  arm64) machine=aarch64 ;;
  *) without "there is no NVIDIA driver for $arch" ;;
esac
cross=$machine-linux-gnu-gcc
if [ -z "${CC:-}" ] && [ "$arch" != "$(go env GOHOSTARCH)" ] && command -v "$cross" >/dev/null; then
  cc=$cross
  export CC="$cc"
fi
# cc may have arguments, as in CC="zig cc".
# shellcheck disable=SC2086
makes=$($cc -dumpmachine 2>/dev/null) || without "no C compiler ($cc); install gcc and libc6-dev, or set CC"
case $makes in
  *musl*) without "$cc makes programs for musl, and NVIDIA's library is for glibc" ;;
  $machine*) ;;
  *) without "$cc makes programs for $makes; set CC, as in CC=$machine-linux-gnu-gcc" ;;
esac
# shellcheck disable=SC2086
printf '#include <dlfcn.h>\n#include <stdlib.h>\nint main(void) { return dlopen("", 0) != 0; }\n' |
  $cc -x c - -o /dev/null 2>/dev/null || without "$cc finds no C library for $arch; install libc6-dev"

program=${out%.gz}
trap 'rm -f "$program"' EXIT
# lazy: functions of the driver's library are found when they are called, after it was opened; some
# compilers ask for all of them at the start of the program.
CGO_ENABLED=1 CGO_CFLAGS="${CGO_CFLAGS:--O2} -Wno-deprecated-declarations" \
  go build -trimpath -buildvcs=false -ldflags "-s -w -extldflags=-Wl,-z,lazy" -o "$program" ./gpu/helper
gzip -9n < "$program" > "$out.new"
mv "$out.new" "$out"
