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

# until_line NAME PID PATTERN: until_said of NAME.json; says with what that node has ended.
until_line() {
    until_said "$1.json" "$2" "$3" || {
        echo "$1 ended without $3"
        if [ -f "$1.err" ]; then cat "$1.err"; fi
        exit 1
    }
}

# until_step NAME PID: until that node has made one.
until_step() {
    until_line "$1" "$2" '"event":"progress".*"step":[1-9]'
}

address_of() {
    grep -m 1 '"event":"started"' "$1.json" | grep -o '"listen":"[^"]*"' | cut -d'"' -f4
}
