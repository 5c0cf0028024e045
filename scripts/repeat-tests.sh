#!/bin/sh
# Repeats tests, on an idle machine and beside two programs that keep two cores busy, and keeps a table of it.
#
#   scripts/repeat-tests.sh [--idle N] [--busy N] [--table FILE] [--once-red | TEST ...]
#
# Without TEST: the whole of `make test`, 10 times idle and 3 times busy. With one (its whole name, as cargo prints it): that one
# alone, 100 times in both states; with several: these together; --once-red: those that were red once, by scripts/once-red.txt.
# Everything is built once, before. A line of the table (target/tests/runs.tsv) is a run: commit, state, number, result, seconds,
# failing tests; lines are added, so that runs may be spread over days. What a run that failed has printed is kept beside it. Fails
# if a run failed.
set -eu

cd "$(dirname "$0")/.."
: "${CARGO:=cargo}"
# Busy programs end by themselves after so long, whatever becomes of this script.
BUSY_MAX_S=7200
usage() { sed -n '4p' "$0" >&2; exit 2; }

idle='' busy='' table='' named=''
while [ $# -gt 0 ]; do
    case $1 in
    --idle | --busy | --table)
        [ $# -gt 1 ] || usage
        case $1 in --idle) idle=$2 ;; --busy) busy=$2 ;; *) table=$2 ;; esac
        shift
        ;;
    --once-red) named="$named $(grep -v '^#' scripts/once-red.txt | cut -f 1)" ;;
    -*) usage ;;
    *) named="$named $1" ;;
    esac
    shift
done
tests=${CARGO_TARGET_DIR:-target}/tests
table=${table:-$tests/runs.tsv}
if [ -n "$named" ]; then
    : "${idle:=100}" "${busy:=100}"
else
    : "${idle:=10}" "${busy:=3}"
fi
for number in "$idle" "$busy"; do case $number in *[!0-9]* | '') usage ;; esac; done
mkdir -p "$tests" "$(dirname "$table")"
[ -s "$table" ] || printf 'commit\tstate\trun\tresult\tseconds\tfailing tests\n' >"$table"
commit=$(git describe --always --dirty)
log=$tests/run.log

busy_pids=
stop_busy() {
    for pid in $busy_pids; do kill "$pid" 2>/dev/null || true; done
    busy_pids=
}
trap stop_busy EXIT
trap 'exit 130' INT TERM

# Keeps a core busy, no longer than allowed nor than this script lives.
spin() {
    until=$(($(date +%s) + BUSY_MAX_S))
    while [ "$(date +%s)" -lt "$until" ] && kill -0 $$ 2>/dev/null; do
        i=0
        while [ $i -lt 300000 ]; do i=$((i + 1)); done
    done
}

start_busy() {
    spin &
    busy_pids=$!
    spin &
    busy_pids="$busy_pids $!"
}

# Everything, or these tests: wherever they are, so all programs of tests are asked; doc tests aside, which would be built each time.
once() {
    if [ -z "$named" ]; then
        make test CARGO="$CARGO"
        return
    fi
    # shellcheck disable=SC2086 # no name has a space
    "$CARGO" test --workspace --locked --no-fail-fast --lib --bins --tests -- --exact $named
}

failures=0
# runs STATE MANY
runs() {
    run=0
    while [ $run -lt "$2" ]; do
        run=$((run + 1))
        [ "$1" = idle ] || start_busy
        started=$(date +%s)
        result=passed
        once >"$log" 2>&1 || result=FAILED
        seconds=$(($(date +%s) - started))
        stop_busy
        # Where all is well each has said so; a program that died names no test.
        for test in $named; do
            [ "$result" = passed ] || break
            grep -q "^test $test " "$log" && continue
            echo "no test has the name $test; what cargo said is in $log" >&2
            exit 2
        done
        failing=$(scripts/failed-tests.sh "$log" | grep -v '^cargo test ' | paste -sd ',' - || true)
        printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$commit" "$1" "$run" "$result" "$seconds" "$failing" | tee -a "$table"
        if [ "$result" = FAILED ]; then
            failures=$((failures + 1))
            cp "$log" "$tests/$commit-$1-$run-$(date +%s).log"
        fi
    done
}

"$CARGO" test --workspace --locked --no-run
runs idle "$idle"
runs busy "$busy"
echo "$failures of $((idle + busy)) runs failed; the table is $table"
[ "$failures" -eq 0 ]
