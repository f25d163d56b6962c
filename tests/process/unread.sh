#!/bin/bash
# unread.sh PARLEY: nobody reads what two of three nodes say, nor what `parley run` relays: they train,
# average and agree as if somebody did, and what is read in the end is whole and in order.
source "$(dirname "$0")/nodes.sh"

# start NAME ARGUMENT...: stdout goes to NAME.out, stderr to NAME.err; sets $pid.
start() {
    "$parley" node --name "$1" --model mlp:64 --epochs 40 --min-peers 2 --out "$1.model" "${@:2}" \
        > "$1.out" 2> "$1.err" 7>&- 8>&- &
    pid=$!
}

# fill PIPE: until it takes no byte more; all its lines stay whole.
fill() {
    yes | dd of="$1" bs=4096 iflag=fullblock oflag=nonblock 2> /dev/null || true
    yes | dd of="$1" bs=2 iflag=fullblock oflag=nonblock 2> /dev/null || true
}

# b tells each move of its exchanges on stderr, some megabytes of them, c its lines on stdout. Both
# are pipes that are held open here and read by nobody.
mkfifo b.err c.out
exec 7<> b.err 8<> c.out
: > a.json
: > b.json
start a --json a.json
a=$pid
until_line a "$a" '"event":"started"'
address=$(address_of a)
start b --json b.json --join "$address" --log-level debug
b=$pid
start c --json - --join "$address"
c=$pid
until_line a "$a" '"phase":"train"'
fill c.out

# They come to their end before anybody reads, and nobody was taken for dead.
until_line a "$a" '"event":"agreed"'
if grep '"state":"dead"' a.json b.json; then exit 1; fi
grep '"event":"agreed"' a.json | grep -q '"held":3,"known":3'
until_line b "$b" '"event":"agreed"'

exec 5< b.err 6< c.out 7>&- 8>&-
cat <&5 > b.read &
cat <&6 > c.read &
wait "$a"
wait "$b"
wait "$c"
wait
python3 - << 'END'
import json, os, re
digest, = [json.loads(line)["digest"] for line in open("a.json") if '"agreed"' in line]

said = open("b.read").read().split("\n")
assert said.pop() == "", "the last line has its end"
offers, lost = [], 0
for line in said:
    assert re.fullmatch(r"parley: .+|[\d.]+ s  .+/s here", line), line
    move = re.fullmatch(r"parley: offer (\d+): [a-z]+ -> [a-z]+", line)
    if move: offers.append(int(move[1]))
    told = re.fullmatch(r"parley: nobody read stderr for long: (\d+) lines are lost here", line)
    if told: lost += int(told[1])
assert offers == sorted(offers) and len(offers) > 1000
size = os.path.getsize("b.read")
assert size > 4 << 16, "more than any pipe takes"
assert lost > 0 or size < (1 << 20) + (1 << 17), "what is not there is told of"

told = [json.loads(line) for line in open("c.read") if line != "y\n"]
steps = [line["step"] for line in told if line["event"] == "progress"]
assert "started" in [line["event"] for line in told] and steps == sorted(steps)
assert [line["digest"] for line in told if line["event"] == "agreed"] == [digest]
END

# `run` carries out its faults, and ends, though nobody reads the lines of its nodes.
mkfifo run.out
exec 7<> run.out
fill run.out
"$parley" run -n 3 --model mlp:64 --epochs 40 --fault kill:n2@50% --json - --out run.model \
    > run.out 2> run.err 7>&- &
run=$!
wait_until "$run" [ -e run.model ]
exec 5< run.out 7>&-
cat <&5 > run.read &
wait "$run"
wait
python3 - << 'END'
import json
told = [json.loads(line) for line in open("run.read") if line != "y\n"]
assert [line["target"] for line in told if line["event"] == "fault"] == ["n2"]
assert told[-1]["event"] == "summary" and told[-1]["ok"] and told[-1]["agreed"] == 2
END

# Who has agreed waits for a reader; a second signal ends it all the same.
mkfifo d.err
exec 7<> d.err
fill d.err
: > d.json
"$parley" node --name d --model softmax --steps 20 --out d.model --json d.json > d.out 2> d.err 7>&- &
d=$!
until_line d "$d" '"event":"agreed"'
kill -TERM "$d"
kill -INT "$d"
status=0
wait "$d" || status=$?
[ $status -eq 143 ] || [ $status -eq 130 ]

# Signals that ask for nothing more, or for the end for the first time, end nobody who waits there: a
# node whose threads but two that write are gone, and `run` once all its nodes are.
mkfifo e.out f.err
exec 7<> e.out 8<> f.err
fill e.out
fill f.err
: > f.json
"$parley" node --name e --model softmax --steps 20 --out e.model --json - > e.out 2> e.err 7>&- 8>&- &
e=$!
"$parley" run -n 2 --model softmax --epochs 0.1 --out f.model --json f.json > f.out 2> f.err 7>&- 8>&- &
f=$!
only_writes() { [ -e e.model ] && [ "$(find "/proc/$e/task" -mindepth 1 -maxdepth 1 | wc -l)" -le 3 ]; }
wait_until "$e" only_writes
until_line f "$f" '"event":"summary"'
for signal in HUP USR1 USR2 TERM; do kill -"$signal" "$e" "$f"; done
exec 5< e.out 6< f.err 7>&- 8>&-
cat <&5 > e.read &
cat <&6 > f.read &
wait "$e"
wait "$f"
wait
grep -q '"event":"agreed"' e.read

# Nor is anything lost where whoever started it has made its pipe return at once, and reads late.
python3 - "$parley" << 'END'
import fcntl, json, os, subprocess, sys
reads, writes = os.pipe()
fcntl.fcntl(writes, fcntl.F_SETFL, fcntl.fcntl(writes, fcntl.F_GETFL) | os.O_NONBLOCK)
fcntl.fcntl(writes, 1031, 4096)  # F_SETPIPE_SZ
full = False
while not full:
    try:
        os.write(writes, b"\n")
    except BlockingIOError:
        full = True
run = subprocess.Popen([sys.argv[1], "model", "predict", "a.model", "--json"], stdout=writes)
os.close(writes)
with os.fdopen(reads) as lines:
    assert sum("class" in json.loads(line) for line in lines if line.strip()) == 2000
assert run.wait() == 0
END

# A file that is marked so goes on where it was.
python3 - "$parley" << 'END'
import os, subprocess, sys
file = os.open("marked", os.O_RDWR | os.O_CREAT | os.O_NONBLOCK)
os.write(file, b"before\n")
subprocess.run([sys.argv[1], "--version"], stdout=file, check=True)
os.write(file, b"after\n")
lines = open("marked").read().split("\n")
assert lines[0] == "before" and lines[1].startswith("parley ") and lines[2:] == ["after", ""], lines
END
