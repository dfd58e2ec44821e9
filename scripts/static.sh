#!/usr/bin/env bash
# Builds warmq so that it needs no shared object: a file to copy to any machine of the same architecture, or into a container.
# It is linked against glibc's static half, which libc6-dev has, and its path is printed.
set -euo pipefail

target=$(rustc -vV | sed -n 's/^host: //p')
RUSTFLAGS="${RUSTFLAGS:-} -C target-feature=+crt-static" cargo build --release -p warmq --target "$target" >&2
program="${CARGO_TARGET_DIR:-target}/$target/release/warmq"

# ldd answers with an error where there is nothing to load.
if ldd "$program" > /dev/null 2>&1 && ! ldd "$program" | grep -q "statically linked"; then
    echo "static: $program still loads:" >&2
    ldd "$program" >&2
    exit 1
fi
"$program" --version > /dev/null
echo "$program"
