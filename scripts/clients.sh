#!/bin/sh
# Runs the suite that a client of Mastodon brings for itself against a server of ours, started anew, on a cluster with replicas. Fails unless
# exactly the tests fail that scripts/clients/SUITE-later.txt names: what isn't served yet.
#
#   scripts/clients.sh [--suite toot | --suite mastodon.py] [--servers N] [RUNS]
#
# toot's, unless another one is named; Mastodon.py's takes two minutes and a half. With several servers, which remember nothing of what others did
# (`visible_within_ms = 0`), each request goes to the next one. A suite asks a server at localhost:3000, which has to be
# free. Where the system lets a user have a network of its own, the suite gets one, in which it is. Programs of Python's are fetched once, to
# target/clients; TIDELINE_PROGRAM=/path/to/tideline serves instead of one that is built.
set -eu

cd "$(dirname "$0")/.."
: "${CARGO:=cargo}"
TOOT=0.52.1
MASTODON_PY=2.3.3
PYTEST=9.2.0
PYTEST_TIMEOUT=2.4.0
# Beside these, what Mastodon.py's suite imports.
FOR_MASTODON_PY='pytest-cov vcrpy pytest-recording pytest-mock requests-mock pytest-retry pytz websocket-client http_ece cryptography
    graphemeu'
PORT=3000
# One test that hangs ends after so long, and a server that doesn't begin is given up.
TEST_TIMEOUT_S=60
SERVER_PATIENCE_S=120

say() { printf 'scripts/clients.sh: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

suite=toot servers=1
while :; do
    case ${1:-} in
        --suite) suite=${2:-} ;;
        --servers) servers=${2:-} ;;
        *) break ;;
    esac
    shift; [ $# -eq 0 ] || shift
done
case $servers in [1-9]) ;; *) die "--servers is \"$servers\"; it is a number from 1 to 9" ;; esac
case $suite in
    toot) published=toot==$TOOT ;;
    mastodon.py) published=mastodon.py==$MASTODON_PY ;;
    *) die "there is no suite \"$suite\": toot, mastodon.py" ;;
esac
runs=${1:-1}
case $runs in *[!0-9]* | '') die "RUNS is \"$runs\"; it is a number" ;; esac
root=$PWD
# Who brings a program may have no cargo.
target=$(scripts/target-directory.sh) || { [ -n "${TIDELINE_PROGRAM:-}" ] && target=$root/target; }
files=$target/clients
later=$root/scripts/clients/$suite-later.txt

# The suite, and what it runs with: as published, unchanged.
fetch() {
    venv=$files/$suite-venv
    python=$venv/bin/python
    sources=$files/$suite
    if [ ! -f "$venv/complete" ]; then
        python3 -m venv "$venv" || die "python3 can't make an environment; install its venv module (python3-venv)"
        # shellcheck disable=SC2046,SC2086  # several names
        "$venv/bin/pip" install --quiet --disable-pip-version-check "$published" "pytest==$PYTEST" \
            "pytest-timeout==$PYTEST_TIMEOUT" $([ "$suite" = toot ] || echo $FOR_MASTODON_PY)
        touch "$venv/complete"
    fi
    if [ ! -f "$sources/complete" ]; then
        mkdir -p "$sources"
        "$venv/bin/pip" download --quiet --disable-pip-version-check --no-deps --no-binary :all: --dest "$sources" "$published"
        tar -xzf "$sources"/*.tar.gz -C "$sources" --strip-components 1
        touch "$sources/complete"
    fi
}

# Runs the suite once, in a folder where it may change what it brings.
run_suite() {
    case $suite in
        toot)
            cd "$sources"
            TOOT_TEST_BASE_URL=http://localhost:$PORT "$python" -m pytest tests/integration --quiet --timeout "$TEST_TIMEOUT_S" \
                --tb=short -p no:cacheprovider -r fE
            ;;
        mastodon.py)
            # It has names for its application and tokens; ours are written in their place. What it has recorded of another server, moments
            # among it, is left out, and so are tests that ask no server, or none of ours, or that want events.
            rm -rf "$directory/suite"
            mkdir "$directory/suite"
            cp -r "$sources/tests" "$directory/suite/"
            rm -rf "$directory"/suite/tests/cassettes*/*.pkl
            cd "$directory/suite"
            "$python" "$root/scripts/clients/mastodon.py-accounts.py" "http://localhost:$PORT" tests/conftest.py
            "$python" -m pytest tests --quiet --disable-recording --no-cov --timeout "$TEST_TIMEOUT_S" --tb=short \
                -p no:cacheprovider -r fE --ignore tests/test_entities.py --ignore tests/test_types_base.py \
                --ignore tests/test_async_refresh.py --ignore tests/test_websocket_cassette.py --ignore tests/test_streaming.py \
                --ignore tests/test_streaming_websocket.py --ignore tests/test_status_length.py --ignore tests/test_admin.py
            ;;
    esac
}

# Whether a port can be listened at.
port_is_free() {
    python3 - "$1" <<'PYTHON'
import socket, sys
try:
    socket.create_server(("127.0.0.1", int(sys.argv[1]))).close()
except OSError:
    sys.exit(1)
PYTHON
}

holder() {
    if command -v ss >/dev/null 2>&1; then ss -Hltnp "sport = :$1" | sed 's/.*users:((//; s/)).*//'; else echo "an unknown process"; fi
}

