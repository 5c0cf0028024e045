#!/bin/sh
# Makes the Debian package, installs it into a root of its own, and runs what it has installed: the program, with its own configuration and the
# command line of its own service, against a cluster that is started for it. Asks /ready (as the container's health check does) and the API,
# ends it, installs the package over itself, takes it off, and looks at what stays. Nothing of this machine changes.
#
#   scripts/test-package.sh
#
# TIDELINE_PROGRAM=/path/to/tideline is packed instead of one that is built (as the tests build it: nobody waits for what `make dist` needs).
set -eu

cd "$(dirname "$0")/.."
: "${CARGO:=cargo}"
# A server that doesn't begin, or doesn't end, is given up after so long.
PATIENCE_S=120

say() { printf 'scripts/test-package.sh: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

if ! command -v dpkg-deb >/dev/null 2>&1; then
    say "NOT CHECKED: dpkg is not here"
    exit 0
fi
if [ -z "${TIDELINE_PROGRAM:-}" ]; then
    $CARGO build --locked --package tideline-program
    TIDELINE_PROGRAM=$(scripts/target-directory.sh)/debug/tideline
    export TIDELINE_PROGRAM
fi
# Packages are installed by root, or by who is that in a space of its own.
if [ "$(id -u)" != 0 ]; then
    unshare --user --map-root-user true 2>/dev/null || die "be root, or where users may have a space of their own (unshare --user)"
    exec unshare --user --map-root-user "$0"
fi

directory=$(mktemp -d "${TMPDIR:-/tmp}/tideline-$$-package.XXXXXX")
server=
# shellcheck disable=SC2317,SC2329  # by traps
end() {
    if [ -n "$server" ]; then
        kill -KILL "$server" 2>/dev/null || true
    fi
    "$TIDELINE_PROGRAM" cluster down --dir "$directory/cluster" >/dev/null 2>&1 || true
    rm -rf "$directory"
}
trap end EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# The package, and what it says of itself.
TIDELINE_DEB_FAST=1 scripts/dist.sh "$directory" >"$directory/made"
deb=$(sed -n '/\.deb$/p' "$directory/made")
[ -n "$deb" ] || die "no package was made"
depends=$(dpkg-deb --field "$deb" Depends)
case $depends in
'libc6 (>= '*', passwd') ;;
*) die "it depends on: $depends" ;;
esac

# An empty root. What a package depends on isn't there, and nothing of it is called but this machine's shell and useradd.
root=$directory/root
mkdir -p "$root/var/lib/dpkg/info" "$root/var/lib/dpkg/updates" "$root/etc" "$root/var/log"
touch "$root/var/lib/dpkg/status" "$root/var/lib/dpkg/available" "$root/etc/passwd" "$root/etc/group" "$root/etc/shadow" "$root/etc/gshadow"
packages() {
    dpkg --root="$root" --log="$root/var/log/dpkg.log" --force-script-chrootless --force-depends "$@" >"$directory/dpkg.log" 2>&1 || {
        cat "$directory/dpkg.log" >&2
        die "dpkg $*: failed"
    }
}
packages --install "$deb"
[ "$(dpkg --root="$root" --verify tideline)" = "" ] || die "installed is another file than packed"
grep -q '^tideline:.*:/var/lib/tideline:/usr/sbin/nologin$' "$root/etc/passwd" || die "the service has no user"
[ "$(stat -c %a "$root/etc/tideline/tideline.env")" = 600 ] || die "anybody may read what is secret"
grep -q 'systemctl enable --now tideline' "$directory/dpkg.log" || die "nobody is told how to go on"
objdump -h "$root/usr/bin/tideline" | grep -q '\.debug_info' && die "the program is not stripped"
for file in $(dpkg-deb --fsys-tarfile "$deb" | tar -tf - | sed -n 's/^\.\(.*[^/]\)$/\1/p'); do
    [ -f "$root$file" ] || die "$file is packed and not installed"
done

