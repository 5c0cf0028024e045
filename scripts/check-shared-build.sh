#!/usr/bin/env bash
# Both programs have the crates that they share with the same features: else `make demo` after `make run` builds nearly
# everything anew, and a newcomer waits twice.
set -euo pipefail
cd "$(dirname "$0")/.."

features() {
    "${CARGO:-cargo}" tree --locked --edges normal,build --prefix none --format '{p} [{f}]' --package "$1" |
        sed 's/ (\*)$//' | sort --unique
}

only_in_tideline=$(comm -23 <(features tideline) <(features loadtest))
if [ -n "$only_in_tideline" ]; then
    echo "loadtest has these crates with other features than tideline, or not at all (see Cargo.toml, feature cli):" >&2
    echo "$only_in_tideline" >&2
    exit 1
fi
echo "tideline and loadtest share what they are built of"
