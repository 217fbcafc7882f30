#!/bin/bash
# Runs a shell text in a container of test/container's matrix, with srt on its PATH:
#
#   build/in-container.sh 'profile' 'srt check'
#   ENGINE=crun RUN_AS=1001 build/in-container.sh 'pod baseline' 'cd /builds && srt exec -- make'
#
# The first word names the shape (matrix_linux_test.go); RUN_AS is the user inside (0), ENGINE runc or crun (runc). What the
# text changes on the disk is gone afterwards.
set -euo pipefail
[ $# = 2 ] || { sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 1; }
cd "$(dirname "$0")/.."
export SRT_CONTAINER_SHAPE=$1 SRT_CONTAINER_COMMAND=$2 SRT_CONTAINER_UID=${RUN_AS:-0} SRT_CONTAINER_ENGINE=${ENGINE:-runc}
exec go test -count=1 -v -timeout 65m -run '^TestCommand$' ./test/container
