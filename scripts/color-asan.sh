#!/usr/bin/env bash
# The pool, the arena and the headers of warmq-color under the address sanitizer, which needs a
# nightly compiler; says so where there is none. Miri cannot run them: it has no mprotect.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! cargo +nightly --version >/dev/null 2>&1; then
	echo "skipped: no nightly compiler (rustup toolchain install nightly)"
	exit 0
fi
host=$(rustc -vV | sed -n 's/^host: //p')
# A child that runs into a guard page is ended by the sanitizer, not by the kernel; the sanitizer
# chooses where stacks of threads lie.
RUSTFLAGS=-Zsanitizer=address cargo +nightly test -p warmq-color --test arena --test pool --test header \
	--target "$host" --target-dir "${CARGO_TARGET_DIR:-target}/asan" -- --skip below_a_stack
