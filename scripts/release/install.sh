#!/bin/sh
# `make install`: bin/kvasir, as `make build` made it, its manual pages and the completion of bash,
# zsh and fish below DESTDIR/PREFIX.
set -eu
cd "$(dirname "$0")/../.."
to=${DESTDIR:-}${PREFIX:-/usr/local}

if ! [ -x bin/kvasir ]; then
  echo "install: there is no bin/kvasir; make build makes it" >&2
  exit 1
fi
extras=$(mktemp -d) # not in the tree, where files of root would be in the way of the next build
trap 'rm -rf "$extras"' EXIT
scripts/release/extras.sh bin/kvasir "$extras"
put() { # FILE DIRECTORY NAME MODE
  mkdir -p "$to/$2"
  # In the place of the old file, which may be running.
  cp "$1" "$to/$2/$3.new"
  chmod "$4" "$to/$2/$3.new"
  mv "$to/$2/$3.new" "$to/$2/$3"
}
put bin/kvasir bin kvasir 755
for page in "$extras"/man/man1/*.1; do
  put "$page" share/man/man1 "$(basename "$page")" 644
done
put "$extras"/completions/kvasir.bash share/bash-completion/completions kvasir 644
put "$extras"/completions/_kvasir share/zsh/site-functions _kvasir 644
put "$extras"/completions/kvasir.fish share/fish/vendor_completions.d kvasir.fish 644
echo "installed to $to: bin/kvasir, its manual pages, completion of bash, zsh and fish"
