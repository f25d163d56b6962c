#!/bin/bash
# checkpoint.sh PARLEY: all nodes killed at once go on from their files, from the older one where the
# newest is damaged; what doesn't fit is refused.
source "$(dirname "$0")/failures.sh"
train=(-n 3 --model mlp:32 --checkpoint kept --checkpoint-every 100ms)

# steps NODE: of its files, the newest first.
steps() { find kept -name "$1-*.checkpoint" 2> /dev/null | sed 's/.*-//; s/\..*//' | sort -rn; }

# progress FILE: numbers of progress in it: steps, samples, steps in its vectors, samples of all.
progress() { grep -aoE '"progress":"[0-9 ]+' "$1" | cut -d'"' -f4; }

# Until each has two files, the newest far enough: then all are killed at once.
"$parley" run -q --json json "${train[@]}" --epochs 100000 > out 2> err &
run=$!
while kill -0 $run 2> /dev/null; do
    for node in n0 n1 n2; do [ "$(steps $node | sed -n 2p)0" -ge 60000 ] || continue 2; done
    break
done
nodes=$(pids_of json)
kill -KILL $run $nodes || fail "the run was over too early"
for pid in $run $nodes; do timeout 20 tail -f /dev/null --pid="$pid"; done
wait $run 2> /dev/null
for node in n0 n1 n2; do [ "$(steps $node | wc -l)" -le 3 ] || fail "$node keeps more than two"; done

# A bit of n0's newest file flips.
newest=$(steps n0 | head -n 1) older=$(steps n0 | sed -n 2p)
file=kept/n0-$newest.checkpoint
size=$(stat -c %s "$file")
byte=$(od -An -tu1 -j $((size / 2)) -N 1 "$file")
printf "\\x$(printf %x $(((byte + 1) % 256)))" | dd of="$file" bs=1 seek=$((size / 2)) conv=notrunc status=none

: > kept/n1-99999999.checkpoint

# What was made before counts: the rest of the budget is less than all of it. The files are not of one
# age: what each has used counts, or what all had by the newest word, if that is more.
own=0 word=0 most=0
for file in "n0-$older" "n1-$(steps n1 | sed -n 2p)" "n2-$(steps n2 | head -n 1)"; do
    read -r made samples _ all _ <<< "$(progress "kept/$file.checkpoint")"
    own=$((own + samples)) word=$((all > word ? all : word)) most=$((made > most ? made : most))
done
before=$(((own > word ? own : word) / 12000))
"$parley" run --json json "${train[@]}" --resume --epochs $((before + 30)) -v > out 2> err ||
    fail "resumed: status $?"
grep -q "n0-$newest.checkpoint is passed over: it is damaged" err || fail "the damage is not named"
grep -q 'n1: passed over: kept/n1-99999999.checkpoint is empty$' err || fail "an empty file is not named"
grep '"event":"error"' json | grep -q "\"node\":\"n0\".*n0-$newest.checkpoint is passed over" || fail "no line in the JSON names it"
# Who stood still before it was killed is behind, and takes the model of another.
another='took model and optimizer state of n'
grep -qE "n0: (goes on from its step $older\$|$another)" err || fail "n0 goes on from elsewhere than $older"
grep -q "  3 of 3 nodes go on from their checkpoints in kept, from step $most at most\$" err ||
    fail "run does not say how it goes on"
for node in n1 n2; do
    grep -qE "$node: (goes on from its step [1-9]|$another)" err || fail "$node did not go on"
done
summary=$(tail -n 1 json)
grep -q '"agreed":3' <<< "$summary" || fail "no agreement: $summary"
made=$(grep -o '"steps":[0-9]*' <<< "$summary" | cut -d: -f2)
[ "$made" -gt $((27 * 12000 / 32)) ] && [ "$made" -lt $((33 * 12000 / 32)) ] ||
    fail "$made steps for 30 epochs"
# What was trained on in an epoch that was begun before nobody knows: the first that is told is whole.
grep -Eq '"coverage":\[(0,)+(1,|0\])' <<< "$summary" || fail "epochs begun before: $(grep -o '"coverage":[^]]*' <<< "$summary")"

