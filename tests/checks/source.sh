#!/bin/bash
# source.sh ROOT: rules on the source text: one format, and no test that waits by sleeping.
set -uo pipefail
cd "$1" || exit 1
echo "1..2"

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
