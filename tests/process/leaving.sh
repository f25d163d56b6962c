#!/bin/bash
# leaving.sh PARLEY: nodes that are told to leave or to stop all: what they save and say, and how they
# come back.
source "$(dirname "$0")/nodes.sh"

settings=(--model mlp:32)

# A second signal ends one that is at saving its model, or at writing the agreed one, of which nothing
# is left. One that was faster than this script is tried again.
leaves() {
    start g --model mlp:8192 --batch 1 --time 600s
    until_step g "$pid"
    kill -TERM "$pid"
}
agrees() { start g --model mlp:8192 --batch 1 --steps 1; }
# second_signal START STATUS PART SIGNAL...: those strike the node while it writes that file.
second_signal() {
    for try in {1..50}; do
        "$1"
        while kill -0 "$pid" 2> /dev/null && ! compgen -G "$3" > part; do :; done
        for signal in STOP "${@:4}" CONT; do kill -"$signal" "$pid" 2> /dev/null || true; done
        status=0
        wait "$pid" || status=$?
        if compgen -G 'g.safetensors*.part'; then exit 1; fi
        left=$(compgen -G 'g.safetensors*' || true)
        if [ $status -eq "$2" ] && [ -z "$left" ]; then break; fi
        echo "try $try: it has ended with $status"
        rm -f g.safetensors*
    done
    [ $status -eq "$2" ]
    [ -z "$left" ]
    [ -s part ]
}
second_signal leaves 130 g.safetensors.g.part INT
second_signal agrees 143 'g.safetensors.*.part' INT TERM

# One whose model has no place says that, and not where it is.
mkdir v.safetensors.v.part
start v --time 600s
until_step v "$pid"
kill -TERM "$pid"
status=0
wait "$pid" || status=$?
[ $status -eq 9 ]
grep -q '^parley: v.safetensors.v.part: can.t create' v.err
if grep 'own model is in' v.err; then exit 1; fi

# One that has not trained has none to save, and leaves what is there.
echo before > z.safetensors.z
start z --time 600s --min-peers 1
until_line z "$pid" '"event":"started"'
kill -USR2 "$pid" # nor is it agreed on
until_said z.err "$pid" '^parley: SIGUSR2: this node has not trained yet'
kill -TERM "$pid"
wait "$pid"
[ "$(cat z.safetensors.z)" = before ]
grep -q '^parley: left before it had trained: no model is saved$' z.err

# One that goes on from a checkpoint has, before it trains again: it is saved, or agreed on.
"$parley" node --name y --model mlp:32 --steps 5 --checkpoint going --checkpoint-every 1us --out y > y.out 2> y.err
for signal in TERM USR2; do
    start y --time 600s --min-peers 1 --checkpoint going --resume
    until_line y "$pid" '"event":"started"'
    kill -$signal "$pid"
    wait "$pid"
done
"$parley" model verify y.safetensors.y > verified
"$parley" model verify y.safetensors > verified

