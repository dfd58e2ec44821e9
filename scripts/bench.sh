#!/bin/sh
# Prints how fast everything is, on this machine: the caches, whole runs, hints, and the first two
# beside programs that do the same (pycachesim's C core, SimSo). `make bench` calls it;
# docs/speed.md explains it.
#
# Needs cargo, a C compiler, Python 3 with venv, and the Python Package Index for the comparisons.
set -eu
cd "$(dirname "$0")/.."

target=${CARGO_TARGET_DIR:-target}
folder=$target/compare
venv=$folder/venv

# Installs the Debian packages "$@"; says so first.
install() {
	as_root=
	[ "$(id -u)" -eq 0 ] || as_root=sudo
	echo "bench: installing with apt: $*"
	$as_root apt-get update -qq
	$as_root apt-get install -y --no-install-recommends "$@"
}

make_venv() {
	python3 -c 'import ensurepip, venv' 2>/dev/null || install python3-venv
	[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
	"$venv/bin/pip" install --quiet --disable-pip-version-check 'simso==0.8.5' 'setuptools<81'
}

# pycachesim's own C source from its package, compiled with our driver; without Python in between.
make_theirs() {
	command -v cc >/dev/null || install gcc libc6-dev
	package=pycachesim-0.3.1
	if [ ! -d "$folder/$package" ]; then
		"$venv/bin/pip" download --quiet --disable-pip-version-check --no-deps \
			--no-binary :all: --dest "$folder" pycachesim==0.3.1
		tar -xzf "$folder/$package.tar.gz" -C "$folder"
	fi
	core=$folder/$package/cachesim
	cc -std=gnu11 -O3 -w -DNO_PYTHON -I"$core" -o "$folder/theirs" \
		bench/caches/theirs.c "$core/backend.c"
}

echo "== caches: accesses a second"
cargo bench -p warmq-machine --bench caches

# The scenes under compiled schedulers need their objects, and are left out without.
if command -v clang-19 >/dev/null && cargo build --release -p scx_warmq && bash scripts/objects.sh; then
	echo "bench: objects of compiled schedulers are in $target/objects"
else
	echo "bench: no objects of compiled schedulers"
fi

echo
echo "== engine: events, and records of scheduling, a second of this machine's time"
cargo bench -p warmq-sched --bench engine

echo
echo "== compiled BPF: instructions a second, beside rbpf's interpreter"
cargo bench -p warmq-bpf-run --bench interpreter

echo
echo "== hints: nanoseconds a call"
cargo bench -p warmq-hint --bench hint

echo
echo "== recording and diagnosing: 100,000 records a second and more"
cargo build --release -p warmq
for rate in 100000 400000; do
	"$target/release/warmq" bench record --rate "$rate" || echo "bench: this machine cannot be recorded"
done

echo
echo "== the player, beside programs whose scenarios it plays: work a second"
cargo build --release -p warmq-player
for program in hackbench:rt-tests stress-ng:stress-ng sysbench:sysbench; do
	command -v "${program%:*}" >/dev/null || install "${program#*:}"
done
echo "== recordings of other programs (as root, with perf)"
python3 -B bench/recording.py --diagnose --warmq "$target/release/warmq" || echo "bench: nothing was recorded"
python3 -B bench/programs.py "$target/release/warmq"

mkdir -p "$folder"
make_venv
make_theirs
cargo build --release -p warmq-sched --example compare_caches --example compare_scheduling

echo
echo "== caches, beside pycachesim"
"$venv/bin/python" -B bench/compare_caches.py \
	"$target/release/examples/compare_caches" "$folder/theirs" "$folder"

echo
echo "== scheduling, beside SimSo"
"$venv/bin/python" -B bench/compare_scheduling.py "$target/release/examples/compare_scheduling"

echo
echo "== sweeps on Dask"
"$venv/bin/pip" install --quiet --disable-pip-version-check 'maturin>=1.7,<2' psutil
wheel=$("$venv/bin/python" scripts/wheel.py "$target/release/warmq" "$folder/wheel")
"$venv/bin/pip" install --quiet --disable-pip-version-check "$wheel[sweep,duckdb]"
"$venv/bin/pip" install --quiet --disable-pip-version-check --force-reinstall --no-deps "$wheel"
"$venv/bin/python" -B bench/sweeps.py || echo "bench: a figure was missed"
