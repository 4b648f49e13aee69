# make             lint and test, what a change must pass
# make interop     real client libraries against a real server (needs Debian's python3-stomp, nodejs, npm, chromium)
# make fuzz T=20s  every fuzz target for T
# make bench       benchmarks, COUNT runs each, for benchstat; BENCH and PKG narrow them
# make fmt         writes what lint wants formatted

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:

GO       ?= go
GOLANGCI ?= $(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
PKG      ?= ./...
T        ?= 20s
BENCH    ?= .
COUNT    ?= 6
TIMEOUT  ?= 10m

# Interop tests need other people's clients; they run in a target of their own.
packages = $$($(GO) list $(PKG) | grep -Ev '/test/interop(/|$$)')
# Allocation counts mean something without the race detector only.
allocation_packages = $$(grep -rl --include='*_test.go' AllocsPerRun . | xargs -r -n 1 dirname | sort -u)

.PHONY: all lint fmt vet test interop fuzz bench bench-smoke

all: lint test

lint: vet
	$(GOLANGCI) run ./...

fmt:
	$(GOLANGCI) fmt ./...

# The toolchain's own analysers, which may be newer than the linter's.
vet:
	$(GO) vet ./...

test:
	$(GO) test -race -timeout $(TIMEOUT) $(packages)
	$(GO) test -run Alloc -timeout $(TIMEOUT) $(allocation_packages)

# They wait for their clients most of the time.
interop:
	$(GO) test -count=1 -parallel 4 -timeout $(TIMEOUT) ./test/interop/...

# The go command fuzzes one target of one package at a time.
fuzz:
	@grep -ro --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*' . | sort | while IFS=: read -r file target; do \
		echo "== $$(dirname "$$file") $${target#func }"; \
		$(GO) test -run '^$$' -fuzz "^$${target#func }$$" -fuzztime $(T) "$$(dirname "$$file")" </dev/null; \
	done

bench:
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) -timeout 60m $(packages)

# Shows that the benchmarks run; their figures mean nothing.
bench-smoke:
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchtime 20x -timeout $(TIMEOUT) $(packages)
