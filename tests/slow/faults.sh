#!/bin/bash
# Two tries of each trial of soak.py but the long one, and one by each strategy that sums up: what must
# hold under faults, on real nodes. Beside them a majority is waited for in vain, and what was trained stays.
soak=$(realpath "$(dirname "$0")/../soak.sh")
source "$(dirname "$0")/../process/folder.sh"

# Beside them one waits two minutes for those who are gone, and does nothing else.
unagreed=(-n 3 --model mlp:8 --epochs 20 --quorum majority --settle-timeout 5s --checkpoint kept)
"$parley" run "${unagreed[@]}" --fault sleep=2ms:100%@0s --fault kill:2@50% > out 2>&1 &
run=$!

"$soak" --parley "$parley" --seed 10 --count 3 kill_by_strategy
"$soak" --parley "$parley" --count 2 undisturbed any_order kill_two_of_five \
    kill_half kill_in_exchange kill_in_agreement late_joiner hostile

# Where there is no agreement nothing of the training is lost: it is a model, and where all go on from.
status=0
wait $run || status=$?
[ "$status" -eq 3 ]
name=$(grep -o "no agreement; this node's own model is in parley-model.safetensors.n[0-2]" out | sed 's/.*\.//')
"$parley" model verify parley-model.safetensors."$name" > /dev/null
[ ! -e parley-model.safetensors ]
"$parley" run "${unagreed[@]}" --resume --json json > out
[ "$(value ok) $(value agreed)" = "true 3" ]
