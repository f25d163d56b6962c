#!/bin/sh
# Nodes of which one sleeps for 20 s (SIGSTOP) and comes back: three tries, side by side, as
# most of each is waiting.
soak=$(dirname "$0")/../soak.sh
status=0
tries=
for seed in 1 2 3; do
    "$soak" --parley "$1" --count 1 --seed "$seed" pause &
    tries="$tries $!"
done
for try in $tries; do
    wait "$try" || status=1
done
exit $status
