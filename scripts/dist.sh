#!/usr/bin/env bash
# Makes what people install, in target/dist: archives of static programs, Debian packages, wheels. `make dist` tries all of it afterwards
# (scripts/dist-test.sh).
#
#   scripts/dist.sh                 for x86-64: archive, warmq.deb, scx-warmq.deb, wheel
#   scripts/dist.sh aarch64         for 64-bit Arm: archive and wheel
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/install.sh
. scripts/install.sh

architecture=${1:-x86_64}
case $architecture in
    x86_64) debian=amd64 ;;
    aarch64) debian=arm64 ;;
    *)
        say "dist: $architecture: name x86_64 or aarch64"
        exit 2
        ;;
esac
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
out=$target/dist
triple=$architecture-unknown-linux-musl
version=$(cargo metadata --no-deps --format-version 1 | python3 -c 'import json,sys
print(next(p["version"] for p in json.load(sys.stdin)["packages"] if p["name"] == "warmq"))')
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"

case $architecture in
    x86_64)
        rustup target list --installed | grep -qx "$triple" || rustup target add "$triple"
        command -v musl-gcc > /dev/null || install_packages musl-tools
        command -v dpkg-shlibdeps > /dev/null || install_packages dpkg-dev
        ;;
    aarch64)
        # shellcheck source=scripts/arm.sh
        . scripts/arm.sh
        ;;
esac
# Without symbols, which are nine tenths of it.
export CARGO_PROFILE_RELEASE_STRIP=symbols
cargo build --release --target "$triple" -p warmq -p warmq-player
built=$target/$triple/release

