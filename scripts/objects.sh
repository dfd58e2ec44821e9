#!/bin/sh
# Compiles the BPF parts of released sched_ext schedulers into target/objects/NAME.bpf.o, with the
# flags of scx_cargo: what the readers of common/bpf and the interpreter of lab/bpf are tried on.
# Nothing of it is committed.
#
# objects.sh [TREE...]: also the schedulers in C of trees of the kernel, or of sched-ext/scx before
# 2026-02; of two of one name the last one stays.
#
# Needs clang-19, cc, libelf, zlib and cargo. The sources are those of crates.io, fetched by cargo; headers of the
# kernel, and libbpf are what the build of live/scx unpacked (`cargo build -p scx_warmq`).
set -eu
cd "$(dirname "$0")/.."

target=${CARGO_TARGET_DIR:-target}
out=$target/objects
crates='beerland=1.1.4 bpfland=1.1.4 cake=1.2.2 chaos=1.1.4 cosmos=1.1.7 flash=1.1.4 flow=4.8.15 lavd=1.1.4
	p2dq=1.1.4 rusty=1.1.4 tickless=1.1.4'
mkdir -p "$out/fetch/src"

# A manifest that names them all, so that cargo brings their sources.
{
	printf '[package]\nname = "objects"\nversion = "0.0.0"\nedition = "2024"\n\n[workspace]\n\n[dependencies]\n'
	for crate in $crates; do
		printf 'scx_%s = "=%s"\n' "${crate%=*}" "${crate#*=}"
	done
} >"$out/fetch/Cargo.toml"
echo 'fn main() {}' >"$out/fetch/src/main.rs"
sources=${CARGO_HOME:-$HOME/.cargo}/registry/src

# The newest match of a pattern below the build folder.
built() {
	# shellcheck disable=SC2012,SC2086
	ls -dt "$target"/*/build/$1 2>/dev/null | head -n 1
}

headers=$(built 'scx_warmq-*/out/scx_utils-bpf_h')
libbpf=$(built 'libbpf-sys-*/out/include')
if [ -z "$headers" ] || [ -z "$libbpf" ]; then
	echo 'objects: the headers are not there; first: cargo build -p scx_warmq' >&2
	exit 6
fi

compile() {
	clang-19 -g -O2 -mcpu=v4 -mllvm -disable-ldsx -mlittle-endian -D__TARGET_ARCH_x86 \
		-fno-stack-protector -Wno-everything -target bpf "$@" \
		-I"$headers/arch/x86" -I"$headers" -I"$headers/bpf-compat" -I"$headers/scx" -I"$libbpf" \
		-idirafter "/usr/include/$(uname -m)-linux-gnu" -idirafter /usr/include
}

parts=$(mktemp -d)
trap 'rm -rf "$parts"' EXIT

# The linker of the libbpf that scx_cargo takes: those of older bpftools know too few types.
cat >"$parts/link.c" <<'END'
#include <bpf/libbpf.h>

int main(int argc, char **argv)
{
	struct bpf_linker *linker = bpf_linker__new(argv[1], NULL);

	for (int at = 2; linker && at < argc; at++)
		if (bpf_linker__add_file(linker, argv[at], NULL))
			return 1;
	return !linker || bpf_linker__finalize(linker);
}
END
cc -I"$libbpf" -o "$parts/link" "$parts/link.c" "${libbpf%/include}/libbpf.a" -lelf -lz

# Links what clang made of one scheduler, as scx_cargo does.
link() {
	object=$out/$1.bpf.o
	shift
	if "$parts/link" "$parts/linked" "$@"; then
		mv "$parts/linked" "$object"
		echo "objects: $object"
	else
		echo "objects: $object cannot be linked" >&2
	fi
}

# The sources that the build script of a crate names, the main one first.
parts_of() {
	sed -n 's/.*\(enable_skel\|add_source\)("\([^"]*\)".*/\2/p' "$1/build.rs"
}

for crate in $crates; do
	name=${crate%=*}
	folder=$(ls -d "$sources"/*/"scx_$name-${crate#*=}" 2>/dev/null | head -n 1)
	if [ -z "$folder" ]; then
		cargo fetch --quiet --manifest-path "$out/fetch/Cargo.toml"
		folder=$(ls -d "$sources"/*/"scx_$name-${crate#*=}" | head -n 1)
	fi
	rm -f "$parts"/*.o
	for part in $(parts_of "$folder"); do
		compile -I"$folder/src/bpf" -c "$folder/$part" -o "$parts/$(basename "$part" .c).o"
	done
	link "$name" "$parts"/*.o
done

# Schedulers in C: those of the kernel (tools/sched_ext), and those that sched-ext/scx had in
# scheds/c until 2026-02, each with headers of its own.
for tree in "$@"; do
	for folder in "$tree/tools/sched_ext" "$tree/scheds/c"; do
		[ -d "$folder" ] || continue
		for source in "$folder"/*.bpf.c; do
			name=c_$(basename "$source" .bpf.c | sed 's/^scx_//')
			compile -iquote "$folder" -I"$folder" -I"$folder/include" -I"$tree/scheds/include" \
				-c "$source" -o "$parts/$name.o" || continue
			link "$name" "$parts/$name.o"
		done
	done
done

cp "$(built 'scx_warmq-*/out/bpf.bpf.o')" "$out/warmq.bpf.o"
echo "objects: $out/warmq.bpf.o"
