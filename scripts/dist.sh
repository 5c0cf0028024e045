#!/bin/sh
# Makes what is handed out: the program `tideline`, stripped, and a Debian package with it, a service of systemd, and its configuration.
#
#   scripts/dist.sh [DIRECTORY]      target/dist-files, if none is named
#
# TIDELINE_PROGRAM=/path/to/tideline packs that program instead of one that is built with the profile `dist`; TIDELINE_DEB_FAST=1 hardly compresses.
# Who makes packages for others says who in DEBFULLNAME and DEBEMAIL. Where there is no dpkg-deb, no package is made.
set -eu

# Where it was called from: a path that is given is meant from there.
from=$PWD
cd "$(dirname "$0")/.."
: "${CARGO:=cargo}"
say() { printf 'scripts/dist.sh: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

# Who brings a program needs no cargo.
target=$(scripts/target-directory.sh) || { [ -n "${TIDELINE_PROGRAM:-}" ] && target=$PWD/target; }
# whole PATH: as it is meant.
whole() { case $1 in /*) printf '%s\n' "$1" ;; *) printf '%s/%s\n' "$from" "$1" ;; esac; }
directory=$(whole "${1:-$target/dist-files}")
program=${TIDELINE_PROGRAM:+$(whole "$TIDELINE_PROGRAM")}
if [ -z "$program" ]; then
    say "building with the profile dist: some minutes"
    $CARGO build --profile dist --locked --package tideline-program
    program=$target/dist/tideline
fi
for tool in strip objdump; do
    command -v "$tool" >/dev/null 2>&1 || die "$tool is missing; install binutils"
done
mkdir -p "$directory"
strip -o "$directory/tideline" "$program"
chmod 755 "$directory/tideline"
echo "$directory/tideline"
if ! command -v dpkg-deb >/dev/null 2>&1; then
    say "dpkg-deb is not here: no Debian package is made"
    exit 0
fi

# What the program asks the system for, all of which two packages have; of glibc the version is needed whose names it uses.
depends() {
    needed=$(objdump -p "$1" | awk '$1 == "NEEDED" { print $2 }')
    for library in $needed; do
        case $library in
        libc.so.6 | libm.so.6 | libdl.so.2 | libpthread.so.0 | librt.so.1 | ld-linux-*) ;;
        libgcc_s.so.1) gcc=", libgcc-s1" ;;
        *) die "the program needs $library, and deploy/debian/control.in doesn't know whose that is" ;;
        esac
    done
    glibc=$(objdump -T "$1" | sed -n 's/.*(\{0,1\}GLIBC_\([0-9][0-9.]*\).*/\1/p' | sort -uV | tail -n 1)
    echo "libc6 (>= ${glibc:-2.31})${gcc:-}"
}

version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1 | sed 's/-/~/')
architecture=$(dpkg --print-architecture)
package=tideline_${version}_$architecture
staging=$(mktemp -d "${TMPDIR:-/tmp}/tideline-$$-dist.XXXXXX")
trap 'rm -rf "$staging"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# The mode of a new file is that of whoever runs this, which is nobody's business.
umask 022
chmod 755 "$staging"
install -D -m 755 "$directory/tideline" "$staging/usr/bin/tideline"
install -D -m 644 deploy/tideline.service "$staging/lib/systemd/system/tideline.service"
install -D -m 644 deploy/tideline.toml "$staging/etc/tideline/tideline.toml"
install -D -m 600 deploy/debian/tideline.env "$staging/etc/tideline/tideline.env"
install -D -m 644 deploy/debian/README "$staging/usr/share/doc/tideline/README"
{
    echo "Tideline is licensed under the Apache License 2.0."
    echo "On Debian systems it is in /usr/share/common-licenses/Apache-2.0; with its source it comes in the file LICENSE."
} >"$staging/usr/share/doc/tideline/copyright"

mkdir "$staging/DEBIAN"
for script in postinst prerm postrm; do
    install -m 755 "deploy/debian/$script" "$staging/DEBIAN/$script"
done
install -m 644 deploy/debian/conffiles "$staging/DEBIAN/conffiles"
(cd "$staging" && find usr lib -type f -exec md5sum {} + | sort -k 2) >"$staging/DEBIAN/md5sums"
sed -e "s/@VERSION@/$version/" \
    -e "s/@ARCHITECTURE@/$architecture/" \
    -e "s/@SIZE@/$(du -sk "$staging/usr" "$staging/lib" "$staging/etc" | awk '{ all += $1 } END { print all }')/" \
    -e "s/@DEPENDS@/$(depends "$directory/tideline")/" \
    -e "s/@MAINTAINER@/${DEBFULLNAME:-Tideline} <${DEBEMAIL:-packages@tideline.invalid}>/" \
    deploy/debian/control.in >"$staging/DEBIAN/control"
# The same source and program make the same package.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
export SOURCE_DATE_EPOCH
if [ "${TIDELINE_DEB_FAST:-}" = 1 ]; then set -- -Zgzip -z1; else set -- -Zxz; fi
dpkg-deb --root-owner-group "$@" --build "$staging" "$directory/$package.deb" >/dev/null
echo "$directory/$package.deb"
