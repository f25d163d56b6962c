"""Real nodes: processes of `parley node`, what they say, and the network that they meet on.

A network is one of
    Loopback   they dial each other on 127.0.0.1
    Proxied    the same, through the chaos proxy (proxy.py)
    Wired      each in a network namespace, on the packets of wire.py
"""
import contextlib
import json
import os
import queue
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

import helper
import proxy
import wire

PATIENCE_S = 150  # without any event of a cluster for so long, a trial has not held


class Broken(Exception):
    """What must hold does not."""


class Skipped(Exception):
    """What this machine lacks for a trial."""


held = []  # bound for good, so that nobody else who looks for a port by this finds it free


def free_ports(count):
    """Ports of 127.0.0.1, below those that the kernel gives to who asks for any: others' dials can't
    take them before their nodes do. A node may bind one again, as it sets SO_REUSEADDR, and this
    socket does not listen."""
    chosen, system = [], random.SystemRandom()
    while len(chosen) < count:
        s, port = socket.socket(), system.randrange(10000, 32768)
        try:
            s.bind(("127.0.0.1", port))
        except OSError:
            s.close()
            continue
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.append(s)
        chosen.append(port)
    return chosen


# ---- Networks ------------------------------------------------------------------------------------


class Loopback:
    def places(self, names):
        """For each of them where it listens and what others dial."""
        listens = ["127.0.0.1:%d" % port for port in free_ports(len(names))]
        return list(zip(listens, listens))

    options = ()

    def spawn(self, name, start):
        return start()

    def close(self):
        pass


class Proxied(Loopback):
    def __init__(self):
        self.helper, self.ports = helper.Helper(proxy.serve), {}
        self.ask = self.helper.ask

    def places(self, names):
        listens = ["127.0.0.1:%d" % port for port in free_ports(len(names))]
        for name, listen in zip(names, listens):
            self.ports[name] = self.ask("listen", name=name, target=listen)
        return [(l, "127.0.0.1:%d" % self.ports[n]) for n, l in zip(names, listens)]

    def up(self, name, is_up):
        """The address of a dead node refuses."""
        self.ask("up", name=name, is_up=is_up, port=self.ports[name])

    def close(self):
        self.helper.close()


class Wired(Loopback):
    options = ("--insecure",)  # its addresses are not the loopback's, though nobody else is there

    def __init__(self, count, seed):
        try:
            self.wire = wire.Wire(count, seed)
        except wire.Unable as unable:
            raise Skipped(str(unable)) from None
        self.numbers = {"n%d" % i: i for i in range(count)}

    def places(self, names):
        places = [wire.address_of(self.numbers[name]) + ":7400" for name in names]
        return list(zip(places, places))

    def spawn(self, name, start):
        return self.wire.run_in(self.numbers[name], start)

    def close(self):
        self.wire.close()


# ---- Nodes ---------------------------------------------------------------------------------------


class Node:
    """One `parley node`, and what it has said."""

    def __init__(self, cluster, name, listen, seeds, options, dial=None, folder=None):
        self.cluster, self.name, self.listen, self.dial = cluster, name, listen, dial or listen
        self.seeds, self.options = seeds, options
        self.events, self.step, self.phase, self.status = [], 0, "", None
        folder = cluster.folder_of(folder or name)
        self.model = os.path.join(folder, "model.safetensors")
        command = [cluster.parley, "node", "--name", name, "--listen", listen, "--json", "-",
                   "--out", self.model, *cluster.options, *cluster.network.options, *options]
        if self.dial != listen:
            command += ["--advertise", self.dial]
        if seeds:
            command += ["--join", ",".join(seeds)]
        self.talk = os.path.join(folder, "talk")
        with open(self.talk, "a", encoding="utf-8") as talk:
            self.process = cluster.network.spawn(name, lambda: subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=talk, stdin=subprocess.PIPE, text=True,
                env=cluster.environment()))
        self.since = time.monotonic()
        if cluster.endless:
            self.say("slow %g" % cluster.slow)
        threading.Thread(target=self.listen_to, args=(self.process,), daemon=True).start()

    def listen_to(self, process):
        for line in process.stdout:
            now = time.monotonic()
            try:
                self.cluster.heard.put((self, {**json.loads(line), "at": now}))
            except ValueError:
                pass  # the summary for people
        self.cluster.heard.put((self, {"event": "ended", "status": process.wait(),
                                       "at": time.monotonic()}))

    def take(self, event):
        self.events.append(event)
        self.step = event.get("step", self.step)
        self.phase = event.get("phase", self.phase)
        if event["event"] == "ended":
            self.status = event["status"]

    def last(self, kind):
        return next((e for e in reversed(self.events) if e["event"] == kind), None)

    def says(self, key, since=0):
        """What its newest progress since that time says; None if there is none."""
        said = self.last("progress")
        return said.get(key) if said and said["at"] >= since else None

    def said_of(self, peer, state, since):
        """When it first said so since then; None if it has not."""
        for e in reversed(self.events):
            if e["at"] < since:
                break
            if e["event"] == "member" and e["peer"] == peer and e["state"] == state:
                return e["at"]
        return None

    def signal(self, number):
        if self.status is None:
            self.process.send_signal(number)

    def kill(self):
        self.signal(signal.SIGKILL)
        self.process.wait()
        self.process.stdin.close()

    def say(self, line):
        """To an endless node: `stop`, the operator wants the end; `slow FACTOR`."""
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()