if [ "${TIDELINE_CLIENTS_INSIDE:-}" != 1 ]; then
    mkdir -p "$files"
    fetch
    if [ -z "${TIDELINE_PROGRAM:-}" ]; then
        $CARGO build --locked --package tideline-program
        TIDELINE_PROGRAM=$target/debug/tideline
        export TIDELINE_PROGRAM
    fi
    export TIDELINE_CLIENTS_INSIDE=1
    if unshare --user --map-root-user --net true 2>/dev/null; then
        exec unshare --user --map-root-user --net "$0" --suite "$suite" --servers "$servers" "$runs"
    fi
    port=$PORT
    while [ "$port" -le $((PORT + (servers > 1 ? servers : 0))) ]; do
        port_is_free "$port" ||
            die "port $port is taken (by $(holder "$port")), and this system gives no network of one's own: end that, or run this elsewhere"
        port=$((port + 1))
    done
    exec "$0" --suite "$suite" --servers "$servers" "$runs"
fi

# In a network of its own the loopback device is down at first.
python3 - <<'PYTHON'
import fcntl, socket, struct
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as device:
    flags = struct.unpack("16sh", fcntl.ioctl(device, SIOCGIFFLAGS, struct.pack("16sh", b"lo", 0)))[1]
    if not flags & IFF_UP:
        fcntl.ioctl(device, SIOCSIFFLAGS, struct.pack("16sh", b"lo", flags | IFF_UP))
PYTHON

fetch
directory=$(mktemp -d "${TMPDIR:-/tmp}/tideline-$$-clients.XXXXXX")
started=
# shellcheck disable=SC2317  # by traps
end() {
    for process in $started; do
        # Not INT, which a process in the background may ignore.
        kill -TERM "$process" 2>/dev/null || true
        wait "$process" || true
    done
    (cd "$directory" && "$TIDELINE_PROGRAM" cluster down >/dev/null 2>&1) || true
    rm -rf "$directory"
}
trap end EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

(cd "$directory" && "$TIDELINE_PROGRAM" cluster up --replicas 1 >cluster.log 2>&1) || {
    cat "$directory/cluster.log" >&2
    die "the cluster did not start"
}
# start PORT: a server that listens there, and is ready.
start() {
    (cd "$directory" && exec "$TIDELINE_PROGRAM" serve --local --listen "127.0.0.1:$1" --public-url "http://localhost:$PORT" >>server.log 2>&1) &
    started="$! $started"
    await "$1" server
}
# await PORT NAME: until what was started last, and logs by that name, answers there.
await() {
    waited=0
    until "$python" -c "import urllib.request; urllib.request.urlopen('http://127.0.0.1:$1/ready')" 2>/dev/null; do
        if [ "$waited" -ge "$SERVER_PATIENCE_S" ] || ! kill -0 "${started%% *}" 2>/dev/null; then
            cat "$directory/$2.log" >&2
            die "the $2 did not begin"
        fi
        sleep 1
        waited=$((waited + 1))
    done
}
if [ "$servers" -eq 1 ]; then
    start $PORT
else
    export TIDELINE_ENGINE_VISIBLE_WITHIN_MS=0
    ports="" number=0
    while [ "$number" -lt "$servers" ]; do
        number=$((number + 1))
        ports="$ports $((PORT + number))"
        start $((PORT + number))
    done
    # shellcheck disable=SC2086  # several ports
    "$python" scripts/clients/round-robin.py $PORT $ports >"$directory/round-robin.log" 2>&1 &
    started="$! $started"
    await $PORT round-robin
fi

# Fails if other tests fail than are told to.
run=0 status=0
drawn=tests/integration/test_accounts.py::test_following_case_insensitive
while [ "$run" -lt "$runs" ]; do
    run=$((run + 1))
    (run_suite) >"$directory/suite.log" 2>&1 || true
    sed -n -E 's/^(FAILED|ERROR) ([^ ]*).*/\2/p' "$directory/suite.log" | sort -u >"$directory/failed"
    sed 's/ *#.*//' "$later" | grep -v '^$' | sort -u >"$directory/later"
    comm -23 "$directory/failed" "$directory/later" >"$directory/unexpected"
    comm -13 "$directory/failed" "$directory/later" >"$directory/pass"
    # A draw of the suite's own: this test needs a name with a letter, and one in a hundred of ten hexadecimal digits has none.
    if grep -qx "$drawn" "$directory/unexpected" && grep -qE "assert '[0-9]{10}' != '[0-9]{10}'" "$directory/suite.log"; then
        say "$drawn has drawn a name without a letter, and says nothing"
        sed -i.all "\\|^$drawn\$|d" "$directory/unexpected"
    fi
    printf '%s, run %s of %s: %s\n' "$published" "$run" "$runs" "$(tail -n 1 "$directory/suite.log")"
    if [ -s "$directory/unexpected" ] || [ -s "$directory/pass" ]; then
        status=1
        cat "$directory/suite.log"
        sed 's/^/scripts\/clients.sh: fails: /' "$directory/unexpected" >&2
        sed "s|^|scripts/clients.sh: passes by now, or is not there: |; s|\$| (take it out of scripts/clients/$suite-later.txt)|" "$directory/pass" >&2
        tail -n 50 "$directory"/server.log "$directory"/round-robin.log >&2 2>/dev/null || true
    elif ! grep -q ' passed' "$directory/suite.log"; then
        status=1
        cat "$directory/suite.log" >&2
        say "the suite has not run"
    fi
done
exit "$status"
