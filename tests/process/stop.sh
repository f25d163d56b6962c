#!/bin/bash
# stop.sh PARLEY: a signal to `parley run` ends with an agreement, a hang-up too; its nodes end when it is killed.
source "$(dirname "$0")/folder.sh"

# start [OPTION]: a run, until each node has made a step. OPTION is of env: SIGHUP may come in ignored, as
# from nohup, and signals blocked.
start() {
    : > json
    env "${1:---default-signal=HUP}" "$parley" run -n 3 --model mlp:32 --time 600s --json json > out 2> err &
    run=$!
    until_steps $run n0 n1 n2
}

# hold: all nodes, which can't have agreed until they go on; of two of three they would, soon after the
# third has fallen silent. Sets $nodes.
hold() {
    nodes=$(pids_of json)
    kill -STOP $nodes
}

# again FIRST SECOND: while the nodes settle a second signal comes.
again() {
    hold
    kill "-$1" $run
    until_said err $run 'stopping: the nodes settle and agree'
    kill "-$2" $run
    kill -CONT $nodes
    wait $run
    agreed
}

agreed() {
    tail -n 1 json | grep '"event":"summary"' | grep '"agreed":3' > /dev/null
    grep '"phase":"stop"' json | grep '"cause":"operator"' > /dev/null
}

start
kill -INT $run
wait $run
agreed

# That is what SIGUSR2 asks for, of any of them; it is never the second signal.
start
kill -USR2 "$(pids_of json n1)"
wait $run
agreed
start
kill -USR2 $run
wait $run
agreed
start
again INT USR2

# A second signal ends all at once, those that are held too, and leaves no model: another signal, or the
# same again, not as soon as timeout(1) sends it twice.
for second in TERM INT; do
    start
    rm -f parley-model.safetensors
    hold
    kill -INT $run
    until_said err $run 'stopping: the nodes settle and agree'
    while kill -$second $run 2> killed; do :; done
    status=0
    wait $run || status=$?
    [ $status -eq $((128 + $(kill -l $second))) ]
    grep -q "^parley: ended by signal $((status - 128)), before all nodes had ended\$" err
    [ ! -e parley-model.safetensors ]
    for pid in $nodes; do timeout 20 tail -f /dev/null --pid="$pid"; done
done

# Nor does it leave a part of the model, if the nodes are writing it. One that was faster than this script
# is tried again.
for try in {1..50}; do
    "$parley" run -n 2 --model mlp:8192 --batch 1 --steps 1 --out written --json json > out 2> err &
    run=$!
    while kill -0 $run 2> /dev/null && ! compgen -G 'written.*.part' > part; do :; done
    hold 2> held || true
    for signal in INT TERM; do kill -$signal $run 2> killed || true; done
    status=0
    wait $run || status=$?
    if compgen -G 'written*.part'; then exit 1; fi
    left=$(compgen -G 'written*' || true)
    if [ $status -eq 143 ] && [ -z "$left" ]; then break; fi
    echo "try $try: it has ended with $status"
    rm -f written*
done
[ $status -eq 143 ]
[ -z "$left" ]
[ -s part ]

# timeout(1) sends its signal to its child and then to the child's group: that is one signal.
start
kill -INT $run $run
wait $run
agreed

# A terminal that is closed hangs up, more than once, and what was trained is kept all the same; who
# wants a checkpoint has no place for it here, which ends nothing.
start
rm -f parley-model.safetensors
kill -USR1 $run
until_said err $run 'SIGUSR1: --checkpoint says where to'
again HUP HUP
[ -s parley-model.safetensors ]

# Who ends a session may send SIGTERM as well: that is still the first.
start
again HUP TERM

# As is the one after a SIGUSR2.
start
again USR2 TERM
grep -q 'settle and agree; SIGINT or SIGTERM again: end at once$' err

# Where nodes have agreed, and it is known, the end does not throw that away, and says so. Nodes that were
# faster than this script are tried again.
for try in {1..50}; do
    rm -f parley-model.safetensors
    : > json
    "$parley" run -n 2 --model mlp:8192,2048 --batch 1 --steps 1 --json json > out 2> err &
    run=$!
    until_said json $run '"phase":"done"' || true
    hold 2> held || true
    for signal in INT TERM; do kill -$signal $run 2> killed || true; done
    status=0
    wait $run || status=$?
    if [ $status -eq 143 ]; then break; fi
    echo "try $try: it has ended with $status"
done
[ $status -eq 143 ]
grep -q '^parley: ended by signal 15, before all nodes had ended; the agreed model is in parley-model.safetensors$' err
[ -s parley-model.safetensors ]

# Nor does a node: this one has agreed, and nobody reads its stdout.
mkfifo full
exec 3<> full
: > json
dd if=/dev/zero of=full bs=4096 oflag=nonblock 2> dd.err || true
"$parley" node --model mlp:32 --steps 10 --out alone --json json > full 2> err &
node=$!
until_said json $node '"event":"agreed"'
kill -INT $node
until_said err $node '^parley: leaving; a second signal ends it at once$'
kill -TERM $node
status=0
wait $node || status=$?
exec 3>&-
[ $status -eq 143 ]
grep -q '^parley: ended by signal 15: the model is in alone$' err
[ -s alone ]

# Whoever starts it may have blocked signals: it hears them, and sees its nodes end.
start --block-signal=CHLD,TERM
kill -TERM $run
wait $run
agreed

# Under nohup nothing hangs up.
start --ignore-signal=HUP
kill -HUP $run
kill -USR1 $run
until_said err $run 'SIGUSR1: --checkpoint says where to'
kill -INT $run
wait $run
agreed

# A node that is told to leave is seen to.
start
kill -INT "$(pids_of json n1)"
until_said err $run 'n1 has left$'
kill -INT $run
wait $run
grep -q '^agreed    2 of 2 nodes' out

# tail --pid waits until each of them is gone.
start
nodes=$(pids_of json)
kill -KILL $run
wait $run || true
for pid in $nodes; do timeout 20 tail -f /dev/null --pid="$pid"; done
