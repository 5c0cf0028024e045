#!/bin/sh
# Runs the tests that need a cluster with several servers. Those that pip brings speak no TLS: such tests have to notice.
#
#   scripts/test-servers.sh [--skip-unavailable] SERVER...
#
# SERVER: `system` (TIDELINE_REDIS_SERVER or the PATH's), or what scripts/fetch-servers.sh knows (redis-8.2, valkey-9.1).
# --skip-unavailable: a server that cannot be had on this machine is skipped, and said so; otherwise that is a failure.
set -eu

cd "$(dirname "$0")/.."
UNAVAILABLE=69
skip=no
if [ "${1:-}" = --skip-unavailable ]; then
    skip=yes
    shift
fi

ran=
skipped=
for server; do
    path=
    if [ "$server" != system ]; then
        status=0
        path=$(scripts/fetch-servers.sh "$server") || status=$?
        if [ "$status" = $UNAVAILABLE ] && [ "$skip" = yes ]; then
            skipped="$skipped $server"
            continue
        fi
        [ "$status" = 0 ] || exit "$status"
    fi
    echo "=== cluster tests with $server ${path:+($path)}"
    TIDELINE_REDIS_SERVER=${path:-${TIDELINE_REDIS_SERVER:-}} scripts/no-strays.sh \
        "${CARGO:-cargo}" test --locked --test cluster --test deploy
    ran="$ran $server"
done
if [ -n "$ran" ]; then echo "=== cluster tests passed with:$ran"; fi
if [ -n "$skipped" ]; then echo "=== SKIPPED, could not be had on this machine (see above):$skipped"; fi
