#!/bin/sh
# Installs what the tests of the network run: the programs that people really use, and the servers and proxies they talk to. Only
# what is missing is installed, quietly; a second run does nothing. Needs root; without it, says what it skips.
set -eu

# Command (or file) that shows a package is there, and the package.
needed="
curl:curl
wget:wget
git:git
ssh:openssh-client
/usr/sbin/sshd:openssh-server
ip:iproute2
node:nodejs
npm:npm
/usr/bin/python3:python3
/usr/lib/python3/dist-packages/requests/__init__.py:python3-requests
/usr/lib/python3/dist-packages/websocket/__init__.py:python3-websocket
/usr/lib/python3/dist-packages/pip/__init__.py:python3-pip
javac:default-jdk-headless
psql:postgresql-client
pg_ctlcluster:postgresql
redis-cli:redis-tools
redis-server:redis-server
rsync:rsync
nc.openbsd:netcat-openbsd
setpriv:util-linux
apt-get:apt
squid:squid
tinyproxy:tinyproxy
tmux:tmux
dbus-daemon:dbus
gpg-agent:gpg-agent
gpg:gpg
socat:socat
dig:bind9-dnsutils
/usr/bin/aws:awscli
/usr/lib/python3/dist-packages/boto3/__init__.py:python3-boto3
musl-gcc:musl-tools
"

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
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -ne 0 ]; then
    echo "skipped: installing$missing (only root can; the tests that need them will say so)"
    exit 0
fi
command -v apt-get >/dev/null 2>&1 || {
    echo "missing:$missing; install them with this system's package manager and run again" >&2
    exit 1
}

# The tests start servers of their own, so installing must start none: Debian asks this program first.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
fi

export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# Some packages of nodejs bring npm and conflict with a package of that name, so npm is installed last, if at all. What
# Debian says while it sets up packages goes to the error stream.
# shellcheck disable=SC2086 # A list of package names, meant to be split.
apt-get install -y -qq --no-install-recommends $(printf '%s\n' $missing | grep -vx npm) >&2
look
# shellcheck disable=SC2086
[ -z "$missing" ] || apt-get install -y -qq --no-install-recommends $missing >&2
look
[ -z "$missing" ] || {
    echo "still missing after the installation:$missing" >&2
    exit 1
}
