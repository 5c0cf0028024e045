#!/bin/sh
# Prints the folder in which cargo builds, whole, whatever says which that is (CARGO_TARGET_DIR, a file of settings).
set -eu
cd "$(dirname "$0")/.."
# CARGO may be several words.
# shellcheck disable=SC2086
told=$(${CARGO:-cargo} metadata --no-deps --locked --format-version 1)
directory=$(printf '%s' "$told" | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
case $directory in
/*) printf '%s\n' "$directory" ;;
*) echo "scripts/target-directory.sh: cargo names no folder in which it builds" >&2; exit 1 ;;
esac
