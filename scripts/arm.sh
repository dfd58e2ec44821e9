# Sourced, after install.sh and with $target set: what cargo needs to build for 64-bit Arm with clang, Rust's own linker and
# Rust's own copy of the C library musl. Of musl's headers Debian's package for Arm is downloaded; nothing is installed.

arm=aarch64-unknown-linux-musl
rustup target list --installed | grep -qx "$arm" || rustup target add "$arm"

headers=$target/musl-arm64
if [ ! -d "$headers/usr/include" ]; then
    mkdir -p "$headers/lists/partial" "$headers/cache/archives/partial"
    from_arm() {
        apt-get -q -o APT::Architectures::=arm64 -o Dir::State::lists="$headers/lists" -o Dir::Cache="$headers/cache" \
            -o APT::Sandbox::User=root "$@"
    }
    (cd "$headers" && from_arm update && from_arm download musl-dev:arm64 && dpkg-deb -x musl-dev_*.deb . && rm -r lists cache)
fi
export CC_aarch64_unknown_linux_musl=clang-19 AR_aarch64_unknown_linux_musl=ar
export CFLAGS_aarch64_unknown_linux_musl="-nostdlibinc -isystem $headers/usr/include/aarch64-linux-musl"
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER=rust-lld
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_RUNNER=qemu-aarch64-static
