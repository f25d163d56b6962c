#!/bin/bash
# servers.sh PARLEY: real nodes train by a parameter server, one of them is killed half way, and the
# others end with one model; the server itself, too.
source "$(dirname "$0")/folder.sh"

check() {
    fault=$1 live=$2
    shift 2
    "$parley" run -n 4 --epochs 24 --model mlp:32 --fault "$fault" --json lines --out model "$@" > out
    tail -n 1 lines | grep '"event":"summary"' | grep '"ok":true' | grep "\"live\":$live" |
        grep "\"agreed\":$live" > /dev/null
    tail -n 1 lines | grep -q '"test_accuracy":0\.9'
    grep -q "agreed    $live of 4 nodes" out
    "$parley" model verify model > /dev/null
}

check kill:1@50% 3 --strategy ps-bsp --backup-workers 1
check kill:n0@50% 3 --strategy ps-asp # who serves: the first by name
check kill:1@50% 3 --strategy ps-ssp:2
