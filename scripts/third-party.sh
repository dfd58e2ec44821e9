#!/usr/bin/env bash
# Prints what is linked into the `warmq` command, which the Python wheel carries, with the licence of each.
set -euo pipefail
cd "$(dirname "$0")/.."
echo "The command \`warmq\` in this package is linked from these crates (name, version, licence as its author"
echo "states it). The module beside it is WarmQ's own: MIT or Apache-2.0, at your option."
echo
# Cargo does not list what the compiler brings.
echo "Rust's standard library | MIT OR Apache-2.0 | https://github.com/rust-lang/rust (what is in it: library/Cargo.lock, COPYRIGHT)"
echo "uPlot 1.6.32, in pages with plots (common/report/src/html/vendor) | MIT | https://github.com/leeoniya/uPlot"
# {r} is the repository: where the text of the licence and the names of the authors are.
cargo tree --locked -p warmq -e normal --target x86_64-unknown-linux-gnu --prefix none --no-dedupe -f '{p} | {l} | {r}' \
    | grep -v "($PWD" | sed -e 's/ (\*)$//' -e 's/ (proc-macro)//' | LC_ALL=C sort -u
