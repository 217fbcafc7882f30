#!/bin/bash
# Shows what srt does, on this machine alone: no internet, no root, nothing left behind. Every step says what it shows,
# prints the command and what came of it, and the script fails if any step does not behave.
#
# usage: demo.sh /path/to/srt
set -u
srt=${1:?usage: demo.sh /path/to/srt}
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)

scratch=$(mktemp -d "${TMPDIR:-/tmp}/srt-demo.XXXXXX") || exit 1
servers=()
finish() {
    [ "${#servers[@]}" -eq 0 ] || { kill "${servers[@]}"; wait "${servers[@]}"; } 2>/dev/null
    rm -rf "$scratch"
}
trap finish EXIT
trap 'exit 130' INT TERM

# What "make demo" itself sets is not for the make of the demonstration.
unset MAKEFLAGS MAKELEVEL MFLAGS

failed=0
step() { printf '\n\033[1m%s\033[0m\n' "$1"; }
ok() { printf '  ok: %s\n' "$1"; }
bad() {
    printf '  NOT AS IT SHOULD BE: %s\n' "$1"
    failed=1
}
# run prints a command as a person would type it, runs it and shows its output indented. Its status is in $status.
run() {
    local line=srt word
    for word; do
        case $word in
        '' | *[!A-Za-z0-9_./:=@+,-]*) line="$line '$word'" ;;
        *) line="$line $word" ;;
        esac
    done
    printf '  $ %s\n' "${line//$scratch\//}"
    "$srt" "$@" >"$scratch/out" 2>&1 </dev/null
    status=$?
    sed 's/^/    /' "$scratch/out"
}

(cd "$root" && CGO_ENABLED=0 go build -o "$scratch/site" ./examples/demo/site) || exit 1
# Three servers: one that the settings list, one that they do not, and one that knows a token.
export API_TOKEN="the-real-token-$RANDOM$RANDOM"
for name in port unlisted secure; do
    kind=serve
    [ "$name" != secure ] || kind=secure
    "$scratch/site" "$kind" "$scratch/$name" &
    servers+=("$!")
done
for _ in $(seq 200); do
    [ -s "$scratch/port" ] && [ -s "$scratch/unlisted" ] && [ -s "$scratch/secure" ] && break
    sleep 0.05
done
port=$(cat "$scratch/port") && unlisted=$(cat "$scratch/unlisted") && secure=$(cat "$scratch/secure") || exit 1

cp -r "$here/project" "$scratch/project"
mkdir "$scratch/home"
echo 'a line nobody may read' >"$scratch/home/secret"
echo 'as it was' >"$scratch/home/notes"
if command -v curl >/dev/null 2>&1; then
    get=(curl -sS -f --max-time 10)
else
    get=("$scratch/site" get)
fi

cat >"$scratch/settings.json" <<EOF
{
  "network": {
    "allowedDomains": ["localhost:$port", "localhost:$secure"],
    "deniedDomains": [],
    "tlsTerminate": {"extraCaCertPaths": ["$scratch/secure.pem"]},
    "requestRules": [{"hosts": ["localhost:$secure"], "methods": ["GET"], "action": "allow"}]
  },
  "filesystem": {
    "denyRead": ["$scratch/home/secret"],
    "allowWrite": ["$scratch/project"],
    "denyWrite": ["$scratch/project/Makefile"]
  },
  "credentials": {
    "envVars": [{"name": "API_TOKEN", "mode": "mask", "injectHosts": ["localhost"]}]
  }
}
EOF
cd "$scratch/project" || exit 1
settings=(-s "$scratch/settings.json")

printf 'The settings of this demonstration:\n\n'
sed "s|$scratch/||; s/^/  /" "$scratch/settings.json"

step '1. A real build runs inside, and its result is on the disk afterwards'
if command -v cc >/dev/null 2>&1 && command -v make >/dev/null 2>&1; then
    run exec "${settings[@]}" -- make
    result=./greet
