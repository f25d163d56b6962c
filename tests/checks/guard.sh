#!/bin/bash
# guard.sh GUARD PROGRAM FAULT...: the guard passes a clean test and fails each planted fault.
# FAULT names a test in PROGRAM, or is "main" for a program without a test runner.
guard=$1 program=$2
shift 2
number=0
verdict() {
    number=$((number + 1))
    echo "$1 $number - $2"
}

echo "1..$(($# + 1))"
if [ "$1" = main ]; then
    clean=("$guard" true)
else
    clean=("$guard" "$program" --filter "plant/none")
fi
if "${clean[@]}" >/dev/null 2>&1; then verdict ok "a clean test passes"; else verdict "not ok" "a clean test passes"; fi
for fault in "$@"; do
    arguments=(--filter "plant/$fault")
    if [ "$fault" = main ]; then
        arguments=()
        fault=$(basename "$program")
    fi
    if "$guard" "$program" "${arguments[@]}" >/dev/null 2>&1; then
        verdict "not ok" "a planted fault is caught: $fault"
    else
        verdict ok "a planted fault is caught: $fault"
    fi
done
