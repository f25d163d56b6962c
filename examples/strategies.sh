#!/bin/bash
# examples/strategies.sh [OPTION...]: every strategy on one task, undisturbed, with a node four times
# slower, and with a death.
#
# Simulates 8 nodes by each strategy until one model has reached the target accuracy, or the budget
# is spent; options go to `parley sim`, like --data idx:mnist --target-accuracy 0.97. A table for
# each of the three: accuracy, virtual time of training (that to the target), bytes, drift before
# the agreement. PARLEY names the program, STRATEGIES what is compared (all), CSV a folder that gets
# the three tables as undisturbed.csv, slow.csv and killed.csv.
set -euo pipefail
parley=${PARLEY:-$(cd "$(dirname "$0")/.." && pwd)/build/peers/parley}
settings=(--nodes 8 --model mlp:256,128 --epochs 6 --compute 1ms --bandwidth 1Gbit --latency 1ms)

compare() {
    local name=$1 file=$2
    shift 2
    echo "$name"
    "$parley" sim -q "${settings[@]}" --compare "${STRATEGIES:-all}" "$@" ${CSV:+--csv "$CSV/$file.csv"}
    echo
}

compare "undisturbed" undisturbed "$@"
compare "n3 four times slower" slow --fault slow=4:n3@0s "$@"
compare "n3 killed after a fifth of the budget" killed --fault kill:n3@20% "$@"
