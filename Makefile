# Short verbs for everything a developer does. `make help` lists them.

CARGO ?= cargo
FUZZ_SECONDS ?= 600
FUZZ_QUICK_SECONDS ?= 4
SEEDS ?= 500
MUTANTS ?= urtica-state
SHARD ?= 0/8
PUBLIC_API = $(CARGO) run --quiet --locked --manifest-path tools/public-api/Cargo.toml --target-dir target/public-api --

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-all rivals simulate conformance lint fmt doc fuzz fuzz-quick fuzz-check mutants bench figures network-figures figure-16 figure-20 kernel-half-figures northbound-figures python-figures switch-figures web-figures msrv publish-check public-api public-api-bless python python-lint python-test deb package-test miri ci nightly web web-test

help: ## List the targets
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 22

setup: ## Install the tests' requirements (Debian 12; root or sudo)
	tools/setup

demo: ## Show a network with loops and its controller, live: no switch, no root
	$(CARGO) run -- demo

test: ## Run the tests, and each benchmark once; those against real peers need root and `make setup`
	tools/run-tests

test-all: ## Run the tests, long ones included: ten minutes more
	tools/run-tests --include-ignored

rivals: ## Check in tiny runs that the comparisons with other programs work; needs root and all that `make setup` installs
	$(CARGO) build --features kernel-half
	python3 tools/figures --quick --rows 3 --program target/debug/urtica
	python3 tools/network-figures --quick --rows 4 --program target/debug/urtica
	python3 tools/veth-figures --quick --program target/debug/urtica
	python3 tools/kernel-half-figures --quick --rows figure-4,table-1,discovery --program target/debug/urtica
	python3 tools/northbound-figures --quick --rows 1,2,4,6 --program target/debug/urtica
	python3 tools/python-figures --quick --program target/debug/urtica

simulate: ## Simulate random networks with random faults: SEEDS seeds of each set of programs (SEEDS=500), in release
	tools/simulate $(SEEDS)

conformance: ## Run os-ken's OpenFlow 1.3 switch tests on our switch, and print the score; needs `make setup`
	CI=true $(CARGO) test --release --test peers conformance -- --nocapture

lint: ## Check formatting, clippy, licences and number of the dependencies, circular imports between files, links
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	tools/licences
	tools/circles --self-test
	tools/circles
	tools/newcomer
	tools/book --check

fmt: ## Format the code
	$(CARGO) fmt --all

doc: ## Build the documentation of all crates; warnings are errors
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps

book: ## Build the guides as a book, in target/book/html; needs mdBook
	tools/book

fuzz: ## Run each fuzz target for ten minutes (FUZZ_SECONDS=600); needs nightly and cargo-fuzz
	@$(CARGO) +nightly fuzz --version >/dev/null 2>&1 || \
		{ echo "fuzz: needs a nightly toolchain and 'cargo install --locked cargo-fuzz'" >&2; exit 1; }
	fuzz/seed
	@targets=$$($(CARGO) +nightly fuzz list) || exit 1; \
	for target in $$targets; do \
		echo "fuzz: $$target for $(FUZZ_SECONDS) s"; \
		$(CARGO) +nightly fuzz run $$target -- -max_total_time=$(FUZZ_SECONDS) || exit 1; \
	done

fuzz-quick: ## Run each fuzz target for a few seconds (FUZZ_QUICK_SECONDS=4), without a sanitizer
	fuzz/seed
	fuzz/run $(FUZZ_QUICK_SECONDS)

fuzz-check: ## Check that the fuzz targets build
	$(CARGO) check --locked --manifest-path fuzz/Cargo.toml --target-dir target

mutants: ## Find mutations of a crate (MUTANTS=urtica-state) that its tests miss, in an eighth of them (SHARD=0/8); needs cargo-mutants
	@$(CARGO) mutants --version >/dev/null 2>&1 || \
		{ echo "mutants: needs 'cargo install --locked cargo-mutants'" >&2; exit 1; }
	$(CARGO) mutants --package $(MUTANTS) --sharding round-robin --shard $(SHARD) --output target -- --lib --tests

bench: ## Run the benchmarks
	$(CARGO) bench --workspace --bench '*'

figures: ## Measure all figures that have a target, and write docs/figures.md; twenty minutes on a quiet machine
	python3 tools/figures

network-figures: ## Measure programs on a network: docs/network-figures.md; root and what `make setup` installs, twenty-five minutes
	python3 tools/network-figures

figure-16: ## Redraw McNettle's Figure 16: fairness by the number of switches
	python3 tools/network-figures --rows figure-16

figure-20: ## Redraw McNettle's Figure 20: the cost of sharing state
	python3 tools/network-figures --rows figure-20

kernel-half-figures: ## Measure the gains and losses of answering in the kernel: docs/kernel-half-figures.md; root, under twenty minutes
	python3 tools/kernel-half-figures

northbound-figures: ## Measure the cost of operation: HTTP, metrics, TLS, changes: docs/northbound-figures.md; half an hour
	python3 tools/northbound-figures

python-figures: ## Measure control programs in Python, with os-ken for comparison: docs/python-figures.md; six minutes
	python3 tools/python-figures

web-figures: web ## Measure the page in a browser: docs/web-figures.md; Chromium, an hour and a half
	python3 tools/web-figures

switch-figures: ## Compare the switch with Open vSwitch: docs/switch-figures.md; root, ovs-bench (OVS_BENCH=DIR), an hour and a half
	OVS_BENCH='$(OVS_BENCH)' python3 tools/switch-figures

msrv: ## Check that all packages build with the oldest Rust that Cargo.toml promises (Debian 12)
	tools/msrv

publish-check: ## Check that all packages could be published; uploads nothing
	tools/publish-check

python: ## Build the wheels of the packages `urtica` and `urtica-ryu` for Python, in target/wheels; PYTHON=python3 builds them
	tools/python build

python-lint: ## Check formatting and clippy of the extension module for Python; ruff for `urtica-ryu`
	tools/python lint

python-test: ## Run the packages' tests, with wheels built for tests and each of PYTHONS="python3"
	tools/python test $(PYTHONS)

public-api: web ## Check that the libraries' public interface is as recorded in public-api/
	$(PUBLIC_API)

public-api-bless: web ## Record the libraries' current public interface
	$(PUBLIC_API) --bless

deb: ## Build a Debian package of the program, in target/debian
	tools/debian-package

package-test: web ## Check that a package of the debug build works on a fresh Debian 12, in namespaces; root, debootstrap, Node
	$(CARGO) build --package urtica-cli --features web
	tools/package-test "$$(tools/debian-package --program target/debug/urtica)"

web: ## Build the page of the northbound interface, in web/dist, for --features web; needs Node 18 and npm
	tools/web

web-test: ## Test the page in Chromium, with the network of the debug build; needs Chromium, too. PICTURES=1 updates the pictures
	tools/web --test

miri: ## Run the unsafe code of state and pipeline under Miri; skipped if that is not installed
	tools/miri

ci: ## Run the checks of continuous integration
	.ci/run

nightly: ## Run the checks that are too long for every change: long tests, more seeds, fuzzing, the oldest Rust, the package
	.ci/nightly
