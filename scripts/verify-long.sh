#!/bin/sh
# What the living get while a primary is away, a history with clocks and failovers, KILLS (50) of servers that clients write to, STRANGE (100000)
# requests that make no sense, then the oracle with all faults, one seed after another: for nights. Goes on after a seed that fails, and fails at the end.
#
#   scripts/verify-long.sh [SEED...]      without any: 1 to 20, over HTTP 81 to 90, with an archive 61 to 80; `random`: one that is drawn
#
# The first seed is also that of the kills and of the strange requests.
# OPERATIONS (20000) and CHAOS (all kinds; every third seed no failovers, but servers' clocks too) are for each seed; every sixth one takes minutes, every
# sixth one acknowledges as by default. HTTP_SEEDS go over HTTP, none for minutes; ARCHIVE_SEEDS are run with an archive (where seeds are named: none of both, if they aren't set), odd ones in
# PostgreSQL, which is struck, too, even ones in a file of SQLite, with the one instance that may have it. What a run told stands in target/verify/SEED.txt and
# SEED.json, over HTTP in http-SEED, with an archive in archive-SEED; `loadtest verify --seed SEED` with the same options plans the same operations again.
set -eu

cd "$(dirname "$0")/.."
: "${CARGO:=cargo}" "${OPERATIONS:=20000}" "${KILLS:=50}" "${STRANGE:=100000}"
# chaos SEED: what goes wrong.
chaos() {
    if [ -n "${CHAOS:-}" ]; then echo "$CHAOS"; return; fi
    printf 'kill-instance,freeze-instance,sleep-instance,reshard,open-slots,cut-clients,flush-functions,slow-server,silent-server,full-server,set-clocks'
    if [ $(($1 % 3)) -eq 0 ]; then echo; else echo ',failover,failovers-in-a-row,cut-bus'; fi
}
# archive_chaos SEED: the same, with what befalls a server of an archive, or without what goes with no file.
archive_chaos() {
    if [ $(($1 % 2)) -eq 0 ]; then chaos "$1" | sed 's/sleep-instance,//'; return; fi
    [ -n "${CHAOS:-}" ] || printf 'kill-archive,freeze-archive,slow-archive,full-archive,forget-archive,'
    chaos "$1"
}

if [ $# -eq 0 ]; then
    set -- 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20
    : "${HTTP_SEEDS=81 82 83 84 85 86 87 88 89 90}"
    : "${ARCHIVE_SEEDS=61 62 63 64 65 66 67 68 69 70 71 72 73 74 75 76 77 78 79 80}"
fi

"$CARGO" build --release --locked --package loadtest --package tideline-program
reports=${CARGO_TARGET_DIR:-target}/verify
mkdir -p "$reports"
kinds='missing|doubled|leaked|reordered|lost|stale|stuck|miscounted|out_of_step'
failed=
# a_seed NAME: one that was named, or is drawn.
a_seed() { if [ "$1" = random ]; then od -An -N3 -tu4 /dev/urandom | tr -d ' '; else echo "$1"; fi; }
# verify REPORT SEED OPTION...: one run.
verify() {
    report=$1 seed=$2
    shift 2
    started=$(date +%s)
    status=0
    rm -f "$reports/$report.json"
    "$CARGO" run --quiet --release --locked --package loadtest -- verify --operations "$OPERATIONS" --seed "$seed" \
        "$@" --json "$reports/$report.json" >"$reports/$report.txt" 2>&1 || status=$?
    counts=$(sed -nE "s/^  \"($kinds)\": ([0-9]+),\$/\1 \2/p" "$reports/$report.json" 2>/dev/null | paste -sd ' ' -)
    echo "seed $report: $counts, $(($(date +%s) - started)) s, exit code $status"
    [ "$status" -eq 0 ] || failed="$failed $report"
}
# What the living get while a primary is away for a minute: it measures, so nothing else runs beside it.
"$CARGO" test --release --locked --test cluster engine::away::measured -- --ignored --nocapture || failed=" away"
"$CARGO" test --release --locked --test cluster clocks::history -- --ignored --nocapture || failed="$failed clocks"
# over_http REPORT OPTION...: one run on the program that serves.
over_http() {
    report=$1
    shift
    "$CARGO" run --quiet --release --locked --package loadtest -- "$@" --seed "$first" --json "$reports/$report.json" \
        >"$reports/$report.txt" 2>&1 || failed="$failed $report"
    echo "$report, seed $first: $(tail -n 3 "$reports/$report.txt" | tr '\n' ' ')"
}
first=$(a_seed "$1")
over_http kills kills --kills "$KILLS"
over_http strange strange --requests "$STRANGE"
for seed in "$@"; do
    seed=$(a_seed "$seed")
    besides=
    case $((seed % 6)) in
    4) [ -n "${CHAOS:-}" ] || besides=--defaults ;;
    5) besides=--minutes ;;
    esac
    verify "$seed" "$seed" --chaos "$(chaos "$seed")" ${besides:+"$besides"}
done
for seed in ${HTTP_SEEDS:-}; do
    seed=$(a_seed "$seed")
    besides=
    if [ $((seed % 6)) -eq 4 ] && [ -z "${CHAOS:-}" ]; then besides=--defaults; fi
    verify "http-$seed" "$seed" --over http --chaos "$(chaos "$seed")" ${besides:+"$besides"}
done
for seed in ${ARCHIVE_SEEDS:-}; do
    seed=$(a_seed "$seed")
    if [ $((seed % 2)) -eq 0 ]; then set -- sqlite --instances 1; else set -- postgres; fi
    verify "archive-$seed" "$seed" --chaos "$(archive_chaos "$seed")" --archive "$@"
done
[ -z "$failed" ] || { echo "failed:$failed; see $reports" >&2; exit 1; }
