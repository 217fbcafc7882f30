#!/bin/bash
# "make test": every stage in turn, with its duration. Stops at the first that fails and exits with its status.
set -euo pipefail
cd "$(dirname "$0")/.."

stages=(test-prepare lint test-vet test-build build test-generate test-unit test-integration)
if [ "$(id -u)" -eq 0 ]; then
    stages+=(test-user)
else
    echo "skipped: the integration tests as root (only root can run them; they run as $(id -un))"
fi

for stage in "${stages[@]}"; do
    start=$SECONDS
    echo "== $stage"
    make --no-print-directory "$stage"
    echo "== $stage: $((SECONDS - start)) s"
done
