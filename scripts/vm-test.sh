#!/usr/bin/env bash
# What scx_warmq must do on a real kernel, in guests: `make vm-test`. Ends with lines that the test runner's sum counts.
#
#   scripts/vm-test.sh          everything
#   scripts/vm-test.sh --quick  a scenario in the lab and in a guest, and ten laws under scx_warmq
#   scripts/vm-test.sh --rest   all but these
#
# Time in most guests is a count of instructions, so that neither the host's load nor its speed decides what passes.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { echo "vm-test: $*" >&2; }

skip() {
    say "SKIPPED: $*"
    say "nothing about the real scheduler was tested"
    echo "test result: ok. 0 passed; 0 failed; 1 ignored; vm-test was skipped"
    exit 0
}

for tool in qemu-system-x86_64 clang-19 busybox; do
    command -v "$tool" > /dev/null || skip "$tool cannot be had here (scripts/setup.sh says why)"
done

# With the tests, whose dependencies have more features: after `cargo test` nothing is compiled twice (four minutes).
cargo build --workspace --bins --tests --example rooms
rooms=${CARGO_TARGET_DIR:-target}/debug/examples/rooms
bin=${CARGO_TARGET_DIR:-target}/debug
"$bin/warmq" vm fetch || skip "no kernel with sched_ext: it could not be downloaded, and none is in the cache"

# A guest, its lines marked with a name. Counting guests take one core each, so two run at a time.
run_guest() { # NAME, OPTIONS of vm run... -- COMMAND...
    local name=$1
    shift
    "$bin/warmq" vm run --file "$bin/scx_warmq:/bin/scx_warmq" --memory 2048 --timeout 900 "$@" 2>&1 |
        sed -u "/^test result/!s/^/$name: /"
}

# As run_guest. A guest that broke down itself (125; seen once in some forty, in code that has nothing to do with scheduling:
# emulators have faults, too) gets a second chance, and only one.
guest() {
    local status=0
    run_guest "$@" || status=$?
    if [ "$status" -eq 125 ]; then
        say "the guest $1 broke down; ONCE MORE"
        status=0
        run_guest "$@" || status=$?
    fi
    return "$status"
}

drill="$bin/warmq-drill"
failed=0

# The line that the sum counts. What the command printed is there already.
holds() { # WHAT HOW-MANY
    echo "test result: ok. $2 passed; 0 failed; 0 ignored; $1"
}
fails() { # WHAT
    echo "test result: FAILED. 0 passed; 1 failed; 0 ignored; $1"
    return 1
}

# One scenario in two worlds: its chart in the lab and under a real kernel whose clock counts instructions, against the one
# that was made by hand.
same_chart() { # SCENARIO CHART OPTIONS...
    local scenario=$1 chart=$2 drawn
    shift 2
    drawn=$("$bin/warmq" run "$scenario" --world lab,guest --set cpus=1 --seeds 1 --warmup 0ms --chart 10ms "$@") || return 1
    if [ "$(grep -cF "  cpu0  $chart" <<< "$drawn")" -ne 2 ]; then
        say "the charts should both be $chart"
        sed 's/^/    /' <<< "$drawn" >&2
        fails "one scenario, two worlds"
        return 1
    fi
    holds "one scenario, two worlds" 1
}

