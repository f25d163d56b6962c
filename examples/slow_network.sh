#!/bin/bash
# examples/slow_network.sh [OPTION...]: gossip on a slow network, beside what all-reduce has to move.
#
# Simulates each strategy and a single node (options go to `parley sim`), and sets the time that
# each node's line is busy with what it sent while training went on beside a bound, computed and
# not simulated, for an all-reduce of the gradients after each step: 2 (n-1)/n times the model has
# to pass the line of each node, in each direction, and the slowest line holds up all. Waiting,
# latency and stragglers come on top of the bound. PARLEY names the program, MBIT the rate of a
# line (10).
set -euo pipefail
parley=${PARLEY:-$(cd "$(dirname "$0")/.." && pwd)/build/peers/parley}
mbit=${MBIT:-10}
strategies=gossip,none # a strategy that is named here has a row of its own

settings=(--nodes 16 --model mlp:64 --epochs 16 --compute lognormal:10ms,0.3 --latency 50ms --mix-every 8)
results=$(mktemp)
trap 'rm -f "$results"' EXIT
"$parley" sim -q "${settings[@]}" --compare "$strategies" "$@" --csv "$results" > /dev/null

awk -F, -v mbit="$mbit" '
    function row(name, accuracy, trained, sent, all) {
        printf "%-22s %9s %10s %12s %10s %12s\n", name, accuracy, trained, sent, all, \
            sprintf("%.1f s", sent * 8 / (mbit * 1000))
    }
    NR == 1 {
        for (i = 1; i <= NF; i++) column[$i] = i
        printf "%-22s %9s %10s %12s %10s %12s\n", "strategy", "accuracy", "training", "kB a node", "in all", "line busy"
        next
    }
    {
        n = $column["nodes"]
        row($1, sprintf("%.4f", $column["test_accuracy"]), sprintf("%.2f s", $column["trained_s"]),
            sprintf("%.0f", $column["bytes_trained"] / n / 1000), sprintf("%.0f", $column["bytes_sent"] / n / 1000))
    }
    NR == 2 { nodes = n; steps = $column["steps"] / n; bytes = 4 * $column["parameters"] }
    END {
        if (NR < 2) {
            print "slow_network.sh: with these options parley sim tells of no run" > "/dev/stderr"
            exit 1
        }
        row("all-reduce (bound)", "-", "-", sprintf("%.0f", 2 * (nodes - 1) / nodes * bytes * steps / 1000), "-")
        print "kB a node: sent until training ended; in all: with the final averaging and agreement."
        printf "line busy: at %s Mbit/s, in training. The bound is 2 (n-1)/n x %.1f kB x %.1f steps;\n", \
            mbit, bytes / 1000, steps
        print "it was computed, not simulated, and says nothing of accuracy."
    }' "$results"
