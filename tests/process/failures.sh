# failures.sh: the beginning of tests that go on after what fails and count it, to be sourced by them
# with their own arguments: a folder of their own. They end with $((failures > 0)).
set -uo pipefail
source "${BASH_SOURCE%/*}/place.sh"
failures=0

fail() {
    echo "$*"
    failures=$((failures + 1))
}
