#!/usr/bin/env bash
# The tests of common/ and lab/ for 64-bit Arm, in emulation. Whatever is calculated must come out as on x86-64: digests,
# snapshots, figures.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/install.sh
. scripts/install.sh
# A folder of its own, so that what was built for this machine stays as it is.
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/arm
target=$(realpath -m "$CARGO_TARGET_DIR")
mkdir -p "$target"
command -v qemu-aarch64-static > /dev/null || install_packages qemu-user-static
# shellcheck source=scripts/arm.sh
. scripts/arm.sh
packages=()
for folder in common/* lab/*; do
    [ ! -f "$folder/Cargo.toml" ] || packages+=(-p "$(sed -n 's/^name = "\(.*\)"/\1/p;T;q' "$folder/Cargo.toml")")
done
cargo test --no-fail-fast --target "$arm" "${packages[@]}" "$@"