# The same under -q; and where no file is whole nobody trains anew.
mkdir spoilt
"$parley" run -q -n 1 --model mlp:32 --steps 300 --checkpoint spoilt --checkpoint-every 1us > out 2> err
: > spoilt/n0-99999.checkpoint
"$parley" run -q -n 1 --model mlp:32 --steps 400 --checkpoint spoilt --resume > out 2> err || fail "spoilt: status $?"
grep -qx 'parley: n0: passed over: spoilt/n0-99999.checkpoint is empty' err || fail "-q hides the damage: $(cat err)"
for file in spoilt/*; do truncate -s 1000 "$file"; done
for verb in 'run -n 1' 'node --name n0'; do
    "$parley" $verb -q --model mlp:32 --steps 3 --checkpoint spoilt --resume > out 2> err
    status=$?
    [ $status -eq 7 ] && grep -q 'resume: no file of spoilt/n0-\*.checkpoint can be gone on from; move them away, or start without --resume$' err ||
        fail "$verb, all damaged: status $status, $(cat err)"
done

# A folder that can't be listed is not taken for an empty one: with one descriptor less than that takes
# the node says so, and with fewer it does not come to look.
"$parley" node -q --name=n0 --model mlp:32 --steps 300 --checkpoint listed --checkpoint-every 1us > out 2> err
listed=
for most in {4..16}; do
    (ulimit -n "$most" && exec "$parley" node --name=n0 --model mlp:32 --steps 400 --checkpoint listed --resume) > out 2> err
    status=$?
    ! grep 'no checkpoint of n0' err || fail "with $most descriptors a folder is taken for an empty one"
    [ $status -eq 7 ] && grep -q '^parley: --resume: listed can.t be listed: Too many open files$' err && listed=$most
done
[ -n "$listed" ] || fail "nobody says that a folder can't be listed: $(cat err)"

# What can't be written is said under -q too, and in a line.
mkdir -p full/n0.checkpoint.part
"$parley" run -q --json json -n 1 --model mlp:32 --steps 300 --checkpoint full --checkpoint-every 1us > out 2> err ||
    fail "without a checkpoint: status $?"
grep -q "^parley: n0: no checkpoint at step [0-9]*: full/n0.checkpoint.part: can't create: Is a directory\$" err ||
    fail "-q hides that there is no checkpoint: $(cat err)"
grep -q '"event":"error",.*"message":"no checkpoint at step' json || fail "no line of the checkpoint that was not made"

# In a folder of many others' links are not followed.
mkdir many
echo precious > precious
ln -s ../precious many/a.checkpoint.part
"$parley" node -q --name=a --model mlp:32 --steps 300 --checkpoint many --checkpoint-every 1us > out 2> err ||
    fail "beside a link: $(cat err)"
[ "$(cat precious)" = precious ] || fail "a checkpoint was written to what another's link leads to"
compgen -G 'many/a-*.checkpoint' > /dev/null || fail "no checkpoint beside a link: $(cat err)"
ln -s ../new many/b.lock
"$parley" node -q --name=b --model mlp:32 --steps 3 --checkpoint many > out 2> err
status=$?
[ $status -eq 2 ] && grep -q -- '--checkpoint: many/b.lock: ' err && [ ! -e new ] ||
    fail "a lock was made where another's link leads: status $status, $(cat err)"
mkfifo many/c.lock
timeout 60 "$parley" node -q --name=c --model mlp:32 --steps 3 --checkpoint many > out 2> err
status=$?
[ $status -eq 2 ] && grep -q -- '--checkpoint: many/c.lock: ' err ||
    fail "a pipe in a lock's place: status $status, $(cat err)"

ln -s ../new many/d.vote
"$parley" node -q --name=d --model mlp:32 --steps 3 --checkpoint many --quorum majority --nodes 1 > out 2> err
status=$?
[ $status -eq 2 ] && grep -q 'vote: many/d.vote: ' err && [ ! -e new ] ||
    fail "votes are kept where another's link leads: status $status, $(cat err)"

# When it is asked for: `run` passes it on to each of its nodes.
: > json
"$parley" run -q --json json -n 2 --model mlp:32 --time 600s --checkpoint asked > out 2> err &
run=$!
until_steps $run n0 n1
kill -USR1 $run
while kill -0 $run 2> /dev/null; do
    for node in n0 n1; do compgen -G "asked/$node-*.checkpoint" > /dev/null || continue 2; done
    break
done
kill -INT $run || fail "SIGUSR1 at run ended it"
wait $run || fail "SIGUSR1 at run: status $?"

"$parley" run -n 1 --model mlp:32 --steps 3 --checkpoint new --resume > out 2> err
grep -q '  no checkpoint in new: starts with the first model$' err || fail "run does not say that it starts anew"

# Of names that begin alike each has its own files.
for name in a- a; do
    "$parley" node --name=$name --model mlp:32 --steps 3 --checkpoint alike --checkpoint-every 1ms > out 2> err &&
        "$parley" node --name=$name --model mlp:32 --steps 9 --checkpoint alike --checkpoint-every 1ms > out 2> err ||
        fail "$name: $(cat err)"
    find alike -name "$name-[0-9]*.checkpoint" | grep -q . || fail "$name has lost its checkpoints: $(ls alike)"
done

# Two processes do not keep theirs under one name; another name is free, and so it is afterwards.
"$parley" node --name=a --model mlp:32 --time 600s --checkpoint kin --checkpoint-every 1ms > out 2> err &
first=$!
wait_until $first compgen -G 'kin/a-*.checkpoint' > /dev/null
"$parley" node --name=a --model mlp:32 --steps 3 --checkpoint kin > out 2> err
status=$?
[ $status -eq 2 ] && grep -qx "parley: --checkpoint: process $first keeps checkpoints of a in kin; end it, or give another directory or --name" err ||
    fail "two processes keep checkpoints of one name: status $status, $(cat err)"
"$parley" node --name=b --model mlp:32 --steps 3 --checkpoint kin > out 2> err || fail "of another name: $(cat err)"
kill -KILL $first && wait $first 2> /dev/null
"$parley" node --name=a --model mlp:32 --steps 3 --checkpoint kin --resume > out 2> err || fail "after its death: $(cat err)"

# Steps that count from 0 again make the newest file all the same, and who starts so is told.
life() { "$parley" "$1" --model mlp:32 --checkpoint lives --checkpoint-every 1us "${@:2}" > out 2> err; }
life node --name=n0 --steps 300 || fail "the first life: $(cat err)"
! grep 'will be replaced' err || fail "nothing was to be replaced"
mv "$(find lives -name 'n0-*' | head -n 1)" lives/n0-99999.checkpoint
life node --name=n0 --steps 20 || fail "the second life: $(cat err)"
grep -q '^parley: --checkpoint: lives has checkpoints of n0, which will be replaced; --resume goes on from them$' err ||
    fail "who replaces checkpoints is not told: $(cat err)"
life node --name=n0 --steps 30 --resume || fail "the third life: $(cat err)"
grep -qE 'goes on from its step (1?[0-9]|20)$' err || fail "not the newest life: $(cat err)"
! grep 'will be replaced' err || fail "who resumes replaces nothing"
[ "$(find lives -name 'n0-*' | wc -l)" -eq 2 ] && [ ! -e lives/n0-99999.checkpoint ] ||
    fail "not the two newest: $(ls lives)"
grep -q 'goes on with other settings than the checkpoint was made with: budget 30 steps (was 20 steps)$' err ||
    fail "other settings are not told: $(cat err)"
life node --name=n0 --steps 30 --resume || fail "the same once more: $(cat err)"
! grep 'other settings' err || fail "the same settings are others"
life node --name=n0 --steps 30 --cluster two --resume || fail "of another cluster: $(cat err)"
grep -q 'was made with: another --cluster$' err || fail "another cluster is not told: $(cat err)"
life run -n 3 --steps 20 || fail "a run: $(cat err)"
[ "$(grep -c 'replaced' err)" -eq 1 ] && grep -q 'lives has checkpoints of 1 of these nodes, which will' err ||
    fail "run does not say once what it replaces: $(cat err)"

# It goes on where it was in the data, too: three passes are 1125 steps.
life node --name=n9 --steps 1200 --json json || fail "three passes: $(cat err)"
grep '"event":"progress"' json | tail -n 1 | grep -q '"passes":3,' || fail "not three passes: $(tail -n 3 json)"
life node --name=n9 --steps 1210 --resume --json json || fail "ten steps more: $(cat err)"
grep '"event":"progress"' json | tail -n 1 | grep -q '"passes":3,' || fail "the data begin anew: $(tail -n 3 json)"

# What it did in all its lives counts for the budget: four epochs are 1500 steps.
life node --name=n8 --epochs 2 || fail "two epochs: $(cat err)"
life node --name=n8 --epochs 3 --resume || fail "a third: $(cat err)"
life node --name=n8 --epochs 4 --resume --json json || fail "a fourth: $(cat err)"
steps=$(($(sed -n 's/.*goes on from its step //p' err) + $(grep '"event":"progress"' json | tail -n 1 | grep -o '"step":[0-9]*' | cut -d: -f2)))
[ "$steps" -ge 1500 ] && [ "$steps" -lt 1510 ] || fail "$steps steps for four epochs"

# Time that is spent stays so: of less than that no step is left.
rm -r lives
life run -n 1 --time 1s || fail "a time: $(cat err)"
life run -n 1 --time 200ms --resume || fail "no time left: $(cat err)"
grep -q '^training .* 0 steps, ' out || fail "the time begins anew: $(cat out)"

# Of a budget that goes on, parts are of all of it: this one comes, with half of the time or the steps
# used before. It was looked for in what this start had made alone.
for budget in 'time 1s 2s' 'steps 1000 2000'; do
    rm -r lives
    read -r kind before all <<< "$budget"
    life run -n 1 "--$kind" "$before" || fail "half of $all: $(cat err)"
    life run -n 1 "--$kind" "$all" --resume --fault sleep=1ms:n0@0s --fault slow=2:n0@55% --json json ||
        fail "$all: $(cat err)"
    grep -q '"kind":"slow"' json || fail "$kind: nothing struck at 55 %: $(tail -n 2 json)"
    grep '"event":"progress"' json | tail -n 1 | grep -q '"progress":1[,}]' || fail "$kind: $(tail -n 3 json)"
done

# Nor is it a fast node's part that counts: of these 400 steps 240 are made once the slow one has made 40.
rm -r lives
life run -n 2 --steps 200 --resume --fault sleep=20ms:n1@0s --fault pause:n0@60%+1ms --json json || fail "two: $(cat err)"
grep -q '"kind":"pause"' json || fail "two: nothing struck at 60 %: $(tail -n 2 json)"
made=$(sed '/"kind":"pause"/q' json | grep '"event":"progress".*"node":"n1"' | tail -n 1 | sed -E 's/.*"step":([0-9]*).*/\1/')
[ "${made:-0}" -ge 20 ] && [ "$made" -le 80 ] || fail "60 % came when the slow one had made ${made:-no} steps"

