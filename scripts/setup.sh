#!/usr/bin/env bash
# Installs what is missing to build WarmQ on Debian 12, and says so before it does.
#
#   scripts/setup.sh [RUST-COMPONENT...]      as in: scripts/setup.sh rustfmt clippy
set -euo pipefail

# shellcheck source=scripts/install.sh
. "$(dirname "$0")/install.sh"

# Rust links through the C compiler, and needs the C library's start-up files.
if ! command -v cc > /dev/null; then
    install_packages gcc libc6-dev
fi

if ! command -v cargo > /dev/null; then
    say "missing: cargo; install Rust from https://rustup.rs"
    exit 1
fi

for component in "$@"; do
    tool="cargo-${component/rustfmt/fmt}"
    if command -v "$tool" > /dev/null && "$tool" --version > /dev/null 2>&1; then
        continue
    fi
    if ! command -v rustup > /dev/null; then
        say "missing: $component; install it with the Rust that you have, or Rust from https://rustup.rs"
        exit 1
    fi
    say "adding to Rust: $component"
    rustup component add "$component"
done
