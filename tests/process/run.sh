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

# The model of a table knows the names of its classes, and another file's labels go by them: all, some,
# in any order, but no others.
awk 'BEGIN {
    split("ant bee \"c\"\"t\"", name, " ")
    for (i = 0; i < 300; i++) {
        c = i % 3
        print 4 * (c == 1) + i * 7 % 11 / 10 "," 4 * (c == 2) + i * 5 % 13 / 10 "," name[c + 1]
    }
}' > kinds.csv
"$parley" run -n 3 --data csv:kinds.csv --model softmax --lr 0.1 --epochs 20 --out kinds -q > /dev/null
"$parley" model inspect kinds | grep -qFx 'classes     "ant", "bee", "c\"t"'
"$parley" model inspect --json kinds | python3 -c '
import json, sys
model = json.load(sys.stdin)
assert model["class_names"] == ["ant", "bee", "c\"t"] and model["columns"] is None, model
assert model["characters"] is None and [t["shape"] for t in model["tensors"]] == [[2, 3], [3]], model
'
tac kinds.csv > turned.csv
sed '/bee/d' kinds.csv > some.csv
sed 's/bee/1/; s/ant/2/; s/"c""t"/1/' kinds.csv | tr , ' ' | awk '{ print $3, "1:" $1, "2:" $2 }' > other.svm
for data in 'kinds.csv 30' 'turned.csv 30' 'some.csv 20'; do
    "$parley" model eval kinds --data "csv:${data% *}" | grep -q "^accuracy  1.0000 on ${data#* } test samples"
done
"$parley" model eval kinds --test csv:some.csv | grep -q '^accuracy  1.0000 on 200 test samples'
# refused LINE ARGUMENT...: parley ends with status 7, says this and gives no figure.
refused() {
    expect 7 "$1" "${@:2}"
    grep -qFx -- "$1" err
}
sed 's/bee/aaa/' kinds.csv > renamed.csv
has='the training data: "ant", "bee", "c\"t"'
refused "parley: renamed.csv:2: column 3: found \"aaa\", which is no label of $has" model eval kinds --data csv:renamed.csv
refused "parley: other.svm:1:1: found \"2\", expected a label of $has" model eval kinds --data csv:kinds.csv --test libsvm:other.svm

# A column that varies, and not in 24 bits, is named; constant ones are none of those.
awk 'BEGIN { print "kind,same,time"; for (i = 0; i < 40; i++) print i % 2 ",7,170000000" i % 9 }' > late.csv
late='1 column counts for nothing, as 24 bits do not tell the values apart, .*; the first is column 3 ("time")$'
"$parley" check --data csv:late.csv,label=kind --model softmax > out
grep -q "^remark     $late" out
for how in 'run -n 2' node 'sim -n 2'; do
    # shellcheck disable=SC2086
    "$parley" $how --data csv:late.csv,label=kind --model softmax --lr 1e-9 --steps 2 --out late 2> err > /dev/null
    [ "$(grep -c "$late" err)" -eq 1 ]
    # It has learnt nothing, and that is said, once.
    [ "$(grep -c 'no better than guessing (accuracy 0.[0-9]* of 0.5000, loss 0.[0-9]* of ln 2 = 0.6931)' err)" -eq 1 ]
done

# Values that no weight was trained for are left out, and that is said, once, by whoever tries them.
awk -F, '{ print NR % 3, "1:" $1, "2:" $2 }' kinds.csv > sparse.svm
awk '{ print $0, "4:1" } END { print "1 9:1" }' sparse.svm > wider.svm
left='301 of the values read are left out: their indices, the largest 9, are beyond the 2 values of a training sample'
for how in 'run -n 2' node 'sim -n 2'; do
    # shellcheck disable=SC2086
    "$parley" $how --data libsvm:sparse.svm --test libsvm:wider.svm --model softmax --steps 2 --out sparse 2> err > /dev/null
    [ "$(grep -c "$left" err)" -eq 1 ]
done
for how in 'eval sparse --test' 'eval sparse --data' 'predict sparse --data'; do
    # shellcheck disable=SC2086
    "$parley" model $how libsvm:wider.svm 2> err > out
    [ "$(grep -c "$left" err)" -eq 1 ]
    [ -s out ]
done
"$parley" model eval sparse --data libsvm:sparse.svm 2> err > out
[ ! -s err ]

