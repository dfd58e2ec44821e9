# Sourced: installs Debian packages, and says so before it does.

say() { echo "setup: $*" >&2; }

# Installs Debian packages, through sudo unless we are root.
install_packages() {
    local sudo=()
    if [ "$(id -u)" -ne 0 ]; then
        if ! command -v sudo > /dev/null; then
            say "missing: $*; become root and run: apt-get install $*"
            exit 1
        fi
        sudo=(sudo)
    fi
    if ! command -v apt-get > /dev/null; then
        say "missing: what Debian calls $*; install it as your system does"
        exit 1
    fi
    say "installing Debian packages: $*"
    "${sudo[@]}" apt-get update -q
    "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "$@"
}
