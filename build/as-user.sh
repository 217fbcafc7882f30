#!/bin/bash
# Runs the tests that meet the kernel as the ordinary user that build/prepare.sh made. The clone may lie where that user cannot
# go, so the tests run in a copy of the tree, with its modules beside it and a build cache of its own. What drives other programs at
# length (test/clients, test/differential, test/escape, test/hostile, test/programs) is left to the run as root, which runs each of those as this user as well.
set -euo pipefail
cd "$(dirname "$0")/.."

user=srt-test
home=$(getent passwd "$user" | cut -d: -f6)
tree=$(mktemp -d /tmp/srt-as-user.XXXXXX)
trap 'rm -rf "$tree" "$tree.go"' EXIT

# Deleted files are still listed until the deletion is committed.
git -c safe.directory="$PWD" ls-files -co --exclude-standard -z | while IFS= read -r -d '' file; do
    [ ! -e "$file" ] && [ ! -L "$file" ] || printf '%s\0' "$file"
done | tar --null -T - -cf - | tar -xf - -C "$tree"
go mod vendor -o "$tree/vendor"
chown -R "$user:" "$tree"
chmod 755 "$tree"

# as_user runs a command as that user.
as_user() { setpriv --reuid "$user" --regid "$user" --init-groups "$@"; }

# Go may lie where the user cannot go as well, as a toolchain that go has fetched for root does.
goroot=$(go env GOROOT)
if ! as_user test -x "$goroot/bin/go"; then
    cp -r "$goroot" "$tree.go"
    chmod -R a+rX "$tree.go"
    goroot=$tree.go
fi

# A clean environment: nothing of root's reaches the tests.
as_user env -i HOME="$home" USER="$user" LOGNAME="$user" LANG="${LANG:-C.UTF-8}" PATH="$goroot/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin" \
    GOFLAGS='-mod=vendor -buildvcs=false' GOCACHE="$home/.cache/go-build" ${CI:+CI="$CI"} \
    bash -c 'cd "$1" && shift && exec go test -count=1 -timeout 20m "$@"' - "$tree" ./cmd/... ./examples/... ./runtime/... ./ns/... ./probe/... ./seccomp/... ./fsview/... ./bpf/... \
    ./test ./test/internal/... ./test/traces
