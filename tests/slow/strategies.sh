#!/bin/bash
# strategies.sh PARLEY [SEEDS [VERBS]]: each strategy on MNIST, by hand: too long for the suite.
#
# Four nodes, 6 epochs, in the simulator and as processes, also with one of them killed in the
# middle: at least 0.97, and within half a point of one node with the same samples (mean of the
# seeds, "1 2 3" unless given; VERBS: "sim run"). PARLEY_TEST_DATA names a folder with mnist in it.
set -euo pipefail
parley=$(realpath "$1") seeds=${2:-1 2 3} verbs=${3:-sim run}
data=${PARLEY_TEST_DATA:?names a folder with mnist in it}/mnist
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

# mean VERB NODES OPTIONS...: of the accuracy over the seeds.
mean() {
    verb=$1 nodes=$2
    shift 2
    for seed in $seeds; do
        "$parley" "$verb" --nodes "$nodes" --data "idx:$data" --model mlp:256,128 --epochs 6 \
            --seed "$seed" "$@" --json - 2> /dev/null | tail -n 1
    done | python3 -c '
import json, sys
lines = [json.loads(line) for line in sys.stdin]
seeds = sys.argv[1].split()
if len(lines) != len(seeds) or not all(line["ok"] for line in lines): sys.exit("a run failed")
print("%.4f" % (sum(line["test_accuracy"] for line in lines) / len(lines)))' "$seeds"
}

one=$(mean sim 1)
echo "one node           $one"
status=0
for strategy in gossip gossip-sync choco push-sum noloco local-sgd diloco allreduce ps-bsp ps-asp ps-ssp:2; do
    for verb in $verbs; do
        for fault in "" kill:1@50%; do
            got=$(mean "$verb" 4 --strategy $strategy ${fault:+--fault $fault})
            verdict=$(python3 -c "print('ok' if $got >= max(0.97, $one - 0.005) else 'TOO LOW')")
            printf '%-18s %s %s (%s)\n' $strategy "$got" "$verdict" "$verb $fault"
            if [ "$verdict" != ok ]; then status=1; fi
        done
    done
done
exit $status
