#!/bin/bash
# examples.sh PARLEY: the five nodes of by_hand.sh end with one model; so do the three that kill.sh
# leaves, and they say "3 of 5". All strategies are compared.
set -euo pipefail
export PARLEY=$1
examples=$(cd "$(dirname "$0")/../../examples" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

"$examples/by_hand.sh" "$folder/all" --model mlp:32 > "$folder/all.out"
[ "$(grep -c '^agreed    5 of 5 nodes' "$folder/all.out")" -eq 5 ]
[ "$(tail -n 1 "$folder/all.out")" = "different models: 1" ]

"$examples/by_hand.sh" "$folder/some" --model mlp:32 --epochs 100 > "$folder/some.out" &
cluster=$!
"$examples/kill.sh" "$folder/some" 2
wait "$cluster"
[ "$(grep -c '^agreed    3 of 5 nodes' "$folder/some.out")" -eq 3 ]
[ "$(grep -c 'was killed$' "$folder/some.out")" -eq 2 ]
[ "$(tail -n 1 "$folder/some.out")" = "different models: 1" ]

# Three tables, of all strategies and the single node each.
"$examples/strategies.sh" --nodes 4 --model softmax --epochs 1 > "$folder/strategies.out"
[ "$(grep -c '^single ' "$folder/strategies.out")" -eq 3 ]
[ "$(grep -Ec ' [34] of 4$' "$folder/strategies.out")" -ge 33 ]
# The same as one table in Markdown.
TASKS=digits STRATEGIES=gossip,allreduce "$examples/strategies_table.sh" > "$folder/table.out"
[ "$(grep -Ec '^\| `(gossip|allreduce|single)`( \| [^|]+){10} \|$' "$folder/table.out")" -eq 3 ]
