#!/bin/bash
# tests/run.sh: everything that is needed to trust this tree, from a fresh Debian 12 on.
#
# Installs what is missing, then builds and tests three times:
#   build-tests/    AddressSanitizer, LeakSanitizer, UBSan: all but the slow tests
#   build-tsan/     ThreadSanitizer: the threaded tests
#   build-release/  as users build it: real processes, slow tests, checks; not what is only said
# With sanitizers only lines are kept of the debug information: more costs minutes of linking.
# Warnings are errors. All builds are tried even if one fails. With PARLEY_TEST_DATA set to a folder
# with mnist/ in it, the tests on real data run too; without it they are skipped, and named.
# The last line is "N passed, N failed[, N skipped]"; the exit status is 0 only if nothing failed.
# Details are in build-tests/run.log.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

./.ci/setup.sh build test || { echo "0 passed, 1 failed"; exit 1; }
if [ -n "${PARLEY_TEST_DATA:-}" ]; then
    PARLEY_TEST_DATA=$(cd "$PARLEY_TEST_DATA" && pwd) || { echo "0 passed, 1 failed"; exit 1; }
    export PARLEY_TEST_DATA
fi
mkdir -p build-tests
log=$PWD/build-tests/run.log
: >"$log"
failed=0
logs=()

# configure FOLDER OPTION...
configure() {
    if [ -f "$1/build.ninja" ]; then
        meson setup --reconfigure "$@" || meson setup --wipe "$@"
    else
        meson setup "$@"
    fi
}

# stage TITLE FOLDER "TEST OPTION..." BUILD OPTION...
# Builds what those tests need, no more.
stage() {
    local title=$1 folder=$2 options=$3 start=$SECONDS from
    shift 3
    echo "$title: in $folder/"
    from=$(wc -l <"$log")
    # Its absence counts as a failure, whatever ends this stage early.
    logs+=("$folder/meson-logs/testlog.json")
    rm -f "${logs[-1]}"
    # shellcheck disable=SC2086
    { configure "$folder" -Dtests=enabled --werror "$@" &&
        meson test -C "$folder" --print-errorlogs $options; } >>"$log" 2>&1 || failed=1
    if [ ! -f "${logs[-1]}" ]; then
        echo "FAILED $title: the build"
        tail -n "+$((from + 1))" "$log" | tail -n 60
    fi
    echo "$title: $((SECONDS - start)) s"
}

stage "address and undefined-behaviour sanitizers" build-tests "" \
    --buildtype=debugoptimized -Dc_args=-g1 -Db_sanitize=address,undefined
stage "thread sanitizer" build-tsan "--suite threads --suite checks" \
    --buildtype=debugoptimized -Dc_args=-g1 -Db_sanitize=thread
stage "release" build-release "--suite process --suite slow --suite checks --no-suite words" \
    --buildtype=release

counted=$(python3 tests/count.py "${logs[@]}") || failed=1
echo "details: $log"
echo "$counted"
[ "$failed" = 0 ]
