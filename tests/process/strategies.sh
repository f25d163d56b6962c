#!/bin/bash
# strategies.sh PARLEY: each strategy on real nodes, of which one is killed in the middle: the others
# end with one model, which the file holds, and none of them hangs.
source "$(dirname "$0")/folder.sh"

for strategy in allreduce local-sgd diloco; do
    "$parley" run -n 4 --strategy $strategy --model mlp:32 --epochs 20 --fault kill:1@30% \
        --out model --json lines > out
    tail -n 1 lines > summary
    grep -F '"ok":true' summary | grep -F '"live":3' | grep -F '"agreed":3' |
        grep -qF "\"strategy\":\"$strategy\""
    digest=$(grep -o 'sha256:[0-9a-f]*' summary)
    "$parley" model verify model | grep -qF "$digest"
    python3 -c '
import json, sys
summary = json.loads(open("summary").read())
if not summary["test_accuracy"] >= 0.9 or summary["epochs"] < 19.5: sys.exit("%r" % summary)'
done

# All of them side by side; what is for one of them alone does not keep the others from it.
"$parley" sim --compare all -n 3 --steps 40 --model softmax --mix-every 4 -q > table
for strategy in gossip none allreduce local-sgd diloco single; do
    grep -q "^ *$strategy " table
done

# What would change nothing is refused.
expect 2 'averages the gradients of every step' run --strategy allreduce --mix-every 4
