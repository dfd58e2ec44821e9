# Two commands on a fresh Debian 12 with cargo; each sets up what it needs.
#
#   make run    builds, reproduces the papers quickly, walks this machine's own caches: report/report.html
#               (with scx_warmq where it is built already: `cargo build --release -p scx_warmq`)
#   make test   formatting, lints, all tests and doc tests, the Python package, ten laws in guests
#   make test-all   then 10,000 mutated schedulers, all else that scx_warmq must do in guests (vm-test), warmq-color under the address
#               sanitizer; the laboratory for Windows and macOS, and the crates as a registry would have them, are compiled
#   make python-test  the Python package: a wheel in a virtual environment of its own
#   make wheel  the wheel that people install, built by maturin, and the same tests with it
#   make vm-test  what scx_warmq must do in guests, alone
#   make verdicts  the verdicts of `warmq diagnose` on what guests of three kernels play (twenty-five minutes on two free cores)
#   make laws   the whole matrix of laws: kernels, their schedulers and those of sched_ext (an hour; goes on where it was interrupted)
#   make dist   what people install, in target/dist: static programs, Debian packages, wheels; each is tried in a bare root
#   make arm-test  the tests of the laboratory for 64-bit Arm, in emulation
#   make bench  how fast it is, and beside what; the figures are kept in measured/bench.jsonl
#
# common/, lab/ and cli/ need nothing but cargo and a C compiler: `cargo test`, `cargo run -- --help`.

SHELL := bash
.DEFAULT_GOAL := run
.PHONY: run test test-all python-test wheel vm-test verdicts laws dist arm-test bench setup setup-test setup-real

run: setup
	cargo build --release -p warmq -p warmq-player
	"$${CARGO_TARGET_DIR:-target}/release/warmq" reproduce --quick --with-walk --out report
	@bash scripts/real.sh "$${CARGO_TARGET_DIR:-target}/release/warmq"

test: setup-test setup-real
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	cargo build --workspace --bins --tests
	@bash scripts/together.sh "bash scripts/python-test.sh" "bash scripts/vm-test.sh --quick" \
		"cargo test --workspace --no-fail-fast"

test-all: test
	@bash scripts/together.sh "WARMQ_MUTANTS=10000 cargo test --workspace --test run mutated" "bash scripts/vm-test.sh --rest" \
		"bash scripts/color-asan.sh && bash scripts/elsewhere.sh && bash scripts/package.sh"

python-test: setup
	@bash scripts/python-test.sh

wheel: setup
	@bash scripts/python-test.sh --release

vm-test: setup-real
	@bash scripts/vm-test.sh

verdicts: setup setup-real
	@bash scripts/verdicts.sh

laws: setup setup-real
	@bash scripts/laws.sh

dist: setup setup-real
	@bash scripts/dist.sh
	@bash scripts/dist.sh aarch64
	@bash scripts/dist-test.sh

arm-test: setup setup-real
	@bash scripts/arm-test.sh

bench: setup
	@mkdir -p "$${CARGO_TARGET_DIR:-target}"
	@set -o pipefail; bash scripts/bench.sh | tee "$${CARGO_TARGET_DIR:-target}/bench.txt"
	@python3 -B bench/history.py append "$${CARGO_TARGET_DIR:-target}/bench.txt"

setup:
	@bash scripts/setup.sh

# What the real scheduler and the guests need.
setup-real:
	@bash scripts/setup-real.sh

setup-test:
	@bash scripts/setup.sh rustfmt clippy
