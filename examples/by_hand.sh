#!/usr/bin/env bash
# Five nodes, started by hand: each but the first is told the address of one or two, and that is all.
#
#   ./examples/by_hand.sh DIR [options of `parley node`]
#
# DIR gets a folder a node: its output, its JSON lines, its process id and the model that it saved.
# While it runs, in another terminal: ./examples/kill.sh DIR 2
set -eu
parley=${PARLEY:-$(cd "$(dirname "$0")/.." && pwd)/build/peers/parley}
dir=${1:?usage: by_hand.sh DIR [options of parley node]}
shift
nodes=5
# Where one can't start, those before it would wait for it.
trap 'kill $(jobs -p) 2> /dev/null || true' EXIT

# The system chooses free ports here. On several machines you would write the addresses down:
# --listen host1:7400 on host1, and so on, --cluster-key and --join host1:7400,host2:7400 on each.
start() { # name, seeds
    mkdir -p "$dir/$1"
    : > "$dir/$1/lines.json"
    "$parley" node --name "$1" --min-peers $((nodes - 1)) ${2:+--join "$2"} \
        --out "$dir/$1/model.safetensors" --json "$dir/$1/lines.json" "${@:3}" \
        > "$dir/$1/output" 2> "$dir/$1/talk" &
    echo $! > "$dir/$1/pid"
    echo "$1 has process id $!"
}
address() { # of a node that has started
    if ! tail -n +1 -F --pid="$(cat "$dir/$1/pid")" "$dir/$1/lines.json" 2> /dev/null |
        grep -m 1 '"event":"started"' > "$dir/$1/started"; then
        echo "$1 has not started: $(tail -n 2 "$dir/$1/talk")" >&2
        return 1
    fi
    sed 's/.*"listen":"\([^"]*\)".*/\1/' "$dir/$1/started"
}

start n0 "" "$@"
seeds=$(address n0)
start n1 "$seeds" "$@"
seeds=$seeds,$(address n1)
for name in n2 n3 n4; do start "$name" "$seeds" "$@"; done

status=0
for name in n0 n1 n2 n3 n4; do
    code=0
    { wait "$(cat "$dir/$name/pid")" || code=$?; } 2> /dev/null
    case $code in
        0) echo "== $name" && cat "$dir/$name/output" ;;
        137) echo "== $name was killed" ;;
        *) echo "== $name ended with status $code" && tail -n 2 "$dir/$name/talk" ;;
    esac
done
models=$(sha256sum "$dir"/n*/model.safetensors | cut -d ' ' -f 1 | sort -u | wc -l)
echo "different models: $models"
[ "$models" = 1 ] || status=1
exit $status