# A command that runs here writes the pages and completions for all.
here=$built/warmq
[ "$architecture" = "$(uname -m)" ] || here=$target/$(uname -m)-unknown-linux-musl/release/warmq
[ -x "$here" ] || cargo build --release --target "$(uname -m)-unknown-linux-musl" -p warmq
"$here" man "$work/man" 2> /dev/null
find "$work/man" -name '.*' -delete
gzip -9n "$work"/man/*.1
mkdir "$work/completions"
for shell in bash zsh fish; do
    "$here" completions "$shell" > "$work/completions/$shell"
done

# archive: the programs, beside what belongs to them
stem=warmq-$version-$architecture-linux
mkdir "$work/$stem"
install "$built/warmq" "$built/warmq-player" "$work/$stem"
cp -r "$work/man" "$work/completions" README.md CHANGELOG.md LICENSE-APACHE LICENSE-MIT python/THIRD-PARTY.txt "$work/$stem/"
tar -C "$work" --owner=0 --group=0 --sort=name --mtime="@$(git log -1 --format=%ct)" -cJf "$out/$stem.tar.xz" "$stem"

# copyright FILE GPL-PARTS: in Debian's machine-readable form
copyright() {
    {
        printf 'Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: WarmQ\n\n'
        printf 'Files: *\nCopyright: 2026 The WarmQ authors\nLicense: %s\n\n' "$2"
        printf 'License: MIT\n'
        sed -e 's/^$/./' -e 's/^/ /' LICENSE-MIT
        printf '\nLicense: Apache-2.0\n On Debian systems, the text is in /usr/share/common-licenses/Apache-2.0.\n'
        printf '\nLicense: GPL-2.0-only\n On Debian systems, the text is in /usr/share/common-licenses/GPL-2.\n'
        printf '\nComment:\n Crates that are linked into the program, with their licences:\n'
        sed -e 's/^$/./' -e 's/^/ /' python/THIRD-PARTY.txt
    } > "$1"
}

# deb NAME DEPENDS RECOMMENDS SUMMARY TEXT: packs $work/NAME
deb() {
    local root=$work/$1
    mkdir -p "$root/DEBIAN" "$root/usr/share/doc/$1"
    gzip -9n < CHANGELOG.md > "$root/usr/share/doc/$1/changelog.gz"
    {
        printf 'Package: %s\nVersion: %s\nArchitecture: %s\n' "$1" "$version" "$debian"
        printf 'Maintainer: The WarmQ authors <warmq@localhost>\nSection: utils\nPriority: optional\n'
        printf 'Installed-Size: %s\n' "$(du -sk "$root/usr" | cut -f1)"
        [ -z "$2" ] || printf 'Depends: %s\n' "$2"
        [ -z "$3" ] || printf 'Recommends: %s\n' "$3"
        printf 'Description: %s\n' "$4"
        fold -s -w 78 <<< "$5" | sed 's/^/ /'
    } > "$root/DEBIAN/control"
    (cd "$root" && find usr -type f -exec md5sum {} + > DEBIAN/md5sums)
    dpkg-deb --root-owner-group --build "$root" "$out/$1_${version}_$debian.deb" > /dev/null
}

if [ "$architecture" = x86_64 ]; then
    root=$work/warmq
    install -D "$built/warmq" "$root/usr/bin/warmq"
    install -D "$built/warmq-player" "$root/usr/bin/warmq-player"
    mkdir -p "$root/usr/share/man/man1"
    cp "$work"/man/*.1.gz "$root/usr/share/man/man1/"
    install -D -m 644 "$work/completions/bash" "$root/usr/share/bash-completion/completions/warmq"
    install -D -m 644 "$work/completions/zsh" "$root/usr/share/zsh/vendor-completions/_warmq"
    install -D -m 644 "$work/completions/fish" "$root/usr/share/fish/vendor_completions.d/warmq.fish"
    mkdir -p "$root/usr/share/doc/warmq"
    copyright "$root/usr/share/doc/warmq/copyright" "MIT or Apache-2.0"
    deb warmq "" "qemu-system-x86, busybox-static" "laboratory for Linux CPU schedulers" \
        "Predicts what a CPU scheduler does with a workload on a given machine, with caches, locks and interrupts; plays the same in a kernel in QEMU and on this machine; says who starves in a recording; holds any scheduler to a suite of laws."

    cargo build --release -p scx_warmq
    root=$work/scx-warmq
    install -D "$target/release/scx_warmq" "$root/usr/bin/scx_warmq"
    mkdir -p "$root/usr/share/man/man1" "$root/usr/lib/systemd/system" "$root/usr/share/doc/scx-warmq"
    sed 's:/usr/local/bin/:/usr/bin/:' live/scx/scx_warmq.service > "$root/usr/lib/systemd/system/scx_warmq.service"
    "$root/usr/bin/scx_warmq" man | gzip -9n > "$root/usr/share/man/man1/scx_warmq.1.gz"
    install -D -m 644 <("$root/usr/bin/scx_warmq" completions bash) "$root/usr/share/bash-completion/completions/scx_warmq"
    install -D -m 644 <("$root/usr/bin/scx_warmq" completions zsh) "$root/usr/share/zsh/vendor-completions/_scx_warmq"
    install -D -m 644 <("$root/usr/bin/scx_warmq" completions fish) "$root/usr/share/fish/vendor_completions.d/scx_warmq.fish"
    copyright "$root/usr/share/doc/scx-warmq/copyright" "GPL-2.0-only"
    mkdir -p "$work/shlibs/debian"
    printf 'Source: scx-warmq\n\nPackage: scx-warmq\nArchitecture: any\n' > "$work/shlibs/debian/control"
    needs=$(cd "$work/shlibs" && dpkg-shlibdeps -O "$root/usr/bin/scx_warmq" 2> /dev/null | sed 's/^shlibs:Depends=//')
    deb scx-warmq "$needs" "" "scheduler of sched_ext that keeps data warm and starves nobody" \
        "Loads scx_warmq, a scheduler as a BPF program, into a kernel that has sched_ext (Linux 6.12 and later), as a service of systemd or by hand. It is not started by the installation."
fi

# wheel: the static command runs wherever the kernel does, so that one tag of each kind fits.
venv=$target/python/venv-dist
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check 'maturin>=1.7,<2'
wheel=$("$venv/bin/python" scripts/wheel.py "$work/$stem/warmq" "$work/wheel" \
    "py3-none-manylinux_2_17_$architecture.manylinux2014_$architecture.musllinux_1_1_$architecture")
cp "$wheel" "$out/"
(cd "$out" && sha256sum -- *"$version"* > SHA256SUMS)
ls -l "$out"
