#!/bin/sh
# Names the tests that failed, one a line, with what they are of; and the programs of tests that failed (one that is killed names no test).
#
#   scripts/failed-tests.sh LOG...      what `cargo test --no-fail-fast` has printed, standard error included
set -eu

awk '
    # What runs now: "Running tests/cluster/main.rs (target/debug/deps/cluster-0123)", "Doc-tests tideline".
    $1 == "Running" { of = $NF; sub(/^.*\/deps\//, "", of); sub(/-[0-9a-f]*\)$/, "", of) }
    $1 == "Doc-tests" { of = $0; sub(/^ */, "", of) }
    /^=== cluster tests with / { with = ", with " $5 }
    /^test .* \.\.\. FAILED$/ { name = $0; sub(/^test /, "", name); sub(/ \.\.\. FAILED$/, "", name); tell(name " (" of with ")") }
    # The list at the end: "error: 2 targets failed:", then a line for each.
    /^error: [0-9]+ targets? failed:$/ { is_list = 1; next }
    is_list && /^    `.*`$/ { gsub(/^ *`|`$/, ""); tell("cargo test " $0 with); next }
    { is_list = 0 }
    /^error: could not compile/ { tell($0) }
    function tell(line) { if (!(line in told)) { told[line]; print line } }
' "$@"
