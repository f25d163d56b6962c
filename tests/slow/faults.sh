#!/bin/sh
# Two tries of each trial of soak.py but the long one, and one by each strategy that sums up: what must
# hold under faults, on real nodes.
set -e
soak=$(dirname "$0")/../soak.sh
"$soak" --parley "$1" --seed 10 --count 3 kill_by_strategy
exec "$soak" --parley "$1" --count 2 undisturbed any_order kill_two_of_five \
    kill_half kill_in_exchange kill_in_agreement late_joiner hostile
