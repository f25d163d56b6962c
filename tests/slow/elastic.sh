#!/bin/bash
# elastic.sh PARLEY: the samples of a node that dies are trained on by the others, and those who
# come take over their part; simulated, so that the same steps are judged each time.
source "$(dirname "$0")/../process/failures.sh"

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
        fail "$name, seed $seed: epoch $epoch is not $condition: $(tr '\n' ' ' < got)"
    done
}

expect 'undisturbed' 3 'c == 1' --nodes 4 --epochs 4
# Shares that don't move: a quarter of the data is gone with its node.
expect 'own data' 5 'c < 0.9' --nodes 4 --epochs 6 --partition shards --fault kill:1@30%
expect 'common data' 4 'c >= 0.99' --nodes 4 --epochs 6 --fault kill:1@30%
expect 'common data' 5 'c >= 0.99' --nodes 4 --epochs 6 --fault kill:1@30%

# least ARGUMENT...: "EPOCHS LEAST": how many were not cut by the end, and what was covered of the least.
least() {
    "$parley" sim -q --json - --model softmax --compute 20ms "$@" |
        sed -nE 's/.*"coverage":\[([^]]*)\],"epochs_whole":([0-9]+).*/\2 \1/p' | tr , ' ' |
        awk '{ least = 1; for (i = 1; i <= $1; i++) if ($(i + 1) < least) least = $(i + 1); print $1, least }'
}

# A kill at any moment of a pass: at its beginning, in the middle, just before and after its end.
for nodes in 4 8; do
    for percent in 34 40 46 49 51; do
        read -r epochs covered < <(least --nodes $nodes --epochs 6 --fault kill:1@$percent%)
        awk "BEGIN { exit !(${epochs:-0} >= 5 && ${covered:-0} >= 0.99) }" && continue
        fail "kill at $percent % of $nodes nodes: $covered at least of $epochs epochs"
    done
done

expect 'a newcomer' 4 'c >= 0.99' --nodes 3 --epochs 6 --fault join:1@30%

# The same on real nodes, that mark in one file. What each gets done depends on the machine.
"$parley" run -q --json - --nodes 3 --epochs 2 --model softmax --out "$folder/model" > lines
grep '"summary"' lines | grep -Eq '"coverage":\[(1|0\.[3-9][0-9]*),' ||
    fail "run says: $(grep '"summary"' lines)"

# The others train on a killed node's samples; how soon is printed.
"$parley" run -q --nodes 4 --epochs 40 --model mlp:256,128 --out "$folder/model" --fault kill:1@30% \
    --json lines > /dev/null
killed=$(sed -nE 's/.*"event":"fault","t":([0-9.e+-]+).*"kill".*/\1/p' lines)
taken=$(sed -nE 's/.*"event":"takeover","t":([0-9.e+-]+).*/\1/p' lines |
    awk -v killed="${killed:-0}" '$1 > killed { print; exit }')
if [ -n "$killed" ] && [ -n "$taken" ]; then
    awk "BEGIN { printf \"%.2f s after the kill others train on the dead node's samples\\n\", $taken - $killed }"
else
    fail "nobody took over after the kill: $(grep -E '"(fault|takeover|summary)"' lines)"
fi
# All epochs that were not cut by the end.
tail -n 1 lines | sed -nE 's/.*"coverage":\[([^]]*)\],"epochs_whole":([0-9]+).*/\2 \1/p' | tr , ' ' |
    awk '{ for (i = 1; i <= $1; i++) if ($(i + 1) < 0.99) bad = 1 } END { exit !($1 >= 10 && !bad) }' ||
        fail "run covers too little: $(tail -n 1 lines)"
[ $failures -eq 0 ]
