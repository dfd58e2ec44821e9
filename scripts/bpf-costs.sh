#!/usr/bin/env bash
# What BPF costs in a kernel: instructions of a guest whose clock counts them, for each call of a kfunc or a helper, each BPF
# instruction and each callback. docs/journal/fidelity.md has what was found.
#
#   scripts/bpf-costs.sh [SERIES] [NAME...]   of a kernel, 7.3 if none is named; only these of the table below
#
# A scheduler of ours (experiments/costs/bpf/cost.bpf.c) makes a call 8 and 40 times in each switch of two tasks on one CPU; the
# difference of what a switch takes is that of 32 calls. What their arguments take is subtracted, as BPF instructions. Once alone
# shows what only the first one takes (a kick sends an interrupt).
set -euo pipefail
cd "$(dirname "$0")/.."

series=${1:-7.3}
shift || true
bin=${CARGO_TARGET_DIR:-target}/debug
out=${CARGO_TARGET_DIR:-target}/bpf-costs
rm -rf "$out"
mkdir -p "$out"

compile() { # NAME TIMES OPTIONS...
    local name=$1 times=$2
    shift 2
    clang-19 -g -O2 -mcpu=v4 -mllvm -disable-ldsx -D__TARGET_ARCH_x86 -fno-stack-protector -Wno-unused -Wno-visibility \
        -Wno-incompatible-pointer-types -target bpf -D"TIMES=$times" "$@" -c experiments/costs/bpf/cost.bpf.c -o "$out/$name.$times.o"
}

wanted() { # NAME
    [ ${#only[@]} -eq 0 ] && return
    local one
    for one in "${only[@]}"; do [ "$one" != "$1" ] || return 0; done
    return 1
}
only=("$@")

# A name, the call, what is prepared before, and what must come after.
while IFS='|' read -r name call prepare after; do
    [ -n "$name" ] && wanted "$name" || continue
    for times in 1 8 40; do
        compile "$name" "$times" -DRUNNING "-DCALL=$call" "-DPREPARE=$prepare" "-DAFTER=$after" || echo "bpf-costs: $name does not compile" >&2
    done
done < <(cat experiments/costs/bpf/calls.txt)
insert='-DENQUEUE=scx_bpf_dsq_insert(p, SHARED, 0, flags);'
compile none 0
compile running 0 -DRUNNING
compile enqueue 0 '-DENQUEUE=scx_bpf_dsq_insert(p, DSQ_GLOBAL, 0, flags);'
compile shared 0 "$insert" -DDISPATCH=
compile vtime 0 '-DENQUEUE=scx_bpf_dsq_insert_vtime(p, SHARED, 0, 1, flags);' -DDISPATCH=
for times in 8 40; do
    compile scx_bpf_dsq_move_to_local.empty "$times" "$insert" '-DDISPATCH=scx_bpf_dsq_move_to_local(EMPTY);'
done

# Compressed, so that they are no programs of another machine.
gzip "$out"/*.o

cat > "$out/measure" <<'S'
gunzip /costs/*.gz
for object in /costs/*.o; do
    name=${object##*/}
    said=$(attach "$object" warmq-drill --switch-cost 2> /tmp/why) || said="refused: $(grep -v '^libbpf\|^processed' /tmp/why | tail -n 4 | tr '\n' ' ')"
    echo "${name%.o} $said"
    while [ "$(cat /sys/kernel/sched_ext/state)" != disabled ]; do :; done
done
echo "kernel $(warmq-drill --switch-cost)"
S
"$bin/warmq" vm run --release "$series" --instructions --cpus 1 --timeout 3000 --file "$out:/costs" --file "$bin/warmq-attach:/bin/attach" \
    --file "$bin/warmq-drill:/bin/warmq-drill" -- sh /costs/measure
