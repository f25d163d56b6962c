#!/bin/bash
# examples.sh PARLEY: the five nodes of by_hand.sh end with one model; so do the three that kill.sh
# leaves, and they say "3 of 5"; where nothing can start, both end. All strategies are compared, and what grows is measured.
examples=$(realpath "$(dirname "$0")/../../examples")
source "$(dirname "$0")/../process/folder.sh"
export PARLEY=$parley

"$examples/by_hand.sh" "$folder/all" --model mlp:32 > "$folder/all.out"
[ "$(grep -c '^agreed    5 of 5 nodes' "$folder/all.out")" -eq 5 ]
[ "$(tail -n 1 "$folder/all.out")" = "different models: 1" ]

# Both take a relative path for the caller's.
"$examples/by_hand.sh" some --model mlp:32 --epochs 100 > "$folder/some.out" &
cluster=$!
"$examples/kill.sh" some 2
wait "$cluster"
[ "$(grep -c '^agreed    3 of 5 nodes' "$folder/some.out")" -eq 3 ]
[ "$(grep -c 'was killed$' "$folder/some.out")" -eq 2 ]
[ "$(tail -n 1 "$folder/some.out")" = "different models: 1" ]

status=0
"$examples/by_hand.sh" none --epochs no 2> "$folder/none.out" || status=$?
[ "$status" -eq 1 ]
grep -q '^n0 has not started: .*--epochs' "$folder/none.out"
status=0
"$examples/kill.sh" none 2 2> "$folder/none.out" || status=$?
[ "$status" -eq 1 ]
grep -q 'there is no none/n4/pid' "$folder/none.out"

# Three tables, of all strategies and the single node each.
"$examples/strategies.sh" --nodes 4 --model softmax --epochs 1 > "$folder/strategies.out"
[ "$(grep -c '^single ' "$folder/strategies.out")" -eq 3 ]
[ "$(grep -Ec ' [34] of 4$' "$folder/strategies.out")" -ge 33 ]
# The same as one table in Markdown.
TASKS=digits STRATEGIES=gossip,allreduce "$examples/strategies_table.sh" > "$folder/table.out"
[ "$(grep -Ec '^\| `(gossip|allreduce|single)`( \| [^|]+){10} \|$' "$folder/table.out")" -eq 3 ]

# What grows, at its smallest: each curve has its points, all of them above zero, and is drawn where
# that can be done; a part alone writes nothing else.
"$examples/growth.sh" --quick "$folder/growth" > "$folder/growth.out"
cat "$folder"/growth/*.csv | awk -F, '
    $1 == "figure" { next }
    NF != 4 || $3 <= 0 || $4 <= 0 { print "growth: " $0; failed = 1 }
    { points[$1 "," $2]++ }
    END {
        for (curve in points) { curves++; failed = failed || points[curve] < (curve ~ /full views/ ? 1 : 2) }
        exit failed || curves != 16
    }'
if command -v gnuplot > /dev/null; then
    [ "$(grep -l '^</svg>$' "$folder"/growth/*.svg | wc -l)" -eq 4 ]
else
    grep -q 'gnuplot is not installed' "$folder/growth.out"
fi
"$examples/growth.sh" --quick "$folder/one" simulator > /dev/null
[ -z "$(find "$folder/one" -type f ! -name 'simulator.*')" ]