refused() {
    local status=$1 text=$2
    shift 2
    "$parley" "$@" > out 2> err
    local got=$?
    [ $got -eq "$status" ] || fail "$*: status $got, not $status"
    grep -q -- "$text" err || fail "$*: says not \"$text\": $(cat err)"
}
refused 2 'resume: needs --checkpoint' run --resume
refused 2 'checkpoint: needs --name' node --checkpoint kept
refused 2 'checkpoint: /dev/null/x: Not a directory' run -n 1 --checkpoint /dev/null/x
: > file
refused 2 'checkpoint: file: Not a directory; give a directory' run -n 1 --steps 3 --checkpoint file
refused 6 'kept has a checkpoint of mlp:32' run -n 1 --checkpoint kept --resume --model softmax
! grep 'hint: ' err || fail "other nodes have no part in what a checkpoint is unlike"
refused 6 'kept has a checkpoint of mlp:32 with momentum .* make mlp:32 with nesterov' run -n 1 --checkpoint kept --resume --model mlp:32 --optimizer nesterov
# Other data of the same shape are as little what it was trained on.
for bit in 0 1; do for i in {1..40}; do echo "$i,$((i % 2))"; echo "$((i + bit)),$((i % 2))"; done > data$bit.csv; done
table=(--model softmax --batch 4 --checkpoint table --checkpoint-every 1us)
"$parley" run -q -n 1 "${table[@]}" --data csv:data0.csv --steps 20 > out 2> err || fail "a table: $(cat err)"
refused 6 'table has a checkpoint that was trained on other data' run -n 1 "${table[@]}" --resume --data csv:data1.csv
"$parley" run -q -n 1 "${table[@]}" --data csv:data0.csv --steps 40 --lr 0.01 --seed 2 --resume > out 2> err ||
    fail "another rate is refused: $(cat err)"
