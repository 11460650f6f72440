#!/bin/sh
# Gathers the licences of all that is in bin/kvasir, as whoever passes the program on has to pass them on, too:
#
#   scripts/licences.sh DIR
#
#   DIR/LICENSE, NOTICE, classify/...    Kvasir's own, and of what was taken into its files
#   DIR/go/LICENSE                       Go's library
#   DIR/modules/PATH/LICENSE, ...        of each module and package that is compiled in, or into the helper
set -eu
cd "$(dirname "$0")/.."
to=${1:?usage: licences.sh DIR}
mkdir -p "$to/go"
to=$(cd "$to" && pwd)

cp LICENSE NOTICE "$to/"
find classify cache gpu kvroute proxy sim zmtp -name 'LICENSE*' -exec cp --parents --target-directory "$to" {} +
cp "$(go env GOROOT)/LICENSE" "$to/go/"
# Of each module, and of its packages that have one of their own. The helper is compiled by cgo.
folders=$(CGO_ENABLED=1 go list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}} {{.Dir}}
{{$.ImportPath}} {{$.Dir}}{{end}}{{end}}' . ./gpu/helper)
echo "$folders" | sort -u | while read -r path dir; do
  for file in $(find "$dir" -maxdepth 1 -type f \( -iname 'licen[sc]e*' -o -iname 'notice*' -o -iname 'copying*' \)); do
    mkdir -p "$to/modules/$path"
    cp "$file" "$to/modules/$path/"
  done
done
chmod -R u+w,a+rX "$to"
