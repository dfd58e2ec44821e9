#!/usr/bin/env bash
# Installs what scripts/dist.sh made, each into a bare root without network, and runs the first commands of the README there. What is not
# there (the command for Arm) is said and left out.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/install.sh
. scripts/install.sh

out=$(realpath -m "${CARGO_TARGET_DIR:-target}")/dist
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
enter="unshare --net"
[ "$(id -u)" -eq 0 ] || enter="unshare --net --map-root-user"

passed=0
check() { # WHAT COMMAND...
    local what=$1
    shift
    if "$@" > "$work/said" 2>&1; then
        passed=$((passed + 1))
        echo "dist: $what: ok"
    else
        echo "dist: $what: failed: $*" >&2
        tail -20 "$work/said" >&2
        exit 1
    fi
}

# A root in which there is nothing: no shell, no library, no /proc.
bare() { # NAME
    mkdir -p "$work/$1/tmp" "$work/$1/var/lib/dpkg/info" "$work/$1/var/lib/dpkg/updates"
    : > "$work/$1/var/lib/dpkg/status"
    echo "$work/$1"
}

# install_deb ROOT FILE
install_deb() {
    dpkg --root="$1" --force-depends --force-not-root --force-bad-path --log=/dev/null -i "$2"
}

# readme ROOT PROGRAM: the commands of the README's first screens, with its file, in ROOT.
readme() {
    local root=$1 program=$2
    sed -n '/^title = "Keys beside a build"/,/^```$/p' README.md | grep -v '^```' > "$root/tmp/keys.toml"
    local warmq="$enter chroot $root $program"
    check "$program --version" $warmq --version
    check "run, with a trace" $warmq run receiver --machine small-4llc --set cpus=2 --kernel 6.18 --preempt full --time 1s --trace /tmp/now.warmq
    check "diagnose" $warmq diagnose /tmp/now.warmq --out /tmp/page
    grep -q group-starved "$work/said" || { echo "dist: diagnose does not find the README's fault" >&2; exit 1; }
    check "a scenario from a file" $warmq run /tmp/keys.toml --machine small-4llc --scheduler kernel,eevdf-6.18
    check "laws" $warmq laws timer nice --world lab
    check "a machine" $warmq machines epyc-12llc
}

shopt -s nullglob
for package in "$out"/warmq_*_amd64.deb; do
    root=$(bare deb)
    check "warmq.deb is installed" install_deb "$root" "$package"
    readme "$root" /usr/bin/warmq
    check "the player of warmq.deb" $enter chroot "$root" /usr/bin/warmq-player --help
    for page in warmq warmq-run warmq-diagnose; do
        check "manual page $page" man -l --warnings "$root/usr/share/man/man1/$page.1.gz"
    done
    check "completions of bash" bash -n "$root/usr/share/bash-completion/completions/warmq"
    check "warmq.deb is removed" dpkg --root="$root" --force-not-root --force-bad-path --log=/dev/null -r warmq
    [ ! -e "$root/usr/bin/warmq" ] || { echo "dist: dpkg left files of warmq.deb" >&2; exit 1; }
done

for package in "$out"/scx-warmq_*_amd64.deb; do
    root=$(bare scx)
    check "scx-warmq.deb is installed" install_deb "$root" "$package"
    # What its Depends name, as they are here.
    ldd "$root/usr/bin/scx_warmq" | awk '/=> \//{print $3} /ld-linux/{print $1}' | while read -r library; do
        install -D "$library" "$root$library"
    done
    check "scx_warmq --help" $enter chroot "$root" /usr/bin/scx_warmq --help
    check "scx_warmq knows the service's options" grep -q "^ExecStart=/usr/bin/scx_warmq" "$root/usr/lib/systemd/system/scx_warmq.service"
    # Where systemd is: the unit, beside the units that this machine has.
    if command -v systemd-analyze > /dev/null; then
        sed "s:/usr/bin/scx_warmq:$root&:" "$root/usr/lib/systemd/system/scx_warmq.service" > "$work/scx_warmq.service"
        check "the unit" systemd-analyze verify "$work/scx_warmq.service"
    fi
done

for archive in "$out"/warmq-*-x86_64-linux.tar.xz; do
    root=$(bare archive)
    tar -C "$root" --strip-components=1 -xf "$archive"
    readme "$root" /warmq
done

for wheel in "$out"/warmq-*manylinux*x86_64.whl; do
    python3 -m venv "$work/venv"
    check "the wheel is installed" $enter "$work/venv/bin/python" -m pip install --quiet --no-index --no-deps "$wheel"
    check "the wheel's command" $enter "$work/venv/bin/warmq" laws timer --world lab
done

arm=("$out"/warmq-*-aarch64-linux.tar.xz)
if [ "${#arm[@]}" -eq 0 ]; then
    echo "dist: for 64-bit Arm nothing was built: scripts/dist.sh aarch64"
else
    command -v qemu-aarch64-static > /dev/null || install_packages qemu-user-static
    mkdir "$work/arm"
    tar -C "$work/arm" --strip-components=1 -xf "${arm[0]}"
    # The same bytes on both: the laboratory is deterministic on any machine.
    for what in "run chat --machine small-4llc --time 50ms --json" "laws timer weights --world lab --json" "run service --machine two-nodes --time 50ms --json"; do
        # shellcheck disable=SC2086
        "$work/archive/warmq" $what > "$work/here" 2> /dev/null
        check "for Arm, in emulation: $what" qemu-aarch64-static "$work/arm/warmq" $what
        qemu-aarch64-static "$work/arm/warmq" $what 2> /dev/null | cmp - "$work/here"
    done
    check "for Arm, in emulation: the player" qemu-aarch64-static "$work/arm/warmq-player" --scenario scenarios/ping-pong.toml \
        --warmup 100ms --time 500ms --no-record --trace "$work/arm.warmq"
    check "what it played" "$work/archive/warmq" check "$work/arm.warmq"
    grep -Eq ' [0-9]{4,} records' "$work/said" || { echo "dist: the player for Arm played nothing" >&2; cat "$work/said" >&2; exit 1; }
fi
echo "dist: $passed checks passed"
