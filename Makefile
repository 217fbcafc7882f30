# One command for each wish. "make demo" and "make test" are all that a fresh clone needs.

GO       ?= go
BIN      := $(CURDIR)/bin
TOOLS    := $(BIN)/tools
# The clone may belong to another user, as checkouts for root in CI do: git and go's version stamp refuse that.
export GOFLAGS := $(shell $(GO) env GOFLAGS) -buildvcs=false
VERSION  ?= $(shell git -c safe.directory=$(CURDIR) describe --tags --always --dirty 2>/dev/null || echo devel)
LDFLAGS  := -s -w -X main.version=$(VERSION)
FUZZTIME ?= 10s

# Built once from source with the module proxy; a change of version is a change of this line.
LINT_VERSION := v2.15.0
LINT         := $(TOOLS)/golangci-lint-$(LINT_VERSION)

PLATFORMS := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64

.PHONY: build demo fleet test escape container-test vm-test bench soak lint generate fuzz clean
.PHONY: test-prepare test-vet test-build test-unit test-generate test-integration test-user test-modes test-modes-all
.DEFAULT_GOAL := build

# Static and without cgo: the binary runs on every Linux of its architecture.
build:
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN)/srt ./cmd/srt

demo: build
	examples/demo/demo.sh $(BIN)/srt

# A program that embeds srt: 500 commands by 8 workers, each with its own hosts, and how many a second that are.
fleet:
	$(GO) run ./examples/fleet

# The stages run one after another, so that two cores measure and test nothing else meanwhile.
test:
	build/test.sh

# Only the attacks of the escape suite.
escape: build
	$(GO) test -count=1 -run '^TestEscape' ./test/...

# srt inside containers of runc and crun, as Docker, Podman and Kubernetes make them. Needs root.
container-test: build
	SRT_BINARY=$(BIN)/srt SRT_TEST_USER=srt-test $(GO) test -count=1 -timeout 10m ./test/container

# srt and its tests under Debian's kernels, by software emulation; writes docs/kernels.md. Needs root and an hour for all of them.
vm-test:
	$(GO) run ./test/vm -cache '$(VM_CACHE)' -kernels '$(KERNELS)' $(if $(SUITES),-suites '$(SUITES)') $(if $(WHOLE),-whole) $(if $(LIMIT),-limit $(LIMIT))

bench: build
	$(GO) run ./bench

# Half an hour of mixed traffic at full load; says whether anything leaks.
soak:
	$(GO) build -o $(BIN)/soak ./bench/soak
	$(BIN)/soak -for $(or $(FOR),30m)

# For each system, since each has files of its own; the generator of the filters needs libseccomp's header.
lint: $(LINT)
	@for os in linux darwin windows; do \
	  echo "lint for $$os"; \
	  GOOS=$$os CGO_ENABLED=0 $(LINT) run ./... || exit 1; \
	done
	@if [ -e /usr/include/seccomp.h ]; then \
	  echo "lint for generate"; $(LINT) run --build-tags generate ./seccomp/...; \
	else \
	  echo "skipped: lint for generate (libseccomp-dev is not installed)"; \
	fi

$(LINT):
	@echo "building golangci-lint $(LINT_VERSION) once (about two minutes on two cores)"
	mkdir -p $(TOOLS)/new
	CGO_ENABLED=0 GOBIN=$(TOOLS)/new $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)
	mv $(TOOLS)/new/golangci-lint $@
	rmdir $(TOOLS)/new

generate:
	$(GO) generate ./...

# Every fuzz target of the tree for FUZZTIME.
fuzz:
	build/fuzz.sh $(FUZZTIME)

clean:
	rm -rf $(BIN)

# Stages of "make test"; each can be run by itself.

test-prepare:
	build/prepare.sh

test-vet:
	$(GO) vet ./...
	@unformatted=$$(gofmt -l .) || exit 1; \
	  test -z "$$unformatted" || { echo "not formatted:"; echo "$$unformatted"; exit 1; }

test-build:
	@for p in $(PLATFORMS); do \
	  echo "build and vet $$p"; \
	  GOOS=$${p%/*} GOARCH=$${p#*/} CGO_ENABLED=0 $(GO) build ./... || exit 1; \
	done
	GOOS=darwin CGO_ENABLED=0 $(GO) vet ./...
	GOOS=windows CGO_ENABLED=0 $(GO) vet ./...

test-generate:
	build/generated.sh

test-unit:
	$(GO) test -race $$($(GO) list ./... | grep -Ev '/srt/(cmd|test|bench)(/|$$)')

# With the race detector where the tests themselves do several things at once; the others wait for programs.
test-integration: build
	SRT_TEST_USER=srt-test $(GO) test -race -count=1 -timeout 20m ./cmd/... ./test ./test/hostile
	SRT_TEST_USER=srt-test $(GO) test -count=1 -timeout 20m $$($(GO) list ./test/... | grep -Ev '/srt/test(/hostile|/container)?$$')

test-user: build
	build/as-user.sh

# The core of the suite in the modes that containers leave (docs/modes.md), and all of it. A failure needs a row of that page.
test-modes: build
	SRT_BINARY=$(BIN)/srt SRT_TEST_USER=srt-test $(GO) run ./test/modes -core -mode nested
	SRT_BINARY=$(BIN)/srt SRT_TEST_USER=srt-test $(GO) run ./test/modes -core -mode confined

test-modes-all: build
	SRT_BINARY=$(BIN)/srt SRT_TEST_USER=srt-test $(GO) run ./test/modes -mode nested
	SRT_BINARY=$(BIN)/srt SRT_TEST_USER=srt-test $(GO) run ./test/modes -mode confined