# Who leaves keeps all that it has done, and goes on from there; but not where the others have gone
# on: then the newest file is one of what it has taken of them.
made() { tail -n 20 "$1.json" | grep '"event":"progress"' | tail -n 1 | grep -o '"step":[0-9]*' | cut -d: -f2; }
kept=(--time 600s --checkpoint kept --checkpoint-every 1h)
start e "${kept[@]}"
e=$pid
until_step e "$e"
start f "${kept[@]}" --join "$(address_of e)"
until_step f "$pid"
kill -TERM "$pid"
wait "$pid"
# A step may be under way as the last progress is told: it is kept, too.
last=$(sed -n 's/^parley: a last checkpoint, of step \([0-9]*\), is kept\/f-\1\.checkpoint$/\1/p' f.err)
[ "$last" -ge "$(made f)" ]
mv "kept/f-$last.checkpoint" kept/f-99999999.checkpoint
start f "${kept[@]}" --resume --join "$(address_of e)"
until_step f "$pid"
until_said f.err "$pid" 'parley: took model and optimizer state of e'
# Its former life is one of another process: for scripts, but not for people.
until_line e "$e" '"peer":"f","state":"left"'
"$parley" status --json "$(address_of e)" > status.json
[ "$(grep -o '"node":"f","address":"[^"]*","boot":"[0-9a-f]\{16\}"' status.json | sort -u | wc -l)" -eq 2 ]
[ "$("$parley" status "$(address_of e)" | grep -c '^f ')" -eq 1 ]
"$parley" status "$(address_of e)" | grep '^f .*alive' > /dev/null
[ "$(grep '"peer":"f"' e.json | grep -o '"boot":"[0-9a-f]\{16\}"' | sort -u | wc -l)" -eq 2 ]
kill -TERM "$pid" "$e"
wait "$pid"
wait "$e"
[ -e kept/f-100000000.checkpoint ]
start e "${kept[@]}" --resume
step=$(find kept -name 'e-*' | grep -o '[0-9]*')
until_step e "$pid"
until_said e.err "$pid" "parley: goes on from its step $step"
kill -KILL "$pid"
"$parley" node --name g --model softmax --steps 5 --out g --checkpoint kept > g.out 2> g.err
[ -z "$(find kept -name 'g-*')" ]

# Who was suspected for no reason was alive all along: for people there is nothing to say. But who
# was given up is back.
start n --time 600s
n=$pid
until_line n "$n" '"event":"started"'
start o --time 600s --join "$(address_of n)"
o=$pid
until_step o "$o"
# turns_up STATE: stops o until n takes it for that, and waits for what n hears then, from line $first.
turns_up() {
    first=$(($(wc -l < n.json) + 1)) said=$(($(wc -l < n.err) + 1))
    kill -STOP "$o"
    until_said n.json "$n" '"peer":"o","state":"'"$1" $first
    kill -CONT "$o"
    until_said n.json "$n" '"peer":"o","state":"alive"' $first
}
turns_up suspect
if ! tail -n +$first n.json | grep '"peer":"o","state":"dead"' > /dev/null; then [ "$(grep -c '^parley: o is' n.err)" -eq 1 ]; fi
turns_up dead
until_said n.err "$n" '^parley: o is alive' $said
grep '^parley: o is' n.err | tail -n 2 | head -n 1 | grep -q 'o is dead'
kill -KILL "$o"
wait "$o" || true
back=$(($(grep -n '"peer":"o","state":"alive"' n.json | tail -n 1 | cut -d: -f1) + 1))
until_said n.json "$n" '"peer":"o","state":"dead"' $back
"$parley" status --json "$(address_of n)" | grep -q '^{"cluster":"parley","live":1,"known":2,'
kill -KILL "$n"

# One that is told to stop all does: both agree.
start h --time 600s
h=$pid
until_line h "$h" '"event":"started"'
start i --time 600s --join "$(address_of h)"
until_step h "$h"
until_step i "$pid"
kill -USR2 "$pid"
wait "$h"
wait "$pid"
grep -q '"phase":"stop","cause":"operator"' h.json
digest=$(grep -o '"digest":"sha256:[0-9a-f]*"' i.json)
grep '"event":"agreed"' h.json | grep -q "$digest,\"held\":2"
[ -e h.safetensors ]
[ -e i.safetensors ]

# A step of hours keeps nobody: both leave in time, and say that their models are not saved. The one
# that stays sees the other as left, not dead.
for _ in $(seq 2000); do echo 'a step that never ends is given up'; done > text
for node in p q; do
    start $node --time 600s --min-peers 1 --data text:text --model gpt:8,512,8 --optimizer gd --batch 1 \
        --leave-timeout 2s ${seed:+--join "$seed"}
    eval "$node=$pid"
    until_line $node "$pid" '"event":"started"'
    seed=$(address_of $node)
done
until_line p "$p" '"phase":"train"'
until_line q "$q" '"phase":"train"'
for node in p q; do
    kill -TERM "${!node}"
    [ $node = q ] || until_line q "$q" '"peer":"p","state":"left"'
    status=0
    wait "${!node}" || status=$?
    [ $status -eq 9 ]
    grep -q 'the step under way takes longer' $node.err
    grep -q '^parley: hint: a longer --leave-timeout' $node.err
    grep -q '"event":"error".*"code":"PARLEY_ENOT_WRITTEN"' $node.json
    [ -z "$(ls $node.safetensors* 2> /dev/null)" ]
done
