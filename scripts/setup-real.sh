#!/usr/bin/env bash
# Installs what the real scheduler and the recorder by BPF are built with and tried in: clang, libelf, QEMU, a busybox for guests, stress-ng, perf and trace-cmd; and Boost.Context, whose stacks warmq_color.hpp makes.
set -euo pipefail
. "$(dirname "$0")/install.sh"

missing=()
need() { # PROBE PACKAGE
    eval "$1" > /dev/null 2>&1 || missing+=("$2")
}

need "command -v clang-19" clang-19
need "command -v pkg-config" pkg-config
need "pkg-config --exists libelf" libelf-dev
need "pkg-config --exists zlib" zlib1g-dev
need "command -v make" make
need "command -v qemu-system-x86_64" qemu-system-x86
need "command -v busybox" busybox-static
need "command -v stress-ng" stress-ng
need "command -v perf" linux-perf
need "command -v trace-cmd" trace-cmd
need "test -e /usr/include/boost/context/fiber.hpp" libboost-context-dev

if [ "${#missing[@]}" -gt 0 ]; then
    install_packages "${missing[@]}"
fi
