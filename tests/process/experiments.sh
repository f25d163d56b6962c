#!/bin/bash
# experiments.sh PARLEY: the examples of the simulator, made small: each ends well and says what its
# comments say it does.
examples=$(cd "$(dirname "$0")/../../examples" && pwd)
source "$(dirname "$0")/folder.sh"
export PARLEY=$parley

"$PARLEY" sim -q -c "$examples/period.yaml" --nodes 3 --model softmax --epochs 0.2 --seed 1 --report period.html > period.txt
cat period.txt
[ "$(grep -cE '^gossip +(1|4|16|64) .* 3 of 3$' period.txt)" -eq 4 ]
[ "$(grep -cE '^single +- .* 1 of 1$' period.txt)" -eq 1 ]
grep -q "mix-every: '1,4,16,64'" <(sed "s/&#39;/'/g" period.html)

"$PARLEY" sim -q -c "$examples/churn.yaml" --nodes 4 --model softmax --epochs 0.3 --seed 1 --report churn.html > churn.txt
cat churn.txt
[ "$(grep -cE '^gossip +none .* 4 of 4$' churn.txt)" -eq 1 ]
[ "$(grep -cE '^gossip +kill:60%@50% .* 2 of 4$' churn.txt)" -eq 1 ]
[ "$(grep -c '^gossip' churn.txt)" -eq 6 ]
grep -q '; 2 dead at the end' churn.html
# The topologies are told apart, and who joined has a name.
grep -q '<text class="dim middle"[^>]*>kill:60%@50%</text>' churn.html
grep -q '<text class="dim middle"[^>]*>no faults</text>' churn.html
grep -q '<text class="dim middle"[^>]*>n4</text>' churn.html

"$examples/slow_network.sh" --nodes 3 --model softmax --epochs 0.2 --csv other.csv > slow.txt
cat slow.txt
[ "$(grep -cE '^(gossip|none|single) .* s$' slow.txt)" -eq 3 ]
status=0
"$examples/slow_network.sh" --help 2> said || status=$?
[ "$status" -eq 1 ]
grep -q 'tells of no run' said
# What none sends is for the end.
awk '$1 == "none" { exit !($5 < $6 / 4) }' slow.txt
# 2 (3-1)/3 x 16.04 kB a step: the bound is what its formula says.
read -r kilobytes steps < <(sed -nE 's/^all-reduce \(bound\) +- +- +([0-9]+) .*/\1/p; s/.* x ([0-9.]+) steps;$/\1/p' slow.txt | xargs)
awk "BEGIN { exit !($kilobytes > 4 * 16.04 * ($steps - 0.1) / 3 - 1 && $kilobytes < 4 * 16.04 * ($steps + 0.1) / 3 + 1) }"
