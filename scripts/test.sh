#!/bin/sh
# All tests, then the cluster tests with further servers. A failure keeps nothing else from running; the end says what failed.
#
#   scripts/test.sh [SERVER...]      what scripts/test-servers.sh knows; one that cannot be had is skipped
#
# Seeds are fixed. SEED=random draws new ones, which are printed.
set -eu

cd "$(dirname "$0")/.."
: "${CARGO:=cargo}"
# Tests mostly wait: for servers that start, fail, take over.
export RUST_TEST_THREADS="${RUST_TEST_THREADS:-$((4 * $(getconf _NPROCESSORS_ONLN)))}"
if [ -n "${SEED:-}" ]; then
    export TIDELINE_SEED="$SEED"
    if [ "$SEED" = random ]; then
        PROPTEST_RNG_SEED=$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')
        export PROPTEST_RNG_SEED
        echo "PROPTEST_RNG_SEED=$PROPTEST_RNG_SEED; the other tests print theirs"
    fi
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=

# step COMMAND...: also told in the log that is looked through at the end.
step() {
    { status=0; "$@" 2>&1 || status=$?; echo "$status" >"$work/status"; } | tee -a "$work/log"
    [ "$(cat "$work/status")" = 0 ] || failed="$failed
  $*"
}

step scripts/no-strays.sh "$CARGO" test --workspace --locked --no-fail-fast
if [ $# -gt 0 ]; then
    CARGO="$CARGO" step scripts/test-servers.sh --skip-unavailable "$@"
fi
[ -n "$failed" ] || exit 0

echo
echo "=== FAILED:$failed"
scripts/failed-tests.sh "$work/log" | sed 's/^/=== failed: /'
exit 1
