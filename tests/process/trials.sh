#!/bin/bash
# trials.sh PARLEY: the drivers of trials leave no process behind, whatever ends them: nodes and
# besiegers are gone with them, and so are nodes that a trial has stopped, unless it gets no chance.
faults=$(realpath "$(dirname "$0")/../faults")
source "$(dirname "$0")/failures.sh"
export TMPDIR=$folder

# children PID: who it has started and has not buried, a line each: PID, STATE, CLASS, COMMAND.
children() {
    ps -o pid=,stat=,cls=,args= --ppid "$1"
}

# ended SIGNAL AWK COMMAND...: it ends once the AWK program, over its children, says so with status 0,
# and all of them with it.
ended() {
    local signal=$1 ready=$2 driver deadline=$((SECONDS + 90)) left pid
    shift 2
    "$@" --parley "$parley" > out 2> err &
    driver=$!
    until children $driver | awk "$ready"; do
        if [ $SECONDS -gt $deadline ] || ! kill -0 $driver; then
            fail "$* has not come so far:"
            cat out err
            return
        fi
        timeout 0.1 tail -f /dev/null --pid=$driver
    done
    left=$(children $driver | awk '{ print $1 }')
    kill "-$signal" $driver
    wait $driver 2> /dev/null
    for pid in $left; do
        # Who has lost its parent is some other process's to bury.
        timeout 10 tail -f /dev/null --pid="$pid" && continue
        fail "$*, SIG$signal: left $(ps -o pid=,stat=,args= -p "$pid")"
        break
    done
    # shellcheck disable=SC2086
    kill -KILL $left 2> /dev/null
}

ended TERM '$2 ~ /^T/ { stopped = 1 } END { exit !stopped }' python3 "$faults/soak.py" --count 1 pause
ended TERM '/ node --name n7 / { eighth = 1 } END { exit !eighth }' python3 "$faults/storm.py" kill
if [ "$(nproc)" -gt 1 ]; then
    # The listener of no node, and then the besiegers, beside watchers of real-time class.
    besieged='/soak\.py/ && $3 != "FF" { drivers++ } / node --name n7 / { eighth = 1 } END { exit !eighth || drivers < 2 }'
    for signal in TERM KILL; do
        ended $signal "$besieged" python3 "$faults/soak.py" --count 1 siege_bombs
    done
fi
exit $((failures > 0))
