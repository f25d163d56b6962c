#!/bin/bash
# tests/coverage.sh [--html FOLDER]: how much of the core (src/core) the tests reach.
#
# Builds in build-coverage/ with gcc's counters, runs the tests that drive the core (units of it,
# whole clusters in virtual time, fuzz targets, failing allocations), and prints a line a file: the
# lines that have a branch not taken, and at the end the shares of lines, functions and branches.
# An assert has a branch that no test can take without ending the program: branches of asserts are
# left out, and the last line says what the share is with them.
# The exit status is 1 if a test fails, or if fewer than 90 % of the branches are taken.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

html=()
if [ "${1:-}" = --html ] && [ -n "${2:-}" ]; then
    mkdir -p "$2" && html=(--html-details "$2/index.html")
elif [ $# -gt 0 ]; then
    echo "coverage.sh: $1? It takes --html FOLDER" >&2
    exit 2
fi
./.ci/setup.sh build test coverage || exit 1

build=build-coverage
mkdir -p $build
if [ ! -f $build/build.ninja ]; then
    meson setup $build -Dtests=enabled --buildtype=debug -Doptimization=1 -Db_coverage=true \
        >$build/build.log 2>&1 || { tail -n 40 $build/build.log; exit 1; }
fi
ninja -C $build >>$build/build.log 2>&1 || { tail -n 40 $build/build.log; exit 1; }

# Counters add up; those of an earlier run, perhaps of other code, don't count.
find $build -name '*.gcda' -delete
units=(codec config merge message node_agreement node_exchange node_fuzz node_hello node_initiator
    node_limits node_members node_model node_settling period roster seeds topology wire)
failed=0
for what in "--suite protocol --suite fuzz --suite failing" "${units[*]}"; do
    # shellcheck disable=SC2086
    meson test -C $build --no-rebuild --print-errorlogs --timeout-multiplier 4 $what \
        >$build/test.log 2>&1 || { failed=1; grep -E ' FAIL|TIMEOUT|ERROR' $build/test.log; }
done

objects=$build/src/libparley-core.a.p
report=(gcovr -r . "$objects" --filter src/core/ --branches --print-summary)
with=$("${report[@]}" 2>/dev/null | sed -n 's/^branches: //p')
"${report[@]}" --exclude-branches-by-pattern '.*\bassert\(.*' --fail-under-branch 90 "${html[@]}" \
    || failed=1
echo "with the branches of asserts: $with"
exit $failed
