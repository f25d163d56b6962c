#!/bin/bash
# skewed.sh PARLEY [SEEDS]: what averaging options do for skewed shares, by hand: too long for the suite.
#
# 16 nodes, Dirichlet(0.1), MNIST, simulated: the better of momenta that follow averaging
# (`--mix-every 8`) and of averaging steered by drift (`--mix-every auto`) beats momenta of each
# node's own by a point, mean of the seeds ("1 2 3 4 5" unless given). PARLEY_TEST_DATA names a
# folder with mnist in it.
set -euo pipefail
parley=$(realpath "$1") seeds=${2:-1 2 3 4 5}
data=${PARLEY_TEST_DATA:?names a folder with mnist in it}/mnist

# mean NAME OPTIONS...: of the accuracy over the seeds, into $got.
mean() {
    local name=$1
    shift
    got=$(for seed in $seeds; do
        "$parley" sim -q --nodes 16 --data "idx:$data" --model mlp:256,128 --epochs 4 \
            --partition dirichlet:0.1 --seed "$seed" "$@" --json - | tail -n 1
    done | python3 -c '
import json, sys
lines = [json.loads(line) for line in sys.stdin]
seeds = sys.argv[1].split()
if len(lines) != len(seeds) or not all(line["ok"] for line in lines): sys.exit("a run failed")
accuracy = [line["test_accuracy"] for line in lines]
print("%.4f" % (sum(accuracy) / len(accuracy)))
sizes = sum(line["bytes_sent"] for line in lines) / len(lines) / 1e9
print(" ".join("%.4f" % a for a in accuracy), "  %.2f GB a run" % sizes, file=sys.stderr)' "$seeds")
    printf '%-44s %s\n' "$name" "$got"
}

mean "own momenta, --mix-every 8" --mix-every 8 --momentum-mode local
own=$got
mean "momenta that follow averaging, --mix-every 8" --mix-every 8
follows=$got
mean "steered by drift, --mix-every auto" --mix-every auto
steered=$got
python3 -c "
gain = 100 * (max($follows, $steered) - $own)
print('%+.2f points' % gain)
exit(gain < 1)"
