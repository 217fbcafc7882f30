#!/bin/bash
# "make test": every stage in turn. Stops at the first that fails and exits with its status. It ends with one line for
# each stage and its duration, in the form of go test.
set -euo pipefail
cd "$(dirname "$0")/.."

stages=(test-prepare lint test-vet test-build build test-generate test-unit test-integration container-test test-user)
summary=()

# elapsed gives the seconds since a time in microseconds.
elapsed() {
    local microseconds=$((${EPOCHREALTIME/[.,]/} - $1))
    printf '%d.%02d' $((microseconds / 1000000)) $((microseconds / 10000 % 100))
}

# finish prints the result and exits.
finish() {
    printf '%s\n' "${summary[@]}"
    [ "$1" -ne 0 ] || echo PASS
    [ "$1" -eq 0 ] || echo FAIL
    printf '%s\t%s\t%ss\n' "$([ "$1" -eq 0 ] && echo 'ok  ' || echo FAIL)" "$(go list -m)" "$(elapsed "$begin")"
    exit "$1"
}

begin=${EPOCHREALTIME/[.,]/}
for stage in "${stages[@]}"; do
    if [ "$(id -u)" -ne 0 ]; then
        case $stage in
        test-user) why="the tests have run as $(id -un) and not as root" ;;
        container-test) why="only root starts containers of every kind" ;;
        *) why= ;;
        esac
        if [ -n "$why" ]; then
            summary+=("--- SKIP: $stage (0.00s)" "    got uid $(id -u), want 0: $why")
            continue
        fi
    fi
    echo "=== RUN   $stage"
    start=${EPOCHREALTIME/[.,]/}
    status=0
    # Tests send signals to what they start, and an ignored one stays ignored: that of nohup, say.
    env --default-signal=HUP,INT,QUIT,PIPE,TERM make --no-print-directory "$stage" || status=$?
    if [ "$status" -ne 0 ]; then
        summary+=("--- FAIL: $stage ($(elapsed "$start")s)")
        finish "$status"
    fi
    summary+=("--- PASS: $stage ($(elapsed "$start")s)")
done
finish 0
