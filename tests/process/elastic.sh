#!/bin/bash
# elastic.sh PARLEY: the samples of a node that dies are trained on by the others, and those who
# come take over their part; simulated, so that the same steps are judged each time.
set -uo pipefail
parley=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
failures=0

# coverage ARGUMENT...: that of each epoch, a line each.
coverage() {
    "$parley" sim -q --json - --model softmax --compute 20ms "$@" |
        sed -nE 's/.*"coverage":\[([^]]*)\].*/\1/p' | tr , '\n'
}

# expect NAME EPOCH OPERATION ARGUMENT...: "EPOCH OPERATION" is an awk condition on it, as c.
expect() {
    local name=$1 epoch=$2 condition=$3 seed
    shift 3
    for seed in 1 2; do
        coverage --seed $seed "$@" > got
        awk -v epoch="$epoch" "NR == epoch { c = \$1; found = 1 } END { exit !(found && $condition) }" got &&
            continue
        echo "$name, seed $seed: epoch $epoch is not $condition: $(tr '\n' ' ' < got)"
        failures=$((failures + 1))
    done
}

expect 'undisturbed' 3 'c == 1' --nodes 4 --epochs 4
# Shares that don't move: a quarter of the data is gone with its node.
expect 'own data' 5 'c < 0.9' --nodes 4 --epochs 6 --partition shards --fault kill:1@30%
expect 'common data' 4 'c >= 0.99' --nodes 4 --epochs 6 --fault kill:1@30%
expect 'common data' 5 'c >= 0.99' --nodes 4 --epochs 6 --fault kill:1@30%
expect 'a newcomer' 4 'c >= 0.99' --nodes 3 --epochs 6 --fault join:1@30%

# The same on real nodes, that mark in one file. What each gets done depends on the machine.
"$parley" run -q --json - --nodes 3 --epochs 2 --model softmax --out "$folder/model" > lines
grep '"summary"' lines | grep -Eq '"coverage":\[(1|0\.[3-9][0-9]*),' || {
    echo "run says: $(grep '"summary"' lines)"
    failures=$((failures + 1))
}
[ $failures -eq 0 ]
