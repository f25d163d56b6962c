#!/bin/bash
# run.sh PARLEY: `parley run` with 2 and 4 nodes ends with one digest, which the file holds too.
source "$(dirname "$0")/terminal.sh"
source "$(dirname "$0")/folder.sh"

check() {
    nodes=$1
    shift
    "$parley" run -n "$nodes" "$@" --model mlp:32 --out "$nodes.safetensors" --json "$nodes.json" > "$nodes.out"
    grep -c '"event":"agreed"' "$nodes.json" | grep -x "$nodes" > /dev/null
    grep '"event":"agreed"' "$nodes.json" | grep -o 'sha256:[0-9a-f]*' | sort -u > digests
    [ "$(wc -l < digests)" -eq 1 ]
    tail -n 1 "$nodes.json" | grep '"event":"summary"' | grep '"ok":true' | grep "\"live\":$nodes" | grep -F "$(cat digests)" > /dev/null
    grep -qF "agreed    $nodes of $nodes nodes" "$nodes.out"
    "$parley" model verify "$nodes.safetensors" | grep -F "$(cat digests)" > /dev/null
    # The model does in a process of its own what it did in the nodes.
    accuracy=$(grep -m 1 '"event":"agreed"' "$nodes.json" | grep -o '"test_accuracy":[0-9.]*' | cut -d: -f2)
    "$parley" model eval --json "$nodes.safetensors" | grep -F "\"accuracy\":$accuracy" > /dev/null
}

check 2 --epochs 1
check 4 --steps 40
# Rounded models cross the network, the mean stays where it is, and the end is exact.
check 2 --steps 3000 --codec int8
tail -n 1 2.json | python3 -c '
import json, sys
s = json.loads(sys.stdin.readline())
assert s["mass_error"] <= 1e-6 and s["exchanges"] > 10, s
assert 0 < s["bytes_trained"] < s["bytes_sent"] and 0 < s["exchanges_trained"] <= s["exchanges"], s
assert s["samples"] == 32 * s["steps"], s'
# The record beside a model tells of the agreement as the nodes do; a model that it is not about is
# none that was agreed on.
python3 - << 'END'
import json
lines = [json.loads(line) for line in open("2.json")]
agreed = [line for line in lines if line["event"] == "agreed"][0]
ledgers = [line for line in lines if line["event"] == "ledger"]
record = json.load(open("2.safetensors.agreement.json"))
assert (record["quorum"], record["nodes"], record["drift_before"]) == ("live", 0, agreed["drift_before"]), record
assert sum(ledger["committed"] for ledger in ledgers) == lines[-1]["exchanges"], lines[-1]
assert sum(ledger["dropped"] for ledger in ledgers) == lines[-1]["exchanges_dropped"], lines[-1]
ages = [line["drift_age_s"] for line in lines if line["event"] == "progress" and line["drift_age_s"]]
assert ages and all(age < lines[-1]["wall_s"] for age in ages), ages
END
"$parley" model verify --json 2.safetensors | grep -q '"record":true,"held":2,"live":2,"known":2,"cause":"budget"}$'
sed -i.as-written 's/"cause": "budget"/"cause": "a\\"b"/' 2.safetensors.agreement.json
"$parley" model verify --json 2.safetensors | python3 -c 'import json, sys; assert json.load(sys.stdin)["cause"] == "a\"b"'
mv 2.safetensors.agreement.json.as-written 2.safetensors.agreement.json
cp 2.safetensors copied
"$parley" model verify --json copied | grep -q '"record":false}$'
cp 4.safetensors.agreement.json copied.agreement.json
expect 7 'parley: copied.agreement.json: ' model verify copied
check 3 --epochs 50 --target-accuracy 0.5
# From the start of the first process: not before a node says that it is reached.
python3 - << 'END'
import json
lines = [json.loads(line) for line in open("3.json")]
stops = [line["t"] for line in lines if line["event"] == "phase" and line["phase"] == "stop"]
assert min(stops) <= lines[-1]["time_to_target_s"] <= lines[-1]["wall_s"], lines[-1]
END
grep '"phase":"stop"' 3.json | grep '"cause":"target"' > /dev/null

