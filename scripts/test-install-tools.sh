#!/bin/sh
# Runs install-tools.sh with stand-ins for the package managers, sudo and the servers, and compares the commands it issues.
# Nothing is installed. `make check` runs it.
#
# What stands in single quotes is for the stand-ins to expand:
# shellcheck disable=SC2016
set -eu

cd "$(dirname "$0")"
script=$PWD/install-tools.sh
sandbox=$(mktemp -d)
root=$sandbox/root
trap 'rm -rf "$sandbox"' EXIT
failed=0 passed=0

# The programs that the script itself uses; everything else is missing.
for program in sh env awk cat rm chmod tee uname mkdir grep; do
    mkdir -p "$sandbox/base"
    ln -s "$(command -v "$program")" "$sandbox/base/$program"
done

# stub NAME [BODY]: a program that writes down how it was called, then does BODY.
stub() {
    printf '#!/bin/sh\necho "%s $*" >>"%s/log"\n%s\n' "$1" "$sandbox" "${2:-}" >"$sandbox/bin/$1"
    chmod 755 "$sandbox/bin/$1"
}

# A package manager whose packages bring what they bring in real life: put NAME VERSION-LINE.
put='put() { printf "#!/bin/sh\necho \"%s\"\n" "$2" >"'$sandbox'/bin/$1"; chmod 755 "'$sandbox'/bin/$1"; }'
redis7='put redis-server "Redis server v=7.0.15 sha=0:0"; put redis-cli x'
valkey8='put valkey-server "Valkey server v=8.1.0 sha=0:0"; put valkey-cli x'
manager_body="$put"'
case " $* " in
*" redis-server "* | *" redis "*) '"$redis7"' ;;
*" valkey-server "* | *" valkey "*) '"$valkey8"' ;;
*" gcc "*) put cc x ;;
*" python3 "*) put python3 x ;;
*" nodejs "* | *" node "*) put node "${node_version:-v20.1.0}" ;;
*" prometheus "* | *" /usr/bin/prometheus "*)
    put prometheus x; put promtool x
    # As Debian does: a unit, which is enabled.
    mkdir -p "'$root'/lib/systemd/system"; : >"'$root'/lib/systemd/system/prometheus.service" ;;
*" postgresql "*)
    # What it is told of a database of its own is there while it is installed.
    case $1 in update) exit 0 ;; esac
    [ -z "${wants_no_database:-}" ] || grep -q "create_main_cluster = off" "'$root'/etc/postgresql-common/createcluster.d/tideline.conf" || exit 1
    mkdir -p "'$root'/usr/lib/postgresql/15/bin" "'$root'/lib/systemd/system"
    : >"'$root'/lib/systemd/system/postgresql.service"
    printf "#!/bin/sh\necho \"initdb (PostgreSQL) 15.18\"\n" >"'$root'/usr/lib/postgresql/15/bin/initdb"; chmod 755 "'$root'/usr/lib/postgresql/15/bin/initdb" ;;
*" postgresql-server "*) put initdb "initdb (PostgreSQL) 16.1" ;;
esac'

# begin USER-ID: an empty machine.
begin() {
    rm -rf "${sandbox:?}/bin" "$sandbox/log" "$root"
    mkdir -p "$sandbox/bin" "$root/usr/sbin"
    : >"$sandbox/log"
    printf '#!/bin/sh\necho %s\n' "$1" >"$sandbox/bin/id"
    chmod 755 "$sandbox/bin/id"
}

# run ARGS: sets `status`, `output` and `log` (without apt-cache: only looking).
run() {
    status=0
    output=$(PATH="$sandbox/bin:$sandbox/base" INSTALL_TOOLS_ROOT="$root" INSTALL_TOOLS_JEMALLOC=libnowhere.so HOME="$sandbox" CARGO_HOME="$sandbox/cargo" \
        TIDELINE_REDIS_SERVER="${server:-}" TIDELINE_WITHOUT_PROMETHEUS="${without:-}" TIDELINE_WITHOUT_NODE="${without:-}" TIDELINE_POSTGRES_BIN="${postgres:-}" sh "$script" "$@" 2>&1 </dev/null) || status=$?
    log=$(grep -v '^apt-cache' "$sandbox/log" || true)
}

