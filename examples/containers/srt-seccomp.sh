#!/bin/sh
# Makes the system call profile for containers in which srt runs, from the default profile of Docker and containerd: that
# one, plus the calls that make namespaces and mounts. Whoever calls them in the container still needs the kernel's leave; an
# ordinary user has it in a user namespace alone.
#
#   srt-seccomp.sh default.json >srt-seccomp.json
#
# default.json is https://github.com/moby/profiles/blob/main/seccomp/default.json at the version that your engine has.
# Needs jq.
set -eu
[ $# = 1 ] || { echo "usage: $0 DEFAULT_PROFILE >srt-seccomp.json" >&2; exit 1; }
exec jq --slurpfile added "$(dirname "$0")/seccomp-additions.json" '.syscalls += $added[0]' "$1"
