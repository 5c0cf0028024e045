#!/usr/bin/env bash
# Both programs have the crates that they share with the same features: else `make demo` after `make run` builds nearly
# everything anew, and a newcomer waits twice. And who embeds the library builds nothing that only they need.
set -euo pipefail
cd "$(dirname "$0")/.."

# `tideline-program` itself is in no other one.
features() {
    "${CARGO:-cargo}" tree --locked --edges normal,build --prefix none --format '{p} [{f}]' --package "$1" |
        sed 's/ (\*)$//' | grep -v '^tideline-program ' | sort --unique
}

# Of what both have: that the program has more (a server) costs nobody who only runs the load test.
crates() { features "$1" | cut -d' ' -f1,2 | sort --unique | sed 's/$/ /'; }
both=$(comm -12 <(crates tideline-program) <(crates loadtest))
differ=$(comm -23 <(features tideline-program) <(features loadtest) | grep -F "$both" || true)
if [ -n "$differ" ]; then
    echo "loadtest has these crates with other features than tideline-program (see program/Cargo.toml):" >&2
    echo "$differ" >&2
    exit 1
fi
echo "tideline-program and loadtest share what they are built of"

needless=$(features tideline | grep -E '^(anstream|clap|indicatif|rustix|tideline-local-cluster) ' || true)
if [ -n "$needless" ]; then
    echo "who embeds tideline builds these, which only the programs need:" >&2
    echo "$needless" >&2
    exit 1
fi
echo "who embeds tideline builds $(features tideline | wc -l) crates, and none of the programs' alone"
