#!/bin/bash
# left.sh ROOT: a process test leaves no process and no folder behind, however it ends: what it has
# started is gone, children of that too, where they are stopped.
set -uo pipefail
process=$1/tests/process
told=$(mktemp)
trap 'rm -f "$told"' EXIT
number=0

echo "1..4"
for beginning in folder failures; do
    for end in 'exit 1' 'kill -TERM $$'; do
        number=$((number + 1))
        # shellcheck disable=SC2016
        bash -c '
            source "$0"
            mkfifo begun
            sh -c "tail -f /dev/null & echo \$! > begun; kill -STOP \$!; wait" &
            read -r child < begun
            echo "$! $child $folder" > "$2"
            eval "$3"' "$process/$beginning.sh" /bin/true "$told" "$end" 2> /dev/null
        read -r parent child folder < "$told"
        title="$beginning.sh: $end"
        # Who has lost its parent is some other process's to bury.
        if timeout 5 tail -f /dev/null --pid="$parent" && timeout 5 tail -f /dev/null --pid="$child" &&
            [ ! -e "$folder" ]; then
            echo "ok $number - $title"
        else
            echo "not ok $number - $title"
            kill -KILL "$parent" "$child" 2> /dev/null
        fi
    done
done
