"""Trials of real nodes under faults, repeated: a table of tries and held, and the worst figures.

  tests/soak.sh [--count N] [--seed S] [--parley PATH] [--data SPEC] [TRIAL ...]

Every trial starts nodes on free loopback ports, does what its name says at a time drawn by the
seed, and checks what must hold. A trial that does not hold keeps its folder and prints its name.
Exit status: 0 if all held. Only processes started here are signalled, and all are ended.
"""
import argparse
import json
import os
import queue
import random
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

import machine

PATIENCE_S = 150  # without any event of a cluster for so long, a trial has not held


class Broken(Exception):
    pass


class Node:
    """One `parley node`, and what it has said."""

    def __init__(self, cluster, name, listen, seeds, options):
        self.cluster, self.name, self.listen = cluster, name, listen
        self.events, self.step, self.phase, self.status = [], 0, "", None
        folder = os.path.join(cluster.folder, name)
        os.makedirs(folder, exist_ok=True)
        self.model = os.path.join(folder, "model.safetensors")
        command = [cluster.parley, "node", "--name", name, "--listen", listen, "--json", "-",
                   "--out", self.model, *cluster.options, *options]
        if seeds:
            command += ["--join", ",".join(seeds)]
        self.talk = os.path.join(folder, "talk")
        with open(self.talk, "a", encoding="utf-8") as talk:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=talk,
                                            stdin=subprocess.DEVNULL, text=True)
        threading.Thread(target=self.listen_to, args=(self.process,), daemon=True).start()

    def listen_to(self, process):
        for line in process.stdout:
            try:
                self.cluster.heard.put((self, json.loads(line)))
            except ValueError:
                pass  # the summary for people
        self.cluster.heard.put((self, {"event": "ended", "status": process.wait()}))

    def take(self, event):
        self.events.append(event)
        self.step = event.get("step", self.step)
        self.phase = event.get("phase", self.phase)
        if event["event"] == "ended":
            self.status = event["status"]

    def last(self, kind):
        return next((e for e in reversed(self.events) if e["event"] == kind), None)

    def signal(self, number):
        if self.status is None:
            self.process.send_signal(number)


class Cluster:
    def __init__(self, arguments, rng, options=()):
        self.arguments, self.parley, self.rng = arguments, arguments.parley, rng
        self.options = ["--data", arguments.data, "--seed", str(rng.randrange(1 << 30)), *options]
        self.folder = tempfile.mkdtemp(prefix="parley-soak-")
        self.heard, self.nodes = queue.Queue(), []

    def ports(self, count):
        """Addresses that are free now; the sockets are held until all are chosen."""
        sockets = [socket.socket() for _ in range(count)]
        for s in sockets:
            s.bind(("127.0.0.1", 0))
        addresses = ["127.0.0.1:%d" % s.getsockname()[1] for s in sockets]
        for s in sockets:
            s.close()
        return addresses

    def start(self, name, listen, seeds, *options):
        node = Node(self, name, listen, seeds, options)
        self.nodes.append(node)
        return node

    def start_all(self, count, *options):
        addresses = self.ports(count)
        options = ["--min-peers", str(count - 1), *options]
        return [self.start("n%d" % i, a, addresses[:2], *options)
                for i, a in enumerate(addresses)]

    def until(self, what, condition, seconds=None):
        """Takes events until condition() holds; with seconds, at most so long, then returns."""
        end = time.monotonic() + seconds if seconds is not None else None
        while not condition():
            wait = PATIENCE_S if end is None else end - time.monotonic()
            if wait <= 0:
                return
            try:
                node, event = self.heard.get(timeout=wait)
                node.take(event)
            except queue.Empty:
                if end is None:
                    raise Broken("waited in vain for " + what) from None

    def training(self, nodes=None):
        self.until("training", lambda: all(n.step > 0 or n.status is not None
                                           for n in nodes or self.nodes))

    def pass_time(self, seconds):
        self.until("time", lambda: False, seconds)

    def ended(self, nodes):
        self.until("the end", lambda: all(n.status is not None for n in nodes))

    def agreed(self, nodes, known, held=None):
        """All these nodes end with 0 and one digest; returns their accuracy."""
        self.ended(nodes)
        for node in nodes:
            if node.status != 0:
                raise Broken("%s ended with status %s" % (node.name, node.status))
        said = [node.last("agreed") for node in nodes]
        if not all(said):
            raise Broken("somebody has not agreed")
        if len({s["digest"] for s in said}) != 1:
            raise Broken("different digests")
        with_models = {open(node.model, "rb").read() for node in nodes}
        if len(with_models) != 1:
            raise Broken("different model files")
        for s in said:
            if s["held"] < (held or len(nodes)) or s["known"] != known:
                raise Broken("held %d of %d known" % (s["held"], s["known"]))
        return said[0]["test_accuracy"]

    def worst(self, nodes):
        """Of what these nodes said last of themselves: gaps between steps, turns of the loop."""
        said = [n.last("progress") for n in nodes]
        return {key: max((s.get(key) or 0 for s in said if s), default=0)
                for key in ("gap_max_ms", "turn_max_ms")}

    def close(self):
        for node in self.nodes:
            node.signal(signal.SIGCONT)
            node.signal(signal.SIGKILL)
        for node in self.nodes:
            node.process.wait()