def by_time(event):
    return event["at"]


class Cluster:
    def __init__(self, arguments, rng, options=(), network=None, endless=False, slow=1):
        """Endless nodes train on small_data(), do what is said on their stdin, and end with us;
        a step of theirs takes `slow` times longer than it would, in sleep."""
        self.folder = tempfile.mkdtemp(prefix="parley-soak-")
        self.arguments, self.parley, self.rng = arguments, arguments.parley, rng
        self.network, self.endless, self.slow = network or Loopback(), endless, slow
        self.options = ["--data", small_data(self.folder) if endless else arguments.data,
                        "--seed", str(rng.randrange(1 << 30)), *options]
        if endless:
            self.options += ["--epochs", "1000000", "--schedule", "constant"]
        self.heard, self.nodes, self.seed = queue.Queue(), [], 0

    def environment(self):
        if not self.endless:
            return None
        return {**os.environ, "PARLEY_CONTROL": str(time.monotonic_ns() // 1000)}

    def folder_of(self, name):
        folder = os.path.join(self.folder, name)
        os.makedirs(folder, exist_ok=True)
        return folder

    def ports(self, count):
        """Addresses of 127.0.0.1 that are free now."""
        return ["127.0.0.1:%d" % port for port in free_ports(count)]

    def start(self, name, listen, seeds, *options, dial=None):
        node = Node(self, name, listen, seeds, options, dial)
        self.nodes.append(node)
        return node

    def start_all(self, count, *options):
        names = ["n%d" % i for i in range(count)]
        places = self.network.places(names)
        seeds = [dial for _, dial in places[:2]]
        options = ["--min-peers", str(count - 1), *options]
        return [self.start(name, listen, seeds, *options, dial=dial)
                for name, (listen, dial) in zip(names, places)]

    def again(self, node, *options):
        """The same name with the same settings and more, in its place in the list of nodes."""
        anew = Node(self, node.name, node.listen, node.seeds, (*node.options, *options), node.dial)
        self.nodes[self.nodes.index(node)] = anew
        return anew

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

    def within(self, seconds, what, condition):
        """As until(), but not to come to it in time is to break. Returns how long it took."""
        start = time.monotonic()
        self.until(what, condition, seconds)
        if not condition():
            raise Broken("not within %g s: %s" % (seconds, what))
        return time.monotonic() - start

    def training(self, nodes=None):
        self.until("training", lambda: all(n.step > 0 or n.status is not None
                                           for n in nodes or self.nodes))

    def pass_time(self, seconds):
        self.until("time", lambda: False, seconds)

    def whole(self, since, nodes=None):
        """All of these train and see each other, by what they said since then."""
        nodes = nodes or self.nodes
        return all(n.status is None and n.phase == "train" and
                   n.says("live", since) == len(self.nodes) for n in nodes)

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

    def close(self, keep=True):
        for node in self.nodes:
            node.signal(signal.SIGCONT)
            node.signal(signal.SIGKILL)
        for node in self.nodes:
            node.process.wait()
        self.network.close()
        if not keep:
            self.remove()
            return
        with open(os.path.join(self.folder, "said.json"), "w", encoding="utf-8") as file:
            said = [{**event, "node": node.name} for node in self.nodes for event in node.events]
            file.writelines(json.dumps(event) + "\n" for event in sorted(said, key=by_time))

    def remove(self):
        shutil.rmtree(self.folder, ignore_errors=True)


def small_data(folder):
    """A table that loads in no time and can't be learnt to the end, so that gradients stay."""
    draw, path = random.Random(1), os.path.join(folder, "table.csv")
    with open(path, "w", encoding="ascii") as table:
        for _ in range(1000):
            x = [draw.gauss(0, 1) for _ in range(16)]
            label = int(x[0] + x[1] * x[2] > 0) + 2 * int(x[3] > 0.3)
            if draw.random() < 0.2:
                label = draw.randrange(4)
            table.write(",".join("%.4f" % v for v in x) + ",c%d\n" % label)
    return "csv:" + path