# What only a node takes changes none of them; what run takes too, does.
printf 'join-timeout: 1ms\n' > node.yaml
PARLEY_SHARD=0/3 PARLEY_JOIN_TIMEOUT=1ms PARLEY_LISTEN=foo PARLEY_NAME=x PARLEY_CONFIG=node.yaml PARLEY_LR=0.03 \
    "$parley" run -n 2 --epochs 2 --model softmax --json env.json > /dev/null
tail -n 1 env.json | python3 -c '
import json, sys
assert json.loads(sys.stdin.readline())["coverage"][0] > 0.4'
status=0
# Each step makes the weights 799 times as large, whatever the gradient is.
PARLEY_LR=800 "$parley" run -n 2 --steps 200 --model mlp:8 --weight-decay 1 > diverged 2>&1 || status=$?
[ $status -eq 8 ]

# A share smaller than a batch is cycled, and said once; gd takes shares as they are.
"$parley" run -n 2 --steps 2 --model softmax --batch 20000 > /dev/null 2> said
[ "$(grep -Ec 'smallest share has [0-9]{4} samples, fewer than a batch: .* cycled' said)" -eq 1 ]
for how in '--batch 32' '--batch 20000 --optimizer gd'; do
    # shellcheck disable=SC2086
    "$parley" run -n 2 --steps 2 --model softmax $how > /dev/null 2> said
    if grep cycled said; then exit 1; fi
done

# JSON on stdout is all that is there, a line an object.
"$parley" run -n 2 --steps 10 --model softmax --json - > lines
if grep -v '^{"event":.*}$' lines; then exit 1; fi

# The data of all nodes are in memory once: each maps what `run` has loaded, names of classes and
# columns with them, and they are what a node loads by itself: their name stands for every value.
seq 1 400 | awk 'BEGIN { print "a,b,kind" } { print $1 % 7 "," $1 % 5 "," ($1 % 2 ? "odd" : "even") }' > table.csv
"$parley" node --steps 1 --model mlp:8 --data csv:table.csv --json alone > /dev/null
cat > mapped.py << 'END'
import json, signal, subprocess, sys
started = {}
alone = next(line for line in map(json.loads, open("alone")) if line["event"] == "started")
run = subprocess.Popen([sys.argv[1], "run", "-n2", "--time=600s", "--model=mlp:8", "-q", "--json=-",
                        "--data=csv:table.csv"], stdout=subprocess.PIPE, text=True)

def look(node):
    with open(f"/proc/{node['pid']}/maps") as maps:
        text = maps.read()
        assert "memfd:parley-data" in text and "memfd:parley-coverage" in text, node
    assert node["data"] == alone["data"] and node["samples"] == alone["samples"], (node, alone)

trains = 0
try:
    for line in map(json.loads, run.stdout):
        if line["event"] == "started":
            started[line["node"]] = line
        if line["event"] == "phase" and line["phase"] == "train":
            trains += 1
            if trains == 2:
                for node in started.values():
                    look(node)
                run.send_signal(signal.SIGINT)
    assert trains == 2 and run.wait() == 0
finally:
    run.kill()
END
python3 mapped.py "$parley"
# So it is where the kernel sets a seal more, or demands that it is asked to.
for noexec in 1 2; do
    apart=(unshare -rpf --kill-child --mount-proc sh -c "echo $noexec > /proc/sys/vm/memfd_noexec && exec "'"$@"' sh)
    if "${apart[@]}" true 2> refused; then
        "${apart[@]}" python3 mapped.py "$parley"
    else
        echo "vm.memfd_noexec=$noexec is passed over: $(cat refused)"
    fi
done