# Who goes on comes to the model of who was never ended: the optimizer's state goes on, and how many
# steps it has seen. Each step here is a pass, so that the data begin anew at any.
one=(node --name=one --model softmax --data csv:data0.csv --batch 72 --optimizer adam --lr 0.01 --schedule constant)
"$parley" "${one[@]}" --steps 30 --out whole > out 2> err || fail "in one life: $(cat err)"
grep -q ': 72 samples' err || fail "a batch is not all that there is: $(cat err)"
"$parley" "${one[@]}" --steps 12 --out half --checkpoint parts --checkpoint-every 1us > out 2> err || fail "the first part: $(cat err)"
"$parley" "${one[@]}" --steps 30 --out both --checkpoint parts --resume > out 2> err || fail "the second part: $(cat err)"
grep -q 'goes on from its step [1-9]' err || fail "the second part began anew: $(cat err)"
cmp whole both || fail "two lives do not come to the model of one"
# Of steps that all make in common who was started anew keeps the model's count, not its own, which is
# half of that at most.
rm -r kept
"$parley" run -q -n 2 --strategy allreduce --model mlp:32 --steps 6000 --checkpoint kept --checkpoint-every 10ms \
    --fault restart:n1@50% > out 2> err || fail "restarted: $(cat err)"
[ "$(steps n1 | head -n 1)" -gt 3150 ] || fail "n1 keeps its own steps: $(ls kept)"
# Its files tell of as many as the vectors in them have been through, and not of those of some time ago.
for file in kept/n0-*.checkpoint; do
    read -r made _ through _ <<< "$(progress "$file")"
    [ $((through - made)) -le 3 ] && [ $((made - through)) -le 3 ] || fail "$file: $made steps, $through in the vectors"
done
[ $failures -eq 0 ]
