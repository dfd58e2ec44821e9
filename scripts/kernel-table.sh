#!/bin/sh
# Makes the tables of kernels that compiled BPF objects are fitted to, common/bpf/src/kernel/*.txt,
# out of the BTF of guests.
#
# Needs cargo, QEMU, and the kernels (`warmq vm fetch` gets them).
set -eu
cd "$(dirname "$0")/.."

target=${CARGO_TARGET_DIR:-target}
folder=$target/kernel-table
mkdir -p "$folder"
cargo build --workspace --bin warmq
cargo build -p warmq-bpf --example kernel_table

guest() {
	"$target/debug/warmq" vm run --release "$@"
}

for series in 7.3 6.18; do
	guest "$series" -- cat /sys/kernel/btf/vmlinux >"$folder/btf"
	guest "$series" -- sh -c 'cat /boot/config-*' >"$folder/config"
	version=$(guest "$series" -- uname -r)
	"$target/debug/examples/kernel_table" "${version%%[!0-9.]*}" "$folder/btf" "$folder/config" \
		>"$folder/table"
	mv "$folder/table" "common/bpf/src/kernel/$series.txt"
	echo "kernel-table: common/bpf/src/kernel/$series.txt"
done