# ---- The trials: each gets a cluster and returns its figures -------------------------------------


def undisturbed(cluster):
    """five nodes to their end: one digest, five of five; the ledgers sum to zero"""
    nodes = cluster.start_all(5)
    accuracy = cluster.agreed(nodes, 5)
    ledgers = [n.last("ledger") for n in nodes]
    committed = sum(l["committed"] for l in ledgers)
    applied = sum(l["applied"] for l in ledgers)
    mass = sum(p["mass"] for l in ledgers for p in l["peers"])
    mass_abs = sum(p["mass_abs"] for l in ledgers for p in l["peers"])
    if applied != 2 * committed:
        raise Broken("%d committed, %d applied" % (committed, applied))
    if mass_abs and abs(mass) / mass_abs > 1e-6:
        raise Broken("mass error %g" % (abs(mass) / mass_abs))
    return {"accuracy": accuracy, **cluster.worst(nodes)}


references = {}


def within_a_point(cluster, accuracy, *options):
    """The same five nodes undisturbed, tried once with these options, are at most a point better."""
    if options not in references:
        other = Cluster(cluster.arguments, random.Random(cluster.arguments.seed))
        try:
            references[options] = other.agreed(other.start_all(5, *options), 5)
        finally:
            other.close()
    if accuracy < references[options] - 0.01:
        raise Broken("accuracy %.4f, undisturbed %.4f" % (accuracy, references[options]))


def any_order(cluster):
    """five nodes in any order, all at once or the seed last: one cluster"""
    addresses = cluster.ports(5)
    order = list(range(5))
    cluster.rng.shuffle(order)
    way = cluster.rng.choice(["at once", "one by one", "seed last"])
    if way == "seed last":
        order.remove(0)
        order.append(0)
    nodes = []
    for i in order:
        nodes.append(cluster.start("n%d" % i, addresses[i], addresses[:1] if i else [],
                                   "--min-peers", "4"))
        if way != "at once":
            cluster.pass_time(cluster.rng.uniform(0, 0.7))
    return {"accuracy": cluster.agreed(nodes, 5)}


def kill_two_of_five(cluster):
    """kill -9 of 2 of 5 at a random time, the first seed among them: the others agree, 3 of 5"""
    nodes = cluster.start_all(5, "--epochs", "20")
    cluster.training()
    cluster.pass_time(cluster.rng.uniform(0, 1))
    victims = [nodes[0], cluster.rng.choice(nodes[1:])]
    for victim in victims:
        victim.signal(signal.SIGKILL)
    rest = [n for n in nodes if n not in victims]
    steps = [n.step for n in rest]
    accuracy = cluster.agreed(rest, 5)
    if any(n.step <= s for n, s in zip(rest, steps)):
        raise Broken("a survivor made no further step")
    within_a_point(cluster, accuracy, "--epochs", "20")
    return {"accuracy": accuracy, **cluster.worst(rest)}


