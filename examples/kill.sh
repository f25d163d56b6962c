#!/usr/bin/env bash
# Kills the first COUNT nodes of a cluster that by_hand.sh has started in DIR, once they train:
# first the one that all others joined by.
#
#   ./examples/kill.sh DIR COUNT
set -eu
dir=${1:?usage: kill.sh DIR COUNT}
count=${2:?usage: kill.sh DIR COUNT}

fail() {
    echo "kill.sh: $1" >&2
    exit 1
}

# Node n4 is the last to be started, and is not killed.
[ -e "$dir/n4/pid" ] || echo "waiting for by_hand.sh $dir to start n4"
for ((tenths = 0; tenths < 100; tenths++)); do
    [ ! -e "$dir/n4/pid" ] || break
    read -r -t 0.1 <> <(:) || true
done
[ -e "$dir/n4/pid" ] || fail "there is no $dir/n4/pid after ten seconds"
tail -n +1 -F --pid="$(cat "$dir/n4/pid")" "$dir/n4/lines.json" 2> /dev/null |
    grep -q -m 1 '"event":"progress".*"step":[1-9]' || fail "n4 has ended before its first step"
for ((i = 0; i < count; i++)); do
    echo "kill -9 n$i, process $(cat "$dir/n$i/pid")"
    kill -9 "$(cat "$dir/n$i/pid")"
done
