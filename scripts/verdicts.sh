#!/usr/bin/env bash
# Verdicts of `warmq diagnose` on what guests played: each scenario of cli/tests/verdicts provokes one kind of verdict, or none; and laws under
# the kernel's own scheduler, where nobody starves, provoke no kind but what they are made of. `make verdicts` is all of it.
#
#     scripts/verdicts.sh             kernels 6.12, 6.18 and 7.2: some twenty-five minutes on two free cores
#     scripts/verdicts.sh --quick     6.18, one CPU: some two minutes
#
# Time in guests of one CPU is a count of instructions, so that neither the host's load nor its speed decides. Guests of two CPUs run by the
# wall clock: where this machine is busy, what they say of waits is this machine's. Ends with lines that the test runner's sum counts.
set -euo pipefail
cd "$(dirname "$0")/.."

quick=
[ "${1:-}" = --quick ] && quick=yes
# As vm-test.sh does: with other packages or without tests, features differ, and all is compiled again.
cargo build -q --workspace --bins --tests
warmq=${CARGO_TARGET_DIR:-target}/debug/warmq
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
passed=0 failed=0

# Where, and how long each scenario is played.
machine=small-smt
length="--time 1s --warmup 200ms"

# The kinds of verdicts on what KERNEL plays of SCENARIO, sorted.
kinds() { # KERNEL CPUS SCENARIO OPTIONS...
    local kernel=$1 cpus=$2 scenario=$3 trace=$folder/it.warmq
    shift 3
    "$warmq" run "$scenario" --world guest --kernel "$kernel" --machine "$machine" --set "cpus=$cpus" --seeds 1 $length \
        --trace "$trace" "$@" > "$folder/said" 2>&1 || { cat "$folder/said" >&2; echo "no run"; return; }
    "$warmq" diagnose "$trace" --json | { grep -o '"kind":"[^"]*","tasks"' || true; } | cut -d'"' -f4 | sort -u | tr '\n' ' ' | sed 's/ $//'
}

expect() { # KINDS[|KINDS] KERNEL CPUS SCENARIO OPTIONS...
    local wanted=$1 found
    shift
    found=$(kinds "$@")
    if [[ "|$wanted|" = *"|$found|"* ]]; then
        passed=$((passed + 1))
        echo "verdicts: $1 $3: ${found:-none}"
    else
        failed=$((failed + 1))
        echo "verdicts: $1 $3: ${found:-none}, and should be ${wanted:-none}"
    fi
}

stories=cli/tests/verdicts
features=/sys/kernel/debug/sched/features
kernels="6.12 6.18 7.2"
# Turns end at ticks, which are longer than slices; from 7.1 on a timer ends them (HRTICK), and nobody waits for that long.
late() { # KERNEL
    case $1 in 6.*) echo latency ;; esac
}
[ -z "$quick" ] || kernels=6.18
for kernel in $kernels; do
    expect "" "$kernel" 1 $stories/nothing.toml
    expect least-weight "$kernel" 1 $stories/least-weight.toml
    expect least-weight "$kernel" 1 $stories/least-group.toml
    expect quota "$kernel" 1 $stories/quota.toml
    expect too-many "$kernel" 1 $stories/too-many.toml
    expect realtime "$kernel" 1 $stories/realtime.toml
    expect "$(late "$kernel")" "$kernel" 1 $stories/keys.toml
    expect outweighed "$kernel" 1 $stories/outweighed.toml
    expect nice-without-effect "$kernel" 1 $stories/nice-in-session.toml
    # The kernel forgets what a task owes when it sleeps.
    expect sleeper-preempts "$kernel" 1 $stories/sleepers.toml --set "tunables=$features=NO_PLACE_LAG $features=NO_DELAY_DEQUEUE"
    expect too-many "$kernel" 1 $stories/sleepers.toml
    [ -n "$quick" ] && continue
    # Loopback's packets are taken in softirqs of CPU 0, as those of a card whose interrupts it has.
    expect interrupts "$kernel" 2 $stories/softirqs.toml --set "tunables=/sys/class/net/lo/queues/rx-0/rps_cpus=1"
    expect affinity "$kernel" 2 $stories/affinity.toml
    expect quota-stranded "$kernel" 2 $stories/quota-stranded.toml --set tunables=/proc/sys/kernel/sched_cfs_bandwidth_slice_us=90000
    # An emulated CPU is too slow for a thousand datagrams a second: the receiver is late, and that is said, too.
    case $kernel in
        6.18) expect "group-starved|group-starved latency" "$kernel" 2 receiver --preempt full ;;
        *) expect "|latency" "$kernel" 2 receiver --preempt full ;;
    esac
done

# A scheduler that is wrong about who runs where, or who runs next.
misplaces=lab/sched-ext/tests/programs/misplaces.bpf.o
for kernel in 6.18 7.3; do
    [ -n "$quick" ] && [ "$kernel" != 6.18 ] && continue
    expect unexplained "$kernel" 1 $stories/three-hogs.toml --scheduler "$misplaces:way=2"
    [ -n "$quick" ] && continue
    expect idle-beside "$kernel" 2 $stories/three-hogs.toml --scheduler "$misplaces:way=0"
    machine=tiny-2cpu expect moves "$kernel" 2 $stories/pair.toml --scheduler "$misplaces:way=1"
done

# Requests for slices, by sched_setattr(2).
of_slices="6.12 6.18 7.3"
[ -z "$quick" ] || of_slices=6.18
for kernel in $of_slices; do
    expect slices-long "$kernel" 1 $stories/slices-long.toml
    expect slices-short "$kernel" 1 $stories/slices-short.toml
done

# LAW:LENGTH:KINDS[|KINDS]. Where kinds are named, the law itself has a least weight, more tasks than CPUs, a quota, or somebody who is
# woken often and waits for some turns of others. In short-naps the wait beside the heavy group falls at the wakeup or within the 4 ms of
# work, as ticks of 4 ms fall: late at wakeups is who waits there.
for kernel in $kernels; do
    [ -z "$quick" ] || break
    while IFS=: read -r law seconds wanted; do
        length="--time $seconds" expect "$wanted" "$kernel" 1 "laws/$law.toml" < /dev/null
    done <<-LAWS
		nice:2s:
		weights:2s:least-weight
		least-weight:20s:least-weight too-many
		idle-class:2s:
		nested:2s:too-many
		group-moves:4s:
		forks:2s:$(late "$kernel")
		frequent-sleepers:2s:too-many
		short-naps:4s:outweighed|
		short-beside-long:4s:
		pipe-reader:2s:
		quota-sleepers:5s:quota
		timer:2s:
		timer-same-group:2s:latency too-many
		timer-other-group:2s:
		thaw:2500ms:
	LAWS
done

if [ "$failed" -eq 0 ]; then
    echo "test result: ok. $passed passed; 0 failed; 0 ignored; verdicts"
else
    echo "test result: FAILED. $passed passed; $failed failed; 0 ignored; verdicts"
    exit 1
fi