# What it makes of samples it has not seen labelled: their own kinds here, in their order; and who
# reads may stop.
cut -d, -f1,2 kinds.csv > bare.csv
"$parley" model predict kinds --data csv:bare.csv > classes
"$parley" model predict kinds --data csv:kinds.csv | cmp - classes
"$parley" model predict kinds --data csv:bare.csv --json > classes.json
python3 - << 'END'
import csv, json
kinds = [row[2] for row in csv.reader(open("kinds.csv"))]
table = list(csv.DictReader(open("classes")))
lines = [json.loads(line) for line in open("classes.json")]
assert [row["class"] for row in table] == [line["class"] for line in lines] == kinds
for row, line in zip(table, lines):
    assert abs(float(row["probability"]) - line["probability"]) < 1e-5
    assert len(line["probabilities"]) == 3 and abs(sum(line["probabilities"]) - 1) < 1e-5
    assert line["probability"] == max(line["probabilities"]) > 1 / 3
END
awk 'BEGIN { print "a,b,y"; for (i = 0; i < 200; i++) print i % 7 "," i % 5 "," 3 * (i % 7) - i % 5 }' > line.csv
"$parley" run -n 2 --data csv:line.csv,numbers --model linear --lr 0.1 --steps 8000 --out line -q > /dev/null
"$parley" model inspect line | grep -q ' 2 values, 1 number,'
"$parley" model inspect line | grep -q '^labels      of mean 6.[0-9]* and deviation 6'
"$parley" model eval line --data csv:line.csv,numbers --json | grep -q '^{"accuracy":null,"loss":[0-9.e-]*,"samples":20}$'
"$parley" model eval line --data csv:line.csv,numbers > out
grep -Eqx 'loss  ([0-9][.][0-9]e-[0-9]{2}|0[.][0-9]{4}) [(]mean squared error[)] on 20 test samples' out
# Labels that floats would not tell apart are met, and told, all the same.
awk -F, 'NR == 1 || $3 += 100000000' OFS=, OFMT=%.9g CONVFMT=%.9g line.csv > high.csv
"$parley" run -n 2 --data csv:high.csv,numbers --model linear --lr 0.1 --steps 8000 --out high -q > /dev/null
"$parley" model predict high --data csv:high.csv > values
python3 - << 'END'
import csv
wanted = [float(row["y"]) for row in csv.DictReader(open("high.csv"))]
table = [float(row["value"]) for row in csv.DictReader(open("values"))]
assert min(wanted) > 99999990 and max(abs(g - w) for g, w in zip(table, wanted)) < 0.05, table[:9]
END
# What would diverge at a usual rate is shortened, unless it is said how.
for seed in 1 2 3 4; do
    "$parley" sim -q --nodes 3 --seed $seed --data csv:line.csv,numbers --model mlp:256,128 --epochs 60 --json - > bent.json
    python3 -c 'import json; assert json.loads(open("bent.json").readlines()[-1])["test_loss"] < 0.5'
done
if "$parley" model eval kinds --data csv:line.csv,numbers 2> refused; then exit 1; fi
grep -q "labels are numbers, the model's classes" refused
"$parley" model inspect line | grep -qFx 'columns     "a", "b"'
awk -F, '{ print $2 "," $1 "," $3 }' line.csv > turned.csv
refused 'parley: turned.csv:1: column 1: found "b", expected "a" as in the training data' \
    model predict line --data csv:turned.csv
# Names that a model's file can't carry are said to be lost, once, by whoever trains on them.
printf '1,b\n2,caf\351\n3,b\n' > latin.csv
lost='the model will not carry the names of its classes, as one is not UTF-8 or has two lines'
for how in 'run -n 2' node 'sim -n 2'; do
    # shellcheck disable=SC2086
    "$parley" $how --data csv:latin.csv --model softmax --steps 2 --out latin 2> err > /dev/null
    [ "$(grep -cF "$lost" err)" -eq 1 ]
