#!/bin/bash
# faults.sh PARLEY: planned faults at processes: the nodes that live agree on one model.
source "$(dirname "$0")/folder.sh"

# steps_of NODE: as it told them last.
steps_of() {
    grep '"event":"progress"' json | grep "\"node\":\"$1\"" | tail -n 1 | grep -o '"step":[0-9]*' | cut -d: -f2
}

# begin FOLDER ARGUMENT...: a run there, beside what follows, as most of it is waiting.
declare -A begun
begin() {
    mkdir "$1"
    (cd "$1" && exec "$parley" run "${@:2}" --json json > out 2>&1) &
    begun[$1]=$!
}

# end FOLDER: goes there; status is that of its run.
end() {
    status=0
    wait "${begun[$1]}" || status=$?
    cd "$1"
}

# A table is there at once, and a node that sleeps in each step takes its time on any machine, and
# nobody's core: 600 steps of each are a second and more, in which faults strike and pass.
seq 240 | awk '{ print $1 % 7 "," $1 % 5 "," $1 % 2 }' > table.csv
table=(--data "csv:$folder/table.csv" --model mlp:8)
paced=("${table[@]}" --steps 600 --fault sleep=2ms:100%@0s)

begin asleep -n 3 "${paced[@]}" --fault pause:n2@20% --fault pause:n2@30%+10%
begin stopped -n 3 "${paced[@]}"
begin woken -n 3 --time 1s "${table[@]}" --fault pause:n1@40%+40s
for kind in pause restart; do
    begin $kind -n 3 --time 2s "${table[@]}" --fault $kind:3@20%+10%
done
cd stopped
run=${begun[stopped]}
until_steps $run n1 n2
kill -STOP "$(pids_of json n1)" "$(pids_of json n2)"
until_said out $run 'n1 was stopped; kill -CONT'
kill -CONT "$(pids_of json n1)"
cd ..

# Two of five are killed at 30 % of the budget, the other three agree.
"$parley" run -n 5 "${paced[@]}" --fault kill:2@30% --json json > out
[ "$(grep -c '"kind":"kill"' json)" -eq 2 ]
[ "$(value ok) $(value live) $(value agreed) $(value known)" = "true 3 3 5" ]
"$parley" model verify parley-model.safetensors > verified

# Paused and slowed nodes come back and agree with the rest.
"$parley" run -n 3 "${paced[@]}" --fault pause:n1@30%+500ms --fault slow=3:n2@15%+1s --json json > out
[ "$(value ok) $(value live) $(value agreed)" = "true 3 3" ]
grep -q '"kind":"resume","target":"n1"' json

# One that sleeps in each step, or is slow at it, holds nobody up: it makes far fewer steps of the same
# budget.
for fault in sleep=20ms slow=20; do
    "$parley" run -n 3 --epochs 15 --model mlp:64 --fault $fault:n2@0s --json json > out
    [ "$(value ok) $(value live) $(value agreed)" = "true 3 3" ]
    [ "$(steps_of n2)" -lt $(($(steps_of n0) / 2)) ]
done

# One that is to end does so: else these steps would take five minutes.
timeout 100 "$parley" run -n 1 --steps 300 --model mlp:8 --fault sleep=1s:n0@0s+200ms --json json > out
[ "$(grep -c '"kind":"sleep-end","target":"n0"' json)" -eq 1 ]

# Of two that overlap the newest counts, and then the one before it again. What would last longer than
# the budget ends with it.
"$parley" run -n 3 "${table[@]}" --steps 600 --fault sleep=2ms:n0@0s --fault sleep=2ms:n1@0s \
    --fault sleep=2ms:n2@0s+50% \
    --fault slow=2:n1@10% --fault slow=3:n1@20%+10% --fault sleep=1ms:n2@10%+95% --json json > out
[ "$(value ok) $(value live) $(value agreed)" = "true 3 3" ]
[ "$(grep -c '"kind":"slow","target":"n1"' json)" -eq 3 ]
if grep '"kind":"slow-end"' json; then exit 1; fi
[ "$(grep -c '"kind":"sleep-end","target":"n2"' json)" -eq 1 ]

