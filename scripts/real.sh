#!/usr/bin/env bash
# The short real part of `make run`: the real programs on this machine, and a guest if there is QEMU.
#
#   scripts/real.sh WARMQ
set -euo pipefail
warmq=$1

"$warmq" bench fragments --threads 8 --repetitions 6 --iterations 2000000
"$warmq" bench simplex --kpps 40 --repetitions 2 --work 0.5

if ! command -v qemu-system-x86_64 > /dev/null || ! command -v busybox > /dev/null; then
    echo "no guest: QEMU and busybox are not here (make vm-test installs them)" >&2
    exit 0
fi
if ! "$warmq" vm fetch > /dev/null; then
    echo "no guest: there is no kernel for one" >&2
    exit 0
fi
scheduler=$(ls -t "${CARGO_TARGET_DIR:-target}"/*/scx_warmq 2> /dev/null | head -n 1)
if [ -z "$scheduler" ]; then
    "$warmq" vm run -- uname -sr
    echo "scx_warmq is not built: cargo build --release -p scx_warmq (needs clang-19, libelf-dev), or make vm-test" >&2
    exit 0
fi
"$warmq" vm run --file "$scheduler:/bin/scx_warmq" --timeout 120 -- scx_warmq --exit-after 3
