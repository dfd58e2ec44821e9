#!/usr/bin/env bash
# The laboratory's crates are compiled (not run) for systems that are not Linux; the command is refused there with a reason.
#
#   scripts/elsewhere.sh            needs rustup and clang-19 (CLANG names another one)
set -euo pipefail
cd "$(dirname "$0")/.."

clang=${CLANG:-clang-19}
laboratory="-p warmq-experiment -p warmq-race -p warmq-recordings -p warmq-diagnose -p warmq-replay -p warmq-report"
# Our C needs no headers but those of the compiler. cc-rs asks tools of Apple for a place of others, unless it has one.
export SDKROOT=/

for target in x86_64-pc-windows-gnu aarch64-apple-darwin; do
    if ! rustup target list --installed 2> /dev/null | grep -qx "$target" && ! rustup target add "$target" > /dev/null 2>&1; then
        echo "elsewhere: $target: SKIPPED: Rust has no library for it here (rustup target add $target)"
        continue
    fi
    name=${target//-/_}
    export "CC_$name=$clang" "AR_$name=ar" "CFLAGS_$name=-ffreestanding -nostdlibinc"
    # shellcheck disable=SC2086
    cargo check --quiet --target "$target" $laboratory
    if said=$(cargo check --quiet --target "$target" -p warmq 2>&1); then
        echo "elsewhere: the command compiles for $target: say so in docs/install.md" >&2
        exit 1
    elif ! grep -q "needs Linux" <<< "$said"; then
        echo "elsewhere: the command does not say why it needs Linux on $target:" >&2
        tail -20 <<< "$said" >&2
        exit 1
    fi
    echo "elsewhere: $target: the laboratory compiles, and the command says that it needs Linux"
done
