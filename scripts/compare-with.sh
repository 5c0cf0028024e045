#!/bin/sh
# What operations cost in CPU time, servers and client together, beside an older program: both take turns on the same servers.
#
#   scripts/compare-with.sh COMMIT [ROUNDS]      15 rounds, unless more are asked for
#
# The older program is built beside, in target/compare-with. In each round both do each operation for some seconds, now the one
# first, now the other, on three primaries that are started for this. Told is the median of the rounds' ratios, new to old, and the interval that
# holds it with 95 % confidence (order statistics): `missed` if all of it lies above 1.03. It measures and judges nothing else; leave the
# machine alone meanwhile. All figures are kept in target/compare-with/COMMIT.tsv.
set -eu

cd "$(dirname "$0")/.."
: "${CARGO:=cargo}"
LEAST_ROUNDS=15
[ $# -ge 1 ] || { sed -n '4p' "$0" >&2; exit 2; }
commit=$(git rev-parse --short --verify "$1^{commit}")
rounds=${2:-$LEAST_ROUNDS}
[ "$rounds" -ge "$LEAST_ROUNDS" ] || { echo "$rounds rounds are too few: at least $LEAST_ROUNDS" >&2; exit 2; }

place=$(pwd)/target/compare-with
sources=$place/$commit
mkdir -p "$place"
[ -e "$sources/Cargo.toml" ] || git worktree add --detach --force "$sources" "$commit"
# The profile for published figures. Older programs have none: their `release` was that.
profile() { # SOURCES
    grep -q '^\[profile\.dist\]' "$1/Cargo.toml" && echo dist || echo release
}
build() { # SOURCES TARGET
    (cd "$1" && CARGO_TARGET_DIR="$2" "$CARGO" build --profile "$(profile .)" --locked --workspace --bin loadtest --bin tideline)
}
build "$sources" "$place/$commit-target"
build "$(pwd)" "$(pwd)/target"
old=$place/$commit-target/$(profile "$sources")/loadtest
programs=$(pwd)/target/$(profile .)
new=$programs/loadtest

work=$(mktemp -d)
leave() {
    "$programs/tideline" cluster down --wipe --dir "$work/cluster" >/dev/null 2>&1 || true
    rm -rf "$work"
}
trap leave EXIT
trap 'exit 130' INT TERM
urls=$("$programs/tideline" cluster up --replicas 0 --dir "$work/cluster" | grep '^redis://' | paste -sd ',' -)

# NAME SYSTEM MIX: an operation. A post of somebody who is pulled is a publish and nothing else; of somebody who is pushed, the
# deliveries to 50 followers as well.
operations='publish pull_only post=1
delivery push_only post=1
page push_only read=1
look push_only check=1
follow push_only subscribe=1,unsubscribe=1'

scenario() { # MIX
    printf "name = 'compare-with'\n[graph]\npreset = 'uniform'\naccounts = 2000\nmean = 50\n[activity]\nactive_percent = 100\n"
    printf "history = 8\n[mix]\n%s\n[drive]\nat_once = 64\nbuckets = 64\nwarm_up_seconds = 1\nround_seconds = 2\nrounds = 2\n" \
        "$(echo "$1" | tr ',' '\n')"
}

# measure PROGRAM SYSTEM SEED: microseconds of an operation.
measure() {
    rm -f "$work/result.json"
    "$1" compare --cluster "$urls" --scenario "$work/scenario.toml" --systems "$2" --seed "$3" --json "$work/result.json" \
        >"$work/said" 2>&1 || { cat "$work/said" >&2; echo "$1 failed" >&2; exit 1; }
    awk '/"cpu_us_per_operation": \{/ { is_in = 1 } is_in && /"median"/ { gsub(/[^0-9.]/, ""); print; exit }' "$work/result.json"
}

figures=$place/$commit.tsv
printf 'round\toperation\told_us\tnew_us\n' >"$figures"
round=0
while [ $round -lt "$rounds" ]; do
    round=$((round + 1))
    echo "$operations" | while read -r name system mix; do
        scenario "$mix" >"$work/scenario.toml"
        if [ $((round % 2)) -eq 1 ]; then
            old_us=$(measure "$old" "$system" $round)
            new_us=$(measure "$new" "$system" $round)
        else
            new_us=$(measure "$new" "$system" $round)
            old_us=$(measure "$old" "$system" $round)
        fi
        printf '%s\t%s\t%s\t%s\n' $round "$name" "$old_us" "$new_us" | tee -a "$figures"
    done
done

echo
echo "CPU of an operation, servers and client: $(git describe --always --dirty) to $commit, $rounds rounds"
echo "$operations" | while read -r name _; do
    awk -F '\t' -v name="$name" '$2 == name { print $4 / $3, $3, $4 }' "$figures" | sort -n | awk -v name="$name" '
        { ratio[NR] = $1; old += $2; new += $3 }
        END {
            # The interval from the kth lowest to the kth highest misses the median with at most 5 %.
            chance = 0.5 ^ NR; below = 0; k = 0
            while (below + chance <= 0.025) { below += chance; k++; chance *= (NR - k + 1) / k }
            median = NR % 2 ? ratio[(NR + 1) / 2] : (ratio[NR / 2] + ratio[NR / 2 + 1]) / 2
            low = ratio[k]; high = ratio[NR - k + 1]
            verdict = low > 1.03 ? "missed" : high <= 1.03 ? "met" : "open"
            printf "%-10s %8.1f us, was %8.1f us   %.3f  (%.3f to %.3f)  %s\n", name, new / NR, old / NR, median, low, high, verdict
        }'
done
