# place.sh: what folder.sh and failures.sh begin with: a folder of the test's own, and an end to all that
# it has started, whatever ends it.
parley=$(realpath "$1")
folder=$(mktemp -d)
finish() {
    local pid
    # Children of those, too: a stopped node does not see that its `parley run` is gone.
    for pid in $(jobs -pr); do
        # shellcheck disable=SC2046
        kill -KILL "$pid" $(cat "/proc/$pid/task"/*/children) || true
    done
    wait || true
    rm -rf "$folder"
} 2> /dev/null
trap finish EXIT
cd "$folder" || exit
