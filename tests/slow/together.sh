#!/bin/bash
# together.sh PARLEY: nodes that average are never worse off than one alone that makes the same
# steps, whether an exchange takes less than a step or several. Simulated on the digits, with
# momentum, which makes grow what swings.
set -uo pipefail
parley=$1
failures=0

# loss ARGUMENT...: of the agreed model, on the test samples; the mean of three seeds.
loss() {
    for seed in 1 2 3; do
        "$parley" sim -q --json - --model mlp:64,32 --steps 400 --mix-every 1 --seed $seed "$@"
    done | sed -nE 's/.*"event":"summary".*"test_loss":([0-9.e+-]+).*/\1/p' |
        awk '{ sum += $1 } END { print NR == 3 ? sum / 3 : "none" }'
}

alone=$(loss --nodes 1)
for cluster in '--nodes 2' '--nodes 3' '--nodes 8' '--nodes 8 --topology ring'; do
    for lines in '--latency 0' '--bandwidth 2Gbit --latency 0.1ms' '--bandwidth 500Mbit --latency 0.2ms'; do
        together=$(loss $cluster $lines)
        awk -v together="$together" -v alone="$alone" 'BEGIN { exit !(together + 0 <= alone + 0 && together + 0 > 0) }' && continue
        echo "$cluster $lines: loss $together, one alone $alone"
        failures=$((failures + 1))
    done
done
[ $failures -eq 0 ]
