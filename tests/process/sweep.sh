#!/bin/bash
# sweep.sh PARLEY: a small comparison: its JSON lines, CSV, table and report say the same, for any
# number of threads, from flags and from the report's file; each run is what it is alone; bad ones are refused
# before any run.
source "$(dirname "$0")/failures.sh"

well_formed() {
    if command -v xmllint >/dev/null; then
        xmllint --noout "$1"
    else
        python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' "$1"
    fi
}

settings=(--nodes 3 --model softmax --steps 30 --compare gossip,none --mix-every 1,8 --seed 1..2)
"$parley" sim -q "${settings[@]}" --threads 1 --json one.json --csv one.csv --curves one.curves --report one.html > one.txt ||
    fail "a comparison ends with status $?"
"$parley" sim -q "${settings[@]}" --threads 3 --json many.json --csv many.csv --curves many.curves --report many.html > many.txt ||
    fail "a comparison with threads ends with status $?"
for kind in csv curves html txt; do
    cmp one.$kind many.$kind || fail "$kind differs with the number of threads"
done
[ "$(wc -l < one.csv)" -eq 9 ] || fail "8 runs are not 9 lines of CSV"
[ "$(grep -c '^gossip  *[18] \|^none  *- \|^single  *- ' one.txt)" -eq 4 ] || fail "the table: $(cat one.txt)"
grep -q '^mean over 2 seeds' one.txt || fail "the table does not tell of seeds"

python3 - <<'END' || fail "JSON lines and CSV do not tell the same"
import csv, json
lines = [[json.loads(line) for line in open(name)] for name in ("one.json", "many.json")]
for runs in lines:
    for run in runs:
        assert run.pop("event") == "summary" and run.pop("ok")
        del run["wall_s"], run["node_steps_per_s"]
assert lines[0] == lines[1]
rows = list(csv.DictReader(open("one.csv")))
assert len(rows) == len(lines[0]) == 8
for row, run in zip(rows, lines[0]):
    assert row["run_hash"] == run["run_hash"] and row["strategy"] == run["strategy"]
    assert row["--seed"] == str(run["swept"]["seed"])
    assert abs(float(row["test_accuracy"]) - run["test_accuracy"]) < 1e-8
    assert run["agreed_s"] >= run["trained_s"] > 0
    # What nodes that trained apart sent was for the end; none alone is as good as their mean.
    assert 0 < run["bytes_trained"] <= run["bytes_sent"] and int(row["bytes_trained"]) == run["bytes_trained"]
    apart = run["strategy"] == "none"
    assert int(row["exchanges_trained"]) == run["exchanges_trained"] <= run["exchanges"], run
    assert (run["exchanges_trained"] > 0) == (run["strategy"] == "gossip"), run
    assert (run["bytes_trained"] < run["bytes_sent"] / 2) == apart or run["strategy"] == "single", run
    for name in ("own_accuracy", "own_accuracy_worst", "own_accuracy_sd"):
        assert row[name] == "" if run[name] is None else abs(float(row[name]) - run[name]) < 1e-8
    assert 0.1 < run["own_accuracy_worst"] <= run["own_accuracy"], run
    assert not apart or run["own_accuracy"] < run["test_accuracy"] - 0.01, run
    assert (run["own_accuracy_sd"] is None) == (run["strategy"] == "single")
assert len({row["run_hash"] for row in rows if row["strategy"] != "none"}) == 6
assert rows[-1]["strategy"] == "single" and rows[-1]["--mix-every"] == "" and rows[-1]["steps"] == "90"
END

# The curves of each run, without gaps: they end in what the table says, and grow on the way.
python3 - <<'END' || fail "the curves"
import csv
runs = list(csv.DictReader(open("one.csv")))
points = list(csv.DictReader(open("one.curves")))
assert list(points[0]) == ("run strategy mix_every seed phase t epoch samples bytes_sent test_accuracy "
                           "test_loss drift").split(), points[0]
