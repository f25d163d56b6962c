# failures.sh: the beginning of tests that go on after what fails and count it, to be sourced by them
# with their own arguments: a folder of their own. They end with $((failures > 0)).
set -uo pipefail
parley=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit
failures=0

fail() {
    echo "$*"
    failures=$((failures + 1))
}
