#!/bin/sh
# Compiles the BPF programs of the tests: *.bpf.c beside which *.bpf.o are checked in, so that the
# tests need no clang.
#
# Needs clang-19 and llvm-strip of LLVM 19.
set -eu
cd "$(dirname "$0")/.."

strip=$(command -v llvm-strip-19 || echo llvm-strip)
for source in common/bpf/tests/programs/*.bpf.c lab/*/tests/programs/*.bpf.c; do
	object=${source%.c}.o
	clang-19 -g -O2 -mcpu=v4 -mllvm -disable-ldsx -mlittle-endian -D__TARGET_ARCH_x86 \
		-fno-stack-protector -Wno-unused -Wno-visibility -ffile-prefix-map="$PWD"=. \
		-target bpf -c "$source" -o "$object"
	"$strip" -g "$object"
	echo "bpf-programs: $object"
done
