# nodes.sh: the beginning of tests that start nodes by hand, to be sourced by them with their own
# arguments: folder.sh, and what waits for a node.
source "${BASH_SOURCE%/*}/folder.sh"

# start NAME ARGUMENT...: a node, with $settings before; sets $pid.
start() {
    : > "$1.json" > "$1.err"
    "$parley" node --name "$1" --out "$1.safetensors" --json "$1.json" "${settings[@]}" "${@:2}" \
        > "$1.out" 2> "$1.err" &
    pid=$!
}

# until_line NAME PID TEXT: waits for a line of that node in NAME.json; fails if it ends before.
until_line() {
    grep -qF -m 1 -- "$3" < <(exec tail -n +1 -f --pid="$2" "$1.json") || {
        echo "$1 ended without $3"
        if [ -f "$1.err" ]; then cat "$1.err"; fi
        exit 1
    }
}

# until_step NAME PID: until that node has made one.
until_step() {
    grep -q -m 1 '"event":"progress".*"step":[1-9]' < <(exec tail -n +1 -f --pid="$2" "$1.json")
}

address_of() {
    grep -m 1 '"event":"started"' "$1.json" | grep -o '"listen":"[^"]*"' | cut -d'"' -f4
}
