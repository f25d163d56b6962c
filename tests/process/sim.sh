#!/bin/bash
# sim.sh PARLEY: a simulation is repeated to the last bit, whatever the number of threads.
source "$(dirname "$0")/failures.sh"

# A hundred images, where it does not matter what is learned: the digits take longer to make than most
# runs here.
mkdir images
{ printf '\0\0\10\3\0\0\0\144\0\0\0\34\0\0\0\34' && seq 19999 | head -c 78400; } > images/train-images-idx3-ubyte
{ printf '\0\0\10\1\0\0\0\144' && seq 100 | tr -d '\n' | tr 0-9 '\0\1\2\3\0\1\2\3' | head -c 100; } > images/train-labels-idx1-ubyte
few=(--data idx:images)

# lines NAME ARGUMENT...: the JSON lines of a run, without what depends on the real time.
lines() {
    local name=$1
    shift
    "$parley" sim -q --json - "$@" > raw || fail "sim $*: status $?"
    sed -E 's/"(pid|wall_s|node_steps_per_s)": *[^,}]*//g' raw > "$name"
}

# alike NAME ARGUMENT...: with 1, 2 and 3 threads.
alike() {
    local name=$1 threads
    shift
    lines one --threads 1 "$@"
    grep -q '"agreed"' one || fail "$name: no node agreed"
    for threads in 2 3; do
        lines many --threads $threads "$@"
        cmp -s one many && continue
        fail "$name: not the same with $threads threads:"
        diff one many | head -n 4
    done
}

# Something is told of a run by the real clock, too: this one takes minutes for a virtual millisecond.
: > err
"$parley" sim --nodes 2 --steps 10000000 --compute 1us 2> err &
until_said err $! ' virtual  2 of 2 alive ' || fail "a run ended without a word of how far it was"
kill -KILL $!
wait $! 2> /dev/null

alike softmax "${few[@]}" --nodes 6 --steps 20 --model softmax --latency lognormal:2ms,0.5 --fault kill:1@50%
alike mlp "${few[@]}" --nodes 3 --steps 6 --model mlp:64,32 --compute uniform:1ms,9ms --target-accuracy 0.99
alike resnet "${few[@]}" --nodes 3 --steps 3 --model resnet:1 --batch 4
alike quadratic "${few[@]}" --nodes 8 --steps 30 --model quadratic:500
alike one_table "${few[@]}" --nodes 24 --steps 12 --model softmax --membership static --topology exponential \
    --mix-every 2 --fault kill:1@50%
for strategy in gossip-sync choco push-sum noloco local-sgd diloco allreduce ps-bsp ps-asp ps-ssp:2; do
    alike $strategy "${few[@]}" --nodes 4 --steps 60 --model mlp:64 --strategy $strategy --fault kill:1@50%
done

# What a line loses goes again after a pause, which costs time, and an older kernel's costs more.
last=0
for loss in 0 0.1 "0.1 --retransmit 200ms"; do
    lines lossy "${few[@]}" --nodes 8 --steps 50 --model quadratic:500 --loss $loss
    time=$(sed -n 's/.*"virtual_s": *\([0-9.]*\).*/\1/p' lossy)
    awk "BEGIN { exit !($time > $last) }" ||
        fail "--loss $loss: $time s, and $last s before"
    last=$time
done

# Half of them come back at once, through each other: for a moment a table has the dead and the new.
for seed in 8 9; do
    "$parley" sim --nodes 8 --model softmax --compute 20ms --time 6s --mix-every 8 --seed $seed \
        --fault restart:4@4s+0.3s > said 2>&1 ||
        { fail "restarts: status $?"; tail -n 1 said; }
    grep -q 'agreed *8 of 8' said || fail "restarts: not all agree"
done

