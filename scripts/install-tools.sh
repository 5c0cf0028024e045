#!/bin/sh
# Installs what the Makefile's targets need and what this machine lacks; what is there is left alone.
#
#   scripts/install-tools.sh [cargo] [lints] [compiler] [server] [client] [benchmark] [prometheus] [postgres] [python3] [venv] [node] [shellcheck] [jemalloc]
#
# Without arguments: all of them but jemalloc, which servers want that were built without it, and without which nothing fails. The package manager is the first of apt-get, dnf, apk, pacman and brew; sudo (or doas) is
# used only by users who are not root. A service that a package brings (a Redis server, Prometheus, PostgreSQL) is never left
# running or enabled, and one that was on the machine before is never touched.
#
# TIDELINE_REDIS_SERVER=/path/to/server names the server to use; then no server and no client is installed.
# TIDELINE_POSTGRES_BIN=/path/to/bin names the folder of PostgreSQL's programs; then no PostgreSQL is installed.
# TIDELINE_WITHOUT_JEMALLOC=1 leaves servers their allocator; TIDELINE_WITHOUT_PROMETHEUS=1 does without Prometheus; the test that asks it then checks nothing.
# TIDELINE_WITHOUT_NODE=1 does without Node.js, in the same way.
set -eu

MIN_REDIS=7.0
MIN_VALKEY=7.2
MIN_POSTGRES=13.0
MIN_NODE=18.0
SELF=scripts/install-tools.sh
# Only the test of this script changes these two.
ROOT=${INSTALL_TOOLS_ROOT:-}
JEMALLOC=${INSTALL_TOOLS_JEMALLOC:-libjemalloc.so.2}
POLICY_RC_D=$ROOT/usr/sbin/policy-rc.d
# Debian's packages of PostgreSQL ask this folder whether to make a database of their own, which nobody here wants.
CREATECLUSTER_D=$ROOT/etc/postgresql-common/createcluster.d
apt_updated=no

say() { printf '%s: %s\n' "$SELF" "$*" >&2; }
die() { say "$*"; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

# at_least 7.0.15 7.0: major and minor are compared as numbers.
at_least() {
    echo "$1 $2" | awk '{ split($1, a, "."); split($2, b, "."); exit !(a[1] > b[1] || a[1] == b[1] && a[2] + 0 >= b[2] + 0) }'
}

# Prints "redis 7.0.15" or "valkey 9.1.2"; fails if the program is neither.
server_version() {
    "$1" --version 2>/dev/null | awk '
        tolower($1) ~ /^(redis|valkey)$/ && match($0, /v=[0-9][0-9.]*/) {
            print tolower($1), substr($0, RSTART + 2, RLENGTH - 2); found = 1; exit
        }
        END { exit !found }'
}

# Is the server $1 new enough? If not, `why` says what is wrong with it.
server_fits() {
    if ! found=$(server_version "$1"); then
        why="$1 does not answer --version as a Redis or Valkey server"
        return 1
    fi
    case $found in
    redis\ *) minimum=$MIN_REDIS ;;
    *) minimum=$MIN_VALKEY ;;
    esac
    at_least "${found#* }" "$minimum" && return 0
    why="$1 is $found; Tideline needs Redis $MIN_REDIS or Valkey $MIN_VALKEY, or newer"
    return 1
}

# The first on the PATH counts, as it does for Tideline.
find_server() {
    why=
    for name in redis-server valkey-server; do
        if have "$name"; then
            server_fits "$name"
            return
        fi
    done
    return 1
}

how_else="install a newer server yourself, or run scripts/fetch-servers.sh (it needs pip, not root) and set \
TIDELINE_REDIS_SERVER to the path it prints"

# Sets `manager`, or says that there is none.
find_manager() {
    for manager in apt-get dnf apk pacman brew; do
        have "$manager" && return 0
    done
    die "$1 is missing and no package manager that this script knows is here (apt-get, dnf, apk, pacman, brew). $2"
}

# Runs a command as root, by sudo or doas where somebody else is at work.
as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif have sudo; then
        if [ ! -t 0 ] && ! sudo -n true 2>/dev/null; then
            die "sudo asks for a password and there is no terminal. As root, run: $*"
        fi
        sudo "$@"
    elif have doas; then
        doas "$@"
    else
        die "root is needed and neither sudo nor doas is here. As root, run: $*"
    fi
}

