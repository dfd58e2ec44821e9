#!/usr/bin/env bash
# The whole matrix of laws: `make laws`. Kernels, their own scheduler, scx_warmq, and four schedulers of the scx project; goes on
# where it was interrupted. laws-out/laws.html and laws-out/laws.jsonl. By the wall clock a law that does not hold at first is
# played once more, but for the other schedulers.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/install.sh

# The schedulers of the scx project are built with it.
command -v protoc > /dev/null || install_packages protobuf-compiler

say() { echo "laws: $*" >&2; }

target=${CARGO_TARGET_DIR:-target}
out=${1:-laws-out}
cargo build --release -p warmq -p warmq-player -p scx_warmq
warmq="$target/release/warmq"

# The path of a scheduler of the scx project, at a version that is known to build and load on 6.18; built if there is none.
scheduler() { # NAME VERSION
    local root="$target/$1"
    if [ ! -x "$root/bin/$1" ]; then
        say "building $1 $2 (some minutes)"
        # Where cargo installs, it does not heed .cargo/config.toml.
        BPF_CLANG=${BPF_CLANG:-clang-19} cargo install --quiet "$1" --version "$2" --locked --root "$root" >&2 || return 1
    fi
    echo "$root/bin/$1"
}

# Those that can be built, separated by commas.
schedulers() { # "NAME VERSION"...
    local known path list=()
    for known in "$@"; do
        # shellcheck disable=SC2086
        if path=$(scheduler $known); then
            list+=("$path")
        else
            say "without ${known% *}: it cannot be built here"
        fi
    done
    (IFS=,; echo "${list[*]}")
}
others=$(schedulers "scx_bpfland 1.1.4" "scx_cosmos 1.1.7" "scx_flash 1.1.4")
slow=$(schedulers "scx_lavd 1.1.4")

# One matrix in one folder, made in parts: which schedulers a kernel can have differs. Broken laws are results here.
part() { "$warmq" laws --out "$out" --resume "$@" > /dev/null || [ $? -le 2 ]; }
say "the lab"
part --world lab --scheduler scx_warmq,linux24,mq
say "the kernels' own schedulers"
part --world guest --kernel 6.12,6.18,7.2 --scheduler kernel --repetitions 2 --confirm
say "what preemption changes: 6.18 as it is lazy, and full"
part other-session other-cgroup receiver-beside-hog receiver-beside-hogs timer timer-same-group timer-other-group wake-chain \
    --world guest --kernel 6.18 --preempt full --scheduler kernel --repetitions 2 --confirm
say "scx_warmq in 6.18"
part --world guest --kernel 6.18 --scheduler "$target/release/scx_warmq" --repetitions 2 --confirm
say "other schedulers of sched_ext in 6.18, once each"
[ -z "$others" ] || part --world guest --kernel 6.18 --scheduler "$others" --repetitions 1
say "a scheduler that the kernel takes half a minute of emulated time to verify: what a sleeper gets, and who pays"
[ -z "$slow" ] || part other-session other-cgroup frequent-sleepers pipe-reader receiver-beside-hog receiver-beside-hogs timer \
    timer-same-group timer-other-group wake-chain --world guest --kernel 6.18 --scheduler "$slow" --repetitions 1

say "all of it: $out/laws.html"
"$warmq" laws --out "$out" --show || [ $? -le 2 ]