assert [int(p["run"]) for p in points] == sorted(int(p["run"]) for p in points)
for number, run in enumerate(runs, 1):
    own = [p for p in points if int(p["run"]) == number]
    train = [p for p in own if p["phase"] == "train"]
    end = own[-1]
    assert len(train) >= 10 and end["phase"] == "done", own
    for p in own:
        assert (p["strategy"], p["mix_every"], p["seed"]) == (run["strategy"], run["--mix-every"], run["--seed"])
        assert abs(float(p["epoch"]) - int(p["samples"]) * float(run["epochs"]) / int(run["samples"])) < 1e-6
        assert p["phase"] == "settle" or 0 < float(p["test_accuracy"]) < 1 and float(p["test_loss"]) > 0
        assert p["phase"] != "settle" or p["test_accuracy"] == p["test_loss"] == "" and float(p["drift"]) >= 0
    for name in ("t", "epoch", "samples", "bytes_sent"):
        values = [float(p[name]) for p in own]
        assert values == sorted(values), (name, values)
    assert float(train[-1]["t"]) <= float(run["trained_s"]) < float(end["t"])
    assert abs(float(end["t"]) - float(run["agreed_s"])) < 1e-6 and float(end["drift"]) < 1e-4
    for name in ("test_accuracy", "test_loss", "samples"):
        assert end[name] == run[name], (end, run)
END
# Of one run, on stdout and alone there; the name of the file is a setting like any other.
echo 'curves: "-"' > curves.yaml
"$parley" sim -q --nodes 3 --model softmax --steps 30 --mix-every 8 --seed 2 -c curves.yaml > alone.curves
cmp <(sed 1d alone.curves) <(grep '^4,' one.curves | sed 's/^4,gossip,8,2/1,gossip/') ||
    fail "the curves of a run alone: $(cat alone.curves)"
PARLEY_CURVES=quadratic.curves "$parley" sim -q --nodes 4 --model quadratic:100,apart --lr 0 --steps 30 > /dev/null
awk -F, 'NR > 1 && ($8 != "" || $9 != "" || $10 == "") { bad = 1 } END { exit bad || NR < 10 }' quadratic.curves ||
    fail "the curves of a quadratic have more than drift: $(cat quadratic.curves)"
# Where all are dead there is no drift, in the curves as in the table.
"$parley" sim -q --nodes 3 --model softmax --steps 30 --fault kill:100%@50% --curves dead.curves > /dev/null 2>&1
[ $? -eq 3 ] || fail "a run that nobody lived through has not status 3"
awk -F, '$3 == "train" { seen += $10 > 0 } END { exit $10 != "" || !seen }' dead.curves ||
    fail "a drift of nobody: $(tail -n 3 dead.curves)"

"$parley" sim -q --nodes 3 --model softmax --steps 30 --csv - > single.csv
[ "$(wc -l < single.csv)" -eq 2 ] || fail "the CSV of one run on stdout is not two lines"

# A run of the sweep is the run alone.
alone=$("$parley" sim -q --nodes 3 --model softmax --steps 30 --mix-every 8 --seed 2 | sed -n 's/.*run hash //p')
grep -q "^gossip,8,2,.*,$alone," one.csv || fail "the run alone has another hash: $alone"

# The report is one whole file, and repeats the experiment.
well_formed one.html || fail "the HTML is not well-formed"
[ -z "$(ls ./*.partial 2>/dev/null)" ] || fail "a partial report is left"
# A line a setting, with a band for its seeds, and a colour for it everywhere. The axis of time ends
# with the slowest but of a single node, whose line is cut off there without a dot; that of drift at
# what training came down to.
python3 - <<'END' || fail "the charts of a sweep"
import csv, re
page = open("one.html").read()
groups = [("gossip", "1"), ("gossip", "8"), ("none", ""), ("single", "")]
charts = re.split(r'<text class="title"', page[:page.index("End results")])[1:]
assert len(charts) == 6, len(charts)
points = list(csv.DictReader(open("one.curves")))
for place, chart in enumerate(charts):
    drift = place >= 4
    lines = re.findall(r'class="line (c\d) d\d" d="M([^"]*)"', chart)
    bands = re.findall(r'class="band f(\d)"', chart)
    shown = ["c%d" % g for g in range(3 if drift else 4)]
    assert [color for color, _ in lines] == shown, (place, lines)
    assert bands == [color[1] for color in shown], (place, bands)
    if place % 2 == 0:
        slowest = max(float(p["t"]) for p in points if p["strategy"] != "single")
        last = float(re.findall(r'>([\d.]+)</text>\n<path class="rule"', chart)[-1]) / 1000
        assert ">virtual time (ms)<" in chart and slowest <= last < 1.5 * slowest, (slowest, last)
        assert not re.search('circle class="f3"', chart), chart
    if drift:
        assert not re.search(">10⁻⁴<|>10⁻⁵<", chart), chart
        assert not re.search("circle", chart), chart
