#!/bin/sh
# Prints the folder in which cargo builds, whole, whatever says which that is (CARGO_TARGET_DIR, a file of settings).
set -eu
cd "$(dirname "$0")/.."
"${CARGO:-cargo}" metadata --no-deps --locked --format-version 1 | sed 's/.*"target_directory":"\([^"]*\)".*/\1/'
