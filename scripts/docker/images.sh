#!/usr/bin/env bash
# The two images that deploy/Dockerfile builds on, from file trees, where none can be pulled:
#
#   images.sh DIR          with DOCKER_HOST as with.sh sets it
#
#   kvasir-test/golang     Debian, gcc, make, git, this machine's Go and the modules of go.sum: builds without a network
#   kvasir-test/base       what distroless/base-nossl-debian12:nonroot is: glibc, certificates, a user and no shell
#
# Minutes and 2.5 GB the first time; again only when the Go toolchain, go.mod or go.sum have changed.
set -euo pipefail
cd "$(dirname "$0")/../.."
dir=${1:?usage: images.sh DIR}
mkdir -p "$dir"
dir=$(cd "$dir" && pwd -P)
scripts/docker/trees.sh "$dir"
docker image prune --force > /dev/null # what the builds of the last run left

# fresh TAG STAMP: is there an image of that stamp?
fresh() {
  [ "$(docker image inspect --format '{{index .Config.Labels "stamp"}}' "$1" 2>/dev/null)" = "$2" ]
}

trees=$(sha256sum "$dir/trees" | cut -c1-16)
if ! fresh kvasir-test/base "$trees"; then
  tar -C "$dir/base" --create . | docker import --change "LABEL stamp=$trees" --change 'USER 65532' \
    --change 'ENV SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt' --change 'WORKDIR /home/nonroot' - kvasir-test/base > /dev/null
fi
if ! fresh kvasir-test/debian "$trees"; then
  tar -C "$dir/debian" --create . | docker import --change "LABEL stamp=$trees" - kvasir-test/debian > /dev/null
fi

toolchain="$trees $(go version)"
if ! fresh kvasir-test/toolchain "$toolchain"; then
  docker build --quiet --tag kvasir-test/toolchain --label "stamp=$toolchain" --file - "$(go env GOROOT)" > /dev/null <<'DOCKERFILE'
FROM kvasir-test/debian
COPY . /usr/local/go
ENV PATH=/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin GOPATH=/go GOTOOLCHAIN=local
WORKDIR /go
DOCKERFILE
fi

modules="$toolchain $(cat go.mod go.sum | sha256sum | cut -c1-16) 2"
if ! fresh kvasir-test/golang "$modules"; then
  echo "docker: an image to build in, with every module compiled, once (minutes)" >&2
  tmp=$(mktemp -d "$dir/tmp.XXXXXX")
  trap 'rm -rf "$tmp"' EXIT
  # The modules that this machine has already, and the rest from where it takes modules.
  have=$(go env GOMODCACHE)/cache/download
  GOMODCACHE="$tmp/modules" GOPROXY="file://$have,$(go env GOPROXY)" GOFLAGS="-modcacherw ${GOFLAGS:-}" go mod download
  docker build --quiet --tag kvasir-test/modules --file - "$tmp/modules/cache/download" > /dev/null <<'DOCKERFILE'
FROM kvasir-test/toolchain
COPY . /modules
ENV GOPROXY=file:///modules GOSUMDB=off GOCACHE=/go-build
DOCKERFILE
  # Only Go's caches stay of this build: what a test of another commit compiles is what changed since.
  git clone --quiet . "$tmp/clone"
  docker build --quiet --network none --tag kvasir-test/golang --label "stamp=$modules" --file - "$tmp/clone" > /dev/null <<'DOCKERFILE'
FROM kvasir-test/modules AS build
COPY . /src
RUN cd /src && GOFLAGS=-buildvcs=false make build

FROM kvasir-test/modules
COPY --from=build /go-build /go-build
DOCKERFILE
  docker image prune --force > /dev/null
fi
