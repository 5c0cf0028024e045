#!/bin/sh
# The oracle with all faults, one seed after another: for nights. Goes on after a seed that fails, and fails at the end.
#
#   scripts/verify-long.sh [SEED...]      without any: 1 to 20
#
# OPERATIONS (20000) and CHAOS (all four kinds) are for each seed. What a run told stands in target/verify/SEED.txt and
# SEED.json; `loadtest verify --seed SEED` with the same options plans the same operations again.
set -eu

cd "$(dirname "$0")/.."
: "${CARGO:=cargo}" "${OPERATIONS:=20000}" "${CHAOS:=kill-instance,freeze-instance,failover,reshard}"
[ $# -gt 0 ] || set -- 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20

"$CARGO" build --release --locked --package loadtest
reports=${CARGO_TARGET_DIR:-target}/verify
mkdir -p "$reports"
kinds='missing|doubled|leaked|reordered|lost|stale|stuck|miscounted|out_of_step'
failed=
for seed in "$@"; do
    started=$(date +%s)
    status=0
    rm -f "$reports/$seed.json"
    "$CARGO" run --quiet --release --locked --package loadtest -- verify --operations "$OPERATIONS" --seed "$seed" \
        --chaos "$CHAOS" --json "$reports/$seed.json" >"$reports/$seed.txt" 2>&1 || status=$?
    counts=$(sed -nE "s/^  \"($kinds)\": ([0-9]+),\$/\1 \2/p" "$reports/$seed.json" 2>/dev/null | paste -sd ' ' -)
    echo "seed $seed: $counts, $(($(date +%s) - started)) s, exit code $status"
    [ "$status" -eq 0 ] || failed="$failed $seed"
done
[ -z "$failed" ] || { echo "seeds that failed:$failed; see $reports" >&2; exit 1; }
