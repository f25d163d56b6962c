#!/bin/bash
# completion.sh PARLEY: what bash offers where the cursor stands.
source "$(dirname "$0")/failures.sh"
mkdir images
touch run.yaml
compopt() { how+=$2; }
# shellcheck disable=SC1090
. <("$parley" completion bash)

# expect "OFFERED" HOW WORD...: HOW the last of the words goes on, none, filenames or nospace.
expect() {
    local offered=$1 wanted=$2 how=
    shift 2
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
    _parley
    [ "${COMPREPLY[*]} ${how:-none}" = "$offered $wanted" ] && return
    fail "$*: offers \"${COMPREPLY[*]}\" $how, not \"$offered\" $wanted"
}

expect 'sim status' none parley s
expect 'digits' none parley run --data dig
expect 'idx:' nospace parley run --data id
# What follows the colon is a word of its own in bash.
expect 'images' filenames parley run --data idx : im
expect 'images run.yaml' filenames parley run --data idx :
expect 'run.yaml' filenames parley run --config ru
expect 'run.yaml' filenames parley run -c ru
expect 'images' filenames parley node --checkpoint im
expect 'verify' none parley model ver
expect 'run.yaml' filenames parley model verify ru
# With the option's name its value is three words there, or two.
expect 'digits' none parley run --data = dig
expect 'gossip gossip-sync' none parley sim --strategy = gossip
expect 'live majority' none parley node --quorum =
touch 'two words'
expect 'two words' filenames parley run -c tw
[ ${#COMPREPLY[@]} -eq 1 ] || fail 'a file with a blank in its name is offered in parts'
exit $((failures > 0))
