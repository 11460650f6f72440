#!/bin/sh
# Gathers the licences of all that is in bin/kvasir, as whoever passes the program on has to pass them on, too:
#
#   scripts/licences.sh DIR
#
#   DIR/LICENSE, NOTICE, classify/...    Kvasir's own, and of what was taken into its files
#   DIR/go/LICENSE                       Go's library
#   DIR/modules/PATH/LICENSE, ...        of each module and package that is compiled in, or into the helper
#
# A module without a licence is an error: nothing says that it may be passed on.
set -eu
cd "$(dirname "$0")/.."
to=${1:?usage: licences.sh DIR}
mkdir -p "$to/go"
to=$(cd "$to" && pwd)

cp LICENSE NOTICE "$to/"
find classify cache gpu kvroute proxy sim zmtp -name 'LICENSE*' -exec cp --parents --target-directory "$to" {} +
cp "$(go env GOROOT)/LICENSE" "$to/go/"
# Of each module, and of its packages that have one of their own. The helper is compiled by cgo.
folders=$(CGO_ENABLED=1 go list -deps -f '{{with .Module}}{{if not .Main}}module {{.Path}} {{.Dir}}
package {{$.ImportPath}} {{$.Dir}}{{end}}{{end}}' . ./gpu/helper)
echo "$folders" | sort -u | while read -r _ path dir; do
  for file in $(find "$dir" -maxdepth 1 -type f \( -iname 'licen[sc]e*' -o -iname 'notice*' -o -iname 'copying*' \)); do
    mkdir -p "$to/modules/$path"
    cp "$file" "$to/modules/$path/"
  done
done
# The Milvus API comes without its licence, which is Apache-2.0 as Kvasir's own; NOTICE says so.
milvus=$to/modules/github.com/milvus-io/milvus-proto/go-api/v2
[ -e "$milvus" ] || { mkdir -p "$milvus" && cp LICENSE "$milvus/"; }
none=$(echo "$folders" | sort -u | while read -r what path _; do
  [ "$what" != module ] || ls "$to/modules/$path" 2>/dev/null | grep -qiE '^(licen[sc]e|copying)' || echo "$path"
done)
if [ -n "$none" ]; then
  echo "licences: these modules are compiled in and have no file of a licence:" "$none" >&2
  exit 1
fi
chmod -R u+w,a+rX "$to"
