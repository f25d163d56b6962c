#!/bin/bash
# bench.sh PARLEY: each benchmark runs small, and prints the rows and fields of the contract. What
# the figures are is no matter of a test.
source "$(dirname "$0")/terminal.sh"
source "$(dirname "$0")/failures.sh"
export TMPDIR=$folder/tmp
mkdir tmp

# expect "WHAT OPTION..." ROW...: exactly these rows, in this order.
expect() {
    local what=$1
    shift
    # shellcheck disable=SC2086
    "$parley" bench $what --quick --json > rows 2> said || fail "bench $what: status $?"
    [ -s said ] && fail "bench $what talks where there is no terminal: $(cat said)"
    [ "$(grep -o '"name":"[^"]*"' rows | cut -d'"' -f4 | tr '\n' ' ')" = "$* " ] ||
        fail "bench $what: other rows: $(cat rows)"
    # A positive number, or null where there is no limit. What a larger model takes more may alone be
    # less than what an allocator keeps back.
    local n='[0-9.]*[1-9][0-9.]*(e[-+][0-9]+)?'
    sed -E 's/^[[ ]//; s/[],]$//; /"name":"run\/memory\/1e6"/s/":-/":/g' rows | grep -vE "^\{\"name\":\"[^\"]*\",\"value\":$n,\"unit\":\"[^\"]*\",(\"limit\":$n,\"ratio\":$n|\"limit\":null,\"ratio\":null),\"low\":$n,\"high\":$n,\"repeats\":[0-9]+\}$" &&
        fail "bench $what: the line above"
}

expect step step/mlp step/mlp/sgd step/softmax step/softmax/sgd step/lenet step/lenet/mlp
expect mix mix/1e7 mix/1e7/plain mix/1e7/diff mix/1e7/add
expect wire wire/tcp/1e5 wire/lane/1e5
expect "wire --floats 12345" wire/tcp/12345 wire/lane/12345
expect start start/8
expect run run/lane/2 run/lane/2/mix run/tcp/2 run/tcp/2/mix run/target/2 run/target/2/epochs run/sleeper/4 run/memory/1e6 run/memory run/8 run/8/start run/8/members run/8/sketches
expect sim sim/10 sim/4/mlp

# What is measured is told on a terminal, and is gone when it is known. Both are on stderr: rows are
# those of any other bench.
on_terminal said sh -c '"$1" bench mix --quick > rows' sh "$parley" ||
    fail "bench mix on a terminal: status $?"
grep -q "measuring mix/1e7/add$(printf '\r\033\\[K')" said || fail "bench mix on a terminal says: $(cat -v said)"
[ "$(grep -c '^mix/1e7' rows)" -eq 4 ] || fail "bench mix on a terminal: $(cat rows)"

# Rows are printed as soon as they are known: they are there though what follows fails, as labels
# by chance come to no 97 %.
awk 'BEGIN { srand(1); for (i = 0; i < 2000; i++) print rand() "," int(2 * rand()) }' > chance.csv
"$parley" bench run --quick --json --data csv:chance.csv > rows 2> said
[ $? -eq 1 ] || fail "bench run by chance: $(cat rows said)"
grep -q 'nodes did not come to 97' said || fail "bench run by chance says: $(cat said)"
[ "$(grep -o '"name":"[^"]*"' rows | cut -d'"' -f4 | tr '\n' ' ')" = "run/lane/2 run/lane/2/mix run/tcp/2 run/tcp/2/mix " ] ||
    fail "bench run by chance: other rows: $(cat rows)"
[ "$(tail -c 3 rows)" = "}]" ] || fail "bench run by chance: no end: $(cat rows)"

# However long their path is.
"$parley" bench run --quick --data "csv:$(printf './%.0s' {1..200})none.csv" > rows 2> said
status=$?
[ $status -eq 1 ] && grep -q 'none.csv' said || fail "bench run of data far away: status $status: $(cat said)"

# An interrupted one leaves no files either. What it started holds the pipe open until its end.
mkfifo held
"$parley" bench start 3> held > rows 2>&1 &
bench=$!
exec 4< held
until [ -n "$(ls tmp)" ]; do
    kill -0 $bench 2> /dev/null || { fail "bench start: no folder: $(cat rows)"; break; }
done
kill -9 $bench
cat <&4
[ -z "$(ls tmp)" ] || fail "a bench left behind: $(ls -R tmp)"

"$parley" bench 2> /dev/null
[ $? -eq 2 ] || fail "bench without a name is no error"
"$parley" bench stepp 2> said
grep -q 'did you mean "step"' said || fail "bench stepp: no hint"
exit $((failures > 0))
