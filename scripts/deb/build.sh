#!/usr/bin/env bash
# `make deb`: bin/kvasir as a Debian package, by nfpm, into bin/. VERSION is what git describe says.
set -euo pipefail
cd "$(dirname "$0")/../.."
: "${VERSION:=dev}"
export DEB_ARCH=${GOARCH:-$(go env GOARCH)} DEB_VERSION DEB_TREE

# A version of Debian's begins with a digit, and a dash in it means something.
case $VERSION in
  v[0-9]*) DEB_VERSION=${VERSION#v} ;;
  [0-9]*.*) DEB_VERSION=$VERSION ;;
  *) DEB_VERSION=0.0.0+git.$VERSION ;;
esac
DEB_VERSION=$(tr -c 'A-Za-z0-9.+~\n' . <<< "$DEB_VERSION")

nfpm=.cache/deb/nfpm
if ! cmp -s scripts/deb/go.sum "$nfpm.sum" || ! [ -x "$nfpm" ]; then
  echo "deb: building nfpm, once" >&2
  (cd scripts/deb && CGO_ENABLED=0 GOFLAGS="-trimpath ${GOFLAGS:-}" GOOS='' GOARCH='' GOBIN="$PWD/../../.cache/deb" \
    go install -ldflags '-s -w' tool)
  cp scripts/deb/go.sum "$nfpm.sum"
fi

DEB_TREE=$(mktemp -d)
trap 'rm -rf "$DEB_TREE" "$DEB_TREE.extras"' EXIT
doc=$DEB_TREE/usr/share/doc/kvasir
mkdir -p "$doc/licences" "$DEB_TREE"/usr/share/{bash-completion/completions,zsh/vendor-completions,fish/vendor_completions.d}
scripts/licences.sh "$doc/licences"
cp LICENSE "$doc/copyright"
gzip -9n < CHANGELOG.md > "$doc/changelog.gz"
# By this machine's own build where the package is for another one.
kvasir=bin/kvasir
[ "$DEB_ARCH" = "$(go env GOHOSTARCH)" ] || { kvasir=$DEB_TREE.kvasir; GOARCH='' go build -o "$kvasir" .; }
scripts/release/extras.sh "$kvasir" "$DEB_TREE.extras"
[ "$kvasir" = bin/kvasir ] || rm -f "$kvasir"
man=$DEB_TREE/usr/share/man
mkdir -p "$man"
mv "$DEB_TREE.extras/man/man1" "$man/"
gzip -9n "$man/man1/"*.1
mv "$DEB_TREE.extras/completions/kvasir.bash" "$DEB_TREE/usr/share/bash-completion/completions/kvasir"
mv "$DEB_TREE.extras/completions/_kvasir" "$DEB_TREE/usr/share/zsh/vendor-completions/"
mv "$DEB_TREE.extras/completions/kvasir.fish" "$DEB_TREE/usr/share/fish/vendor_completions.d/"
chmod -R u=rwX,go=rX "$DEB_TREE"
find "$DEB_TREE" -type f -exec chmod 644 {} +

SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)} \
  "$nfpm" package --config deploy/deb/nfpm.yaml --packager deb --target bin/