# expect NAME STATUS LOG WORDS: WORDS must be in the output.
expect() {
    if [ "$status" = "$2" ] && [ "$log" = "$3" ] && case $output in *"$4"*) ;; *) false ;; esac; then
        passed=$((passed + 1))
        return 0
    fi
    failed=$((failed + 1))
    printf 'FAILED: %s\n  status %s, expected %s\n  commands:\n%s\n  expected:\n%s\n  said: %s\n  expected in it: %s\n' \
        "$1" "$status" "$2" "$log" "$3" "$output" "$4"
}

apt_stubs() {
    stub apt-cache "echo \"  Candidate: $1\""
    stub apt-get "$manager_body"
}
sudo_stub() { stub sudo '[ "$1" = -n ] && shift
[ "$1" = true ] && exit 0
exec "$@"'; }

begin 0
apt_stubs 5:7.0.15-1~deb12u6
run server client
expect "apt-get, as root" 0 "apt-get update -q
apt-get install -q -y --no-install-recommends redis-server" "installing redis-server with apt-get"
if [ -e "$root/usr/sbin/policy-rc.d" ]; then echo "FAILED: policy-rc.d was left behind"; failed=$((failed + 1)); fi
: >"$sandbox/log"
run server client
expect "the second run does nothing" 0 "" ""

begin 1000
apt_stubs 5:7.0.15-1~deb12u6
sudo_stub
run server
expect "apt-get, by sudo" 0 "sudo -n true
sudo apt-get update -q
apt-get update -q
sudo -n true
sudo tee $root/usr/sbin/policy-rc.d
sudo -n true
sudo chmod 755 $root/usr/sbin/policy-rc.d
sudo -n true
sudo env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends redis-server
apt-get install -q -y --no-install-recommends redis-server
sudo -n true
sudo rm -f $root/usr/sbin/policy-rc.d" "installing redis-server"

begin 1000
apt_stubs 5:7.0.15-1~deb12u6
run server
expect "no sudo" 1 "" "As root, run: apt-get update"

begin 1000
apt_stubs 5:7.0.15-1~deb12u6
stub sudo 'exit 1'
run server
expect "sudo with a password, no terminal" 1 "sudo -n true" "sudo asks for a password"

begin 0
apt_stubs 5:6.0.16-1ubuntu1
run server
expect "the distribution's packages are too old" 1 "apt-get update -q" "scripts/fetch-servers.sh"

begin 0
stub dnf "$manager_body"
run server client
expect "dnf" 0 "dnf install -y -q valkey" ""

begin 0
stub apk "$manager_body"
run server client
expect "apk" 0 "apk add --no-cache --quiet redis" ""

begin 1000
stub pacman "$manager_body"
stub doas 'exec "$@"'
run server compiler
expect "pacman, by doas" 0 "doas pacman -S --noconfirm --needed valkey
pacman -S --noconfirm --needed valkey
doas pacman -S --noconfirm --needed gcc
pacman -S --noconfirm --needed gcc" ""

begin 1000
stub brew "$manager_body"
sudo_stub
run server client
expect "brew, never by sudo" 0 "brew install --quiet redis" ""

begin 0
apt_stubs 5:7.0.15-1~deb12u6
run jemalloc
expect "jemalloc" 0 "apt-get update -q
apt-get install -q -y --no-install-recommends libjemalloc2" "installing libjemalloc2"

begin 1000
apt_stubs 5:7.0.15-1~deb12u6
run jemalloc
expect "without jemalloc nothing fails" 0 "" "going on without libnowhere.so"

begin 0
stub apk 'exit 1'
run server
expect "the network is away" 1 "apk add --no-cache --quiet redis
apk add --no-cache --quiet valkey" "Is the network there?"

begin 0
run server
expect "no package manager" 1 "" "no package manager"

begin 0
apt_stubs 5:7.0.15-1
printf '#!/bin/sh\necho "Redis server v=6.2.1 sha=0:0"\n' >"$sandbox/bin/redis-server"
chmod 755 "$sandbox/bin/redis-server"
run server
expect "an old server is not replaced" 1 "" "redis-server is redis 6.2.1; Tideline needs Redis 7.0"
printf '#!/bin/sh\necho "Valkey server v=8.1.0 sha=0:0"\n' >"$sandbox/bin/valkey-server"
chmod 755 "$sandbox/bin/valkey-server"
run server
expect "an old server before a newer one" 1 "" "set TIDELINE_REDIS_SERVER=$sandbox/bin/valkey-server"

begin 0
apt_stubs 5:7.0.15-1
printf '#!/bin/sh\necho "Valkey server v=10.0.1 sha=0:0"\n' >"$sandbox/other"
chmod 755 "$sandbox/other"
server=$sandbox/other
run server client
expect "TIDELINE_REDIS_SERVER: nothing is installed" 0 "" ""
server=$sandbox/nowhere
run server
expect "TIDELINE_REDIS_SERVER names nothing" 1 "" "TIDELINE_REDIS_SERVER"
server=

begin 0
apt_stubs x
stub systemctl
run prometheus
expect "Prometheus, whose service is not left enabled" 0 "apt-get update -q
apt-get install -q -y --no-install-recommends prometheus
systemctl disable prometheus.service" "the package's service prometheus is neither running nor enabled"
: >"$sandbox/log"
run prometheus
expect "Prometheus is here" 0 "" ""

# With systemd at work, and a service that was there before: it stays as it is.
begin 0
apt_stubs x
stub systemctl
mkdir -p "$root/run/systemd/system" "$root/lib/systemd/system"
: >"$root/lib/systemd/system/redis-server.service"
run prometheus
expect "a service is stopped, another left alone" 0 "apt-get update -q
apt-get install -q -y --no-install-recommends prometheus
systemctl stop prometheus.service
systemctl disable prometheus.service" "prometheus is neither running"

begin 0
stub dnf "$manager_body"
run prometheus
expect "Prometheus by what is in its package" 0 "dnf install -y -q /usr/bin/prometheus" ""

begin 0
stub apk 'exit 1'
run prometheus
expect "no Prometheus to be had" 1 "apk add --no-cache --quiet prometheus" "TIDELINE_WITHOUT_PROMETHEUS=1"
without=1
: >"$sandbox/log"
run prometheus
expect "without Prometheus" 0 "" ""
without=

begin 0
apt_stubs x
stub systemctl
wants_no_database=1
export wants_no_database
run postgres
expect "PostgreSQL, with no database and no service" 0 "apt-get update -q
apt-get install -q -y --no-install-recommends postgresql
systemctl disable postgresql.service" "the package's service postgresql is neither running nor enabled"
unset wants_no_database
if [ -e "$root/etc/postgresql-common/createcluster.d/tideline.conf" ]; then echo "FAILED: what PostgreSQL was told was left behind"; failed=$((failed + 1)); fi
: >"$sandbox/log"
run postgres
expect "PostgreSQL is here" 0 "" ""

begin 0
stub dnf "$manager_body"
run postgres
expect "PostgreSQL by dnf" 0 "dnf install -y -q postgresql-server" ""

begin 0
stub apk 'exit 1'
run postgres
expect "no PostgreSQL to be had" 1 "apk add --no-cache --quiet postgresql" "Is the network there?"
postgres=$sandbox/nowhere
run postgres
expect "TIDELINE_POSTGRES_BIN names nothing" 1 "apk add --no-cache --quiet postgresql" "no initdb in $sandbox/nowhere"
postgres=

begin 0
stub dnf "$manager_body"
run python3 node
expect "Python and Node.js" 0 "dnf install -y -q python3
dnf install -y -q nodejs" ""
: >"$sandbox/log"
run python3 node
expect "Python and Node.js are here" 0 "" ""
begin 0
stub dnf "$manager_body"
node_version=v12.22.9
export node_version
run node
expect "a Node.js without fetch" 1 "dnf install -y -q nodejs" "node is v12.22.9; the example in JavaScript needs 18.0 or newer"
unset node_version
without=1
: >"$sandbox/log"
run node
expect "without Node.js" 0 "" ""
without=

begin 0
run cargo
expect "no cargo" 1 "" "https://rustup.rs"
run nonsense
expect "an unknown tool" 1 "" "unknown tool"

echo "install-tools.sh: $passed cases as expected, $failed not"
[ "$failed" = 0 ]