# Laws (docs/laws.md) that scx_warmq and the kernel's own scheduler keep; `make laws` plays all. Those that are broken are played
# once more, and it is said: where a guest has several CPUs, these run beside each other as the host lets them. (Of 33 guests of
# fragments-at-home, two had more than a tenth away; in one that was looked at, two pairs changed places while it was measured.)
keep_laws() { # LAWS... OPTIONS of laws...
    local printed broken laws=()
    while [ $# -gt 0 ] && [ "${1#--}" = "$1" ]; do
        laws+=("$1")
        shift
    done
    printed=$("$bin/warmq" laws --world guest "${laws[@]}" "$@") || true
    echo "$printed"
    mapfile -t broken < <(sed -n 's/^✗ \([^ ]*\) in .*/\1/p' <<< "$printed" | sort -u)
    if [ "${#broken[@]}" -gt 0 ]; then
        say "ONCE MORE: ${broken[*]}"
        printed=$("$bin/warmq" laws --world guest "${broken[@]}" "$@") || true
        echo "$printed"
    fi
    if [[ $(tail -n 1 <<< "$printed") =~ ^([0-9]+)\ holds,\ 0\ broken,\ 0\ inconclusive ]]; then
        holds laws "${BASH_REMATCH[1]}"
    else
        fails laws
    fi
}

what_tasks_get=(nice nice-on-two-cpus weights nested one-against-many narrow-cpusets short-naps frequent-sleepers pipe-reader forks)
if [ "${1-}" != --rest ]; then
    say "a scenario in the lab and in a guest"
    same_chart live/player/tests/relay.toml 'abb..abb..abb' --time 200ms || failed=1
    say "laws: what tasks get, under scx_warmq"
    keep_laws "${what_tasks_get[@]}" --scheduler "$bin/scx_warmq" || failed=1
fi
[ "${1-}" != --quick ] || exit "$failed"

say "laws: what tasks get, under the kernel's own scheduler"
keep_laws "${what_tasks_get[@]}" --scheduler kernel || failed=1

say "laws: where tasks run, hints that lie, under scx_warmq"
keep_laws fragments-at-home chat-rooms smt real-time-hog least-weight lying-hints --scheduler "$bin/scx_warmq" || failed=1

say "verdicts: what warmq diagnose says of what guests played; all of it: scripts/verdicts.sh"
scripts/verdicts.sh --quick || failed=1

# A guest that may use BPF but cannot mount tracefs, as a container: warmq watch records by BPF, and finds who starves.
without_tracefs() {
    local printed load="nice -n 19 sh -c 'while :; do :; done' & sh -c 'while :; do :; done' & sleep 3; kill %1 %2"
    printed=$("$bin/warmq" vm run --cpus 1 --timeout 300 --file "$bin/warmq:/bin/warmq" --file "$bin/warmq-record:/bin/warmq-record" \
        --file setpriv --file nice -- sh -c "umount /sys/kernel/tracing; umount /sys/kernel/debug;
            exec setpriv --bounding-set=-sys_admin warmq watch --for 2s -- sh -c \"$load\"" 2>&1) || true
    echo "$printed" | sed 's/^/without tracefs: /'
    if grep -q "tracefs cannot be had.*recorded by BPF" <<< "$printed" && grep -q "nothing was lost" <<< "$printed" &&
        grep -q "^\[least-weight\]" <<< "$printed"; then
        holds "recording without tracefs" 1
    else
        fails "recording without tracefs"
    fi
}
say "a machine without tracefs: warmq watch records by BPF"
without_tracefs || failed=1

# A scheduler's count of wakeups is the kernel's: of what is printed, whose last column is the scheduler's, after one without.
counts_right() {
    awk '{ gsub(",", "") }
        $1 == "wakeups_per_second" { seen = $NF }
        $1 == "scheduler.wakeups_per_second" { counted = $NF; without = $(NF - 1) }
        END { exit !(counted > 0 && without == "–" && counted > 0.98 * seen && counted < 1.02 * seen) }'
}

# This machine as a world, which a guest is here: a scheduler is loaded for as long as it plays, and no longer, and its counters
# are read.
loaded_here() {
    local printed
    printed=$("$bin/warmq" vm run --cpus 1 --instructions --memory 3072 --timeout 600 --file "$bin/warmq:/bin/warmq" \
        --file "$bin/warmq-player:/bin/warmq-player" --file "$bin/scx_warmq:/bin/scx_warmq" -- sh -c "
            warmq run ping-pong --world host --scheduler kernel,scx_warmq --seeds 1 --time 200ms --all;
            echo scheduler: \$(cat /sys/kernel/sched_ext/state)" 2>&1) || true
    echo "$printed" | sed 's/^/loaded here: /'
    if grep -q "^ figure .* kernel .* scx_warmq" <<< "$printed" && grep -q "^ work_per_second .* [1-9]" <<< "$printed" &&
        grep -qx "scheduler: disabled" <<< "$printed" && counts_right <<< "$printed"; then
        holds "a scheduler that is loaded while it plays, and counts" 1
    else
        fails "a scheduler that is loaded while it plays, and counts"
    fi
}
say "a machine under another scheduler for as long as something is played"
loaded_here || failed=1

# Counted guests of several CPUs let them take turns of up to 100 ms: waits are judged by upper bounds alone, which turns can only
# make harder to keep.
say "two CPUs, one cache: how it starts and ends, labels, who may ask; stress-ng for 60 s; meanwhile hotplug, changes and faults; what a switch costs, in instructions"
in_guest() { # NAME, OPTIONS of vm run... -- CHECKS...
    local name=$1 options=()
    shift
    while [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    shift
    guest "$name" --instructions=4 --cpus 2 --file scripts/in-guest.sh:/bin/checks "${options[@]}" -- sh /bin/checks "$@"
}
together() {
    local failed=0
    in_guest started --file setpriv --file "$rooms:/bin/rooms" -- leaves options one ejected hooks label access || failed=1
    in_guest stress --file stress-ng -- stress || failed=1
    guest others --instructions=4 --cpus 2 -- "$drill" others/ || failed=1
    return "$failed"
}
together &
beside=$!
in_guest changes --file "$bin/warmq-player:/bin/warmq-player" --file laws/fragments-at-home.toml:/fragments-at-home.toml \
    -- hotplug churn || failed=1
guest faults --instructions=4 --cpus 2 -- "$drill" starved/ --time 20 || failed=1
# The newest kernel that it loads on: that it does, and what a kernel has changed most often, who waits for whom.
if "$bin/warmq" vm fetch --release 7.3 > /dev/null; then
    keep_laws real-time-hog-pinned --kernel 7.3 --scheduler "$bin/scx_warmq" || failed=1
    guest newest --release 7.3 --instructions=4 --cpus 2 -- "$drill" starved/ --time 20 || failed=1
else
    say "SKIPPED: Linux 7.3 could not be downloaded"
fi
# With a scheduler of the scx project for a number to compare with, where `make laws` has built it.
compared=()
other=${CARGO_TARGET_DIR:-target}/scx_bpfland/bin/scx_bpfland
[ ! -x "$other" ] || compared=(--file "$other:/bin/scx_bpfland")
guest switch --instructions --file "$drill:/bin/warmq-drill" --file scripts/in-guest.sh:/bin/checks "${compared[@]}" \
    -- sh /bin/checks switch || failed=1
wait "$beside" || failed=1

exit "$failed"
