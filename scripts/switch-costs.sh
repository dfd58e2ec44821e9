#!/usr/bin/env bash
# What a switch takes under compiled schedulers: in a guest of one CPU whose clock counts instructions, and in the lab. The table of
# docs/your-scheduler.md.
#
#   scripts/switch-costs.sh SERIES [OBJECT...]   of a kernel; the objects of scripts/objects.sh, if none is named
#
# In the guest objects run without their loaders' settings, but for scx_warmq, whose loader runs. The lab adds what a program takes
# (`--profile`) to what a switch takes under sched_ext without one, which is what `none.0` of scripts/bpf-costs.sh takes.
#
# Needs cargo, clang-19 and QEMU.
set -euo pipefail
cd "$(dirname "$0")/.."

series=$1
shift
bin=${CARGO_TARGET_DIR:-target}/debug
out=${CARGO_TARGET_DIR:-target}/switch-costs
cargo build -q -p warmq -p warmq-attach -p warmq-drill -p scx_warmq
if [ $# -eq 0 ]; then
    scripts/objects.sh
    set -- "${CARGO_TARGET_DIR:-target}"/objects/{bpfland,cosmos,flash}.bpf.o
fi
rm -rf "$out"
mkdir -p "$out"
clang-19 -g -O2 -mcpu=v4 -mllvm -disable-ldsx -D__TARGET_ARCH_x86 -fno-stack-protector -Wno-unused -Wno-visibility \
    -Wno-incompatible-pointer-types -target bpf -DTIMES=0 -c experiments/costs/bpf/cost.bpf.c -o "$out/none.o"
for object in "$@"; do cp "$object" "$out/$(basename "$object" .bpf.o).o"; done
# Compressed, so that they are no programs of another machine.
gzip "$out"/*.o

cat > "$out/measure" <<'S'
gunzip /costs/*.gz
for object in /costs/*.o; do
    name=${object##*/}
    echo "guest ${name%.o} $(attach "$object" warmq-drill --switch-cost 2>&1 | tail -n 4 | tr '\n' ' ')"
    while [ "$(cat /sys/kernel/sched_ext/state)" != disabled ]; do :; done
done
scx_warmq > /dev/null 2>&1 & loader=$!
while [ "$(cat /sys/kernel/sched_ext/state)" != enabled ]; do sleep 0.1; done
echo "guest scx_warmq $(warmq-drill --switch-cost)"
kill $loader
while [ "$(cat /sys/kernel/sched_ext/state)" != disabled ]; do :; done
echo "guest kernel $(warmq-drill --switch-cost)"
S
"$bin/warmq" vm run --release "$series" --instructions --cpus 1 --timeout 3000 --file "$out:/costs" \
    --file "$bin/warmq-attach:/bin/attach" --file "$bin/warmq-drill:/bin/warmq-drill" --file "$bin/scx_warmq:/bin/scx_warmq" \
    -- sh /costs/measure

for scheduler in "$bin/scx_warmq" "$@"; do
    "$bin/warmq" run ping-pong --machine guest-1cpu --scheduler "$scheduler" --set "series=$series" --time 300ms --warmup 50ms \
        --seeds 1 --profile 2> /dev/null | sed -n 's/^.*: its program takes/lab &/p'
done
