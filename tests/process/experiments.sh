#!/bin/bash
# experiments.sh PARLEY: the examples of the simulator, made small: each ends well and says what its
# comments say it does.
examples=$(cd "$(dirname "$0")/../../examples" && pwd)
source "$(dirname "$0")/folder.sh"

"$parley" sim -q -c "$examples/period.yaml" --nodes 3 --model softmax --epochs 0.2 --seed 1 --report period.html > period.txt
cat period.txt
[ "$(grep -cE '^gossip +(1|4|16|64) .* 3 of 3$' period.txt)" -eq 4 ]
[ "$(grep -cE '^single +- .* 1 of 1$' period.txt)" -eq 1 ]
grep -q "mix-every: '1,4,16,64'" <(sed "s/&#39;/'/g" period.html)

"$parley" sim -q -c "$examples/churn.yaml" --nodes 4 --model softmax --epochs 0.3 --seed 1 --report churn.html > churn.txt
cat churn.txt
[ "$(grep -cE '^gossip +none .* 4 of 4$' churn.txt)" -eq 1 ]
[ "$(grep -cE '^gossip +kill:60%@50% .* 2 of 4$' churn.txt)" -eq 1 ]
[ "$(grep -c '^gossip' churn.txt)" -eq 6 ]
grep -q '; 2 dead at the end' churn.html
# The topologies are told apart, and who joined has a name.
grep -q '<text class="dim middle"[^>]*>kill:60%@50%</text>' churn.html
grep -q '<text class="dim middle"[^>]*>no faults</text>' churn.html
grep -q '<text class="dim middle"[^>]*>n4</text>' churn.html

"$parley" sim -q -c "$examples/slow_network.yaml" --nodes 3 --model softmax --epochs 0.2 --csv slow.csv > slow.txt
cat slow.txt
# All-reduce waits for the network at each step; what none sends is for the end.
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
    { trained[$1] = $column["trained_s"]; sent[$1] = $column["bytes_trained"]; all[$1] = $column["bytes_sent"] }
    END { exit !(trained["allreduce"] > 4 * trained["gossip"] && sent["none"] < all["none"] / 4) }' slow.csv
