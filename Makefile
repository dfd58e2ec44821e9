# Two commands on a fresh Debian 12 with cargo; each sets up what it needs.
#
#   make run    builds, reproduces the papers quickly, walks this machine's own caches: report/report.html
#   make test   formatting, lints, all tests and doc tests
#   make bench  how fast it is, and beside what
#
# common/, lab/ and cli/ need nothing but cargo and a C compiler: `cargo test`, `cargo run -- --help`.

.DEFAULT_GOAL := run
.PHONY: run test bench setup setup-test

run: setup
	cargo build --release -p warmq
	cargo run --release --quiet -p warmq -- reproduce --quick --with-walk --out report

test: setup-test
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	cargo test --workspace --no-fail-fast

bench: setup
	@if [ -e scripts/bench.sh ]; then bash scripts/bench.sh; else cargo bench --workspace; fi

setup:
	@bash scripts/setup.sh

setup-test:
	@bash scripts/setup.sh rustfmt clippy