def kill_half(cluster):
    """half of 8 killed at once: the other half agrees"""
    nodes = cluster.start_all(8, "--epochs", "20")
    cluster.training()
    cluster.pass_time(cluster.rng.uniform(0, 1))
    cluster.rng.shuffle(nodes)
    for victim in nodes[:4]:
        victim.signal(signal.SIGKILL)
    return {"accuracy": cluster.agreed(nodes[4:], 8)}


def kill_in_exchange(cluster):
    """one of 4 killed while exchanges run back to back; its name comes back: 4 of 4 known"""
    nodes = cluster.start_all(4, "--epochs", "30")
    cluster.training()
    cluster.pass_time(cluster.rng.uniform(0, 0.3))
    victim = nodes[cluster.rng.randrange(4)]
    victim.signal(signal.SIGKILL)
    rest = [n for n in nodes if n is not victim]
    again = cluster.start(victim.name, victim.listen, [n.listen for n in rest], "--epochs", "30")
    accuracy = cluster.agreed(rest, 4, held=3)
    cluster.ended([again])
    if again.status not in (0, 3):  # 3: it came when all was over
        raise Broken("the restarted node ended with status %s" % again.status)
    return {"accuracy": accuracy}


ROLES = {"offer": ["taking", "offered", "streaming", "diffing", "ready", "adding"],
         "answer": ["taking", "streaming", "diffing", "ready", "adding"]}


def kill_at_state(cluster):
    """one of 4 killed on entering a state of an exchange, each state of each role in turn"""
    turns = [(role, state) for role, states in ROLES.items() for state in states]
    role, state = turns[cluster.seed % len(turns)]
    nodes = cluster.start_all(4, "--model", "mlp:1024,512", "--steps", "60", "--log-level", "debug")
    cluster.training()
    victim = cluster.rng.choice(nodes)
    with open(victim.talk, encoding="utf-8") as talk:
        talk.seek(0, os.SEEK_END)
        entered = ""
        while not (entered.startswith("parley: " + role) and entered.endswith("-> %s\n" % state)):
            entered = talk.readline()  # debug lines never cease while a node trains
            if not entered and victim.process.poll() is not None:
                raise Broken("the run ended before %s %s" % (role, state))
        victim.signal(signal.SIGKILL)
        victim.process.wait()
        after = [line for line in talk if line.startswith("parley: " + role)]
    accuracy = cluster.agreed([n for n in nodes if n is not victim], 4)
    return {"accuracy": accuracy, "killed in that very state": int(not after)}


def kill_in_agreement(cluster):
    """one of 5 killed in the final agreement, in a phase drawn by the seed"""
    nodes = cluster.start_all(5)
    phase = cluster.rng.choice(["stop", "settle", "proposed", "held", "locked"])
    victim = cluster.rng.choice(nodes)
    cluster.until(phase, lambda: any(e.get("phase") == phase for e in victim.events) or
                  victim.status is not None)
    victim.signal(signal.SIGKILL)
    return {"accuracy": cluster.agreed([n for n in nodes if n is not victim], 5)}


def late_joiner(cluster):
    """a fourth node joins three at half time, takes the model, and agrees"""
    addresses = cluster.ports(4)
    nodes = [cluster.start("n%d" % i, addresses[i], addresses[:2], "--min-peers", "2",
                           "--epochs", "30") for i in range(3)]
    cluster.until("half time", lambda: any(
        (n.last("progress") or {}).get("epoch", 0) >= 10 for n in nodes))
    late = cluster.start("n3", addresses[3], addresses[:2], "--epochs", "30")
    accuracy = cluster.agreed(nodes + [late], 4)
    if late.step == 0:
        raise Broken("the late node made no step")
    return {"accuracy": accuracy}


def pause(cluster):
    """SIGSTOP of one of 4 for 20 s: suspected, back, counted once; the others never wait"""
    nodes = cluster.start_all(4, "--epochs", "1000000", "--time", "25s")
    cluster.training()
    sleeper, rest = nodes[3], nodes[:3]
    sleeper.signal(signal.SIGSTOP)
    cluster.pass_time(20)
    steps = [n.step for n in rest]
    sleeper.signal(signal.SIGCONT)
    accuracy = cluster.agreed(nodes, 4)
    states = [e["state"] for n in rest for e in n.events
              if e["event"] == "member" and e["peer"] == "n3"]
    if "suspect" not in states:
        raise Broken("it was never suspected")
    if any(s == 0 for s in steps):
        raise Broken("somebody waited")
    return {"accuracy": accuracy, **cluster.worst(rest)}


