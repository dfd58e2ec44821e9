#!/usr/bin/env bash
# Packages the crates that others use on their own, and compiles each as a registry would have it: without the workspace around it.
# The registry is asked once, and not for each crate: what is in the lock file is what they are compiled with.
set -euo pipefail
cd "$(dirname "$0")/.."

published=$(cargo metadata --no-deps --format-version 1 |
    python3 -c 'import json,sys; print(*sorted(p["name"] for p in json.load(sys.stdin)["packages"] if p["publish"] is None))')
options=()
for crate in $published; do
    options+=(-p "$crate")
done
cargo fetch --locked

# Cargo takes a package that it once unpacked or compiled for the same as long as name and version are, and ours keep their
# version from commit to commit: without this they would be compiled with what an earlier one left in its caches.
target=${CARGO_TARGET_DIR:-target}/packages
rm -rf "$target"
for crate in $published; do
    rm -rf "${CARGO_HOME:-$HOME/.cargo}/registry/src"/*/"$crate"-[0-9]*
done
cargo package --offline --allow-dirty --target-dir "$target" "${options[@]}"
echo "package: $published"
