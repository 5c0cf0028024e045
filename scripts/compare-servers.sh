#!/bin/sh
# What operations cost on each server that the tests know, with either allocator where both can be had: CPU time and memory.
#
#   scripts/compare-servers.sh [ROUNDS] [SERVER...]      3 rounds of all servers, unless asked otherwise
#
# SERVER: `system` (TIDELINE_REDIS_SERVER or the PATH's), or what scripts/fetch-servers.sh knows. One that was built with libc's
# allocator is measured as it is and with jemalloc preloaded, if this machine has libjemalloc.so.2. Servers take turns, forwards and
# backwards; each turn is a cluster of three primaries of its own. Told are medians (lowest to highest round) of the CPU time of
# servers and client together in microseconds: of a delivery to FOLLOWERS (200000), a page and a follow on a small network; bytes
# of an entry of a home; and all against the first server of the list. A round takes a minute or two for each server, on a quiet
# machine. All figures are kept in target/compare-servers/figures.tsv. LOADTEST names the program, built already.
set -eu

cd "$(dirname "$0")/.."
: "${CARGO:=cargo}" "${FOLLOWERS:=200000}"
rounds=${1:-3}
case $rounds in '' | *[!0-9]* | 0) sed -n '4p' "$0" >&2; exit 2 ;; esac
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- system redis-8.2 valkey-9.1

if [ -z "${LOADTEST:-}" ]; then
    "$CARGO" build --profile dist --locked --package loadtest --no-default-features
    LOADTEST=$(scripts/target-directory.sh)/dist/loadtest
fi
place=$PWD/target/compare-servers
mkdir -p "$place"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
# Which allocator a server has is said here, for each of them.
export TIDELINE_WITHOUT_JEMALLOC=1

# variant PATH [LIBRARY]: adds a line "PROGRAM NAME" to what is measured.
variant() {
    said=$("$1" --version)
    name=$(echo "$said" | awk '{ print $1 "-" substr($3, 3) }')
    allocator=$(echo "$said" | awk '{ for (i = 1; i <= NF; i++) if (sub(/^malloc=/, "", $i)) print $i }')
    program=$1
    if [ -n "${2:-}" ]; then
        allocator=jemalloc-preloaded
        program=$work/$name-preloaded
        printf '#!/bin/sh\nLD_PRELOAD=%s exec "%s" "$@"\n' "$2" "$1" >"$program"
        chmod 755 "$program"
    fi
    echo "$program $name,$allocator" >>"$work/variants"
}

for server; do
    case $server in
    system) path=${TIDELINE_REDIS_SERVER:-$(command -v redis-server || command -v valkey-server)} ;;
    *) path=$(scripts/fetch-servers.sh "$server") ;;
    esac
    variant "$path"
    if "$path" --version | grep -q malloc=libc; then
        library=libjemalloc.so.2
        # The loader complains of what it can't find, and goes on.
        if [ -z "$(LD_PRELOAD=$library "$path" --version 2>&1 >/dev/null)" ]; then
            variant "$path" $library
        else
            echo "$library is not here (Debian: libjemalloc2): $server is measured with libc's allocator only" >&2
        fi
    fi
done

run() { # PROGRAM COMMAND...
    server=$1
    shift
    rm -f "$work/result.json"
    TIDELINE_REDIS_SERVER=$server RUST_LOG=error "$LOADTEST" "$@" --seed "$round" --json "$work/result.json" >"$work/said" 2>&1 \
        || { cat "$work/said" >&2; exit 1; }
}
field() { awk -v name="\"$1\":" '$1 == name { gsub(/[^0-9.]/, "", $2); print $2; exit }' "$work/result.json"; }
scenario() { # MIX
    printf "name = 'compare-servers'\n[graph]\npreset = 'uniform'\naccounts = 2000\nmean = 50\n[activity]\nactive_percent = 100\n"
    printf "history = 8\n[mix]\n%s\n[drive]\nat_once = 64\nbuckets = 64\nwarm_up_seconds = 1\nround_seconds = 2\nrounds = 3\n" \
        "$(echo "$1" | tr ',' '\n')"
}
measure() { # PROGRAM MIX
    scenario "$2" >"$work/scenario.toml"
    run "$1" compare --scenario "$work/scenario.toml" --systems push_only
    awk '/"cpu_us_per_operation": \{/ { is_in = 1 } is_in && /"median"/ { gsub(/[^0-9.]/, ""); print; exit }' "$work/result.json"
}

figures=$place/figures.tsv
printf 'round\tserver\tdelivery\tpage\tfollow\tbytes\n' >"$figures"
round=0
while [ $round -lt "$rounds" ]; do
    round=$((round + 1))
    if [ $((round % 2)) -eq 1 ]; then order='cat'; else order="sed 1!G;h;\$!d"; fi
    $order "$work/variants" | while read -r program name; do
        run "$program" fanout --followers "$FOLLOWERS" --background-homes 20000 --passes 1 --rounds 3 --skip-replicas --systems tideline
        delivery=$(field cpu_us_per_delivery)
        bytes=$(field bytes_per_entry)
        page=$(measure "$program" read=1)
        follow=$(measure "$program" subscribe=1,unsubscribe=1)
        printf '%s\t%s\t%s\t%s\t%s\t%s\n' $round "$name" "$delivery" "$page" "$follow" "$bytes" | tee -a "$figures"
    done
done

echo
echo "CPU of servers and client, us: medians of $rounds rounds (lowest to highest), and times the first server's"
echo
echo "| server | allocator | a delivery to $FOLLOWERS | a page | a follow | bytes an entry |"
echo "|---|---|---:|---:|---:|---:|"
while read -r program name; do
    printf '| %s | %s |' "$(echo "${name%%,*}" | tr '-' ' ')" "${name#*,}"
    for column in 3 4 5 6; do
        awk -F '\t' -v name="$name" -v column=$column '$2 == name { print $column }' "$figures" | sort -n | awk -v keep="$work/first-$column" '
            { value[NR] = $1 }
            END {
                median = NR % 2 ? value[(NR + 1) / 2] : (value[NR / 2] + value[NR / 2 + 1]) / 2
                if ((getline first <keep) <= 0) { first = median; print median >keep }
                printf " %.2f (%.2f-%.2f), %.2f x |", median, value[1], value[NR], median / first
            }'
    done
    echo
done <"$work/variants"
