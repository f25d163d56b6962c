#!/bin/bash
# talk.sh PARLEY: with --log-format json all that is said on stderr is one JSON object a line, and
# the same is said as without.
source "$(dirname "$0")/failures.sh"

# wrong TEXT: it fails, and tells what was said.
wrong() { fail "$1: $(cat err)"; }

# said STATUS LEVEL TEXT ARGUMENT...: a line of that level that has the text, and no line of another
# kind; without the option the text is there, too, in no JSON.
said() {
    local status=$1 level=$2 text=$3 got
    shift 3
    timeout 60 "$parley" "$1" --log-format json "${@:2}" > out 2> err
    got=$?
    [ $got -eq "$status" ] || wrong "$*: status $got, not $status"
    python3 - "$level" "$text" < err << 'END' || wrong "$*: no $level \"$text\", or lines of another kind"
import json, re, sys
level, text = sys.argv[1:]
found = False
for line in open("err"):
    said = json.loads(line)
    assert list(said) == ["time", "level", "text"], line
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", said["time"]), line
    found |= said["level"] == level and text in said["text"]
sys.exit(not found)
END
    PARLEY_LOG_FORMAT=text timeout 60 "$parley" "$@" > out 2> err
    grep -qF -- "$text" err && ! grep -q '^{' err || wrong "$*: not so as text"
}

said 0 info ' n2  pid ' run --nodes 3 --model softmax --epochs 2 --out model
said 0 info 'fault: kill n1' sim --nodes 3 --model softmax --epochs 2 --fault kill:n1@50% --out model
said 0 info 'run 2 of 2' sim --nodes 2 --model softmax --steps 20 --mix-every 1,2 --quiet --progress always
said 0 warning '1 of 1 faults did not strike' sim --nodes 2 --model softmax --steps 20 --fault kill:n1@1h
said 0 warning '1 of 1 faults did not strike' run --nodes 2 --model softmax --steps 20 --fault kill:n1@1h --out model
said 0 debug 'phase' sim --swarm --seeds 1..1 --verbose
said 0 info 'listens on' node --min-peers 0 --model softmax --epochs 1 --out model
said 2 error 'did you mean "adam"' node --optimizer adamm
said 7 error 'no\file' node --data 'csv:"no\file"'
said 2 error 'ends neither in .html nor in .svg' sim --report page.txt --nodes 2

# Errors of the command line are told so, too, wherever the option stands, and by its variable.
for line in '--optimizer adamm --log-format json' '--lr --log-format=json' 'x --log-format json' \
    '--log-format text --batc 3 --log-format json'; do
    # shellcheck disable=SC2086
    "$parley" node $line 2> err
    status=$?
    [ $status -eq 2 ] || wrong "$line: status $status"
    grep -q '^{"time":".*","level":"error","text":".*}$' err || wrong "$line: not told as JSON"
done
PARLEY_LOG_FORMAT=json "$parley" nod 2> err
grep -q '^{.*did you mean' err || wrong 'a bad verb: not told as the environment asks'
PARLEY_LOG_FORMAT=json "$parley" node --optimizer adamm --log-format text 2> err
grep -q '^parley: --optimizer' err || wrong 'the environment beats the flag'
PARLEY_LOG_FORMAT=json PARLEY_BATCH=none "$parley" node 2> err
grep -q '^{.*PARLEY_BATCH' err || wrong 'a bad variable: not told as the environment asks'
"$parley" node --log-format jsno --optimizer adamm 2> err
grep -q '^parley: --log-format: "jsno" .*did you mean "json"' err || wrong 'a format that is none'

# A file of --json that is emptied while it is written goes on at its start, as logrotate's
# copytruncate needs it.
"$parley" node --model softmax --time 1h --json told --out model > out 2> err &
node=$!
wait_until $node grep -qs '"phase":"train"' told
: > told
wait_until $node [ -s told ]
kill -TERM $node
wait $node || wrong 'a file that is emptied: no end'
python3 -c 'import json; assert [json.loads(line) for line in open("told")]' 2> err ||
    wrong 'a file that is emptied has no lines alone'
exit $((failures > 0))
