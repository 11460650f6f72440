# Kvasir's workshop. `make` alone lists what it can do.

VERSION  := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
DATE     := $(shell git log -1 --format=%cI 2>/dev/null)
FUZZTIME ?= 20s
SOAKTIME ?= 30m
FLAPTIME ?= 1m
SOAKRATE ?= 500
DATA     ?= ../shared/data
export FUZZTIME

GOARCH ?= $(shell go env GOARCH 2>/dev/null)
HELPER := gpu/inside/helper-linux-$(GOARCH).gz
PREFIX ?= /usr/local

.DEFAULT_GOAL := help
.PHONY: help build install run test test-real hostile soak soak-sources image deb release-snapshot cast plots pictures bench profile train eval heldout second lint fmt fuzz vulns clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1	\2/p' Makefile | expand -t 20

build: $(HELPER) ## bin/kvasir, one static binary, with the NVML helper inside where a C compiler is at hand
	CGO_ENABLED=0 go build -trimpath -pgo=scripts/bench/kvasir.pgo -ldflags "-s -w -X main.version=$(VERSION) -X main.date=$(DATE)" -o bin/kvasir .
	@if ldd bin/kvasir >/dev/null 2>&1; then echo "bin/kvasir is not static" >&2; exit 1; fi

# Made by cgo, where there is a C compiler for GOARCH (CC=aarch64-linux-gnu-gcc names another one).
$(HELPER): $(wildcard gpu/helper/*.go gpu/snapshot/*.go) go.mod go.sum scripts/helper.sh
	@GOARCH=$(GOARCH) scripts/helper.sh

# It builds nothing: root, who has no Go as often as not, only copies what somebody else has built.
install: ## what `make build` made, its manual pages and completion, to /usr/local (PREFIX=/usr; DESTDIR=DIR: below that)
	@PREFIX="$(PREFIX)" DESTDIR="$(DESTDIR)" scripts/release/install.sh

run: build ## build, and serve config.yaml on 127.0.0.1:8080
	bin/kvasir serve --config config.yaml

test: build ## every check: format, vet, lint, tests under the race detector, end to end with real parts
	@scripts/test.sh

test-real: build ## the heavy real parts: vLLM on CPU, Dynamo, Kubernetes' API server, the image, the package, the release archives, frameworks on the OpenAI API, arm64 by qemu (7 GB of disk, 5 GB of memory; REAL=image, engines, clients, kube, deb, release or arm64: only these)
	@scripts/test-real.sh $(REAL)

hostile: build ## the attacks alone, each by name; make test runs them too (HOSTILE='Smuggl|Tenants': only those)
	@scripts/hostile.sh '$(HOSTILE)'

soak: build ## clients of every kind, reloads and dying workers for SOAKTIME (30m), SOAKRATE (500) requests a second; a minute of it is in make test
	cd e2e && KVASIR_SOAK=$(SOAKTIME) KVASIR_SOAK_RATE=$(SOAKRATE) go test -run '^TestSoak$$' -v -count=1 -timeout 0 .

soak-sources: build ## workers that come and go by each kind of source in turn, SOAKRATE (500) requests a second for FLAPTIME (1m), and as long without; some seconds of it are in make test, Kubernetes in make test-real REAL=kube
	cd e2e && KVASIR_SOAK_SOURCES=$(FLAPTIME) KVASIR_SOAK_RATE=$(SOAKRATE) go test -run '^TestSoakFlapping$$' -v -count=1 -timeout 0 .

image: ## the container image kvasir, with Docker (BASE=scratch: another base)
	docker build --file deploy/Dockerfile --tag kvasir --build-arg VERSION=$(VERSION) $(if $(BASE),--build-arg BASE=$(BASE)) \
	  --build-arg REVISION=$$(git rev-parse HEAD) --build-arg CREATED=$$(date -u +%Y-%m-%dT%H:%M:%SZ) .

deb: build ## bin/kvasir_VERSION_ARCH.deb: the binary, its service, configuration and completion
	VERSION=$(VERSION) GOARCH=$(GOARCH) scripts/deb/build.sh

release-snapshot: build ## archives for linux and darwin, amd64 and arm64, with checksums and a CycloneDX list each, into bin/release
	@VERSION=$(VERSION) DATE=$(DATE) scripts/release/build.sh

cast: build ## docs/pictures/cast.svg: a terminal session as a picture that moves, recorded from a real Kvasir
	@go run ./scripts/cast

pictures: build ## docs/pictures/page-*.png: the page with simulated workers under load, by Chromium (two minutes)
	@KVASIR_REAL=required scripts/parts.sh chromium
	mkdir -p docs/pictures && node scripts/page/pictures.mjs

plots: ## docs/pictures/routing.svg and performance.svg, from the tables of their pages
	@go run ./scripts/plots

bench: build ## the measured goals as ratios against peers (BENCH="throughput start": only these; BENCH=encoder: scripts/encoders/bench.sh)
	$(if $(filter encoder,$(BENCH)),scripts/encoders/bench.sh)
	$(if $(BENCH),$(if $(filter-out encoder,$(BENCH)),go run ./scripts/bench $(filter-out encoder,$(BENCH))),go run ./scripts/bench)

profile: ## refresh scripts/bench/kvasir.pgo, which build optimises by
	CGO_ENABLED=0 go build -trimpath -o bin/kvasir .
	go run ./scripts/bench -peer=false -profile .cache/bench/proxy.pprof throughput
	go test ./kvroute/replay -run none -bench 'Run/(kv|predict)' -benchtime 4s -cpuprofile .cache/bench/replay.pprof -o .cache/bench/replay.test
	go test ./classify -run none -bench 'Crowd/64|Guards/(64|512)tokens$$' -cpu 1 -benchtime 5s -cpuprofile .cache/bench/judge.pprof -o .cache/bench/judge.test
	go tool pprof -proto .cache/bench/proxy.pprof .cache/bench/replay.pprof .cache/bench/judge.pprof > scripts/bench/kvasir.pgo

train: ## train the embedded classifiers and the pair model of the cache (DATA=../shared/data; OUT=DIR: heads of your own), see docs/models.md
	scripts/train/train.sh $(DATA) $(if $(OUT),--out $(OUT))
	scripts/train/tagger.sh $(DATA) $(if $(OUT),--out $(OUT)/tagger.safetensors --fixtures "")
	$(if $(OUT),,scripts/train/pair.sh)

eval: ## measure the embedded classifiers and the pair model on rows that they were not trained on (DATA=../shared/data; MODELS=DIR: those)
	@python3 scripts/train/rows.py $(DATA) | go run ./scripts/train/eval -pii $(DATA)/pii/dev.jsonl $(if $(MODELS),-models $(MODELS),-floors scripts/train/floors.json -heldout scripts/train/heldout.json)
	$(if $(MODELS),,@go run ./scripts/train/pairs -floors scripts/train/pairs-floors.json -data $(DATA) scripts/train/data)

heldout: ## measure the guard by folds of whole sources, each judged by models that met none of it (DATA=../shared/data; an hour and a half; MODELS=encoder-e5: others)
	scripts/train/heldout.sh $(DATA) $(if $(MODELS),--models $(MODELS))

second: ## fine-tune the guard's second stage of all rows, and pack it (DATA=../shared/data; a quarter of an hour of two cores with AVX-512 in bf16)
	scripts/train/second.sh $(DATA)

lint: ## golangci-lint and go vet
	@scripts/lint.sh

fmt: ## format all Go files
	gofmt -w $$(git ls-files --cached --others --exclude-standard '*.go')

fuzz: ## each fuzz target for FUZZTIME (20s), on to the end whatever fails (FUZZ='^proxy ': only those)
	@scripts/fuzz.sh '$(FUZZ)'

vulns: ## known vulnerabilities in what is compiled in (VULNDB=file:///DIR: a copy of the database)
	@scripts/vulns.sh

clean: ## remove what was built; .cache stays (rm -r .cache for that)
	rm -rf bin gpu/inside/helper-*.gz
	go clean -testcache
