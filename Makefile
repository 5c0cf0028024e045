# `make` alone lists the targets. Each first installs what it needs and the machine lacks (scripts/install-tools.sh).

# Recipes are lines for a POSIX shell, and a failing part fails the target.
SHELL := /bin/sh
.SHELLFLAGS := -eu -c
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help

CARGO ?= cargo
# What `make test-servers` runs; `system` is TIDELINE_REDIS_SERVER or the server on the PATH.
SERVERS ?= system redis-8.2 valkey-9.1
# The further server that `make test` runs the cluster tests with; empty for none.
ALSO ?= valkey-9.1
# For `make test`; empty: always the same ones. `random` draws new ones.
SEED ?=
# For `make clients`; empty: 1.
RUNS ?=
# For `make verify-long`; empty: 1 to 20, then over HTTP 81 to 90 (HTTP_SEEDS), and with an archive 61 to 80 (ARCHIVE_SEEDS).
SEEDS ?=
# For the comparison, the demonstration and the benchmarks: make run ARGS="--help".
ARGS ?=
# Packages that are made for a registry.
PUBLISHED := $(addprefix tideline-,model router local-cluster exporter archive server program) tideline
# The page with charts that `make run` writes.
PAGE := compare.html

INSTALL := scripts/install-tools.sh
SCRIPTS := scripts/*.sh deploy/*.sh deploy/debian/post* deploy/debian/prerm .ci/run

.PHONY: help run loadtest demo serve dist test clients test-package verify-long test-servers check check-rust check-scripts bench tools clean

help: ## List the targets
	@echo "Tideline: sharded sorted sets and hybrid push/pull home timelines on Redis Cluster"
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "  make test-servers SERVERS=\"system redis-8.2\"   selects servers (system, redis-8.2, valkey-9.1)"
	@echo "  make test ALSO=                               only with this machine's server"
	@echo "  make test SEED=random                         with other seeds than always"
	@echo "  scripts/repeat-tests.sh                       all tests, or some, again and again: a table"
	@echo "  scripts/compare-with.sh COMMIT                what operations cost, beside an older program"
	@echo "  TIDELINE_REDIS_SERVER=/path/to/server         uses that server everywhere, and installs none"
	@echo "  TIDELINE_POSTGRES_BIN=/path/to/bin            uses that PostgreSQL in tests, and installs none"
	@echo "  TIDELINE_WITHOUT_PROMETHEUS=1                 installs none, and leaves out the test that asks it"
	@echo "  TIDELINE_WITHOUT_NODE=1                       the same of the test that runs an example in JavaScript"

# Without the oracle, which would be two fifths of the build, and the archive's databases: neither target shows them.
LOADTEST := $(CARGO) run --release --locked --package loadtest --no-default-features --

run: ## Start a cluster, load a small network, compare push, pull and the hybrids; a page
	@$(INSTALL) cargo compiler server
	@echo "Building the load test: some 200 crates the first time, then only what has changed."
	$(LOADTEST) compare --html $(PAGE) $(ARGS)
	@echo
	@echo "What to try next:"
	@echo "  make run ARGS=\"--scenario loadtest/scenarios/twip.toml\"   10,000 users who mostly read: Pequod's benchmark"
	@echo "  make loadtest ARGS=\"sweep --shares 2,50\"                 the same network with few readers, and with many"
	@echo "  make loadtest ARGS=\"plan --users 5M\"                     what a service of some size needs"
	@echo "  make run ARGS=--help                                     every option; your own load: loadtest/README.md"
	@echo "  make demo                                                a small site, from its import to checked timelines"

loadtest: ## Another load test: ARGS="plan --users 5M"; ARGS=--help lists them
	@$(INSTALL) cargo compiler server
	$(LOADTEST) $(ARGS)

demo: ## Start a cluster and a small site: import, post, read home timelines, check them
	@$(INSTALL) cargo compiler server
	$(CARGO) run --release --locked -- demo $(ARGS)

test: ## All tests, then the cluster tests with a further server (ALSO); tells what failed
	@$(INSTALL) cargo compiler server client prometheus postgres python3 node
	@CARGO="$(CARGO)" SEED="$(SEED)" scripts/test.sh $(ALSO)

serve: ## A site on this machine, at http://localhost:3000, where a few people live; stays in .tideline
	@$(INSTALL) cargo compiler server
	$(CARGO) run --release --locked -- serve --local --neighbours 12 $(ARGS)

dist: ## What is handed out: the program, stripped, and a Debian package, in target/dist-files
	@$(INSTALL) cargo compiler
	@CARGO="$(CARGO)" scripts/dist.sh

test-package: ## That package, made, installed into a root of its own, run and taken off
	@$(INSTALL) cargo compiler server python3
	@CARGO="$(CARGO)" scripts/no-strays.sh scripts/test-package.sh

clients: ## The suites of clients that others wrote, against a server: RUNS times (once)
	@$(INSTALL) cargo compiler server venv
	@CARGO="$(CARGO)" scripts/no-strays.sh scripts/clients.sh $(RUNS)

verify-long: ## KILLS (50), STRANGE (100000) requests, the oracle over SEEDS (1 to 20), HTTP_SEEDS (81 to 90) and ARCHIVE_SEEDS (61 to 80)
	@$(INSTALL) cargo compiler server postgres
	@CARGO="$(CARGO)" scripts/no-strays.sh scripts/verify-long.sh $(SEEDS)

test-servers: ## The cluster tests with each of SERVERS
	@$(INSTALL) cargo compiler server client
	@CARGO="$(CARGO)" scripts/test-servers.sh $(SERVERS)

check: check-rust check-scripts ## Formatting, lints, documentation, scripts, compose file; changes nothing

check-rust:
	@$(INSTALL) cargo lints compiler
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --all-features --locked -- -D warnings
	$(CARGO) check --package tideline --no-default-features --locked
	@CARGO="$(CARGO)" scripts/check-shared-build.sh
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --no-deps --workspace --locked
	$(CARGO) package --no-verify --allow-dirty --locked --quiet $(addprefix --package ,$(PUBLISHED))

check-scripts:
	@if command -v shellcheck >/dev/null 2>&1; then \
		echo shellcheck $(SCRIPTS); shellcheck $(SCRIPTS); \
	else \
		echo "shellcheck is not installed, the scripts are not checked (make tools installs it)"; \
	fi
	@scripts/test-install-tools.sh
	@scripts/test-failed-tests.sh
	@scripts/check-compose.sh

bench: ## Benchmarks, with redis-benchmark as the ceiling
	@$(INSTALL) cargo compiler server client benchmark postgres
	scripts/no-strays.sh $(CARGO) bench --profile dist --locked $(if $(ARGS),-- $(ARGS))

tools: ## Install all that the targets need
	@$(INSTALL)
	@echo "all tools are here"

clean: ## Remove what was built and fetched; the data of `tideline cluster up` stays
	$(CARGO) clean
	rm -rf .tideline/servers $(PAGE)
