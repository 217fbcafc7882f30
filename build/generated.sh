#!/bin/bash
# Generates again and fails if that changes anything: committed code and filters must be what their sources say.
set -euo pipefail
cd "$(dirname "$0")/.."

# A file that is deleted but still listed counts as absent.
state() {
    git -c safe.directory="$PWD" ls-files -co --exclude-standard -z | { xargs -0 sha256sum 2>/dev/null || true; } | LC_ALL=C sort -k2
}

before=$(state)
make --no-print-directory generate
after=$(state)
if [ "$before" != "$after" ]; then
    echo "make generate changes these files; commit the result:" >&2
    diff <(printf '%s\n' "$before") <(printf '%s\n' "$after") | sed -n 's/^[<>] [0-9a-f]*  /  /p' | sort -u >&2
    exit 1
fi
