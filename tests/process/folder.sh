# folder.sh: the beginning of tests that end with the first command that fails, to be sourced by them
# with their own arguments: a folder of their own, expect and value.
set -eEuo pipefail
trap 'echo "$0: line $LINENO: $BASH_COMMAND" >&2' ERR
source "${BASH_SOURCE%/*}/place.sh"

# value FIELD: of the summary in the file json.
value() {
    tail -n 1 json | grep -o "\"$1\":[^,}]*" | cut -d: -f2
}

# expect STATUS TEXT ARGUMENT...: parley ends so, and says so in the file err and nothing else.
expect() {
    local status=0 want=$1 text=$2
    shift 2
    "$parley" "$@" > out 2> err || status=$?
    if [ "$status" != "$want" ] || [ -s out ] || ! grep -qF -- "$text" err; then
        echo "parley $*: status $status, wanted $want and \"$text\""
        cat out err
        exit 1
    fi
}