# Who is started anew is held by what held it before.
"$parley" run -n 3 "${table[@]}" --steps 600 --fault sleep=2ms:n0@0s --fault sleep=2ms:n2@0s \
    --fault slow=2:n1@0s --fault sleep=2ms:n1@0s --fault restart:n1@20% --json json > out
[ "$(value ok) $(value live) $(value agreed)" = "true 3 3" ]
[ "$(grep -c '"kind":"slow","target":"n1"' json)" -eq 2 ]
[ "$(grep -c '"kind":"sleep","target":"n1"' json)" -eq 2 ]

# Nor is it waited for once the others have agreed. Of several that hold it down each does, to its end.
timeout -s KILL 120 "$parley" run -n 3 "${paced[@]}" --fault restart:n1@20%+1ms --fault restart:n1@20%+600s --fault restart:n1@20% --json json > out
[ "$(value ok) $(value live) $(value agreed)" = "true 2 2" ]
[ "$(grep -c '"event":"started"' json)" -eq 3 ]

# Nor by who is asked to stop while all are down: there is nothing to agree on.
: > json
"$parley" run -n 2 "${paced[@]}" --fault restart:2@5%+600s --json json > out 2> err &
run=$!
until_said json $run '"kind":"restart","target":"n0"'
until_said json $run '"kind":"restart","target":"n1"'
kill -TERM $run
status=0
wait $run || status=$?
[ $status -eq 3 ]
[ "$(value ok) $(value live) $(value agreed)" = "false 0 0" ]

# A restarted node takes its model from the others. The record has it once, and takes the place of an
# older one.
echo stale > parley-model.safetensors.agreement.json
"$parley" run -n 3 "${paced[@]}" --fault restart:n0@20% --json json > out
[ "$(value ok) $(value live) $(value agreed)" = "true 3 3" ]
"$parley" model verify parley-model.safetensors > verified
grep -q "held by 3 of 3 known nodes, 3 live" verified
[ "$(grep -c '"event":"started"' json)" -eq 4 ]

# So does one that was dead for a while; a fault that finds nobody to strike says so, and what has
# started again is not started by the end of another fault.
"$parley" run -n 3 "${paced[@]}" --fault kill:n1@5% --fault slow=2:n1@10% --fault restart:n1@15%+100ms --fault restart:n1@15%+300ms --json json > out 2> err
[ "$(value ok) $(value live) $(value agreed)" = "true 3 3" ]
[ "$(grep -c '"event":"started"' json)" -eq 4 ]
[ "$(grep -c '"kind":"start"' json)" -eq 1 ]
grep -q "fault: slow: nothing happens, as no such node is running" err

# Who is dead counts in the sums, even where all are.
status=0
"$parley" run -n 3 "${paced[@]}" --fault kill:3@50% --json json > out 2> err || status=$?
[ $status -eq 3 ]
[ "$(value agreed) $(value known)" = "0 3" ]
[ "$(value exchanges)" -gt 0 ]
grep -q "^agreed    0 of 3 nodes     no common digest    drift -$" out

# Who waits for a majority that is gone says so.
: > err
"$parley" run -n 3 "${paced[@]}" --quorum majority --fault kill:2@50% > out 2> err &
run=$!
until_said err $run "only 1 of 3 nodes are here, and a majority is 2: waiting"
kill -KILL $run
wait $run || true

# Who was started anew and has kept nothing may have agreed, for all that it knows.
anew=(-n 3 "${paced[@]}" --quorum majority --fault restart:n1@20% --fault kill:n2@50%)
: > err
"$parley" run "${anew[@]}" > out 2> err &
run=$!
until_said err $run "only 1 of 3 nodes are here, and a majority is 2 (not counted: 1 started anew"
until_said err $run "n1: an earlier start of this node may have agreed on a model"
kill -KILL $run
wait $run || true
"$parley" run "${anew[@]}" --checkpoint kept --json json > out
[ "$(value ok) $(value agreed) $(value known)" = "true 2 3" ]
[ "$(cut -d: -f3 kept/n1.vote) $(cut -d: -f3 kept/n2.vote)" = " not known  none held" ]

