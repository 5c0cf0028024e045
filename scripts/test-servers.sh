#!/bin/sh
# Runs the tests that need a cluster with several servers. Those that pip brings speak no TLS: such tests have to notice.
#
#   scripts/test-servers.sh [--skip-unavailable] [--without NAME]... SERVER...
#
# SERVER: `system` (TIDELINE_REDIS_SERVER or the PATH's), or what scripts/fetch-servers.sh knows (redis-8.2, valkey-9.1).
# --skip-unavailable: a server that cannot be had on this machine is skipped, and said so; otherwise that is a failure.
# --without: tests in whose names NAME stands are left out.
set -eu

cd "$(dirname "$0")/.."
UNAVAILABLE=69
# Tests mostly wait: for servers that start, fail, take over.
export RUST_TEST_THREADS="${RUST_TEST_THREADS:-$((4 * $(getconf _NPROCESSORS_ONLN)))}"
skip=no
if [ "${1:-}" = --skip-unavailable ]; then
    skip=yes
    shift
fi

without=
while [ "${1:-}" = --without ]; do
    without="$without --skip $2"
    shift 2
done

passed=
failed=
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
        if [ "$status" != 0 ]; then
            failed="$failed $server"
            continue
        fi
    fi
    echo "=== cluster tests with $server ${path:+($path)}"
    # Its clusters preload jemalloc where it has none of its own and the machine does.
    if [ -n "$path" ] && "$path" --version | grep -q malloc=libc; then scripts/install-tools.sh jemalloc; fi
    # One that fails keeps the others from nothing. All packages: what `make test` has built isn't built with other features.
    # shellcheck disable=SC2086  # several words
    if TIDELINE_REDIS_SERVER=${path:-${TIDELINE_REDIS_SERVER:-}} scripts/no-strays.sh \
        "${CARGO:-cargo}" test --workspace --locked --no-fail-fast --test cluster --test deploy -- $without; then
        passed="$passed $server"
    else
        failed="$failed $server"
    fi
done
if [ -n "$passed" ]; then echo "=== cluster tests passed with:$passed"; fi
if [ -n "$skipped" ]; then echo "=== SKIPPED, could not be had on this machine (see above):$skipped"; fi
if [ -n "$failed" ]; then echo "=== cluster tests FAILED with:$failed"; exit 1; fi
