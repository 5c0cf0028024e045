#!/bin/sh
# Tests scripts/test.sh with a cargo that only says what failed: everything runs, all that failed is named once, and the end fails.
set -eu

cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/cargo" <<'CARGO'
#!/bin/sh
echo "$*" >>"$WORK/ran"
case $* in
*'--test cluster'*) exit "${STATUS:-101}" ;;
*--workspace*) cat <<'SAID'
     Running unittests src/lib.rs (target/debug/deps/tideline-0a1b2c)
test merge::both ... ok
test merge::neither ... FAILED

failures:
    merge::neither
     Running tests/cluster/main.rs (target/debug/deps/cluster-77aa)
test moves::a_slot ... FAILED
   Doc-tests tideline
test src/lib.rs - (line 12) ... FAILED
error: 3 targets failed:
    `-p tideline --lib`
    `-p tideline --test cluster`
    `-p loadtest --test verify`
SAID
    exit "${STATUS:-101}" ;;
esac
CARGO
chmod +x "$work/cargo"
export WORK="$work" TIDELINE_REDIS_SERVER=

said() { status=0; CARGO="$work/cargo" scripts/test.sh system >"$work/said" 2>&1 || status=$?; }
said
cat >"$work/wanted" <<'WANTED'
=== failed: merge::neither (tideline)
=== failed: moves::a_slot (cluster)
=== failed: src/lib.rs - (line 12) (Doc-tests tideline)
=== failed: cargo test -p tideline --lib
=== failed: cargo test -p tideline --test cluster
=== failed: cargo test -p loadtest --test verify
WANTED
grep '^=== failed: ' "$work/said" | diff "$work/wanted" - || { echo "scripts/test.sh names other tests" >&2; exit 1; }
[ "$status" -ne 0 ] || { echo "scripts/test.sh does not fail" >&2; exit 1; }
[ "$(grep -c -- '--no-fail-fast' "$work/ran")" -eq 2 ] || { echo "not everything runs: $(cat "$work/ran")" >&2; exit 1; }
STATUS=0
export STATUS
said
[ "$status" -eq 0 ] || { cat "$work/said" >&2; echo "scripts/test.sh fails where nothing does" >&2; exit 1; }
echo "scripts/test.sh: what fails is named, and keeps nothing from running"
