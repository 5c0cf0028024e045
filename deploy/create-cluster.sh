#!/bin/sh
# Makes one Redis Cluster of servers that are running, or finds it made. Can be run again and again: a cluster that stands is
# left alone, one whose addresses have changed (containers get new ones) is introduced to itself, an attempt that was broken
# off is begun anew as long as no node holds data; anything else is explained.
#
#   NODES="redis-1:6379 redis-2:6379 ..." [REPLICAS=1] [PATIENCE_S=60] create-cluster.sh
#
# Needs valkey-cli or redis-cli. Where the servers have a password: REDISCLI_AUTH for either.
set -eu

: "${NODES:?the addresses of the nodes, host:port, separated by blanks}"
REPLICAS=${REPLICAS:-1}
PATIENCE_S=${PATIENCE_S:-60}
SLOTS=16384

say() { echo "create-cluster: $*"; }
die() { echo "create-cluster: $*" >&2; exit 1; }

cli=$(command -v valkey-cli || command -v redis-cli) || die "neither valkey-cli nor redis-cli is here"
# Since it has a name of its own, valkey-cli reads only that one.
[ -z "${REDISCLI_AUTH:-}" ] || export VALKEYCLI_AUTH="$REDISCLI_AUTH"

# ask ADDRESS COMMAND: the reply without carriage returns. An error reply is a reply, too.
ask() {
    address=$1
    shift
    timeout 5 "$cli" -h "${address%:*}" -p "${address##*:}" "$@" | tr -d '\r'
}

# field ADDRESS NAME: a value of CLUSTER INFO.
field() { ask "$1" cluster info | awk -F: -v name="$2" '$1 == name { print $2 }'; }

# patiently WHAT COMMAND...: until the command succeeds.
patiently() {
    what=$1
    shift
    deadline=$(($(date +%s) + PATIENCE_S))
    until "$@"; do
        [ "$(date +%s)" -lt "$deadline" ] || die "still not so after $PATIENCE_S s: $what"
        sleep 0.2
    done
}

answers() { [ "$(ask "$1" ping 2>/dev/null)" = PONG ]; }

# The cluster protocol knows nodes by IP address, and CLUSTER MEET takes no names.
resolve() {
    host=${1%:*}
    case $host in
    *[!0-9.]*) ip=$(getent ahostsv4 "$host" 2>/dev/null || getent hosts "$host") || die "the name $host is unknown" ;;
    *) ip=$host ;;
    esac
    echo "$ip:${1##*:}" | awk -v port="${1##*:}" '{ sub(/:[0-9]*$/, "", $1); print $1 ":" port; exit }'
}

# Does every node know all others as members with these addresses, links up, and serve?
stands() {
    for node in $nodes; do
        [ "$(field "$node" cluster_state)" = ok ] || return 1
        view=$(ask "$node" cluster nodes)
        for other in $nodes; do
            case $view in
            *" $other@"*) ;;
            *" $other,"*) ;;
            *) return 1 ;;
            esac
        done
        if echo "$view" | awk '$3 ~ /fail|handshake|noaddr/ || $8 != "connected" { bad = 1 } END { exit !bad }'; then return 1; fi
    done
}

# Was it made to the end? Every node is a member, all slots are given out, and there are the replicas asked for.
is_made() {
    for node in $nodes; do
        [ "$(field "$node" cluster_slots_assigned)" = $SLOTS ] || return 1
        [ "$(field "$node" cluster_known_nodes)" -ge "$count" ] || return 1
        replicas=$(ask "$node" cluster nodes | awk '$3 ~ /slave/' | wc -l)
        [ "$replicas" -ge $((count - count / (REPLICAS + 1))) ] || return 1
    done
}

# Has nobody begun yet?
is_fresh() {
    for node in $nodes; do
        [ "$(field "$node" cluster_slots_assigned)" = 0 ] && [ "$(field "$node" cluster_known_nodes)" = 1 ] || return 1
    done
}

# Resets all until nobody knows anybody. Once is not enough: who was not reset yet may just have introduced itself to who was,
# and what it sent can come in after a look, so a second look has to see the same.
is_reset() {
    if is_fresh && sleep 0.5 && is_fresh; then return 0; fi
    for node in $nodes; do ask "$node" cluster reset hard >/dev/null; done
    return 1
}

has_data() {
    for node in $nodes; do
        [ "$(ask "$node" dbsize)" = 0 ] || return 0
    done
    return 1
}

replicas_in_sync() {
    for node in $nodes; do
        state=$(ask "$node" info replication)
        case $state in
        *role:slave*master_link_status:up* | *role:master*) ;;
        *) return 1 ;;
        esac
    done
}

# Everybody meets everybody. Who knows the other already, by its id, only notes its present address.
introduce() {
    for node in $nodes; do
        for other in $nodes; do
            if [ "$node" != "$other" ]; then ask "$node" cluster meet "${other%:*}" "${other##*:}" >/dev/null; fi
        done
    done
}

nodes=
count=0
for name in $NODES; do
    patiently "$name answers PING" answers "$name"
    nodes="$nodes $(resolve "$name")"
    count=$((count + 1))
done

if is_made; then
    if stands; then
        say "the cluster of $count nodes stands; nothing to do"
        exit 0
    fi
    say "the cluster is made, but its nodes do not find each other; introducing them at their present addresses"
    introduce
else
    if ! is_fresh; then
        ask "${nodes##* }" cluster nodes >&2 || true
        if has_data; then
            die "these nodes hold data but are not one whole cluster of $count nodes with $REPLICAS replica(s) each (see above). \
Nothing was changed. A node that lost its volume is added again with: $cli --cluster add-node NEW ANY --cluster-slave"
        fi
        say "an earlier attempt was broken off and no node holds data; beginning anew"
        patiently "no node knows another any more" is_reset
    fi
    # Word by word: one argument for each address.
    # shellcheck disable=SC2086
    "$cli" --cluster create $nodes --cluster-replicas "$REPLICAS" --cluster-yes
fi
patiently "every node has heard that all are members, linked and serving" stands
patiently "every node has heard which are replicas" is_made
patiently "the replicas are in sync" replicas_in_sync
say "the cluster of $count nodes stands: $NODES"
