#!/bin/sh
# Real data: several nodes reach what one node reaches with the same samples. How often nodes exchange, and so the last tenths of a point (with skewed shares some
# points), depends on what else the machine does: the suite only asks that they learn, once;
# `strict` as a second argument asks for what an otherwise idle machine should give, of three.
data=${PARLEY_TEST_DATA:-}
if [ ! -e "$data/mnist/train-images-idx3-ubyte.gz" ]; then
    echo "SKIPPED: PARLEY_TEST_DATA names no folder with mnist in it"
    exit 77
fi
parley=$1 bounds=${2:-} data=$data/mnist exec python3 - <<'PYTHON'
import json, os, subprocess, sys, tempfile

def run(seed, nodes, *options):
    with tempfile.TemporaryDirectory() as folder:
        lines = os.path.join(folder, "lines.json")
        done = subprocess.run(
            [os.environ["parley"], "run", "--nodes", str(nodes), "--data",
             "idx:" + os.environ["data"], "--model", "mlp:256,128", "--epochs", "4", "--seed",
             str(seed), "--out", os.path.join(folder, "model"), "--json", lines, *options],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        summary = json.loads(open(lines).read().splitlines()[-1])
    if done.returncode != 0 or not summary["ok"] or summary["agreed"] != nodes:
        sys.exit("%d nodes, seed %d: status %d\n%s" % (nodes, seed, done.returncode, done.stderr))
    if nodes > 1 and not summary["mass_error"] <= 1e-6:
        sys.exit("%d nodes, seed %d: mass error %r" % (nodes, seed, summary["mass_error"]))
    return summary["test_accuracy"]

strict = os.environ["bounds"] == "strict"

def mean(*what):
    got = [run(seed, *what) for seed in ((1, 2, 3) if strict else (1,))]
    print(" ".join(map(str, what)), "nodes:", " ".join("%.4f" % a for a in got), flush=True)
    return sum(got) / len(got)

one, two, four, eight = mean(1), mean(2), mean(4), mean(8)
skewed = mean(8, "--partition", "dirichlet:0.1")
least, lost, lost_skewed = (0.975, 0.004, 0.02) if strict else (0.96, 0.02, 0.15)
bad = []
for nodes, accuracy in ((2, two), (4, four), (8, eight)):
    if accuracy < least:
        bad.append("%d nodes: %.4f is below %g" % (nodes, accuracy, least))
    if accuracy < one - lost:
        bad.append("%d nodes: %.4f is more than %g below %.4f" % (nodes, accuracy, lost, one))
if skewed < one - lost_skewed:
    bad.append("dirichlet:0.1: %.4f is more than %g below %.4f" % (skewed, lost_skewed, one))
sys.exit("\n".join(bad) or 0)
PYTHON
