#!/usr/bin/env bash
# The short real part of `make run`: scenarios on this machine, and in a guest if there is QEMU.
#
#   scripts/real.sh WARMQ
set -euo pipefail
warmq=$1

"$warmq" run ping-pong --world lab,host --seeds 2 --time 500ms
"$warmq" run simplex --world host --seeds 2 --time 500ms --set kpps=40

# Says what the share of the other session's program means; the last column of the row is this machine's.
starvation() { # TABLE
    local share
    share=$(awk '$1 == "hog_share" { print $NF }' "$1")
    awk -v share="$share" -v kernel="$(uname -r)" 'BEGIN {
        if (share !~ /^[0-9.]+$/) print "Whether this kernel starves other sessions is not known: the table has no hog_share of this machine."
        else if (share < 10) print "This kernel (" kernel ") has the starvation of Linux 6.13 to 7.0: the program of the other session got " share " % of its CPU, where half or more was due. docs/starvation-today.md says what helps."
        else if (share >= 50) print "This kernel (" kernel ") does not have the starvation of Linux 6.13 to 7.0, or is not hit by it as it is set up: the program of the other session got " share " % of its CPU."
        else print "Whether this kernel (" kernel ") has the starvation of Linux 6.13 to 7.0 is not clear: the program of the other session got " share " % of its CPU. Other programs may have run beside it, or sessions are no groups here (kernel.sched_autogroup_enabled, or a cgroup below the root)."
    }'
}

# Whether this kernel has the starvation of 6.13 to 7.0 (docs/starvation-today.md): then hog_share is about 0, else 50 % or more.
# A kernel that has it may starve the player, too.
receiver=$(mktemp)
trap 'rm -f "$receiver"' EXIT
if "$warmq" run receiver --world lab,host --seeds 1 --time 3s --set rate=2000 | tee "$receiver"; then
    starvation "$receiver"
else
    echo "the receiver was not played to the end here: docs/starvation-today.md says why that may be" >&2
fi

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
