#!/bin/sh
# deaths.sh PARLEY: 19 of 64 simulated nodes are killed at random times: the survivors agree on one
# model, drift goes on falling, and the accuracy (mean of five seeds) is at most half a point below that
# of the undisturbed runs. On MNIST where PARLEY_TEST_DATA names a folder with it, else on digits.
parley=$1 exec python3 - <<'PYTHON'
import json, os, random, subprocess, sys, tempfile

mnist = os.path.join(os.environ.get("PARLEY_TEST_DATA", ""), "mnist")
data = ["--data", "idx:" + mnist, "--epochs", "4"] if os.path.isdir(mnist) else ["--epochs", "20"]

def run(seed, *options):
    with tempfile.TemporaryDirectory() as folder:
        lines = os.path.join(folder, "lines.json")
        done = subprocess.run(
            [os.environ["parley"], "sim", "--nodes", "64", "--model", "mlp:32", "--compute", "10ms",
             "--latency", "1ms",
             "--seed", str(seed), "--json", lines, *data, *options],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        events = [json.loads(line) for line in open(lines)]
    if done.returncode != 0:
        sys.exit("seed %d: status %d\n%s" % (seed, done.returncode, done.stderr))
    return events

def drifts(events):
    """The mean drift that the nodes tell while they train, and that at the proposal."""
    stop = min(e["t"] for e in events if e["event"] == "phase" and e["phase"] == "stop")
    told = [e["drift"] for e in events
            if e["event"] == "progress" and e["drift"] is not None and e["t"] <= stop]
    return sum(told) / len(told), events[-1]["drift_before"]

differences = []
for seed in range(1, 6):
    draw = random.Random(seed)
    # Among so many the end is known to some per cent: a later one might come after it.
    kills = ["--fault=kill:1@%.1f%%" % draw.uniform(1, 95) for _ in range(19)]
    calm, killed = run(seed)[-1], run(seed, *kills)
    end = killed[-1]
    training, proposed = drifts(killed)
    deaths = sum(e["event"] == "fault" for e in killed)
    digests = {e["digest"] for e in killed if e["event"] == "agreed"}
    print("seed %d: accuracy %.4f undisturbed, %.4f with %d deaths, drift %.1e, then %.1e" %
          (seed, calm["test_accuracy"], end["test_accuracy"], deaths, training, proposed), flush=True)
    if (deaths, end["live"], end["agreed"], len(digests)) != (19, 45, 45, 1):
        sys.exit("%d deaths, %d live, %d agreed on %d models" %
                 (deaths, end["live"], end["agreed"], len(digests)))
    if not proposed < training / 100:
        sys.exit("drift has not fallen: %r, then %r" % (training, proposed))
    differences.append(end["test_accuracy"] - calm["test_accuracy"])
mean = sum(differences) / len(differences)
print("mean difference %+.4f" % mean)
# More is no fault: fewer nodes share the same budget, and mix better.
if mean < -0.005:
    sys.exit("that is more than half a point lost")
PYTHON