# Who has begun to train and dies may be the one that another still waits for: then that is said.
python3 - "$parley" << 'END'
import contextlib, json, os, signal, subprocess, sys
for kill in range(2):
    run = subprocess.Popen([sys.argv[1], "run", "-n2", "--time=2s", "--model=softmax", "-q", "--json=-",
                            "--out=died"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    pids, killed, summary = {}, None, None
    for line in map(json.loads, run.stdout):
        if line["event"] == "started":
            pids[line["node"]] = line["pid"]
        if line["event"] == "phase" and line["phase"] == "train" and not killed:
            killed = line["node"]
            with contextlib.suppress(ProcessLookupError):  # it may be over by now
                os.kill(pids[killed], signal.SIGKILL)
        if line["event"] == "summary":
            summary = line
    said = run.stderr.read()
    assert (run.wait() == 0) == summary["ok"], summary
    assert summary["ok"] or "before all were training" in said, said
END

# A node that somebody has ended by a second signal is dead, and no failure of the others.
python3 - "$parley" << 'END'
import json, os, signal, subprocess, sys
run = subprocess.Popen([sys.argv[1], "run", "-n3", "--time=600s", "--model=softmax", "--json=-", "--out=twice"],
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
pids, summary, killed, stopped = {}, None, None, False
for line in map(json.loads, run.stdout):
    if line["event"] == "started":
        pids[line["node"]] = line["pid"]
    if line["event"] == "progress" and line["step"] > 0 and not killed:
        killed = line["node"]
        for number in signal.SIGSTOP, signal.SIGINT, signal.SIGTERM, signal.SIGCONT:
            os.kill(pids[killed], number)
    if line["event"] == "member" and not stopped and line["peer"] == killed and line["state"] in ("dead", "left"):
        stopped = True
        run.send_signal(signal.SIGINT)
    if line["event"] == "summary":
        summary = line
said = run.stderr.read()
assert run.wait() == 0 and summary["ok"] and summary["agreed"] == 2, summary
assert killed + " was killed by signal 15" in said, said
END

# On a terminal of 8 lines and 40 columns, too, no more lines are cleared than stand there.
python3 - "$parley" << 'END'
import fcntl, os, pty, re, struct, sys, termios
process, terminal = pty.fork()
if process == 0:
    fcntl.ioctl(2, termios.TIOCSWINSZ, struct.pack("HHHH", 8, 40, 0, 0))
    os.environ["TERM"] = "xterm"
    os.execv(sys.argv[1], [sys.argv[1], "run", "-n8", "--time=1s", "--model=softmax"])
seen = b""
while True:
    try:
        read = os.read(terminal, 65536)
    except OSError:  # Linux: nobody has it open any more
        break
    seen += read
assert os.waitpid(process, 0)[1] == 0, seen
frames = re.split(rb"\r\x1b\[(\d+)A\x1b\[J", seen)
assert len(frames) > 3 and b"and 4 more" in seen, seen
assert all(1 < int(lines) < 8 for lines in frames[1::2]), frames[1::2]
assert b"A\x1b[J" not in b"".join(frames[0::2])
assert seen.count(b"\x1b[?7l") == seen.count(b"\x1b[?7h") >= len(frames) // 2, seen
assert re.search(rb"\d s  8 of 8 alive  epoch [\d.]+ \d+%\r\n", seen), seen  # cut, too
END

# One that can't redraw is written to as a file is.
TERM=dumb on_terminal dumb "$parley" run -n2 --epochs=1 --model=softmax
grep -q 'agreed    2 of 2 nodes' dumb || { cat dumb; exit 1; }
if grep $'\033' dumb; then echo "TERM=dumb: escape sequences"; exit 1; fi

# There are colours on a terminal that can, unless NO_COLOR is set.
TERM=xterm on_terminal colours "$parley" run -n2 --time=1s --model=softmax
grep -q $'\033\[[0-9;]*m' colours
TERM=xterm NO_COLOR=1 on_terminal colours "$parley" run -n3 --time=1s --fault=kill:n1@50% --model=softmax
grep -q $'\033\[J' colours
if grep $'\033\[[0-9;]*m' colours; then echo "NO_COLOR: colours"; exit 1; fi
# Who is dead makes no samples.
grep -Eq $'^n1 +- dead .* - +-\r?$' colours
