#!/bin/bash
# kin.sh PARLEY: what is kin to gossip, at processes: one of four is killed half way, the others
# agree on one model that has learned. And what does not go together is refused.
source "$(dirname "$0")/folder.sh"

# survives ARGUMENTS: at least 0.93 of the digits are known, without the dead node.
survives() {
    "$parley" run -q -n 4 --epochs 24 --model mlp:64 --fault kill:1@25% --json json "$@" > out
    [ "$(value ok) $(value live) $(value agreed) $(value known)" = "true 3 3 4" ]
    [ "$(value test_accuracy | cut -c 1-4 | tr -d .)" -ge 093 ] || { cat out; return 1; }
    "$parley" model verify parley-model.safetensors > verified
}

survives --strategy gossip-sync --topology ring
survives --strategy push-sum --topology exponential
survives --strategy noloco --mix-every 20
survives --strategy choco --codec topk:0.02

expect 2 'take exponential, regular:K or base:K' sim -n 80 --strategy gossip-sync
expect 2 'follows averaging' run --strategy noloco --momentum-mode quasi-global
expect 2 'follows averaging' run --strategy push-sum --momentum-mode quasi-global
expect 2 'follows averaging' run --strategy push-sum --momentum-mode reset
expect 2 'follows averaging' run --strategy local-sgd --momentum-mode reset
expect 2 'follows averaging' sim --strategy allreduce --momentum-mode reset