# All are gone, or stand still, for a while, and go on. Whose time is a share of what nobody does is
# not waited for.
gone() {
    local status=0
    "$parley" sim "${few[@]}" --nodes 3 --model softmax --steps 375 --fault "$2" > said 2>&1 || status=$?
    [ $status -eq "$1" ] ||
        { fail "gone: $2: status $status, not $1"; tail -n 3 said; }
}
gone 0 'restart:3@20%'
gone 0 'restart:3@20%+1s'
gone 0 'pause:3@20%+1s'
gone 3 'restart:3@20%+10%'
gone 3 'pause:3@20%'
# One of three is: the others agree, and it alone on another model; whatever strikes them meanwhile.
gone 3 'pause:n2@20%+60s'
gone 3 'pause:n2@20%+60s kill:n1@40s'
gone 3 'pause:n2@20%+2h kill:n1@90m'
gone 0 'pause:n2@20%'
# A pause ends with the process that it holds: it does not lengthen one of the next process.
gone 0 'pause:n2@10%+60s restart:n2@20%+100ms pause:n2@60%+100ms'

# The clock stops when the last node ends, not with what the network still had to give up.
"$parley" sim --nodes 4 --steps 50 --model quadratic:20 --strategy allreduce -q --json last > said 2>&1 ||
    { fail "an end: status $?"; tail -n 1 said; }
grep -Eq '"virtual_s":[0-4]\b' last || fail "an end: later than 5 s"

# Where a file is asked for, the agreed model is in it, and no record of an older one beside it.
: > model.agreement.json
accuracy=$("$parley" sim --nodes 3 --model mlp:16 --steps 50 --out model --progress never 2>&1 | tee said |
    sed -nE 's/^accuracy +([0-9.]+) .*/\1/p')
digest=$(grep -oE 'sha256:[0-9a-f]+' said)
grep -q '^model  .*model verify model$' said && "$parley" model verify model > verified 2>&1 &&
    grep -qF "${digest:-none}" verified &&
    "$parley" model eval model | grep -qF "accuracy  $accuracy on" ||
    { fail "a model: not what agreed"; cat said verified; }
# The line to check it by is one for a shell, whatever the name.
for name in "it's sp ace" -- 'a$b'; do
    line=$("$parley" sim --nodes 2 --model softmax --steps 3 "--out=$name" --progress never 2>&1 |
        sed -n 's/.*check it: parley //p')
    (eval "\"\$parley\" $line") > verified 2>&1 ||
        { fail "a line for a shell: $line"; cat verified; }
done
# What is damaged is not told as if it were right.
printf '\1' | dd of=model bs=1 seek=$(($(stat -c %s model) - 9000)) conv=notrunc status=none
if "$parley" model verify model > verified 2>&1; then damaged=0; else damaged=$?; fi
[ $damaged -eq 7 ] && "$parley" model inspect model | grep -q '^digest .*, says the file; model verify computes it$' &&
    "$parley" model inspect --json model | grep -q '"verified":false' ||
    fail "a damaged model: verify ends with $damaged; $("$parley" model inspect model)"
# Nor is one that is not finite given an accuracy: behind its last weight are shift and scale.
printf '\377\377\377\377' | dd of=model bs=1 seek=$(($(stat -c %s model) - 12)) conv=notrunc status=none
if "$parley" model eval model > said 2>&1; then status=0; else status=$?; fi
[ $status -eq 8 ] && grep -q '^parley: model: the model is not finite: tensor layer1.bias has a NaN or an infinity$' said ||
    { fail "a model with a NaN: eval ends with $status"; cat said; }
status=0
(trap '' XFSZ && ulimit -f 8 && exec "$parley" sim --nodes 2 --model mlp:256 --steps 3 --out big) > said 2>&1 ||
    status=$?
[ $status -eq 9 ] && grep -q -- '--out: big: File too large' said && [ -z "$(ls big* 2> /dev/null)" ] ||
    { fail "too large a model: status $status, $(ls big*)"; cat said; }

# Epochs are counted further than what was covered in them.
seq 40 | awk '{ print $1 "," $1 % 2 }' > few.csv
"$parley" sim --nodes 1 --model softmax --data csv:few.csv --batch 2 --epochs 70 --json few.json --progress never > said 2>&1
grep -q '^coverage .* in epochs 1 to 64, and not counted after$' said && grep -Eq '"epochs_whole":(69|70|71)\b' few.json ||
    { fail "70 epochs:"; grep coverage said; grep -o '"epochs_whole.*' few.json; }

