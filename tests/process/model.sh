#!/bin/bash
# model.sh PARLEY: what a saved model knows of its data, as `parley model` tells, and what is said of
# data that a model can make little of.
source "$(dirname "$0")/folder.sh"

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
"$parley" run -n 2 --steps 40 --model mlp:32 --out digits -q > /dev/null
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
much = subprocess.Popen([sys.argv[1], "model", "predict", "digits", "--json"],
                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
much.stdout.readline()
much.stdout.close()
assert much.stderr.read() == b"" and much.wait() == -signal.SIGPIPE
END
