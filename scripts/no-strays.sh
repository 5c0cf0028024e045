#!/bin/sh
# Runs a command, and fails if it leaves servers behind (Redis, Valkey, PostgreSQL), or redis-benchmark; those are ended then.
#
#   scripts/no-strays.sh COMMAND...
#
# Only servers that began after this script and work below the temporary directory count. Tests name their directories
# after their process, tideline-PID-*: while that process lives, its servers are no strays, whoever it belongs to. Where a
# name does not tell, another person's test may be running: such a server counts in CI only. Needs /proc; elsewhere the
# command is run and nothing is checked.
set -eu

temporary=${TMPDIR:-/tmp}
temporary=$(cd "$temporary" && pwd -P)
# Keepers need a moment after the end of their test.
PATIENCE_S=10

# PID and working directory of every server (of PostgreSQL its sessions too) and benchmark; the latter works where the servers do that it is for.
servers() {
    for process in /proc/[0-9]*; do
        case $(cat "$process/comm" 2>/dev/null || true) in
        redis-server | valkey-server | redis-benchmark | valkey-benchmark | postgres) ;;
        *) continue ;;
        esac
        directory=$(readlink "$process/cwd" 2>/dev/null) || continue
        case $directory in
        "$temporary"/*) echo "${process#/proc/} $directory" ;;
        esac
    done
}

# The lines of `servers` that are ours to complain about.
strays() {
    servers | while read -r pid directory; do
        case "$before" in
        *" $pid "*) continue ;;
        esac
        owner=${directory#"$temporary"/tideline-}
        if [ "$owner" != "$directory" ]; then
            [ -d "/proc/${owner%%-*}" ] || echo "$pid $directory"
        elif [ -n "${CI:-}" ]; then
            echo "$pid $directory"
        fi
    done
}

if [ ! -d /proc/self/cwd ]; then exec "$@"; fi

before=" $(servers | awk '{ printf "%s ", $1 }')"
status=0
"$@" || status=$?

deadline=$(($(date +%s) + PATIENCE_S))
left=$(strays)
while [ -n "$left" ] && [ "$(date +%s)" -lt "$deadline" ]; do
    sleep 0.2
    left=$(strays)
done
[ -n "$left" ] || exit "$status"

echo "scripts/no-strays.sh: processes were left behind (pid, directory), and are ended now:" >&2
echo "$left" >&2
echo "$left" | while read -r pid _; do kill -KILL "$pid" 2>/dev/null || true; done
[ "$status" != 0 ] || status=1
exit "$status"