# Debian's packages start and enable their services when they are installed. A policy-rc.d that answers 101 forbids the
# start; the enabling has to be undone. Both only for a service that was not there before.
apt_install() {
    if [ "$apt_updated" = no ]; then
        # An old list may serve; if it does not, the install below fails and is reported.
        as_root apt-get update -q >&2 || say "apt-get update failed; going on with the lists that are here"
        apt_updated=yes
    fi
    services_before=$(list_services)
    made_policy=no
    if [ ! -e "$POLICY_RC_D" ]; then
        # Made first, so that an interruption cannot leave it behind.
        trap 'remove_policy; remove_conf' EXIT
        trap 'exit 130' INT
        trap 'exit 143' TERM
        made_policy=yes
        printf '#!/bin/sh\nexit 101\n' | as_root tee "$POLICY_RC_D" >/dev/null
        as_root chmod 755 "$POLICY_RC_D"
    fi
    status=0
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "$@" >&2 || status=$?
    for service in $(list_services); do
        case " $services_before " in
        *" $service "*) ;;
        *) retire_service "$service" ;;
        esac
    done
    remove_policy
    trap - EXIT INT TERM
    return "$status"
}

remove_policy() {
    if [ "$made_policy" = yes ]; then
        made_policy=no
        as_root rm -f "$POLICY_RC_D"
    fi
}

# The services that are installed, of those that our packages bring, on one line.
list_services() {
    for service in redis-server valkey-server prometheus postgresql; do
        for unit in "lib/systemd/system/$service.service" "usr/lib/systemd/system/$service.service" "etc/init.d/$service"; do
            if [ -e "$ROOT/$unit" ]; then
                printf '%s ' "$service"
                break
            fi
        done
    done
}

retire_service() {
    if [ -d "$ROOT/run/systemd/system" ]; then as_root systemctl stop "$1.service" >/dev/null 2>&1 || true; fi
    if have systemctl; then
        as_root systemctl disable "$1.service" >/dev/null 2>&1 || true
    elif have deb-systemd-helper; then
        as_root deb-systemd-helper disable "$1.service" >/dev/null 2>&1 || true
    fi
    if have update-rc.d; then as_root update-rc.d "$1" disable >/dev/null 2>&1 || true; fi
    say "the package's service $1 is neither running nor enabled: Tideline starts its own"
}

# Installs packages, all or none. Does not say whether what was wanted is there now: the caller looks.
install() {
    say "installing $* with $manager"
    case $manager in
    apt-get) apt_install "$@" ;;
    dnf) as_root dnf install -y -q "$@" >&2 ;;
    apk) as_root apk add --no-cache --quiet "$@" >&2 ;;
    pacman) as_root pacman -S --noconfirm --needed "$@" >&2 ;;
    # Homebrew refuses to run as root, and needs no root.
    brew) HOMEBREW_NO_AUTO_UPDATE=1 brew install --quiet "$@" >&2 ;;
    esac
}

need_server() {
    if [ -n "${TIDELINE_REDIS_SERVER:-}" ]; then
        server_fits "$TIDELINE_REDIS_SERVER" || die "TIDELINE_REDIS_SERVER: $why"
        return 0
    fi
    find_server && return 0
    # Replacing a server that somebody installed is not ours to do.
    if [ -n "$why" ]; then
        other=$(command -v valkey-server || true)
        if [ -n "$other" ] && old=$why && server_fits "$other"; then
            die "$old. $other is new enough: set TIDELINE_REDIS_SERVER=$other"
        fi
        die "${old:-$why}. To do: $how_else"
    fi
    find_manager "a Redis or Valkey server" "To do: $how_else"
    # Newer distributions carry Valkey, older ones Redis, and some of these too old: the first that serves is taken.
    case $manager in
    apt-get) packages="redis-server valkey-server" ;;
    dnf | pacman) packages="valkey redis" ;;
    apk | brew) packages="redis valkey" ;;
    esac
    for package in $packages; do
        if [ "$manager" = apt-get ] && ! apt_candidate_fits "$package"; then continue; fi
        install "$package" || continue
        find_server && return 0
    done
    die "no Redis or Valkey server that is new enough could be installed with $manager${why:+ ($why)}. Is the network \
there? Otherwise: $how_else"
}

