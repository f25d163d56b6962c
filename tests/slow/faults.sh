#!/bin/sh
# Two tries of each trial of soak.py but the long one: what must hold under faults, on real nodes.
exec "$(dirname "$0")/../soak.sh" --parley "$1" --count 2 undisturbed any_order kill_two_of_five \
    kill_half kill_in_exchange kill_in_agreement late_joiner hostile
