#!/usr/bin/env bash
# The short real part of `make run`: scenarios on this machine, and in a guest if there is QEMU.
#
#   scripts/real.sh WARMQ
set -euo pipefail
warmq=$1

"$warmq" run ping-pong --world lab,host --seeds 2 --time 500ms
"$warmq" run simplex --world host --seeds 2 --time 500ms --set kpps=40

# Whether this kernel has the starvation of 6.13 to 7.0 (docs/starvation-today.md): then hog_share is about 0, else 50 % or more.
# A kernel that has it may starve the player, too.
"$warmq" run receiver --world lab,host --seeds 1 --time 3s --set rate=2000 ||
    echo "the receiver was not played to the end here: docs/starvation-today.md says why that may be" >&2

if ! command -v qemu-system-x86_64 > /dev/null || ! command -v busybox > /dev/null; then
    echo "no guest: QEMU and busybox are not here (make vm-test installs them)" >&2
    exit 0
fi
if ! "$warmq" vm fetch > /dev/null; then
    echo "no guest: there is no kernel for one" >&2
    exit 0
fi
scheduler=$(ls -t "${CARGO_TARGET_DIR:-target}"/*/scx_warmq 2> /dev/null | head -n 1) || true
if [ -z "$scheduler" ]; then
    "$warmq" vm run -- uname -sr
    echo "scx_warmq is not built: cargo build --release -p scx_warmq (needs clang-19, libelf-dev), or make vm-test" >&2
    exit 0
fi
"$warmq" run ping-pong --world guest --scheduler "kernel,$scheduler" --seeds 1 --time 500ms --set cpus=1
