#!/bin/bash
# strategies.sh PARLEY: each strategy on real nodes, of which one is killed in the middle: the others
# end with one model that has learned, which the file holds, and none of them hangs.
source "$(dirname "$0")/folder.sh"

# survives FAULT STRATEGY ARGUMENT...: to the end of the budget; at least 0.93 of the digits are known.
survives() {
    "$parley" run -n 4 --epochs 24 --model mlp:64 --json json --fault "$1" --strategy "${@:2}" > out 2> err
    [ "$(value ok) $(value live) $(value agreed) $(value known)" = "true 3 3 4" ]
    tail -n 1 json | grep -F "\"strategy\":\"$2\"" > /dev/null
    awk "BEGIN { exit !($(value test_accuracy) >= 0.93 && $(value epochs) >= 23.5) }" || { cat out; return 1; }
    grep -q '^agreed    3 of 4 nodes' out
    digest=$(tail -n 1 json | grep -o 'sha256:[0-9a-f]*')
    "$parley" model verify parley-model.safetensors > verified
    grep -qF "$digest" verified
}

for strategy in allreduce local-sgd diloco 'ps-bsp --backup-workers 1' ps-ssp:2 'gossip-sync --topology ring' \
    'push-sum --topology exponential' 'noloco --mix-every 20' 'choco --codec topk:0.02'; do
    # shellcheck disable=SC2086
    survives kill:1@40% $strategy
done
survives kill:n0@50% ps-asp # who serves: the first by name

# All of them side by side; what is for one of them alone does not keep the others from it.
"$parley" sim --compare all -n 3 --steps 40 --model softmax --mix-every 4 -q > table
for strategy in gossip none allreduce local-sgd diloco single; do
    grep -q "^ *$strategy " table
done