# Looks before it installs: Debian 11 and Ubuntu 22.04 would bring a Redis 6.
apt_candidate_fits() {
    if [ "$apt_updated" = no ]; then
        as_root apt-get update -q >&2 || say "apt-get update failed; going on with the lists that are here"
        apt_updated=yes
    fi
    candidate=$(apt-cache policy "$1" 2>/dev/null | awk '$1 == "Candidate:" { sub(/^[0-9]+:/, "", $2); print $2 }')
    case $1 in
    redis*) minimum=$MIN_REDIS ;;
    *) minimum=$MIN_VALKEY ;;
    esac
    case $candidate in
    '' | '(none)') return 1 ;;
    esac
    at_least "$candidate" "$minimum" || { why="the package $1 is version $candidate"; return 1; }
}

# need_program "what for" "names, the first found serves" apt dnf apk pacman brew
need_program() {
    for name in $2; do
        have "$name" && return 0
    done
    find_manager "$1" "Install one of: $2"
    case $manager in
    apt-get) package=$3 ;;
    dnf) package=$4 ;;
    apk) package=$5 ;;
    pacman) package=$6 ;;
    brew) package=$7 ;;
    esac
    # Several packages in one word are meant to be several words.
    # shellcheck disable=SC2086
    install $package || die "$manager could not install $package, needed for: $1. Is the network there?"
    for name in $2; do
        have "$name" && return 0
    done
    die "$manager installed $package, but none of these is on the PATH: $2"
}

need_client() {
    if [ -n "${TIDELINE_REDIS_SERVER:-}" ]; then return 0; fi
    need_program "redis-cli" "redis-cli valkey-cli" redis-tools valkey redis valkey redis
}

need_benchmark() {
    need_program "redis-benchmark" "redis-benchmark valkey-benchmark" redis-tools valkey redis valkey redis
}

need_compiler() {
    have cc && return 0
    if [ "$(uname -s)" = Darwin ]; then die "the C compiler is missing (ring needs one): run xcode-select --install"; fi
    need_program "a C compiler (ring needs one)" cc "gcc libc6-dev" "gcc glibc-devel" build-base gcc gcc
}

# Both programs are in one package; dnf knows packages by what is in them, under whatever name.
need_prometheus() {
    if [ -n "${TIDELINE_WITHOUT_PROMETHEUS:-}" ]; then return 0; fi
    for program in prometheus promtool; do
        need_program "a test that has a real Prometheus scrape a run (TIDELINE_WITHOUT_PROMETHEUS=1 does without)" \
            "$program" prometheus "/usr/bin/$program" prometheus prometheus prometheus
    done
}

# "initdb (PostgreSQL) 15.18": is it new enough?
postgres_fits() {
    at_least "$("$1" --version 2>/dev/null | awk '{ print $3 ".0" }')" "$MIN_POSTGRES"
}

# Packages keep a server's programs away from the PATH; the same folders are known to crates/tideline-local-cluster.
has_postgres() {
    if have initdb; then
        postgres_fits initdb
        return
    fi
    for initdb in "$ROOT"/usr/lib/postgresql/*/bin/initdb "$ROOT"/usr/pgsql-*/bin/initdb "$ROOT"/usr/libexec/postgresql*/initdb \
        "$ROOT"/opt/homebrew/opt/postgresql@*/bin/initdb "$ROOT"/usr/local/opt/postgresql@*/bin/initdb; do
        [ -x "$initdb" ] && postgres_fits "$initdb" && return 0
    done
    return 1
}

# Who installs another version later gets a database with it, as ever.
remove_conf() {
    if [ "${made_conf:-no}" = yes ]; then
        made_conf=no
        as_root rm -f "$CREATECLUSTER_D/tideline.conf"
    fi
}

