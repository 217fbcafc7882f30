#!/bin/bash
# Runs every fuzz target of the tree for the given time each (default 10s). go test takes one target at a time.
set -euo pipefail
cd "$(dirname "$0")/.."

duration=${1:-10s}
failed=0
while IFS=: read -r file target; do
    package=./$(dirname "$file")
    echo "== $package $target"
    go test -run '^$' -fuzz "^$target\$" -fuzztime "$duration" "$package" || failed=1
done < <(git -c safe.directory="$PWD" ls-files -co --exclude-standard '*_test.go' | xargs grep -HoE '^func Fuzz[A-Za-z0-9_]+' | sed 's/:func /:/')
exit "$failed"