else
    mv greet.go.txt greet.go
    export GOCACHE="$scratch/project/.cache" GOTOOLCHAIN=local GOFLAGS=-buildvcs=false
    run exec "${settings[@]}" -- go build -o greet greet.go
    result=./greet
fi
if [ "$status" -eq 0 ] && [ "$("$result" 2>/dev/null)" = 'built inside the sandbox' ]; then
    ok 'the program was built'
else
    bad "status $status"
fi

step '2. A write outside the allowed directory is refused'
run exec "${settings[@]}" -- sh -c "echo changed > $scratch/home/notes"
if [ "$status" -ne 0 ] && [ "$(cat "$scratch/home/notes")" = 'as it was' ]; then
    ok 'the file is as it was'
else
    bad "status $status, the file holds: $(cat "$scratch/home/notes")"
fi

step '3. So is a write to a denied file inside it'
run exec "${settings[@]}" -- sh -c 'echo changed > Makefile'
if [ "$status" -ne 0 ] && cmp -s Makefile "$here/project/Makefile"; then
    ok 'the Makefile is as it was'
else
    bad "status $status"
fi

step '4. A hidden file cannot be read'
run exec "${settings[@]}" -- cat "$scratch/home/secret"
if grep -q 'nobody may read' "$scratch/out"; then
    bad 'its content was shown'
else
    ok 'its content does not show'
fi

step '5. A host on the list is reached'
run exec "${settings[@]}" -- "${get[@]}" "http://localhost:$port/"
if [ "$status" -eq 0 ] && grep -q 'hello from the test server' "$scratch/out"; then
    ok 'the server answered'
else
    bad "status $status"
fi

step '6. A host that is not on the list is refused'
run exec "${settings[@]}" -- "${get[@]}" http://not-listed.example/
if [ "$status" -ne 0 ] && grep -q 403 "$scratch/out"; then
    ok 'the proxy refused it'
else
    bad "status $status"
fi

step '7. A program that knows nothing of proxies reaches the host on the list, and no other'
run exec "${settings[@]}" -- "$scratch/site" dial "localhost:$port"
listed=$status
run exec "${settings[@]}" -- "$scratch/site" dial "localhost:$unlisted"
if [ "$listed" -eq 0 ] && [ "$status" -ne 0 ]; then
    ok 'it connected to the first, and to the second there is no way'
else
    bad "status $listed for the host on the list, $status for the other"
fi

step '8. A masked token: the command holds a stand-in, and the server gets the real one, inside TLS'
run exec "${settings[@]}" -- printenv API_TOKEN
seen=$(cat "$scratch/out")
run exec "${settings[@]}" -- "$scratch/site" login "https://localhost:$secure/"
if [[ $seen == fake_value_* ]] && [ "$status" -eq 0 ] && grep -q 'the real token has arrived' "$scratch/out"; then
    ok 'the command never had it'
else
    bad "status $status, and the command saw: $seen"
fi

step '9. What may be asked of that server: only GET, whatever the token would allow'
if [ "${get[0]}" = curl ]; then
    run exec "${settings[@]}" -- curl -sS -f --max-time 10 -X DELETE "https://localhost:$secure/"
    if [ "$status" -ne 0 ] && grep -q requestRules "$scratch/out"; then ok 'srt refused the request'; else bad "status $status"; fi
else
    echo '  left out: it takes curl'
fi

step '10. The exit status is the command'"'"'s own'
run exec "${settings[@]}" -- sh -c 'exit 42'
if [ "$status" -eq 42 ]; then ok '42'; else bad "status $status"; fi

step '11. Nothing but the build is left in the project'
left=$(ls -A | grep -v -x -e Makefile -e main.c -e main.o -e greet -e 'greet\.[cho]' -e greet.go -e greet.go.txt -e .cache)
if [ -z "$left" ]; then ok 'no placeholder, no lock, no log'; else bad "left: $left"; fi

echo
if [ "$failed" -ne 0 ]; then
    echo 'The demonstration failed: a step above did not behave.'
    exit 1
fi
echo 'Every step behaved.'