# What systemd thinks of the service, where it is here to be asked.
if command -v systemd-analyze >/dev/null 2>&1; then
    # The program that it looks for is this one.
    unit=$directory/tideline.service
    sed "s|^ExecStart=/usr/bin/tideline|ExecStart=$root/usr/bin/tideline|" "$root/lib/systemd/system/tideline.service" >"$unit"
    systemd-analyze verify --man=no "$unit" >"$directory/verify.log" 2>&1 || {
        cat "$directory/verify.log" >&2
        die "systemd-analyze verify finds something"
    }
    if grep "tideline.service" "$directory/verify.log" >&2; then die "systemd-analyze verify finds something"; fi
    # From 0, shut off, to 10, open: in tenths of that.
    systemd-analyze security --offline=yes --no-pager --threshold=20 "$unit" >"$directory/security.log" 2>&1 || {
        cat "$directory/security.log" >&2
        die "the service is open wider than it was (systemd-analyze security)"
    }
    say "$(tail -n 1 "$directory/security.log" | sed 's/^[^A-Za-z]*//')"
else
    say "NOT CHECKED: systemd-analyze is not here"
fi

# Unconfigured it says what it lacks, and ends.
command=$(sed -n 's|^ExecStart=||p' "$root/lib/systemd/system/tideline.service" | sed "s| /etc/| $root/etc/|; s|^|$root|")
# shellcheck disable=SC2086  # words
if env -i PATH="$PATH" $command >"$directory/unconfigured" 2>&1; then die "it serves without a cluster"; fi
grep -q 'which cluster?' "$directory/unconfigured" || { cat "$directory/unconfigured" >&2; die "it doesn't say that it lacks a cluster"; }

# Configured as its administrator would.
"$TIDELINE_PROGRAM" cluster up --dir "$directory/cluster" --replicas 0 >"$directory/cluster.log" 2>&1 || {
    cat "$directory/cluster.log" >&2
    die "the cluster did not start"
}
# At every server the user of docs/router.md, with what that page says and nothing else; and what the servers have refused it since.
redis() {
    python3 - "$1" "$directory/cluster.log" docs/router.md <<'PYTHON'
import re, socket, sys
what, nodes, page = sys.argv[1], open(sys.argv[2]).read(), open(sys.argv[3]).read()
rights = re.search(r"ACL SETUSER tideline on >password ~P{\*.*?```", page, re.S).group(0).rstrip("`")
for host, port in re.findall(r"redis://([0-9.]+):([0-9]+)", nodes):
    with socket.create_connection((host, int(port)), timeout=30) as server:
        lines = server.makefile("rwb")
        command = rights.replace("~P{*", "~{*") if what == "user" else "ACL LOG"
        lines.write(" ".join(command.split()).encode() + b"\r\nQUIT\r\n")
        lines.flush()
        told = lines.read().decode().split("\r\n")
        assert not told[0].startswith("-"), told[0]
        if what == "refused":
            # Behind a field's name and its value's length comes the value.
            print(*(told[at + 2] for at, word in enumerate(told) if word == "object"), sep="\n")
PYTHON
}
redis user
seed=$(grep -o 'redis://[0-9.:]*' "$directory/cluster.log" | head -n 1)
port=$(python3 -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])')
sed -i "s|^#TIDELINE_CLUSTER_SEEDS=.*|TIDELINE_CLUSTER_SEEDS=redis://tideline:password@${seed#redis://}|" "$root/etc/tideline/tideline.env"
sed -i -e "s|^#listen = .*|listen = [\"127.0.0.1:$port\"]|" \
    -e 's|^#title = .*|title = "From a package"|' -e 's|^#registrations = .*|registrations = "open"|' "$root/etc/tideline/tideline.toml"

variables=$(grep -v '^#' "$root/etc/tideline/tideline.env")
# shellcheck disable=SC2086  # words
env -i PATH="$PATH" $variables $command >"$directory/server.log" 2>&1 &
server=$!
# The health check of the container, at this port.
check=$(sed -n 's|^ *"\(exec .*\)"\]$|\1|p' Dockerfile | sed 's|\\\\|\\|g; s|\\"|"|g' | sed "s|/3000 |/$port |")
[ -n "$check" ] || die "the Dockerfile has no health check"
waited=0
until bash -c "$check" 2>/dev/null; do
    if [ "$waited" -ge "$PATIENCE_S" ] || ! kill -0 "$server" 2>/dev/null; then
        cat "$directory/server.log" >&2
        die "the server did not begin"
    fi
    sleep 1
    waited=$((waited + 1))
done
python3 - "$port" <<'PYTHON' || { cat "$directory/server.log" >&2; die "the API doesn't answer as it should"; }
import json, sys, urllib.parse, urllib.request
base = "http://127.0.0.1:" + sys.argv[1]

