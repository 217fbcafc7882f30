#!/bin/sh
# What the DaemonSet srt-profiles runs on each node, whose root is at /node (or $NODE): puts the profiles that lie beside this file where
# the kubelet and AppArmor look for them, and loads the one for AppArmor with the node's own parser.
set -eu
here=$(dirname "$0") node=${NODE:-/node}
mkdir -p "$node/var/lib/kubelet/seccomp"
cp "$here/srt-seccomp.json" "$node/var/lib/kubelet/seccomp/srt-seccomp.json"
if [ -e "$node/sys/module/apparmor/parameters/enabled" ] && [ "$(cat "$node/sys/module/apparmor/parameters/enabled")" = Y ]; then
    cp "$here/srt-container" "$node/etc/apparmor.d/srt-container"
    chroot "$node" apparmor_parser -r /etc/apparmor.d/srt-container
    echo "installed: srt-seccomp.json, srt-container"
else
    echo "installed: srt-seccomp.json (this node has no AppArmor)"
fi
