"""Eight real nodes under one fault after the other, for a given time, by a seed.

  tests/storm.sh [--time 30m] [--faults N] [--round 5m] [--seed S] [--strategy NAME]
                 [--parley PATH] [FAULT ...]

The nodes dial each other through a chaos proxy. A shuffled deck of faults comes over them, one at
a time; after each the network is healed, and all eight must see each other, train and average
again. Each so many minutes the operator stops them, in half of the rounds one is killed in the
agreement, and those that live must end with one digest; then eight new ones start. Between, no
node may end that nobody killed, and none that is older than a minute may grow by a MiB of memory
or by descriptors. The table: fault, tries, held, and the worst figures, as seconds until healed.
Exit status: 0 if all held. What this machine can't do is SKIPPED. All stays on the loopback.
"""
import argparse
import ctypes
import os
import random
import subprocess
import sys
import time

import faults
import helper
from cluster import Broken, Cluster, Proxied, Skipped

NODES, HEAL_S = 8, 60
OLD_S, GROWTH_KIB, DESCRIPTORS = 60, 1024, 4
CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x00020000, 0x4000, 0x40000


def private_mounts():
    """Mounts of this process end with it. False: no right to any."""
    libc = ctypes.CDLL(None, use_errno=True)
    return libc.unshare(CLONE_NEWNS) == 0 and \
        libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None) == 0


class Storm:
    """One round: eight nodes from their start to their digest."""

    def __init__(self, arguments, rng, has_small_disk):
        self.rng, self.cluster, self.dead = rng, None, set()
        self.in_pairs = arguments.strategy in ("gossip", "push-sum", "noloco")
        self.cluster = Cluster(arguments, rng, ("--model", "mlp:64", "--strategy",
                                                arguments.strategy, *arguments.period), Proxied(),
                               endless=True, slow=arguments.slow)
        self.ask = self.cluster.network.ask
        self.has_small_disk = has_small_disk and subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=1m", "storm", self.cluster.folder_of("n6")],
            stderr=subprocess.DEVNULL, check=False).returncode == 0
        self.old = {}  # process: memory and descriptors when it was first looked at in old age
        names = ["n%d" % i for i in range(NODES)]
        places = self.cluster.network.places(names)
        for name, (listen, dial) in zip(names, places):
            self.cluster.start(name, listen, [dial for _, dial in places[:2]],
                               "--min-peers", str(NODES - 1), "--resume", "--checkpoint-every",
                               "1s", "--checkpoint", self.cluster.folder_of(name), "--log-level",
                               "debug" if name == "n7" else "info", dial=dial)

    # ---- For the faults --------------------------------------------------------------------------

    @property
    def nodes(self):
        return list(self.cluster.nodes)

    def node(self, name):
        return next(n for n in self.nodes if n.name == name)

    def one(self):
        return self.rng.choice(self.nodes)

    def but(self, *some):
        return [n for n in self.nodes if n not in some]

    def kill(self, nodes):
        for node in nodes:
            self.dead.add(node)
            node.kill()
        for node in nodes:
            self.cluster.network.up(node.name, False)

    def back(self, nodes):
        for node in nodes:
            self.cluster.network.up(node.name, True)
            self.cluster.again(node)

    def wait(self, seconds, what, condition):
        return self.cluster.within(seconds, what, lambda: self.nobody_fell() and condition())

    def hold(self, untouched, seconds):
        """Lets the fault last, until these have made further steps, too."""
        steps = [n.step for n in untouched]
        self.cluster.pass_time(seconds)
        self.wait(HEAL_S, "the others train on",
                  lambda: all(n.step > s for n, s in zip(untouched, steps)))

    def nobody_fell(self):
        for node in self.nodes:
            if node.status is not None and node not in self.dead:
                error = node.last("error") or {"message": "no word"}
                raise Broken("%s ended with status %s: %s" %
                             (node.name, node.status, error["message"]))
        return True

    def all_have_checkpoints(self):
        return all(any(f.endswith(".checkpoint")
                       for f in os.listdir(self.cluster.folder_of(n.name))) for n in self.nodes)

    def talk(self, node, since):
        with open(node.talk, "rb") as file:
            file.seek(since)
            return file.read()

    def status_of(self, node, key):
        with open("/proc/%d/status" % node.process.pid, encoding="ascii") as file:
            return next(int(line.split()[1]) for line in file if line.startswith(key))

    # ---- A round ---------------------------------------------------------------------------------

    def heal(self):
        """Seconds until all see each other, train and average again."""
        self.ask("heal")
        now, counts = time.monotonic(), {n: self.count(n) for n in self.nodes}
        return self.wait(HEAL_S, "all are one again", lambda: self.cluster.whole(now) and all(
            self.count(n) > c for n, c in counts.items()))

    def count(self, node):
        """What grows as long as it averages: where that is not in pairs, no step is made without."""
        return (node.says("exchanges") or 0) if self.in_pairs else node.step

    def grown(self):
        """The most that an old process has grown by: memory in KiB, descriptors."""
        most = [0, 0]
        for node in self.nodes:
            if time.monotonic() < node.since + OLD_S:
                continue
            now = [self.status_of(node, "RssAnon"),
                   len(os.listdir("/proc/%d/fd" % node.process.pid))]
            first = self.old.setdefault(node, now)
            most = [max(m, n - f) for m, n, f in zip(most, now, first)]
        return most

    def grows_no_more(self):
        """What a fault left behind may take its time to go, but goes."""
        self.wait(HEAL_S, "memory and descriptors go back", lambda: self.grown()[0] < GROWTH_KIB
                  and self.grown()[1] <= DESCRIPTORS)
        kib, descriptors = self.grown()
        return {"kib_grown": kib, "descriptors_grown": descriptors}

    def end(self):
        """The operator stops them; one may die of it."""
        rest, start = self.nodes, time.monotonic()
        for node in rest:
            node.say("stop")
        if self.rng.random() < 0.5:
            victim = rest.pop(self.rng.randrange(NODES))
            phase = self.rng.choice(["stop", "settle", "proposed", "held", "locked"])
            self.cluster.until(phase, lambda: victim.status is not None or any(
                e.get("phase") == phase for e in victim.events))
            victim.kill()
            self.cluster.network.up(victim.name, False)
        self.cluster.agreed(rest, NODES, held=len(rest))
        return {"agreed_s": time.monotonic() - start}

    def close(self, keep):
        self.cluster.close(keep=keep)
        if self.has_small_disk:
            subprocess.run(["umount", self.cluster.folder_of("n6")], check=False)
            if not keep:
                self.cluster.remove()


