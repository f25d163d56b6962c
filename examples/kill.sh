#!/usr/bin/env bash
# Kills the first COUNT nodes of a cluster that by_hand.sh has started in DIR, once they train:
# first the one that all others joined by.
#
#   ./examples/kill.sh DIR COUNT
set -eu
dir=${1:?usage: kill.sh DIR COUNT}
count=${2:?usage: kill.sh DIR COUNT}

# Node n4 is the last to be started, and is not killed.
until [ -e "$dir/n4/lines.json" ]; do read -r -t 0.1 <> <(:) || true; done
tail -n +1 -F "$dir/n4/lines.json" 2> /dev/null | grep -q -m 1 '"event":"progress".*"step":[1-9]'
for ((i = 0; i < count; i++)); do
    echo "kill -9 n$i, process $(cat "$dir/n$i/pid")"
    kill -9 "$(cat "$dir/n$i/pid")"
done