text = " ".join(page.split())
assert "A line is the mean over the seeds" in text and "single goes on" in text
END
! grep -qE '(src|href)=|@import|url\(' one.html || fail "the report asks for other files"
python3 - <<'END'
import html, re
blocks = re.findall(r"<pre>(.*?)</pre>", open("one.html").read(), re.S)
open("line.sh", "w").write(html.unescape(blocks[0]))
open("again.yaml", "w").write(html.unescape(blocks[1]))
END
"$parley" sim -q -c again.yaml --csv again.csv --report again.svg > /dev/null
cmp one.csv again.csv || fail "the report's file makes another experiment"
grep -q '^parley sim --nodes=3 ' line.sh || fail "the report has no command line"
well_formed again.svg || fail "the SVG is not well-formed"
hashes=$(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "run_hash") hash = i; next } { print $hash }' again.csv)
[ "$hashes" = "$(sed -nE 's/^# ([0-9a-f]{16}) sha256:.*/\1/p' again.svg)" ] || fail "the hashes of an .svg are not its runs'"
grep -q 'mean of the live nodes' again.svg || fail "an .svg does not say what its curves are of"
grep -q 'Drawn is the first of the runs .*, with the first seed\.<' again.svg || fail "which topologies are drawn is not said"
# A graph in a file is drawn like any other.
printf 'n0 n1\nn1 n2\n' > line.graph
"$parley" sim -q --nodes 3 --model softmax --steps 5 --topology file:line.graph --report line.svg > /dev/null
grep -q '>2 links<' line.svg && [ "$(grep -c 'class="edge".* d="M[^M]*M[^M]*"/>$' line.svg)" -eq 1 ] ||
    fail "a graph in a file is not drawn"
# Who was to join after the end never was a node of the run.
"$parley" sim -q --nodes 3 --model quadratic:8 --steps 50 --fault 'join:2@5m or join:2@40%' --report late.svg > late
[ "$(grep -oE '[0-9] of [0-9]$' late | paste -sd ,)" = '3 of 3,5 of 5' ] &&
    [ "$(grep -oE '; 2 joined later<|>n[34]<|"dead"' late.svg | paste -sd ,)" = '; 2 joined later<,>n3<,>n3<,>n4<,>n4<' ] ||
    { fail 'who never joined is told of'; cat late; }
# Nor does it matter what the file is called: reports are well-formed, and say what each run agreed on.
mv line.graph 'a&b<c.graph'
for kind in html svg; do
    "$parley" sim -q --nodes 3 --model softmax --steps 5 --topology 'ring,file:a&b<c.graph' --report odd.$kind > /dev/null
    well_formed odd.$kind && grep -q '>file:a&amp;b&lt;c.graph, 3 nodes<' odd.$kind || fail "an odd name: odd.$kind"
done
[ "$(grep -c '<td class="name">file:a&amp;b&lt;c.graph</td>' odd.html)" -eq 1 ] &&
    [ "$(grep -c '<td class="name">sha256:[0-9a-f]*</td>' odd.html)" -eq 2 ] || fail "what an odd name's report says"
