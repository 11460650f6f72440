#!/bin/sh
# `make test-real`: real vLLM on CPU and real Dynamo behind Kvasir, its image in a Docker daemon, a real
# Kubernetes API server with Helm, frameworks on the OpenAI API, and the kernels of arm64 under qemu. Installs them on the first run (about 1.5 GB to fetch, 7 GB on disk, some minutes); asked for
# explicitly, so a missing part is a failure. `make test-real REAL=image` (or engines, clients, arm64, kube, deb, release) runs only those.
set -eu
cd "$(dirname "$0")/.."
export KVASIR_REAL=required REAL_VLLM_DIR="$PWD/.cache/real-vllm" DYNAMO_DIR="$PWD/.cache/dynamo" KUBE_DIR="$PWD/.cache/kube"

scripts/parts.sh e2e-modules python-sdk node-sdk
image() {
  scripts/docker/install.sh
  scripts/docker/with.sh .cache/docker sh -euc 'scripts/docker/images.sh .cache/docker
    cd e2e && go test -tags real -run "^TestRealImage" -v -count=1 -timeout 25m ./...'
}
arm64() {
  if ! command -v qemu-aarch64 >/dev/null; then
    apt-get install -y -qq --no-install-recommends qemu-user
  fi
  mkdir -p .cache/arm64
  for package in classify/model cache/embedded; do
    binary="$PWD/.cache/arm64/$(basename "$package").test"
    GOARCH=arm64 CGO_ENABLED=0 go test -c -o "$binary" "./$package"
    (cd "$package" && qemu-aarch64 "$binary" -test.v -test.timeout 15m \
      -test.run 'EveryForm|AsTrained|AsAlone|CloseToThePackages|NearestAgainst')
  done
}
kube() { # a Kubernetes API server with etcd, and Helm: about five minutes to build, once
  WITH_HELM=1 scripts/kube/up.sh --build
  scripts/kube/crds.sh
  go test -tags real -run '^TestRealKube' -v -count=1 -timeout 10m ./discovery
  cd e2e && go test -tags real -run '^TestRealKube' -v -count=1 -timeout 15m ./...
}
deb() { # the package, on a Debian of one's own; root
  rm -f bin/kvasir_*.deb
  make deb
  cd e2e && go test -tags real -run '^TestRealDeb' -v -count=1 ./...
}
release() { # the archives, of which those for linux run here
  make release-snapshot
  cd e2e && go test -tags real -run '^TestRealRelease' -v -count=1 ./...
}
clients() { # LiteLLM, LangChain, LlamaIndex, Instructor and Pydantic AI: half a gigabyte
  scripts/sdk/frameworks/venv.sh .cache/sdk-frameworks
  cd e2e && go test -tags real -run '^TestRealClients' -v -count=1 ./...
}
case ${1:-all} in
  image) image; exit ;;
  kube) kube; exit ;;
  deb) deb; exit ;;
  clients) clients; exit ;;
  release) release; exit ;;
  arm64) arm64; exit ;;
  engines) ;;
  all) arm64; image; (kube); (deb); (release); (clients) ;;
  *) echo "test-real: image, engines, clients, kube, deb, release or arm64, not $1" >&2; exit 2 ;;
esac
scripts/real-vllm/make-model.sh "$REAL_VLLM_DIR"
scripts/dynamo/install.sh "$DYNAMO_DIR"
go test -tags real -run '^TestReal' -v -count=1 -timeout 10m ./kvroute/holdings
cd e2e && go test -tags real -run '^TestReal' -skip '^TestReal(Image|Kube|Deb|Release|Clients)' -v -count=1 -timeout 25m ./...
