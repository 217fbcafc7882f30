#!/bin/bash
# Runs the integration tests as the ordinary user that build/prepare.sh made. The clone may lie where that user cannot
# go, so the tests run in a copy of the tree, with its modules beside it and a build cache of its own.
set -euo pipefail
cd "$(dirname "$0")/.."

user=srt-test
home=$(getent passwd "$user" | cut -d: -f6)
tree=$(mktemp -d /tmp/srt-as-user.XXXXXX)
trap 'rm -rf "$tree"' EXIT

# Deleted files are still listed until the deletion is committed.
git ls-files -co --exclude-standard -z | while IFS= read -r -d '' file; do
    [ ! -e "$file" ] && [ ! -L "$file" ] || printf '%s\0' "$file"
done | tar --null -T - -cf - | tar -xf - -C "$tree"
go mod vendor -o "$tree/vendor"
chown -R "$user:" "$tree"
chmod 755 "$tree"

packages=(./cmd/...)
[ ! -d test ] || packages+=(./test/...)
# A clean environment: nothing of root's reaches the tests.
setpriv --reuid "$user" --regid "$user" --init-groups \
    env -i HOME="$home" USER="$user" LOGNAME="$user" LANG="${LANG:-C.UTF-8}" PATH="$(go env GOROOT)/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin" \
    GOFLAGS='-mod=vendor -buildvcs=false' GOCACHE="$home/.cache/go-build" ${CI:+CI="$CI"} \
    bash -c 'cd "$1" && shift && exec go test -count=1 -timeout 20m "$@"' - "$tree" "${packages[@]}"