need_postgres() {
    if [ -n "${TIDELINE_POSTGRES_BIN:-}" ]; then
        [ -x "$TIDELINE_POSTGRES_BIN/initdb" ] || die "TIDELINE_POSTGRES_BIN: there is no initdb in $TIDELINE_POSTGRES_BIN"
        return 0
    fi
    has_postgres && return 0
    find_manager "PostgreSQL (tests of the archive start one)" "Install PostgreSQL 13 or newer, or set TIDELINE_POSTGRES_BIN"
    status=0
    case $manager in
    apt-get)
        as_root mkdir -p "$CREATECLUSTER_D"
        made_conf=yes
        trap remove_conf EXIT
        trap 'exit 130' INT
        trap 'exit 143' TERM
        echo 'create_main_cluster = off' | as_root tee "$CREATECLUSTER_D/tideline.conf" >/dev/null
        install postgresql || status=$?
        remove_conf
        ;;
    dnf) install postgresql-server || status=$? ;;
    brew) install postgresql@17 || status=$? ;;
    *) install postgresql || status=$? ;;
    esac
    [ "$status" = 0 ] || die "$manager could not install PostgreSQL, which tests of the archive start. Is the network there?"
    has_postgres || die "$manager installed PostgreSQL, but no initdb of PostgreSQL 13 or newer is where this script knows to look"
}

# For servers whose allocator is the C library's: a delivery costs them twice as much. Never a reason to fail.
need_jemalloc() {
    if [ -n "${TIDELINE_WITHOUT_JEMALLOC:-}" ] || [ "$(uname -s)" = Darwin ]; then return 0; fi
    # The loader complains of a library that it can't find, and goes on.
    if [ -z "$(LD_PRELOAD=$JEMALLOC sh -c : 2>&1)" ]; then return 0; fi
    if ! (
        find_manager "$JEMALLOC" "Install jemalloc."
        case $manager in
        apt-get) install libjemalloc2 ;;
        *) install jemalloc ;;
        esac
    ); then
        say "going on without $JEMALLOC: servers that were built without jemalloc are slower"
    fi
}

# Debian's python3 has the module that makes environments, and lacks what that installs.
need_venv() {
    have python3 && python3 -c 'import venv, ensurepip' 2>/dev/null && return 0
    find_manager "python3 with venv (clients that others wrote are tested with it)" "Install Python 3."
    case $manager in
    apt-get) install python3 python3-venv || true ;;
    apk) install python3 py3-pip || true ;;
    pacman) install python || true ;;
    *) install python3 || true ;;
    esac
    python3 -c 'import venv, ensurepip' 2>/dev/null ||
        die "$manager could not install a python3 that makes environments (the modules venv and ensurepip). Is the network there?"
}

need_python3() {
    need_program "a test that runs an example in Python" python3 python3 python3 python3 python python3
}

# Older ones have no fetch.
need_node() {
    if [ -n "${TIDELINE_WITHOUT_NODE:-}" ]; then return 0; fi
    need_program "a test that runs an example in JavaScript (TIDELINE_WITHOUT_NODE=1 does without)" node nodejs nodejs nodejs nodejs node
    found=$(node --version)
    at_least "${found#v}" "$MIN_NODE" && return 0
    die "node is $found; the example in JavaScript needs $MIN_NODE or newer. Install one, or set TIDELINE_WITHOUT_NODE=1"
}

need_shellcheck() {
    need_program "shellcheck" shellcheck shellcheck ShellCheck shellcheck shellcheck shellcheck
}

need_cargo() {
    # rustup puts it there, and the shell that installed it has the old PATH.
    if ! have cargo; then
        if [ -x "${CARGO_HOME:-$HOME/.cargo}/bin/cargo" ]; then
            die "cargo is in ${CARGO_HOME:-$HOME/.cargo}/bin but not on the PATH. Run: . ${CARGO_HOME:-$HOME/.cargo}/env"
        fi
        die "cargo is missing. Install Rust with rustup, from https://rustup.rs; it needs no root"
    fi
}

need_lints() {
    need_cargo
    for component in fmt clippy; do
        if ! cargo "$component" --version >/dev/null 2>&1; then
            have rustup || die "cargo $component is missing: install your distribution's package for it, or Rust from https://rustup.rs"
            case $component in
            fmt) rustup component add rustfmt >&2 ;;
            *) rustup component add clippy >&2 ;;
            esac || die "rustup could not add cargo $component. Is the network there?"
        fi
    done
}

[ $# -gt 0 ] || set -- cargo lints compiler server client benchmark prometheus postgres python3 venv node shellcheck
for tool; do
    case $tool in
    cargo | lints | compiler | server | client | benchmark | prometheus | postgres | python3 | venv | node | shellcheck | jemalloc) "need_$tool" ;;
    *) die "unknown tool $tool (cargo, lints, compiler, server, client, benchmark, prometheus, postgres, python3, venv, node, shellcheck, jemalloc)" ;;
    esac
done
