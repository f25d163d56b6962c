#!/bin/sh
# Programs of one's own average a vector: all print one digest and the mean, and exit with 0.
#   embed.sh EMBED
set -eu
embed=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# The first one's address is read from a pipe: no port is fixed and nothing is waited for by time.
cluster() {
    nodes=$1
    rm -f "$folder"/*
    mkfifo "$folder/pipe"
    "$embed" n1 1 of "$nodes" > "$folder/pipe" &
    pids=$!
    exec 3< "$folder/pipe"
    read -r word address <&3
    [ "$word" = listens ]
    i=2
    while [ $i -le "$nodes" ]; do
        "$embed" "n$i" $i "$address" of "$nodes" > "$folder/$i" &
        pids="$pids $!"
        i=$((i + 1))
    done
    cat <&3 > "$folder/1"
    exec 3<&-
    for pid in $pids; do wait "$pid"; done
    cat "$folder"/[1-9] | grep '^agreed' | sort -u > "$folder/all"
    cat "$folder/all"
    [ "$(wc -l < "$folder/all")" -eq 1 ]
    [ "$(cat "$folder"/[1-9] | grep -c '^agreed')" -eq "$nodes" ]
    # "agreed N of N nodes, x = MEAN, digest ...": within ten times the tolerance of the agreement
    awk -v n="$nodes" -v mean="$2" '{ x = $8 + 0; gap = x - mean
        exit !($2 == n && $4 == n && gap * gap < 1e-6 * mean * mean) }' "$folder/all"
}

cluster 2 1.5
cluster 4 2.5
