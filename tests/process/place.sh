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
# wait_until PID COMMAND...: until the command succeeds; fails if that process ends before. Looks ten
# times a second: who looks all the time takes a core from what it waits for.
wait_until() {
    until "${@:2}"; do
        kill -0 "$1" 2> /dev/null || { "${@:2}"; return; }
        timeout 0.1 tail -f /dev/null --pid="$1" || true
    done
}
# until_said FILE PID PATTERN [FROM_LINE]: waits for such a line of the file, which may be made only then;
# fails if that process ends before.
until_said() {
    grep -q -m 1 -e "$3" < <(exec tail -n "+${4:-1}" -F --pid="$2" "$1" 2> /dev/null)
}
# until_steps PID NODE...: until each of these nodes of a run has made a step, by the file json.
until_steps() {
    local node
    for node in "${@:2}"; do
        until_said json "$1" "\"progress\".*\"node\":\"$node\",\"step\":[1-9]" || return
    done
}
# pids_of FILE [NODE]: of the nodes that have started, or of that one, by their lines of JSON.
pids_of() {
    sed -n "s/.*\"event\":\"started\".*\"node\":\"${2-[^\"]*}\",\"pid\":\([0-9]*\).*/\1/p" "$1"
}
cd "$folder" || exit
