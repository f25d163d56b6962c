#!/bin/bash
# tests/fuzz.sh [--seconds N] [TARGET...]: libFuzzer on each target (all), N seconds each (60).
#
# Goes on where the last call stopped: what was learned stays in build-fuzz/corpus/, and the counts
# of all calls add up in build-fuzz/tally, a line a run: target, seconds, inputs run, findings.
# What breaks a target is left in build-fuzz/found/TARGET/, to be seen again with
# `build-fuzz/tests/fuzz/fuzz-replay TARGET FILE`, mended, and kept in tests/fuzz/corpus/TARGET/.
# Needs clang-14 with its compiler-rt (Debian's clang-14, libclang-rt-14-dev).
# The exit status is 1 if anything was found in this call.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

seconds=60
if [ "${1:-}" = --seconds ]; then
    case ${2:-} in '' | *[!0-9]* | 0) echo "fuzz.sh: --seconds takes a number" >&2; exit 2 ;; esac
    seconds=$2
    shift 2
fi
./.ci/setup.sh build fuzz || exit 1

build=build-fuzz
if [ ! -f $build/build.ninja ]; then
    CC=${CC:-clang-14} meson setup $build -Dfuzz=true -Dtests=enabled --buildtype=debugoptimized \
        -Db_sanitize=address,undefined -Db_lundef=false >$build.log 2>&1 ||
        { cat $build.log; exit 1; }
    mv $build.log $build/setup.log
fi
ninja -C $build tests/fuzz/fuzz tests/fuzz/fuzz-replay >$build/build.log 2>&1 ||
    { tail -n 40 $build/build.log; exit 1; }
programs=$build/tests/fuzz

all=$($programs/fuzz-replay --list)
targets=("$@")
[ $# -gt 0 ] || mapfile -t targets <<<"$all"
for target in "${targets[@]}"; do
    grep -qx -- "$target" <<<"$all" ||
        { echo "fuzz.sh: there is no target $target; there are" $all >&2; exit 2; }
done

# What a large input claims, must not be allocated; nor may a small one take long.
limits=(-timeout=10 -rss_limit_mb=2048 -malloc_limit_mb=512 -max_len=4096)
broken=0
for target in "${targets[@]}"; do
    corpus=$build/corpus/$target found=$build/found/$target
    mkdir -p "$corpus" "$found"
    $programs/fuzz-replay --seeds "$target" "$corpus"
    kept=tests/fuzz/corpus/$target
    [ -d "$kept" ] || kept=
    # shellcheck disable=SC2086
    $programs/fuzz "$target" -max_total_time="$seconds" \
        -print_final_stats=1 "${limits[@]}" -artifact_prefix="$found/" "$corpus" $kept \
        >$build/"$target".log 2>&1
    status=$?
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' $build/"$target".log)
    echo "$target $seconds ${runs:-0} $((status != 0))" >>$build/tally
    [ $status = 0 ] && continue
    broken=1
    echo "FOUND in $target:"
    grep -m 1 -E 'broken: |ERROR: |Assertion' $build/"$target".log
    grep -E 'Test unit written to' $build/"$target".log
done

awk -v now="${targets[*]}" '
    BEGIN { split(now, list, " "); for (i in list) chosen[list[i]]
        printf "%-12s %9s %14s %9s\n", "target", "seconds", "inputs", "findings" }
    !($1 in runs) { order[++count] = $1 }
    { seconds[$1] += $2; runs[$1] += $3; findings[$1] += $4 }
    END { for (i = 1; i <= count; i++) { t = order[i]
        printf "%-12s %9d %14d %9d\n", t, seconds[t], runs[t], findings[t]
        all += runs[t] }
    printf "%-12s %9s %14.0f\n", "all", "", all }' $build/tally
exit $broken
