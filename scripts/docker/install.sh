#!/usr/bin/env bash
# Installs what the container tests need, from Debian's packages: a Docker daemon, debootstrap and something that reads
# compose files. Starts nothing.
set -euo pipefail
missing=()
command -v dockerd > /dev/null || missing+=(docker.io)
command -v debootstrap > /dev/null || missing+=(debootstrap)
command -v docker-compose > /dev/null || docker compose version > /dev/null 2>&1 || missing+=(docker-compose)
[ ${#missing[@]} = 0 ] && exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get > /dev/null; then
  echo "docker: ${missing[*]} missing, and only root on Debian can install them here" >&2
  exit 1
fi
echo "docker: installing ${missing[*]}" >&2
export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 # the tests start a daemon of their own, the package shall not
apt-get update -qq < /dev/null
apt-get install -y -qq --no-install-recommends "${missing[@]}" < /dev/null > /dev/null
