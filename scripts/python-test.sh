#!/usr/bin/env bash
# Tests the Python package as people install it: a wheel in a virtual environment of its own, tests, doctests, the
# notebook, types.
#
#   scripts/python-test.sh              a wheel around the debug build of `warmq`, which `make test` has anyway
#   scripts/python-test.sh --release    the wheel that people get: maturin builds it, and it is kept in target/wheels
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/install.sh
. scripts/install.sh

target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
folder=$target/python
# WARMQ_PYTHON: another Python than the system's, of 3.10 or later.
python=${WARMQ_PYTHON:-python3}

if [ "$python" = python3 ]; then
    python3 -c 'import ensurepip, venv' 2> /dev/null || install_packages python3 python3-venv
fi
# An example of docs/sweeps.md.
command -v parallel > /dev/null || install_packages parallel
release=
if [ "${1-}" = --release ]; then
    release=yes
    shift
fi
[ -n "$release" ] || [ -x "$target/debug/warmq" ] || cargo build -p warmq
if ! scripts/third-party.sh | cmp -s - python/THIRD-PARTY.txt; then
    echo "python-test: python/THIRD-PARTY.txt is not what scripts/third-party.sh prints: write it anew" >&2
    exit 1
fi

venv=$folder/venv-$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
python=$venv/bin/python
"$python" -m pip install --quiet --disable-pip-version-check 'maturin>=1.7,<2'
if [ -n "$release" ]; then
    rm -rf "$target/wheels"
    (cd python && "$python" -m maturin build --release --out "$target/wheels")
    wheel=$(ls "$target"/wheels/warmq-*.whl)
else
    # Symbols would make the wheel large; the tests need none.
    strip -o "$folder/warmq" "$target/debug/warmq"
    wheel=$("$python" scripts/wheel.py "$folder/warmq" "$folder/wheel")
fi
"$python" -m pip install --quiet --disable-pip-version-check "$wheel[test]"
"$python" -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps "$wheel"

unset WARMQ_BINARY
installed=$("$python" -c 'import pathlib, warmq; print(pathlib.Path(warmq.__file__).parent)')
cd python
"$python" -m pytest -q --doctest-modules --pyargs warmq tests "$@"
"$python" -m mypy
echo "python-test: tested $installed${release:+, of $wheel}"
