#!/bin/sh
# What the living get while a primary is away, a history with clocks and failovers, then the oracle with all faults, one seed after another: for nights. Goes on after a seed that fails, and fails at the end.
#
#   scripts/verify-long.sh [SEED...]      without any: 1 to 20; `random`: one that is drawn
#
# OPERATIONS (20000) and CHAOS (all kinds; every third seed clocks instead of failovers) are for each seed; every sixth one takes minutes, every
# sixth one acknowledges as by default. What a run told stands in target/verify/SEED.txt and
# SEED.json; `loadtest verify --seed SEED` with the same options plans the same operations again.
set -eu

cd "$(dirname "$0")/.."
: "${CARGO:=cargo}" "${OPERATIONS:=20000}"
# chaos SEED: what goes wrong.
chaos() {
    if [ -n "${CHAOS:-}" ]; then echo "$CHAOS"; return; fi
    printf 'kill-instance,freeze-instance,sleep-instance,reshard,open-slots,cut-clients,flush-functions,slow-server,silent-server,full-server'
    if [ $(($1 % 3)) -eq 0 ]; then echo ',set-clocks'; else echo ',failover,failovers-in-a-row,cut-bus'; fi
}

[ $# -gt 0 ] || set -- 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20

"$CARGO" build --release --locked --package loadtest
reports=${CARGO_TARGET_DIR:-target}/verify
mkdir -p "$reports"
kinds='missing|doubled|leaked|reordered|lost|stale|stuck|miscounted|out_of_step'
failed=
# What the living get while a primary is away for a minute: it measures, so nothing else runs beside it.
"$CARGO" test --release --locked --test cluster engine::away::measured -- --ignored --nocapture || failed=" away"
"$CARGO" test --release --locked --test cluster clocks::history -- --ignored --nocapture || failed="$failed clocks"
for seed in "$@"; do
    [ "$seed" != random ] || seed=$(od -An -N3 -tu4 /dev/urandom | tr -d ' ')
    started=$(date +%s)
    status=0
    besides=
    case $((seed % 6)) in
    4) [ -n "${CHAOS:-}" ] || besides=--defaults ;;
    5) besides=--minutes ;;
    esac
    rm -f "$reports/$seed.json"
    "$CARGO" run --quiet --release --locked --package loadtest -- verify --operations "$OPERATIONS" --seed "$seed" \
        --chaos "$(chaos "$seed")" $besides --json "$reports/$seed.json" >"$reports/$seed.txt" 2>&1 || status=$?
    counts=$(sed -nE "s/^  \"($kinds)\": ([0-9]+),\$/\1 \2/p" "$reports/$seed.json" 2>/dev/null | paste -sd ' ' -)
    echo "seed $seed: $counts, $(($(date +%s) - started)) s, exit code $status"
    [ "$status" -eq 0 ] || failed="$failed $seed"
done
[ -z "$failed" ] || { echo "failed:$failed; see $reports" >&2; exit 1; }
