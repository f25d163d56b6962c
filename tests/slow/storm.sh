#!/bin/sh
# Eight nodes under faults that pass quickly, one after the other: all held, and one digest.
exec "$(dirname "$0")/../storm.sh" --parley "$1" --faults 7 --seed 1 kill_at_state \
    all_at_once two_of_one_name cut reset descriptors bad_frames
