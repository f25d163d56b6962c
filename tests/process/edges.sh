#!/bin/bash
# edges.sh PARLEY: the simulator at its edges: each behaves, or is refused with a line that names it.
source "$(dirname "$0")/failures.sh"

# sim STATUS TEXT ARGUMENT...
sim() {
    local status=$1 text=$2
    shift 2
    "$parley" sim --model softmax --epochs 0.2 --progress never "$@" > out 2>&1
    local got=$?
    if [ $got -ne "$status" ] || ! grep -qF -- "$text" out; then
        fail "parley sim $*: status $got, not $status, or no \"$text\" in:"
        cat out
    fi
}

# Two images of one byte; the test set is the training set.
mkdir few
for set in train t10k; do
    printf '\0\0\10\3\0\0\0\2\0\0\0\1\0\0\0\1\0\1' > few/$set-images-idx3-ubyte
    printf '\0\0\10\1\0\0\0\2\0\1' > few/$set-labels-idx1-ubyte
done

# Few nodes, and fewer; and data for fewer than there are.
sim 0 'agreed    1 of 1 nodes' -n 1
sim 0 'agreed    1 of 2 nodes' -n 2 --fault kill:n1@30%
sim 3 'no agreement' -n 2 --quorum majority --fault kill:n1@30%
sim 3 'no node is left' -n 3 --fault kill:100%@30%
sim 2 'out of range' -n 0

many='"3" are too many for 2 samples to train on (--partition iid); take 2 at most'
sim 2 "$many" -n 3 --data idx:few
if grep -Eq '^(agreed|speed)' out; then fail 'results of a run that was refused:'; cat out; fi
sim 2 '"2" are too many for 2 samples to train on (--partition shards); take 1 at most' -n 2 --partition shards --data idx:few
sim 0 'agreed    3 of 3 nodes' -n 3 --partition all --data idx:few
"$parley" run -n 3 --steps 3 --data idx:few > out 2>&1
[ $? -eq 2 ] && [ "$(wc -l < out)" -eq 1 ] && grep -qF -- "$many" out ||
    { fail 'run with fewer samples than nodes:'; cat out; }

# Faults on nobody, and for nobody.
sim 2 '"n9" is not a node (n0 to n3)' -n 4 --fault kill:n9@1s
sim 2 '"n9" is not a node (n0 to n3)' -n 4 --fault 'partition:n0|n1-n9@1s'
sim 2 '9 nodes, but there are 4' -n 4 --fault pause:9@1s
sim 2 '"join" takes the number of nodes that join' -n 4 --fault join:n9@10%
sim 2 '"join" takes the number of nodes that join' -n 4 --fault join:50%@10%
sim 2 'uniform:1ms,9ms; --compute also trace:FILE)' -n 4 --latency 5
sim 2 'not a set of groups' -n 4 --fault partition:@1s
sim 2 'not a set of groups' -n 4 --fault 'partition:n0,n1|@1s'
sim 2 'not a set of groups' -n 4 --fault 'partition:n0|n0@1s'
sim 0 '1 of 2 faults did not strike' -n 2 --fault kill:n1@500s --fault slow=2:n0@0s

# Networks that carry nothing, and ones that carry little.
sim 2 'lets nothing through' -n 2 --bandwidth 0
sim 2 'is not a rate' -n 2 --bandwidth 100
sim 2 '--loss: "1" is out of range' -n 2 --loss 1
sim 2 'lets nothing through' -n 2 --link 'n0|n1:bandwidth=0Mbit'
sim 2 '"n2" is not a node (n0 to n1)' -n 2 --link 'n0|n1,n2:latency=1ms'
sim 0 'agreed    4 of 4 nodes' -n 4 --link 'n0,n1|n2-n3:latency=50ms,bandwidth=10Mbit'
sim 0 'agreed    4 of 4 nodes' -n 4 --bandwidth 10Mbit --latency 1ms --fault bandwidth=1Mbit:n3@0s

# Many nodes, of whom some train long before the rest has joined: the budget is that of all.
for seed in 1 2 3; do
    "$parley" sim -q --json - -n 64 --model softmax --epochs 8 --seed $seed > out
    grep -o '"epochs":[0-9.]*' out | tail -n 1 | awk -F: '{ exit !($2 > 7 && $2 < 10) }' ||
        fail "64 nodes, seed $seed: $(grep -o '"epochs":[0-9.]*' out | tail -n 1) of 8"
done

# Times of steps from a file.
printf '# measured\n2ms\nn1,8ms\n' > trace
printf '2ms\nn7,8ms\n' > stranger
sim 0 'agreed    3 of 3 nodes' -n 3 --compute trace:trace
sim 2 'stranger: line 2: "n7"' -n 3 --compute trace:stranger
sim 7 'nofile: No such file' -n 3 --compute trace:nofile
sim 2 '--compute only' -n 3 --latency trace:trace

# A torn write is no model.
sim 9 'held in memory' -n 3 --out model --fault disk-torn:n1@0s
sim 2 'sign, scale, random, nan' -n 3 --fault byzantine=evil:n1@0s
exit $((failures > 0))
