#!/bin/sh
# Looks for known vulnerabilities in what is compiled in, in all modules, with govulncheck.
#
#   scripts/vulns.sh                     the database of vuln.go.dev
#   VULNDB=file:///path scripts/vulns.sh one that was fetched before, in the same form (https://go.dev/doc/security/vuln/database)
#
# Exit code 0: none found. 3: some found. 2: it could not be looked, which is no good news.
set -u
cd "$(dirname "$0")/.."
version=v1.9.0 # of golang.org/x/vuln; go checks its hash against the checksum database
db=${VULNDB:-https://vuln.go.dev}

case $db in
  file://*) [ -f "${db#file://}/index/db.json" ] ;;
  *) curl --silent --show-error --fail --max-time 20 --output /dev/null "$db/index/db.json" ;;
esac || {
  echo "NOT CHECKED for vulnerabilities: the database $db cannot be read; set VULNDB=file:///path to a copy" >&2
  exit 2
}
found=0
for module in . e2e scripts/tools; do
  echo "== $module"
  patterns=./...
  [ "$module" = scripts/tools ] && patterns=tool
  (cd "$module" && CGO_ENABLED=0 go run "golang.org/x/vuln/cmd/govulncheck@$version" -db "$db" $patterns)
  case $? in
    0) ;;
    3) found=3 ;;
    *) echo "NOT CHECKED: govulncheck failed in $module" >&2; exit 2 ;;
  esac
done
exit $found