done
"$parley" check --data csv:latin.csv --model softmax > out
grep -qF "remark     $lost" out
"$parley" check --data csv:kinds.csv --model softmax > out
if grep -q '^remark' out; then exit 1; fi
# Too many long names are lost, too. Those of some thousand columns are not, and so data whose
# columns have changed places are refused.
cat > long.py << 'END'
import sys
columns = int(sys.argv[1])
for path, step in ("long.csv", 1), ("turned.csv", -1):
    with open(path, "w") as out:
        print(*["%01000d" % c for c in range(columns)][::step], "kind", sep=",", file=out)
        for row in range(20):
            print(*[row * c % 7 for c in range(columns)][::step], "ab"[row % 2], sep=",", file=out)
END
for columns in 20000 3000; do
    python3 long.py $columns
    "$parley" check --data csv:long.csv --model softmax > $columns.out
done
grep -q '^remark .* not carry the names of its columns, .* all are longer than' 20000.out
if grep -q '^remark' 3000.out; then exit 1; fi
"$parley" run -q -n 2 --data csv:long.csv --model softmax --steps 2 --out long > /dev/null
"$parley" model predict long --data csv:long.csv > /dev/null
expect 7 'parley: turned.csv:1: column 1: found "0' model predict long --data csv:turned.csv
grep -q ', expected "0' err
# So is it of data that there is nothing to learn from, once, by whoever trains on them.
printf '1,b\n2,b\n3,b\n' > one.csv
one='all samples are of one class: there is nothing to tell apart'
"$parley" check --data csv:one.csv --model softmax > out
grep -q '^data .* 1 value each, 1 class$' out
grep -qFx "remark     $one" out
for how in 'run -n 2' node 'sim -n 2'; do
    # shellcheck disable=SC2086
    "$parley" $how --data csv:one.csv --model softmax --steps 2 --out one 2> err > /dev/null
    [ "$(grep -cF "$one" err)" -eq 1 ]
done
"$parley" check --data csv:line.csv,numbers --model linear > out
grep -q '^data .* 2 values each, 1 number$' out
# Images of as many pixels in another shape are none that the model was made for.
python3 - << 'END'
import os
for shape in (6, 10), (10, 6):
    folder = "%dx%d" % shape
    os.mkdir(folder)
    for name, size, data in ("x", "20, %d, %d" % shape, bytes(range(240)) * 5), ("y", "20,", bytes([0, 1] * 10)):
        head = b"{'descr': '|u1', 'fortran_order': False, 'shape': (%s)}" % size.encode()
        open(folder + "/" + name + ".npy", "wb").write(b"\x93NUMPY\1\0" + bytes([len(head), 0]) + head + data)
END
"$parley" run -n 2 --data npy:6x10 --model resnet:1 --steps 2 --out images -q > /dev/null
"$parley" model predict images --data npy:6x10 > /dev/null
refused 'parley: "images" on "npy:10x6": the data are images of 10 x 6 in 1 channels, the model takes 6 x 10 in 1' \
    model predict images --data npy:10x6
# So is a table of as many numbers.
python3 -c 'print((",".join(["5"] * 60) + "\n") * 3, end="")' > sixty.csv
refused 'parley: "images" on "csv:sixty.csv": the data are a table, the model takes images' \
    model predict images --data csv:sixty.csv
"$parley" model predict line --data csv:line.csv > values
"$parley" model predict line --data csv:line.csv --json > values.json
python3 - "$parley" << 'END'
import csv, json, signal, subprocess, sys
wanted = [float(row["y"]) for row in csv.DictReader(open("line.csv"))]
table = [float(row["value"]) for row in csv.DictReader(open("values"))]
for got in table, [json.loads(line)["value"] for line in open("values.json")]:
    assert len(got) == len(wanted) and max(abs(g - w) for g, w in zip(got, wanted)) < 0.05, got[:9]
mlp = [sys.argv[1], "run", "-n", "2", "--data", "csv:line.csv,numbers", "--model", "mlp:16",
       "--epochs", "1000", "--out", "bent", "-q"]
subprocess.run(mlp, check=True, stdout=subprocess.DEVNULL)
bent = subprocess.run([sys.argv[1], "model", "predict", "bent", "--data", "csv:line.csv"],
                      check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
assert bent[0] == "value" and max(abs(float(g) - w) for g, w in zip(bent[1:], wanted)) < 4, bent[:9]
much = subprocess.Popen([sys.argv[1], "model", "predict", "2.safetensors", "--json"],
                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
much.stdout.readline()
much.stdout.close()
assert much.stderr.read() == b"" and much.wait() == -signal.SIGPIPE
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