class Table:
    def __init__(self):
        self.rows = {}

    def add(self, name, figures, held):
        row = self.rows.setdefault(name, {"tries": 0, "held": 0, "worst": {}})
        row["tries"] += 1
        row["held"] += held
        for key, value in (figures or {}).items():
            row["worst"][key] = max(value, row["worst"].get(key, value))

    def skip(self, name, why):
        self.rows[name] = {"skipped": why}

    def show(self):
        print("%-18s %5s %5s  %s" % ("fault", "tries", "held", "worst"))
        for name, row in self.rows.items():
            if "skipped" in row:
                print("%-18s SKIPPED: %s" % (name, row["skipped"]))
                continue
            worst = ", ".join("%s %.3g" % item for item in row["worst"].items())
            print("%-18s %5d %5d  %s" % (name, row["tries"], row["held"], worst))

    def all_held(self):
        return all(r.get("tries") == r.get("held") for r in self.rows.values())


class Driver:
    def __init__(self, arguments):
        self.arguments, self.rng = arguments, random.Random(arguments.seed)
        self.table, self.deck, self.done = Table(), [], 0
        self.until = time.monotonic() + arguments.time
        self.has_small_disk = private_mounts()

    def is_over(self):
        return self.done >= self.arguments.faults or time.monotonic() >= self.until

    def draw(self):
        if not self.deck:
            names = self.arguments.only
            self.deck = [f for f in faults.FAULTS if not names or f.__name__ in names]
            self.rng.shuffle(self.deck)
        return self.deck.pop()

    def guarded(self, storm, name, action):
        """Runs it and puts it into the table. False: it has not held."""
        try:
            self.table.add(name, action(), True)
            return True
        except Skipped as skipped:
            self.table.skip(name, skipped)
            return True
        except Broken as broken:
            self.table.add(name, None, False)
            print("not held: %s, seed %d, fault %d: %s, in %s" %
                  (name, self.arguments.seed, self.done, broken, storm.cluster.folder), flush=True)
            return False

    def one_fault(self, storm):
        fault = self.draw()
        self.done += 1

        def action():
            figures = fault(storm) or {}
            return {**figures, "healed_s": storm.heal()}
        if self.arguments.verbose:
            print("%s  %s" % (time.strftime("%H:%M:%S"), fault.__name__), flush=True)
        return self.guarded(storm, fault.__name__, action)

    def round(self):
        storm, whole = Storm(self.arguments, self.rng, self.has_small_disk), False
        try:
            start = time.monotonic()
            whole = self.guarded(storm, "(start)", lambda: {"healed_s": storm.heal()})
            while whole and not self.is_over() and \
                    time.monotonic() < start + self.arguments.round:
                whole = self.one_fault(storm) and \
                    self.guarded(storm, "(growth)", storm.grows_no_more)
            whole = whole and self.guarded(storm, "(one digest)", storm.end)
        finally:
            storm.close(keep=not whole)

    def run(self):
        while not self.is_over():
            self.round()
        self.table.show()
        return 0 if self.table.all_held() else 1


def seconds(text):
    unit = {"s": 1, "m": 60, "h": 3600}.get(text[-1:])
    return float(text[:-1]) * unit if unit else float(text)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n", maxsplit=1)[0],
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="faults:\n" + "\n".join("  %-18s %s" % (f.__name__, f.__doc__)
                                       for f in faults.FAULTS))
    parser.add_argument("only", nargs="*", metavar="FAULT", help="all if none is named")
    parser.add_argument("--time", type=seconds, default=120, help="how long (default 2m)")
    parser.add_argument("--faults", type=int, default=1 << 30, help="at most so many")
    parser.add_argument("--round", type=seconds, default=300,
                        help="after so long they agree, and new ones start (default 5m)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--strategy", default="gossip", help="what averages (default gossip)")
    parser.add_argument("--slow", type=float, default=20, metavar="FACTOR",
                        help="a step takes so many times longer, asleep (default 20): one machine "
                        "is no eight")
    parser.add_argument("--parley", default="build/peers/parley", help="the program to try")
    parser.add_argument("-v", "--verbose", action="store_true", help="say each fault")
    arguments = parser.parse_args()
    arguments.period = ("--mix-every", "4") if arguments.strategy == "gossip" else ()
    unknown = set(arguments.only) - {f.__name__ for f in faults.FAULTS}
    if unknown:
        parser.error("no fault is called %s" % unknown.pop())
    helper.close_on_sigterm()
    return Driver(arguments).run()


if __name__ == "__main__":
    sys.exit(main())
