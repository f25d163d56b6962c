#!/bin/bash
# size.sh PARLEY BYTES: the program, stripped, has at most so many bytes.
set -euo pipefail
stripped=$(mktemp)
trap 'rm -f "$stripped"' EXIT
strip -o "$stripped" "$1"
size=$(stat -c %s "$stripped")
echo 1..1
if [ "$size" -le "$2" ]; then
    echo "ok 1 - parley has $size bytes, stripped"
else
    echo "not ok 1 - parley has $size bytes, stripped; at most $2"
fi
