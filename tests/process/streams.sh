#!/bin/bash
# streams.sh PARLEY: floats of a link over several TCP connections: the nodes agree on one model, also
# where one is killed, streams are cut, or there are few descriptors.
soak=$(dirname "$(realpath "$0")")/../soak.sh
source "$(dirname "$0")/folder.sh"

# agreed LIVE KNOWN: what the summary says.
agreed() {
    [ "$(value live) $(value agreed) $(value known)" = "$1 $1 $2" ]
}

"$parley" run -n 4 --no-lane --streams 4 --model mlp:256,256 --epochs 3 --fault kill:1@40% --json json > out
agreed 3 4
"$parley" model verify parley-model.safetensors > verified

# Streams take no more than half of the descriptors that a node may have.
(ulimit -n 64 && "$parley" run -n 3 --no-lane --streams 64 --model mlp:64 --epochs 3 --json json > out)
agreed 3 3

# One TCP connection of many is cut, again and again, in the middle of what it carries.
"$soak" --parley "$parley" --count 1 cut_streams

expect 2 '--streams: "65" is out of range (1 to 64)' run --streams 65