# A partition is one of those that it names: the two hear of each other by way of the rest.
for kind in partition oneway; do
    for groups in 'n0|n1' 'n0|n1-n3'; do
        "$parley" sim -q --json parted --nodes 4 --model softmax --compute 20ms --time 20s \
            --fault "$kind:$groups@2s+10s" > said 2>&1 || fail "$kind:$groups: status $?"
        dead=$(grep -Ec '"state":"(suspect|dead)"' parted)
        [ $((dead > 0)) -eq $((${#groups} > 5)) ] && continue
        fail "$kind:$groups: $dead times somebody is missed"
    done
done

# struck KIND SECONDS ARGUMENT...: when the first fault of a kind was carried out.
struck() {
    local kind=$1 wanted=$2 time
    shift 2
    "$parley" sim -q --json struck.json "${few[@]}" --nodes 4 --model quadratic:20 "$@" > said 2>&1
    time=$(sed -n "s/.*\"event\":\"fault\",\"t\":\([0-9.]*\),\"kind\":\"$kind\".*/\1/p" struck.json | head -n 1)
    awk "BEGIN { exit !(\"$time\" != \"\" && $wanted - 0.01 < $time + 0 && $time + 0 < $wanted + 0.01) }" ||
        fail "$*: $kind at \"$time\", not $wanted s"
}

# A part of the budget is one of what those who live have to do: steps are each node's own, and time
# begins with the first of them.
struck join 0.6 --steps 1000 --fault 'join:4@60%'
struck kill 0.9 --steps 1000 --fault 'restart:2@30%+1s kill:1@90%'
struck kill 2.5 --time 2s --latency 300ms --fault 'kill:n3@50%'

# whole NAME COUNT EXPECTED ARGUMENT...: how many epochs are whole, and what is said of them.
whole() {
    local name=$1 count=$2 expected=$3
    shift 3
    "$parley" sim -q --json whole.json --model softmax "$@" > said 2>&1
    sed -z 's/;\n */; /g' said | grep -q "^coverage  $expected\$" && grep -q "\"epochs_whole\":$count\b" whole.json && return
    fail "$name: $(grep -A 1 coverage said; grep -o '"coverage.*"epochs_whole":[0-9]*' whole.json)"
}
# The budget is spent before anybody misses the dead node; all die; two are slow.
whole dead 2 '100 % of the samples in epochs 1 to 2; at least .* in epochs 3 to 5, cut short by the end' \
    --nodes 3 --epochs 5 --fault kill:1@50%
whole 'all dead' 4 '100 % of the samples in epochs 1 to 4' --nodes 3 --epochs 8 --compute 20ms --fault kill:3@60%
# Where nothing agreed there was no drift before it, and none of models that nobody has trained.
"$parley" sim -q --nodes 4 --bandwidth 1kbit --time 1s --model softmax > untrained 2>&1
grep -q 'agreed *0 of 4 .* drift -$' untrained || { fail untrained:; cat untrained; }
grep -q '"drift_before":null' whole.json && grep -q 'no common digest    drift -$' said ||
    fail "all dead: a drift of $(grep -o '"drift_before[^,]*' whole.json)"
whole 'slow ones' 0 '77.1 % of the samples in epoch 1, cut short by the end' \
    --nodes 8 --epochs 1 --partition shards --fault 'slow=20:n4@0s slow=20:n5@0s'
# What is gone with a node that had data of its own is not the end's doing.
whole 'own data' 7 'at least .* in epochs 1 to 6' --nodes 3 --epochs 6 --partition shards --fault kill:1@30%

# One table for all names everybody: nobody dials a seed to be told, or waits for one.
"$parley" sim --nodes 70 --steps 100 --model quadratic:20 --membership static \
    --topology exponential > said 2>&1 || fail "one table: status $?"
grep -q 'agreed *70 of 70' said || fail "one table: not all agree"
grep 'seed n' said && failures=$((failures + 1))

# Each strategy makes its steps and all agree, with one table or a table each, near and far; with one
# nobody is told of what others do: who waits for that looks. Servers were found after 2 s, and where
# nothing is sent the end was never seen.
for members in full static; do
    for latency in 0 30ms; do
        "$parley" sim -q --compare all "${few[@]}" --nodes 5 --steps 40 --model quadratic:20 --membership $members \
            --latency $latency --csv all.csv > said 2>&1
        [ "$(grep -vc ',true,.*,5,5,5,5,.*,200,6400,' all.csv)" -eq 2 ] && [ "$(wc -l < all.csv)" -eq 14 ] ||
            { fail "$members, $latency:"; cat all.csv; }
        [ $latency = 30ms ] || awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "trained_s") at = i }
            NR > 1 && $at > 0.3 { print $1 " trained for " $at " s"; late = 1 } END { exit late }' all.csv ||
            failures=$((failures + 1))
    done
done

# More nodes than a node has links, which end as soon as they have joined: what is told of those that
# came last gets through to all, where nobody asks them. They took 5 to 18 s to agree.
for seed in 1 2 3 4 5 6; do
    "$parley" sim -q --json last --nodes 70 --model quadratic:16 --seed $seed > said 2>&1
    grep -q 'agreed *70 of 70' said && grep -Eq '"virtual_s":[0-3]\b' last && continue
    fail "crowd, seed $seed: $(grep -E 'agreed|simulated' said)"
done
# Who never met has not trained, and that is said; there is no speed of nothing.
"$parley" sim -q --nodes 4 --model softmax --epochs 1 --loss 0.99 > untrained 2>&1
grep -q 'no node has met all others' untrained && grep -q '^speed     - node-steps' untrained &&
    grep -q '^training .* 0 steps, - ' untrained || { fail 'never met:'; cat untrained; }
# Nor do those who start anew without one that is dead, though all had met once.
"$parley" sim -q --nodes 3 --model quadratic:2 --steps 50 --fault kill:n2@10% --fault restart:2@50%+10ms > unmet 2>&1
grep -q 'no node has met all others' unmet || { fail 'met no more:'; cat unmet; }
# What keeps a part of the budget from passing is told apart from deaths.
"$parley" sim -q --nodes 2 --model quadratic:1 --steps 50 --fault restart:2@40%+30% > held 2>&1
grep -q 'wait for a part of the budget' held || { fail 'held down:'; cat held; }
# A lie that nobody is left to contradict is no model.
status=0
"$parley" sim -q --nodes 1 --model softmax --steps 50 --fault byzantine=nan:n0@10% --out nan.st > lie 2>&1 || status=$?
[ $status -eq 8 ] && [ ! -e nan.st ] || { fail "alone with a lie: $status"; cat lie; }
# Why a node stopped is said as by real ones.
stops() {
    local cause=$1
    shift
    "$parley" sim -q --nodes 3 --model softmax --json - "$@" > said
    [ "$(grep -c "\"phase\":\"stop\",\"cause\":\"$cause\"" said)" -eq 3 ] &&
        [ "$(grep -c '"phase":"stop"' said)" -eq 3 ] && grep -q '"phase":"settle","cause":null' said && return
    fail "stops, $cause: $(grep '"phase"' said | head -n 4)"
}
stops budget --steps 20
stops target --epochs 50 --target-accuracy 0.3
stops target --strategy allreduce --target-accuracy 0.3 # a warm-up would have no end

# target EXPECTED ARGUMENT...: whether and when the target is met, told people and programs alike.
target() {
    local expected=$1
    shift
    "$parley" sim -q --json met.json "$@" > said
    python3 - "$expected" << 'END' && return
import json, re, sys
s = json.loads(open("met.json").readlines()[-1])
met, last = s["time_to_target_s"], s["trained_s"]
said = re.search("^target    [0-9.]+ (.*)$", open("said").read(), re.M).group(1)
assert (said == "not met") == (met is None) and said.split()[0] in ("not", "met"), (said, met)
assert sys.argv[1] == ("missed" if met is None else "early" if met < last else "last"), (met, last)
END
    fail "target: $*: not $expected: $(grep '^target' said; tail -n 1 met.json)"
}
# What the live would agree on has to meet it: no node alone comes so far. The agreed model is looked
# at in any case.
apart=(--nodes 8 --model softmax --strategy none --epochs 1)
target early "${apart[@]}" --target-accuracy 0.8 --eval-every 500
target last "${apart[@]}" --target-accuracy 0.8 --eval-every 1000000
target missed "${apart[@]}" --target-accuracy 0.99 --eval-every 500
alike target "${apart[@]}" --target-accuracy 0.8 --eval-every 500

# Parts of a budget of time are times, were no step made until then: who is awaited by all goes on at
# 60 %, and a step that is longer than the budget does not put a death off.
"$parley" sim -q --nodes 4 --strategy allreduce --model quadratic:20 --compute 10ms --time 3s \
    --fault pause:n2@30%+30% > said 2>&1
grep -q 'agreed *4 of 4' said || { fail 'a pause of a part of the time:'; cat said; }
"$parley" sim -q --json - --nodes 4 --model quadratic:20 --compute 5s --time 1s --fault kill:n2@50% > said 2>&1
grep -Eq '"fault","t":0\.5[0-9]*,' said || { fail 'a death in a long step:'; grep -E '"fault"|agreed' said; }
# Nor need anything else happen meanwhile: of all nodes at once a part is what the same time is.
for fault in pause restart; do
    "$parley" sim -q --nodes 4 --model quadratic:20 --compute 10ms --time 3s --fault $fault:4@30%+30% > said 2>&1
    "$parley" sim -q --nodes 4 --model quadratic:20 --compute 10ms --time 3s --fault $fault:4@900ms+900ms > time 2>&1
    grep -q 'agreed *4 of 4' said && [ "$(grep agreed said)" = "$(grep agreed time)" ] ||
        { fail "a $fault of all for a part of the time:"; cat said time; }
done
# Samples a second are of all the time that has passed, also where a node has said nothing for some of
# it, and there are none once it does not train.
"$parley" sim -q --json said --nodes 3 --model quadratic:20 --compute 5ms --time 2s --fault pause:n1@500ms+1s > out
python3 << 'END' || { fail 'samples a second:'; grep '"progress"' said; }
import json
lines = [l for l in map(json.loads, open("said")) if l["event"] == "progress"]
first, last = lines[0], lines[-1]
assert 6000 < first["samples_per_s"] < 6500 and last["samples_per_s"] == 0, (first, last)
assert all(l["samples_per_s"] < 6500 for l in lines)
assert any(0 < l["samples_per_s"] < 4000 for l in lines if l["node"] == "n1")
END

# summary FIELD ARGUMENT...
summary() {
    local field=$1
    shift
    "$parley" sim -q --json - -n 16 --model softmax --epochs 4 "$@" | tail -n 1 |
        grep -oE "\"$field\":[^,]*"
}

# A node that comes at the end, and has no model yet, is apart from nobody.
drift=$(summary drift_trained)
[ -n "$drift" ] && [ "$drift" = "$(summary drift_trained --fault join:5@99%)" ] ||
    fail 'the drift counts nodes that have not begun to train'

# Seventeen begin at once, each further one a millisecond after the one before.
"$parley" sim -q --json lines -n 19 --model softmax --steps 1 > said 2>&1 || fail "19 nodes: $(cat said)"
starts=$(grep '"reason":"this node"' lines | grep -o '"t":[0-9.]*,"node":"n1[678]"' | paste -sd ' ')
[ "$starts" = '"t":0,"node":"n16" "t":0.001,"node":"n17" "t":0.002,"node":"n18"' ] || fail "19 nodes start so: $starts"

# What a node had exchanged before it was started anew counts: more than one exchange in three steps.
steps=$(summary steps --fault restart:50%@50% | sed 's/.*://')
exchanges=$(summary exchanges --fault restart:50%@50% | sed 's/.*://')
[ "$exchanges" -gt $((steps / 3)) ] || fail "$exchanges exchanges in $steps steps"

# Bound to one core, a swarm that is not told how many threads to take has one.
core=$(taskset -cp $$ | sed 's/.*: //; s/[,-].*//')
taskset -c "$core" "$parley" sim --swarm --seeds 1..100000 --tally swarm > out 2>&1 &
swarm=$!
wait_until $swarm [ -s swarm ]
threads=("/proc/$swarm/task/"*)
[ ${#threads[@]} -eq 1 ] || fail "on one core a swarm has ${#threads[@]} threads"
kill $swarm
wait $swarm

[ $failures -eq 0 ]
