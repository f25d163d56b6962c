#!/bin/bash
# guard.sh PROGRAM [ARG...]: runs a test of a sanitized build; a report fails it, whoever made it.
#
# Criterion runs each test in a process of its own and does not look at how it ends after the test
# body, so a leak passes. Here reports go to files, those of child processes too, and a file is a
# failure.
reports=$(mktemp -d) || exit 99
trap 'rm -rf "$reports"' EXIT
# Costs virtual time a third of its pace, whose stacks are those of the unit tests and the processes.
stacks=1
# To look at the whole of a string each time takes one of 15 MiB, line by line, a quarter of an hour.
strings=1
# MiB of what was freed that are not given out again: there 256 cost a fifth of the time, in the caches.
freed=256
case ${1##*/} in
    protocol-*) stacks=0 freed=16 ;;
    unit-model_file) strings=0 ;;
esac
common="log_path=$reports/report:print_stacktrace=1"
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=1:handle_sigill=1:detect_stack_use_after_return=$stacks:strict_string_checks=$strings:quarantine_size_mb=$freed:$common"
export TSAN_OPTIONS="${TSAN_OPTIONS:+$TSAN_OPTIONS:}second_deadlock_stack=1:$common"

# The sanitizers of gcc 12 can't place their shadow where a kernel randomizes more than 28 bits.
fixed=()
bits=$(cat /proc/sys/vm/mmap_rnd_bits 2>/dev/null || echo 0)
if [ "$bits" -gt 28 ] && setarch -R true 2>/dev/null; then fixed=(setarch -R); fi

"${fixed[@]}" "$@"
status=$?
# A process that is killed while it looks for leaks leaves an empty report, or one that says it could
# not look: that is no finding.
if grep -rqE 'ERROR: |WARNING: ' "$reports"; then
    cat "$reports"/* >&2
    echo "guard: sanitizer report in $1" >&2
    [ "$status" != 0 ] && [ "$status" != 77 ] || status=66
fi
exit "$status"