# A quadratic has no loss on test data: its drift is drawn, and told, alone.
"$parley" sim --nodes 4 --model quadratic:100,apart --lr 0 --steps 30 --mix-every 1,2,4 --report drift.svg > /dev/null 2> drift.err
[ "$(grep -c 'run [123] of 3: .*: drift [0-9]' drift.err)" -eq 3 ] || fail "what is told of quadratics: $(cat drift.err)"
grep -q 'drift by mix-every' drift.svg && [ "$(grep -c 'class="line c' drift.svg)" -ge 5 ] && ! grep -q 'test loss\|loss by' drift.svg ||
    fail "the report of a quadratic draws something else than drift"
# To many readers of SVG a var() is black: there is none, and dark colours are an at-rule of their own.
python3 - <<'END' || fail "the colours of the SVG"
import re
style = re.search("<style>(.*?)</style>", open("again.svg").read(), re.S)[1]
dark = re.findall(r"(?m)^@media\(prefers-color-scheme:dark\)({.*})$", style)
assert "var(" not in style and len(dark) == 1 and style.count("@") == 1, style
light = {rule for rule in re.findall(r"([^{}\n]+){[^{}]*#", style.replace(dark[0], ""))}
assert ".back" in light and ".c7" in light and light == set(re.findall(r"([^{}]+){[^{}]*#", dark[0])), light
END

# A picture is as wide as its widest line of text, at 6.6 a character; a long command is broken.
long='slow=2:30%@1% slow=2:30%@2% slow=2:30%@3% slow=2:30%@4% slow=2:30%@5% slow=2:30%@6%'
"$parley" sim -q --nodes 2 --model quadratic:10 --steps 2 --fault "none or $long or $long kill:1@90%" --report wide.svg > /dev/null 2>&1
python3 - << 'END' || fail "text beyond the edge of a picture"
import html, re
page = open("wide.svg").read()
right = int(re.search(r'viewBox="0 0 (\d+)', page)[1])
ends = []
for x, text in re.findall(r'<text(?: class="mono"|) x="([\d.]+)" y="[^"]*"[^>]*>([^<]*)<', page):
    ends.append((20 + float(x) + 6.6 * len(html.unescape(text)), text))
assert max(ends)[0] <= right and len(ends) > 8, (right, max(ends))
assert max(end for end, text in ends if "--" in text) <= 1000, ends[-1]
END

# Three numbers make a chart of the end results against them, with a point each: the means of the
# seeds. Who does not heed the setting is a level line. Two of them, or words, make none.
"$parley" sim -q --nodes 4 --model softmax --steps 40 --mix-every 16,1,4 --batch 16,32 --partition iid,shards \
    --seed 1..2 --compare gossip,none --csv by.csv --report by.html > /dev/null
python3 - << 'END' || fail "the charts of a setting"
import csv, html, re
page = open("by.html").read()
assert re.findall(r">(\w+) by ([\w-]+)<", page) == [(y, "mix-every") for y in ("accuracy", "training", "bytes")], page
part = page[page.index("accuracy by"):page.index("training by")]
lines = [[tuple(map(float, p.split())) for p in re.split("[ML]", d)[1:]]
         for d in re.findall(r'class="line [^"]*" d="([^"h]*)"', part)]
assert len(lines) == 4 and all(len(line) == 3 for line in lines), lines
assert len(re.findall(r'class="line [^"]*" d="M[^"]*h', part)) == 6, part  # four of none; single has no partition
# Dots have the colours of their settings in the table, lines and their bands that of the first dot.
rows = page[page.index("<table>"):page.index("</table>")].split("<tr>")[2:]
table = [(re.search('class="line (c.) (d.)"', row).groups(), re.findall('class="name">([^<]*)<', row)) for row in rows]
assert [names for _, names in table][0] == ["gossip", "iid", "16", "16"], table
dots = re.findall('circle class="f(.)"', part)
assert sorted(dots) == sorted(style[0][1] for style, names in table if names[0] == "gossip"), dots
legend = re.findall(r'class="line (c.) (d.)"[^>]*><text[^>]*>(\w+)(?:, partition (\w+))?, batch (\w+)<',
                    page[page.index("bytes by"):])
assert len(legend) == 10 and len(re.findall('class="band', part)) == 10, legend
assert re.findall('class="line (c.) (d.)"', part) == [(color, dash) for color, dash, *_ in legend]
for color, dash, *names in legend:
    first = next(style for style, row in table if row[:3] == [names[0], names[1] or "-", names[2]])
    assert first == (color, dash), (names, first)
assert len({x for line in lines for x, y in line}) == 3 and all(line == sorted(line) for line in lines)
means = {}
for row in csv.DictReader(open("by.csv")):
    if row["strategy"] == "gossip":
        line = means.setdefault((row["--batch"], row["--partition"]), {})
        line.setdefault(int(row["--mix-every"]), []).append(float(row["test_accuracy"]))
points = sorted((sum(a) / 2, y) for line, ys in zip(means.values(), lines)
                for (_, a), (_, y) in zip(sorted(line.items()), ys))
assert all(b <= a + 0.06 for (_, a), (_, b) in zip(points, points[1:])), points  # higher is better
END

# Where labels are numbers, there is no accuracy to be drawn or told.
awk 'BEGIN { print "a,b,y"; for (i = 0; i < 200; i++) print i % 7 "," i % 5 "," (i % 7) * (i % 5) }' > bent.csv
"$parley" sim --nodes 3 --data csv:bent.csv,numbers --model mlp:8 --steps 30 --compare gossip,none \
    --report bent.html > /dev/null 2> bent.err || fail "an experiment with numbers: $(cat bent.err)"
[ "$(grep -c '>test accuracy<' one.html)" -ge 2 ] || fail "a report of classes has no accuracy"
[ "$(grep -c '>test accuracy<' bent.html)" -eq 0 ] || fail "a report of numbers has an empty chart"
[ "$(grep -c '>test loss<' bent.html)" -eq 2 ] || fail "a report of numbers has no loss"
grep -q 'run 1 of 3: gossip: loss [0-9]' bent.err || fail "progress of numbers: $(cat bent.err)"

# The comments are defaults of the strategy, too: with them the file makes the same run.
for strategy in gossip allreduce diloco choco noloco; do
    "$parley" sim -q --nodes 2 --model softmax --steps 60 --strategy $strategy --csv own.csv --report own.html > /dev/null
    python3 -c 'import html, re; print(html.unescape(re.findall(r"<pre>(.*?)</pre>", open("own.html").read(), re.S)[1]))' |
        sed '1d; s/^# //' > whole.yaml
    "$parley" sim -q -c whole.yaml --csv whole.csv > /dev/null && cmp own.csv whole.csv ||
        fail "$strategy: the report's file with its comments makes another run"
done

# Two halves that each agree have no common model: what is counted is the larger one.
split='partition:n0-n4|n5-n7@30%'
"$parley" sim -q --nodes 8 --model softmax --epochs 1 --fault "$split or none" --report split.html > split.txt 2> split.err
[ $? -eq 3 ] || fail "a split run is well"
grep -q '5 of 8 !$' split.txt && grep -q '8 of 8$' split.txt && grep -q '^!  a run failed' split.txt &&
    grep -q '!: a run failed' split.html || fail "a split run: $(cat split.txt)"
mv split.txt table.txt
"$parley" sim -q --nodes 8 --model softmax --epochs 1 --fault "$split" > split.txt 2> split.err
grep -q '5 of 8 nodes     no common digest' split.txt || fail "a split run alone: $(cat split.txt)"
# The line that repeats it.
grep -q "to repeat it: parley sim --nodes=8 --model=softmax --epochs=1 --strategy=gossip '--fault=$split'\$" split.err ||
    fail "a split run alone is not told how to repeat it: $(cat split.err)"
"$parley" sim -q --nodes 2 --model mlp:64 --lr 1000 --weight-decay 1 --steps 300 > /dev/null 2> split.err
grep -q 'no longer finite; to repeat it: parley sim --nodes=2 --model=mlp:64 --lr=1000 ' split.err ||
    fail "a diverged run is not told how to repeat it: $(cat split.err)"
# Settling took a minute, training did not: "training" is the same alone and in the table.
took=$(grep -o 'steps, [0-9.]* s ' split.txt | cut -d ' ' -f 2-3)
grep -q "^gossip  *partition.* $took " table.txt || fail "training took $took alone, and in $(cat table.txt)"
! grep -q 'a run failed' one.txt || fail "a failure is explained where there was none"

# What each run has used stands in its row.
"$parley" sim -q --nodes 8 --model softmax --epochs 1 --compare gossip --csv used.csv > used.txt
paste <(awk 'NR > 1 { print $5 }' used.txt) <(python3 -c '
import csv
for row in csv.DictReader(open("used.csv")): print("%.2f" % float(row["epochs"]))') > used
[ "$(awk '$1 == $2' used | wc -l)" -eq 2 ] && grep -q '^strategy .* drift  epochs  training' used.txt ||
    fail "the epochs of the table: $(cat used.txt used)"

# A row is marked whose model guesses, as a run alone would say.
"$parley" sim -q --nodes 2 --model mlp:16 --optimizer sgd --epochs 1 --lr 0.05,30 --report guess.html > guess.txt
grep -q '^gossip  *0\.05 .* 2 of 2 *$' guess.txt && grep -q '^gossip  *30 .* 2 of 2 ?$' guess.txt &&
    grep -q '^?  a model does no better than guessing' guess.txt && grep -q '2 of 2 ?</td>' guess.html &&
    grep -q ' ?: a model does no' guess.html || fail "a guess in a sweep: $(cat guess.txt)"

# Who met a target, and when, is in the table, where there is one.
"$parley" sim -q --nodes 4 --model softmax --epochs 1 --compare gossip --seed 1..2 --target-accuracy 0.6,0.99 \
    --eval-every 500 --csv met.csv --report met.html > met.txt
grep -q 'training  *to target  *exchanges' met.txt && grep -q '<th>to target</th>' met.html &&
    grep -Eq '^gossip  *0\.6  .* [0-9.]+ s  0\.[0-9]+ s \(2 of 2\) ' met.txt && grep -Eq '^gossip  *0\.99  .* s  *-  ' met.txt &&
    [ "$(grep -c ' (2 of 2) ' met.txt)" -eq 2 ] || fail "a target: $(cat met.txt)"
! grep -q 'to target' used.txt one.html || fail "a target where there is none"

# A single run speaks as it always did, and has a report, too.
"$parley" sim --nodes 2 --model softmax --steps 10 --json - --report alone.svg > alone.json
[ "$(tail -n 1 alone.json | grep -c '"event":"summary"')" -eq 1 ] || fail "a single run has no summary"
grep -q '"event":"agreed"' alone.json || fail "a single run does not tell what happens"
well_formed alone.svg || fail "the report of a single run is not well-formed"

# One that is interrupted leaves no report that is none.
: > cut.json
"$parley" sim -q --nodes 2 --model softmax --steps 10000000 --json cut.json --report cut.html 2> /dev/null &
until_said cut.json $! '"event":"progress"' || fail "a long run is over"
kill -TERM $!
wait $! 2> /dev/null
[ -z "$(ls cut.html* 2> /dev/null)" ] || fail "an interrupted run leaves $(ls cut.html*)"

# Of several, those that were made by then are told of as ever, and nothing of the others is.
rm -f cut.*
: > cut.json
"$parley" sim -q --nodes 2 --model softmax --steps 5,10,10000000 --seed 1..2 --threads 2 --json cut.json \
    --csv cut.csv --curves cut.curves --report cut.html > cut.txt 2> cut.err &
head -n 4 < <(exec tail -n +1 -f --pid=$! cut.json) > /dev/null
kill -TERM $!
wait $! 2> /dev/null
got=$?
[ $got -eq 143 ] && [ "$(cat cut.err)" = 'parley: sim: stopped after 4 of 6 runs' ] || fail "stopped: status $got, $(cat cut.err)"
[ "$(wc -l < cut.json)" -eq 4 ] && [ "$(wc -l < cut.csv)" -eq 5 ] && ! grep -q '^[56],' cut.curves &&
    [ "$(grep -Ec '^gossip +(5|10) .* 4 of 4$' cut.txt)" -eq 2 ] && [ "$(wc -l < cut.txt)" -eq 4 ] &&
    grep -q '^mean over up to 2 seeds' cut.txt || fail "the table of a stopped sweep: $(cat cut.txt cut.json)"
well_formed cut.html && grep -q 'stopped after 4 of 6 runs' cut.html && [ -z "$(ls ./*.partial 2> /dev/null)" ] &&
    [ "$(grep -c '<td class="name">sha256:' cut.html)" -eq 4 ] || fail "the report of a stopped sweep"

# refuse STATUS TEXT ARGUMENT...: nothing is run.
refuse() {
    local status=$1 text=$2
    shift 2
    "$parley" sim "$@" > out 2>&1
    local got=$?
    [ $got -eq "$status" ] && grep -qF -- "$text" out && ! grep -q 'run 1 of\|simulated' out ||
        fail "parley sim $*: status $got, not $status, or no \"$text\" in: $(cat out)"
}
refuse 2 '--report: nodir/x.html: No such file' --nodes 2,3 --report nodir/x.html
refuse 2 '--csv: nodir/x.csv: No such file' --nodes 2,3 --csv nodir/x.csv
refuse 2 '--curves: nodir/x.csv: No such file' --nodes 2,3 --curves nodir/x.csv
refuse 2 '--json: nodir/x.json: No such file' --nodes 2,3 --json nodir/x.json
refuse 2 'neither in .html nor in .svg' --report x.pdf
refuse 2 'is an empty range' --nodes 5..2
refuse 2 'did you mean "gossip"' --compare gosip
refuse 2 "it can't be swept" --threads 1..2
refuse 2 'an empty name' --compare gossip,
refuse 2 'has an empty value' --seed ,
refuse 2 'exclude each other' --strategy none --compare gossip
refuse 2 'is not a node' --nodes 4,2 --fault kill:n3@50%
echo 'seed: []' > none.yaml
refuse 2 'an empty list' -c none.yaml
refuse 7 'nodir/train-images' --nodes 2,3 --data idx:nodir
exit $((failures > 0))
