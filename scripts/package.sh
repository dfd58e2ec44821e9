#!/usr/bin/env bash
# Packages the crates that others use on their own, and compiles each as a registry would have it: without the workspace around it.
set -euo pipefail
cd "$(dirname "$0")/.."

published=$(cargo metadata --no-deps --format-version 1 |
    python3 -c 'import json,sys; print(*sorted(p["name"] for p in json.load(sys.stdin)["packages"] if p["publish"] is None))')
options=()
for crate in $published; do
    options+=(-p "$crate")
done
cargo package --allow-dirty "${options[@]}"
echo "package: $published"
