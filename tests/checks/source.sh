#!/bin/bash
# source.sh ROOT: rules on the source text: one format, and no test that waits by sleeping, or that passes
# over a failure.
set -uo pipefail
cd "$1" || exit 1
echo "1..3"

title="the source is formatted"
formatter=$(command -v clang-format-14)
if [ -z "$formatter" ]; then
    echo "ok 1 - $title # SKIP clang-format-14 is not installed"
else
    findings=$(find src include peers sim tests examples -name '*.[ch]' -print0 |
        xargs -0 "$formatter" --dry-run -Werror 2>&1 | sed -nE 's/^([^ :]+):[0-9]+:.*error:.*/clang-format-14 -i \1/p' | sort -u)
    if [ -z "$findings" ]; then
        echo "ok 1 - $title"
    else
        echo "not ok 1 - $title"
        printf '%s\n' "$findings" | sed 's/^/# /'
    fi
fi

# A sleep guesses how long something takes; wait for the thing itself, with a deadline.
title="no test sleeps"
findings=$(grep -rnE --include='*.[ch]' '\b(thrd_|clock_nano|nano|u)?sleep *\(' tests
    grep -rnE --include='*.sh' '(^|[;&|({ ])sleep +[0-9"$]' tests)
if [ -z "$findings" ]; then
    echo "ok 2 - $title"
else
    echo "not ok 2 - $title"
    printf '%s\n' "$findings" | sed 's/^/# /'
fi

# Where the first command that fails is to end a script (set -e), one before && or after ! does not. Nor
# does the failure of any but the last process that one wait is for.
title="no test passes over what fails"
findings=$(grep -rlE --include='*.sh' '^set -[a-zA-Z]*e|/(folder|nodes)\.sh"$' tests |
    xargs grep -nE '^ *(! |(\[|grep|cmp) .*&& )' | grep -v ' || '
    grep -rnE --include='*.sh' '(^|[;&|({ ])wait +[^ ]+ +"?[$%]' tests)
if [ -z "$findings" ]; then
    echo "ok 3 - $title"
else
    echo "not ok 3 - $title"
    printf '%s\n' "$findings" | sed 's/^/# /'
fi