def hostile(cluster):
    """random bytes, a huge length, 1,000 silent connections on a node's port: training goes on"""
    nodes = cluster.start_all(3, "--epochs", "1000000", "--time", "5s")
    cluster.training()
    host, port = nodes[0].listen.rsplit(":", 1)
    open_sockets = []
    attacks = [cluster.rng.randbytes(4096), b"Py\x01\x01" + struct.pack("<I", 0xffffffff),
               b"Py\x01\x18" + struct.pack("<I", 0x7fffffff), b"Py\x01\x01\x05\0\0\0\xdf\xff\xff\xff\xff",
               b"GET / HTTP/1.1\r\n\r\n"] + [b""] * 1000
    refused = 0
    for bytes_ in attacks:
        s = socket.socket()
        s.settimeout(5)
        try:
            s.connect((host, int(port)))
            s.sendall(bytes_)
        except OSError:
            refused += 1
        open_sockets.append(s)
    step = nodes[0].step
    cluster.until("a further step", lambda: nodes[0].step > step)
    accuracy = cluster.agreed(nodes, 3)
    for s in open_sockets:
        s.close()
    return {"accuracy": accuracy, "refused": refused}


TRIALS = [undisturbed, any_order, kill_two_of_five, kill_half, kill_in_exchange, kill_at_state,
          kill_in_agreement, late_joiner, pause, hostile]


# ---- Running them --------------------------------------------------------------------------------


def try_once(trial, arguments, seed):
    cluster = Cluster(arguments, random.Random(seed))
    cluster.seed = seed
    try:
        return trial(cluster), None
    except Broken as broken:
        return {}, "%s, seed %d, in %s: %s" % (trial.__name__, seed, cluster.folder, broken)
    finally:
        cluster.close()


def less_stalls(figures, stall_ms):
    """A gap between steps has the machine's own longest stall of that try taken off."""
    if stall_ms is None or "gap_max_ms" not in figures:
        return figures
    return {**figures, "stall_max_ms": stall_ms,
            "gap less stall": max(0, figures["gap_max_ms"] - stall_ms)}


def main():
    names = {t.__name__: t for t in TRIALS}
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n", maxsplit=1)[0],
        epilog="trials: " + "; ".join("%s: %s" % (n, t.__doc__) for n, t in names.items()))
    parser.add_argument("trials", nargs="*", metavar="TRIAL", help="all if none is named")
    parser.add_argument("--count", type=int, default=3, help="tries of each (default 3)")
    parser.add_argument("--seed", type=int, default=1, help="of the first try (default 1)")
    parser.add_argument("--parley", default="build/peers/parley", help="the program to try")
    parser.add_argument("--data", default="digits")
    arguments = parser.parse_args()
    unknown = [t for t in arguments.trials if t not in names]
    if unknown:
        parser.error("no trial is called %s" % unknown[0])
    all_held, stalls = True, machine.Stalls()
    print("%-18s %5s %5s  %s" % ("trial", "tries", "held", "worst"), flush=True)
    for name in arguments.trials or names:
        figures, broken = [], []
        for i in range(arguments.count):
            stalls.begin()
            got, why = try_once(names[name], arguments, arguments.seed + i)
            figures.append(less_stalls(got, stalls.worst_ms()))
            if why:
                broken.append(why)
        worst = []
        for key, of in (("accuracy", min), ("gap_max_ms", max), ("turn_max_ms", max),
                        ("stall_max_ms", max), ("gap less stall", max), ("refused", max),
                        ("killed in that very state", sum)):
            values = [f[key] for f in figures if f.get(key) is not None]
            if values:
                worst.append("%s %.4g" % (key, of(values)))
        print("%-18s %5d %5d  %s" % (name, arguments.count, arguments.count - len(broken),
                                     ", ".join(worst)), flush=True)
        for line in broken:
            print("  not held: " + line, flush=True)
        all_held = all_held and not broken
    stalls.close()
    return 0 if all_held else 1


if __name__ == "__main__":
    sys.exit(main())