def call(path, token=None, headers={}, **form):
    request = urllib.request.Request(base + path, urllib.parse.urlencode(form).encode() if form else None, headers)
    if token:
        request.add_header("Authorization", "Bearer " + token)
    return json.load(urllib.request.urlopen(request))

assert call("/api/v2/instance")["title"] == "From a package"
scopes = "read write follow"
app = call("/api/v1/apps", client_name="package", redirect_uris="urn:ietf:wg:oauth:2.0:oob", scopes=scopes)
named = {"client_id": app["client_id"], "client_secret": app["client_secret"], "scope": scopes}
token = call("/oauth/token", grant_type="client_credentials", **named)["access_token"]
person = {"password": "correct horse", "agreement": "true"}
ada, ben = (
    call("/api/v1/accounts", token, username=name, email=name + "@example.org", **person)["access_token"] for name in ("ada", "ben")
)
me, other = (call("/api/v1/accounts/verify_credentials", mine)["id"] for mine in (ada, ben))
# What a client does, all of which the user in Redis has to be allowed.
call(f"/api/v1/accounts/{me}/follow", ben, reblogs="true")
written = call("/api/v1/statuses", ada, status="from a package #tide @ben", visibility="public")["id"]
assert [status["id"] for status in call("/api/v1/timelines/home", ada)] == [written]
for deed in "favourite", "bookmark", "reblog", "unfavourite", "unbookmark", "unreblog":
    call(f"/api/v1/statuses/{written}/{deed}", ben, nothing="")
call("/api/v1/statuses", ben, status="an answer @ada", in_reply_to_id=written)
call(f"/api/v1/statuses/{written}/pin", ada, nothing="")
for deed in "mute", "unmute", "block", "unblock", "note":
    call(f"/api/v1/accounts/{other}/{deed}", ada, comment="from the fair", duration="60")
call(f"/api/v1/accounts/{me}/follow", ben, reblogs="false")
lists = call("/api/v1/lists", ben, title="tides")["id"]
call(f"/api/v1/lists/{lists}/accounts", ben, **{"account_ids[]": me})
call("/api/v1/markers", ben, **{"home[last_read_id]": written})
for path in ("timelines/public", "timelines/tag/tide", f"timelines/list/{lists}", f"statuses/{written}/context", f"accounts/{me}/statuses", "bookmarks",
             f"accounts/{me}/followers", f"accounts/relationships?id[]={me}", "notifications", "notifications/unread_count", "blocks", "mutes", "accounts/search?q=ad"):
    call("/api/v1/" + path, ben)
assert [account["username"] for account in call("/api/v2/search?q=ada", ben)["accounts"]] == ["ada"]
# A proxy that nobody has named.
for client in "1.2.3.4", "1.2.3.5":
    call("/api/v2/instance", headers={"X-Forwarded-For": client})
PYTHON
[ "$(grep -c trusted_proxies "$directory/server.log")" = 1 ] || die "a proxy that isn't trusted is not told of, once"

refused=$(redis refused | sort -u | tr '\n' ' ')
# Whether jemalloc is preloaded is asked where it may be.
case $refused in
'' | ' ' | 'client|info ' | ' client|info ') ;;
*) die "the user of docs/router.md was refused: $refused" ;;
esac

# It ends as systemd ends it, in its time.
kill -TERM "$server"
waited=0
while kill -0 "$server" 2>/dev/null; do
    [ "$waited" -lt "$PATIENCE_S" ] || die "the server does not end"
    sleep 1
    waited=$((waited + 1))
done
status=0
wait "$server" || status=$?
server=
[ "$status" = 0 ] || { cat "$directory/server.log" >&2; die "the server ended with $status"; }
! bash -c "$check" 2>/dev/null || die "the health check is content with a server that has ended"

# The package once more, over itself; and off.
packages --install "$deb"
grep -q '^title = "From a package"' "$root/etc/tideline/tideline.toml" || die "an upgrade takes the configuration away"
[ "$(grep -c '^tideline:' "$root/etc/passwd")" = 1 ] || die "an upgrade makes another user"
packages --remove tideline
[ ! -e "$root/usr/bin/tideline" ] || die "the program stays"
[ -f "$root/etc/tideline/tideline.toml" ] || die "the configuration goes with the program"
packages --purge tideline
left=$(find "$root/etc" "$root/usr" "$root/lib" "$root/var/lib/dpkg/info" -name '*tideline*' 2>/dev/null || true)
[ "$left" = "" ] || die "it leaves behind: $left"
say "the package was made, installed, run and taken off"
