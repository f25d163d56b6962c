# folder.sh: the beginning of tests that end with the first command that fails, to be sourced by them
# with their own arguments: a folder of their own.
set -eEuo pipefail
trap 'echo "$0: line $LINENO: $BASH_COMMAND" >&2' ERR
parley=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