# Who leaves without having locked a model has given no vote: with the others it may agree once it is
# back. It holds one all the same as it waits.
alone=(node --name a --quorum majority --nodes 2 "${table[@]}" --steps 20 --checkpoint kept)
: > err
"$parley" "${alone[@]}" > out 2> err &
run=$!
until_said err $run "only 1 of 2 nodes are here"
[ "$(cut -d: -f3 kept/a.vote)" = " some held" ]
kill -TERM $run
wait $run || true
[ "$(cut -d: -f3 kept/a.vote)" = " none held" ]

# Who is started anew is the program that the others are, whatever lies in its place by then.
cp "$parley" program
: > json
./program run -n 3 "${paced[@]}" --fault restart:n1@30% --json json > out &
run=$!
until_said json $run '"progress".*"step":[1-9]'
printf '#!/bin/false\n' > other
chmod +x other
mv other program
wait $run
[ "$(value ok) $(value live) $(value agreed)" = "true 3 3" ]
[ "$(grep '"event":"started"' json | grep -c '"node":"n1"')" -eq 2 ]

# All are gone for a while, no less, and begin anew; or stand still, and go on. All are stopped for good,
# or until others have done what nobody does: it is over. Of a budget of time all passes.
"$parley" run -n 3 "${paced[@]}" --fault restart:3@20%+200ms --json json > out
[ "$(value ok) $(value live) $(value agreed)" = "true 3 3" ]
[ "$(grep -c '"event":"started"' json)" -eq 6 ]
[ "$(grep '"event":"started"\|"kind":"start"' json | sed -n 4p | grep -c '"kind":"start"')" -eq 1 ]
"$parley" run -n 3 "${paced[@]}" --fault pause:3@20%+200ms --json json > out
[ "$(value ok) $(value live) $(value agreed)" = "true 3 3" ]
for kind in pause restart; do
    end $kind
    [ "$status $(value ok) $(value live) $(value agreed)" = "0 true 3 3" ]
    cd ..
done
for fault in pause:3@20% restart:3@20%+10%; do
    status=0
    "$parley" run -n 3 "${paced[@]}" --fault $fault --json json > out 2> err || status=$?
    [ $status -eq 3 ]
    [ "$(grep -c "\"kind\":\"${fault%%:*}\"" json)" -eq 3 ]
done

# One that somebody else stops, for good, is killed once the others are through. Who is woken in time
# is not.
end stopped
[ "$status $(value ok) $(value live) $(value agreed)" = "0 true 2 2" ]
grep -q 'n1 goes on' out
grep -q 'n2 is still stopped, and the others have ended: it is killed' out
cd ..

# Of two pauses that hold a node the last end wakes it; who stands still can be killed.
end asleep
[ "$status $(value ok) $(value live) $(value agreed)" = "0 true 2 2" ]
[ "$(grep -c '"kind":"pause"' json)" -eq 2 ]
[ -z "$(sed -n '/"kind":"resume"/p' json)" ]
cd ..
"$parley" run -n 3 "${paced[@]}" --fault pause:n1@20%+200ms --fault pause:n1@20%+100ms \
    --fault pause:n2@20% --fault kill:n2@40% --json json > out
[ "$(value ok) $(value live) $(value agreed)" = "true 2 2" ]
[ "$(grep -c '"kind":"resume","target":"n1"' json) $(grep -c '"kind":"kill","target":"n2"' json)" = "1 1" ]
[ "$(grep '"target":"n1"' json | tail -n 1 | grep -c resume)" -eq 1 ]

# Who wakes when the others have gone agrees alone: what they agreed on stays, its own model stands
# beside it, and no record says that anybody else held that.
end woken
[ "$status $(value ok) $(value agreed)" = "3 false 2" ]
grep -q "n1: 2 agreed on another model without this node: .*, and this node's is parley-model.safetensors.n1\$" out
grep -o '"agreed".*sha256:[0-9a-f]*' json | grep -o '"n[0-9]*"\|sha256.*' | paste - - | sort -u > digests
for name in n0 n1; do
    file=parley-model.safetensors
    [ $name = n0 ] || file=$file.n1
    "$parley" model verify $file > verified
    digest=$(grep "\"$name\"" digests | cut -f 2)
    grep -qF "${digest:?}" verified
    [ "$(grep -c 'held it, locked it' verified)" -eq "$([ $name = n0 ] && echo 2 || echo 1)" ]
done
