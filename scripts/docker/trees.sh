#!/usr/bin/env bash
# The two file trees that the container tests build on, since no image can be pulled where they run:
#
#   trees.sh DIR
#
#   DIR/debian   a small Debian with gcc, make and git, as the golang image is one; from debootstrap
#   DIR/base     glibc, CA certificates and a user 65532 without a shell, as distroless is made: the files of a
#                few Debian packages and nothing else
#
# 1 minute and 550 MB the first time, then nothing. Needs root, debootstrap and Debian's packages.
set -euo pipefail
dir=${1:?usage: trees.sh DIR}
suite=bookworm # its glibc is the one of distroless/base-nossl-debian12 and golang:1.26-bookworm
tools=gcc,libc6-dev,make,git,ca-certificates
packages=(base-files libc6 netbase tzdata)
stamp="$suite $tools ${packages[*]} 2"

[ "$(cat "$dir/trees" 2>/dev/null)" = "$stamp" ] && exit 0
rm -rf "$dir/debian" "$dir/base" "$dir/trees"
mkdir -p "$dir/base"

echo "docker: debootstrap $suite, once (a minute)" >&2
debootstrap --variant=minbase --include="$tools,netbase,tzdata" "$suite" "$dir/debian" > "$dir/debootstrap.log" 2>&1 || {
  tail -n 5 "$dir/debootstrap.log" >&2
  exit 1
}

for package in "${packages[@]}"; do
  dpkg-deb --extract "$dir"/debian/var/cache/apt/archives/"${package}"_*.deb "$dir/base"
done
install -D -m 644 "$dir/debian/etc/ssl/certs/ca-certificates.crt" "$dir/base/etc/ssl/certs/ca-certificates.crt"
install -d -m 1777 "$dir/base/tmp"
install -d -m 700 -o 65532 -g 65532 "$dir/base/home/nonroot"
echo 'nonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin' > "$dir/base/etc/passwd"
echo 'nonroot:x:65532:' > "$dir/base/etc/group"
rm -rf "$dir"/base/usr/share/{man,lintian} "$dir"/debian/var/cache/apt/archives/*.deb "$dir"/debian/usr/share/{man,locale}
find "$dir"/{base,debian}/usr/share/doc -not -name copyright -not -type d -delete # as Debian's own images are
echo "$stamp" > "$dir/trees"
