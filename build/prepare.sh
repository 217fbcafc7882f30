#!/bin/sh
# Makes a fresh Debian or Ubuntu ready for the tests: the packages they use, installed only where missing, and the
# ordinary user they run as beside root. Needs root; without it, says what it skips and why.
set -eu

user=srt-test
# Command (or file) that shows a package is there, and the package.
needed="
gcc:gcc
/usr/include/stdio.h:libc6-dev
make:make
git:git
curl:curl
/etc/ssl/certs/ca-certificates.crt:ca-certificates
/usr/include/seccomp.h:libseccomp-dev
pkg-config:pkg-config
bwrap:bubblewrap
strace:strace
gdb:gdb
python3:python3
node:nodejs
npm:npm
ssh:openssh-client
setpriv:util-linux
runc:runc
crun:crun
newuidmap:uidmap
jq:jq
patch:patch
perl:perl
pytest-3:python3-pytest
rsync:rsync
sqlite3:sqlite3
vim:vim
"
# That the committed programs of package bpf are what their sources give is checked where the compiler is the one that made
# them, byte for byte: 56 MB to fetch, and a second for each run. Elsewhere build/bpf.sh says that it is skipped, and a test
# compares the sources with what they were when they were compiled.
# shellcheck source=/dev/null # The system's own.
if (. /etc/os-release && [ "$ID $VERSION_ID" = "debian 12" ]) 2>/dev/null; then
    needed="$needed
clang-14:clang-14
llvm-objcopy-14:llvm-14
/usr/include/bpf/bpf_helpers.h:libbpf-dev
"
fi

have() {
    case $1 in
    /*) [ -e "$1" ] ;;
    *) command -v "$1" >/dev/null 2>&1 ;;
    esac
}

# look lists in $missing the packages of what is not there.
look() {
    missing=
    for pair in $needed; do
        have "${pair%%:*}" || missing="$missing ${pair#*:}"
    done
}
look

if [ "$(id -u)" -ne 0 ]; then
    [ -z "$missing" ] || echo "skipped: installing$missing (only root can; the tests that need them will say so)"
    echo "skipped: creating the user $user and the run as root (only root can); the tests run as $(id -un) alone"
    exit 0
fi

if [ -n "$missing" ]; then
    command -v apt-get >/dev/null 2>&1 || {
        echo "missing:$missing; install them with this system's package manager and run make test again" >&2
        exit 1
    }
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    # Some packages of nodejs bring npm and conflict with a package of that name, so npm is installed last, if at all.
    # shellcheck disable=SC2086 # A list of package names, meant to be split.
    apt-get install -y -qq --no-install-recommends $(printf '%s\n' $missing | grep -vx npm)
    look
    # shellcheck disable=SC2086
    [ -z "$missing" ] || apt-get install -y -qq --no-install-recommends $missing
fi

"$(dirname "$0")/clients.sh"

id -u "$user" >/dev/null 2>&1 || useradd --create-home --shell /bin/bash --comment 'tests of srt' "$user"

# The tests as an ordinary user need user namespaces, which some systems keep from them. Nothing is changed here: that is
# the owner's choice.
restricted=/proc/sys/kernel/apparmor_restrict_unprivileged_userns
if [ -e "$restricted" ] && [ "$(cat "$restricted")" != 0 ]; then
    echo "this system keeps user namespaces from ordinary users, so the tests as $user cannot run; on a machine for tests:" >&2
    echo "  sysctl -w kernel.apparmor_restrict_unprivileged_userns=0" >&2
    exit 1
fi
