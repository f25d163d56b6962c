#!/usr/bin/env python3
"""profile.py PARLEY NODES STEPS [ARGUMENT ...]: where the time of `parley sim` goes, by perf.

Runs NODES static nodes of softmax regression for STEPS local steps in one thread, with an exchange a
step on average, and says for each room of the simulator how many microseconds of user and system
time it takes a node-step, from the first local step to the last. ARGUMENTs go to the command, say
--data idx:mnist. Two runs, of 100 nodes and of 10,000, tell what the event queue and the membership
add to the price of a step; the rest of the difference is the way to memory. Runs on a machine with
other work take more of everything: compare what was measured in turns. Where a real-time policy is
to help, it must be PARLEY's alone: a perf that shares its core loses samples, and nothing says so.
"""
import re
import subprocess
import sys
import tempfile

RATE = 999  # samples a second
ROOMS = [  # the first that fits the function's name
    ("event queue", r"sim_queue|sim_put|^deal$|^append$|^reserve$"),
    ("membership", r"roster|membership|topology|pick_peer|neighbour|gossip_|said_|turnover"),
    ("training", r"gemm|blas|dataset_|bytes_|loss_|layer_|sampler_|coverage_|exp_|gradient|dense|"
                 r"product|optimizer|trainer|bias_|sum_avx|sum_base"),
    ("exchange's vectors", r"subtract|^mix_|^add_|^gap_|norm_sq|sketch|sim_truth|memmove|memcpy"),
    ("clearing memory", r"clear_page|page_fault|folio|charge"),
]
OTHER = "core, network, loop"
STEP = re.compile(r"sampler_next|coverage_mark")  # in local steps alone


def samples_of(data):
    """(time in s, function) of each sample."""
    script = ["perf", "script", "-i", data, "-F", "time,ip,sym"]
    text = subprocess.run(script, capture_output=True, text=True, check=True).stdout
    found = re.findall(r"^ *([0-9.]+): +[0-9a-f]+ (\S+)", text, re.M)
    return [(float(time), name) for time, name in found]


def room_of(name):
    return next((room for room, names in ROOMS if re.search(names, name)), OTHER)


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    parley, nodes, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    command = [parley, "sim", "--nodes", str(nodes), "--steps", str(steps), "--threads", "1",
               "--membership", "static", "--topology", "exponential", "--model", "softmax",
               "--mix-every", "2", "--tolerance", "1", "-q", *sys.argv[4:]]
    with tempfile.NamedTemporaryFile() as data:
        record = ["perf", "record", "-q", "-e", "cpu-clock", "-F", str(RATE), "-o", data.name]
        done = subprocess.run(record + command, stdout=subprocess.PIPE)
        if done.returncode != 0:
            sys.exit(f"profile.py: failed with status {done.returncode}: {' '.join(command)}")
        samples = samples_of(data.name)
    times = [time for time, name in samples if STEP.search(name)]
    if len(times) < 2:
        sys.exit("profile.py: too short a run: no sample fell into a local step")
    inside = [name for time, name in samples if times[0] <= time <= times[-1]]
    rooms = dict.fromkeys([OTHER] + [room for room, _ in ROOMS], 0)
    for name in inside:
        rooms[room_of(name)] += 1
    unit = 1e6 / RATE / (nodes * steps)
    for room, count in sorted(rooms.items(), key=lambda item: -item[1]):
        print(f"{count * unit:8.2f} us a node-step  {100 * count / len(inside):5.1f} %  {room}")
    print(f"{len(inside) * unit:8.2f} us a node-step  in all, {nodes} nodes, {len(inside)} samples")


main()
