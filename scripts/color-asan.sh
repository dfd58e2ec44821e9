#!/usr/bin/env bash
# The pool, the arena and the headers of warmq-color under the address sanitizer, and pool and arena
# under Miri; both need a nightly compiler, and it is said what is missing. Miri has neither guard
# pages nor switches: there all memory is open, and it sees what is read and written too early, too
# late, by two at a time or out of bounds.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! cargo +nightly --version >/dev/null 2>&1; then
	echo "skipped: no nightly compiler (rustup toolchain install nightly)"
	exit 0
fi
target=${CARGO_TARGET_DIR:-target}
host=$(rustc -vV | sed -n 's/^host: //p')
# A child that runs into a guard page is ended by the sanitizer, not by the kernel; the sanitizer
# chooses where stacks of threads lie.
RUSTFLAGS=-Zsanitizer=address cargo +nightly test -p warmq-color --test arena --test pool --test header \
	--target "$host" --target-dir "$target/asan" -- --skip below_a_stack

if ! cargo +nightly miri --version >/dev/null 2>&1; then
	echo "skipped: no Miri (rustup component add --toolchain nightly miri rust-src)"
	exit 0
fi
# Pools give addresses to assembly, whose provenance is exposed; caches are read from /sys.
MIRIFLAGS="-Zmiri-disable-isolation -Zmiri-permissive-provenance" \
	cargo +nightly miri test -p warmq-color --test arena --test pool --target-dir "$target/miri"
