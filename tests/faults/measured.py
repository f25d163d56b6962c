"""What is promised of detection, partitions, bad lines and slow nodes, measured at eight nodes.

Each trial gets the arguments and a seed and returns its figures, or raises Broken or Skipped. How
often and how long is --tries and --last; the promise is for the defaults, which take minutes.
"""
import os
import random
import signal
import statistics
import time

from cluster import Broken, Cluster, Wired

NODES = 8
EXCHANGES = 15  # a node, after which the drift shows no more that there was a partition
TUNNEL_OPTIONS = ("--model", "softmax", "--mix-every", "8")  # packets are dear in Python
PACED = 20  # so many times longer a step takes where nodes are not to fill the processors
SLOW = 100  # and so are processors: on the wire a step takes so many times longer


class Eight:
    """Eight nodes that train without end, until stop()."""

    def __init__(self, arguments, seed, *options, network=None, slow=None):
        self.cluster = Cluster(arguments, random.Random(seed), options, network, endless=True,
                               slow=slow or (SLOW if network else 1))
        self.rng = self.cluster.rng

    def __enter__(self):
        cluster = self.cluster
        cluster.start_all(NODES)
        cluster.until("eight nodes that train", lambda: cluster.whole(0), 60)
        if not cluster.whole(0):
            cluster.close()
            raise Broken("eight nodes don't come to train, in " + cluster.folder)
        return self

    def __exit__(self, kind, value, trace):
        if isinstance(value, Broken):
            value.args = ("%s, in %s" % (value, self.cluster.folder),)
        self.cluster.close(keep=kind is not None)

    @property
    def nodes(self):
        return self.cluster.nodes

    def others(self, *but):
        return [n for n in self.nodes if n not in but]

    def changes(self, since, states=("dead", "alive"), about=None):
        """(when, who, of whom) that somebody said so, of others than itself."""
        return sorted((e["at"], n.name, e["peer"]) for n in self.nodes for e in n.events
                      if e["event"] == "member" and e["at"] >= since and e["peer"] != n.name and
                      e["state"] in states and about in (None, e["peer"]))

    def no_false_death(self, since):
        deaths = self.changes(since, ("dead",))
        if deaths:
            raise Broken("%d false deaths: %s took %s for dead" % (len(deaths), *deaths[0][1:]))

    def end(self, known=NODES):
        """The operator's stop, and one digest; how long that took, in seconds."""
        start = time.monotonic()
        for node in self.nodes:
            node.say("stop")
        self.cluster.agreed(self.nodes, known)
        return time.monotonic() - start


def of_most(values, share):
    """The least value that so great a share of them does not exceed."""
    values = sorted(values)
    return values[max(0, -(-int(len(values) * share * 1000) // 1000) - 1)]


def known_to_all(eight, victim, since, seconds):
    rest = eight.others(victim)
    said = lambda: [n.said_of(victim.name, "dead", since) for n in rest]
    eight.cluster.within(seconds, "all know of the death of " + victim.name,
                         lambda: all(said()))
    return max(n.said_of(victim.name, "dead", since) for n in rest) - since


def undisturbed_agreement(arguments, seed, *options, network=None):
    """How long an agreement takes where nothing is wrong."""
    with Eight(arguments, seed, *options, network=network) as eight:
        return eight.end()


# ---- Deaths --------------------------------------------------------------------------------------


def detect_kill(arguments, seed):
    """kill -9 of one of 8: known to all within 3 s (p99), no gap elsewhere over 50 ms longer"""
    tries, took = arguments.tries or 100, []
    # Nodes that fill the processors wait for these when one starts anew, as each of the dead does.
    with Eight(arguments, seed, "--model", "mlp:64", slow=PACED) as eight:
        cluster = eight.cluster
        cluster.pass_time(min(20, tries))
        calm_ms = cluster.worst(eight.nodes)["gap_max_ms"]
        gap_ms = 0
        for _ in range(tries):
            victim = eight.rng.choice(eight.nodes)
            killed = time.monotonic()  # on a busy machine its end may be long in coming
            victim.kill()
            took.append(known_to_all(eight, victim, killed, 30))
            gap_ms = max(gap_ms, cluster.worst(eight.others(victim))["gap_max_ms"])
            cluster.again(victim)
            back = time.monotonic()
            cluster.within(60, victim.name + " is back", lambda: cluster.whole(back))
            cluster.pass_time(eight.rng.uniform(0, 0.2))
        agreed_s = eight.end()
        figures = {"p50_s": statistics.median(took), "p99_s": of_most(took, 0.99),
                   "gap_undisturbed_ms": calm_ms, "gap_max_ms": gap_ms, "agreed_s": agreed_s}
        if figures["p99_s"] > 3:
            raise Broken("known to all after %.2f s (p99 of %d)" % (figures["p99_s"], tries))
    return figures


def kill_often(arguments, seed):
    """kill -9 of one of 8 while exchanges run back to back, 50 times; its name comes back each time"""
    tries = arguments.tries or 50
    with Eight(arguments, seed, "--model", "mlp:256") as eight:
        start = time.monotonic()
        for _ in range(tries):
            eight.cluster.pass_time(eight.rng.uniform(0, 0.2))
            victim = eight.rng.choice(eight.nodes)
            killed = time.monotonic()
            victim.kill()
            known_to_all(eight, victim, killed, 30)
            eight.cluster.again(victim)
            back = time.monotonic()
            eight.cluster.within(60, victim.name + " is back", lambda: eight.cluster.whole(back))
        took_s = time.monotonic() - start
        return {"kills": tries, "s_a_kill": took_s / tries, "agreed_s": eight.end()}


def detect_silence(arguments, seed):
    """every packet from and to one of 8 is dropped: known to all within 8 s; healed, all are one"""
    tries, took, healed = arguments.tries or 10, [], []
    with Eight(arguments, seed, *TUNNEL_OPTIONS, network=Wired(NODES, seed)) as eight:
        wire = eight.cluster.network.wire
        for _ in range(tries):
            victim = eight.rng.choice(eight.nodes)
            i, rest = eight.nodes.index(victim), range(NODES)
            since = time.monotonic()
            wire.set([(i, j) for j in rest] + [(j, i) for j in rest], loss=1)
            took.append(known_to_all(eight, victim, since, 30))
            wire.heal()
            back = time.monotonic()
            healed.append(eight.cluster.within(60, "all are one again",
                                               lambda: eight.cluster.whole(back)))
            eight.cluster.pass_time(8)  # until who probed in vain trusts itself again
        if max(took) > 8:
            raise Broken("known to all after %.2f s" % max(took))
        agreed_s = eight.end()
    return {"p50_s": statistics.median(took), "worst_s": max(took), "healed_s": max(healed),
            "agreed_s": agreed_s}


# ---- Partitions ----------------------------------------------------------------------------------


def drift_after(cluster, nodes, exchanges):
    """Once the nodes have made so many exchanges on average from now on: the drift that most of them
    then measure, which remembers about the last 20 of each, and the highest until then."""
    start, seen = [n.says("exchanges") for n in nodes], []

    def all_made():
        seen.append(statistics.median(n.says("drift") or 0 for n in nodes))
        return sum(n.says("exchanges") for n in nodes) - sum(start) >= exchanges * len(nodes)
    cluster.within(60, "%d exchanges a node" % exchanges, all_made)
    return seen[-1], max(seen)


def partition(arguments, seed):
    """4 | 4 for 60 s: both train on; healed: one view in 10 s, 15 exchanges later drift is back"""
    with Eight(arguments, seed, *TUNNEL_OPTIONS, network=Wired(NODES, seed), slow=200) as eight:
        cluster, wire, nodes = eight.cluster, eight.cluster.network.wire, eight.nodes
        cluster.pass_time(10)
        calm = [[e["drift"] or 0 for e in n.events if e["event"] == "progress"][-30:]
                for n in nodes]
        before = max(statistics.median(at_once) for at_once in zip(*calm))
        group = set(eight.rng.sample(range(NODES), 4))
        wire.set([(a, b) for a in range(NODES) for b in range(NODES)
                  if (a in group) != (b in group)], loss=1)
        cluster.within(30, "both halves see four", lambda: all(n.says("live") == 4 for n in nodes))
        steps = [n.step for n in nodes]
        cluster.pass_time(arguments.last or 60)
        made = [n.step - s for n, s in zip(nodes, steps)]
        if min(made) == 0:
            raise Broken("somebody made no step while divided")
        exchanges = [n.says("exchanges") for n in nodes]
        wire.heal()
        healed = time.monotonic()
        merged_s = cluster.within(10, "one view of eight", lambda: cluster.whole(healed))
        merged_at = [n.says("exchanges") for n in nodes]
        after, highest = drift_after(cluster, nodes, EXCHANGES)
        agreed_s = eight.end()
        figures = {"merged_s": merged_s, "drift_before": before, "drift_highest": highest,
                   "drift_after": after, "agreed_s": agreed_s,
                   "exchanges_in_merging": max(m - e for m, e in zip(merged_at, exchanges))}
        if after > before:
            raise Broken("drift is not back after %d exchanges a node: %s" % (EXCHANGES, figures))
    return figures


def most_in_window(times, window_s):
    return max((sum(t <= u < t + window_s for u in times) for t in times), default=0)


def changes_of_mind(node, peer, since):
    """When it took the peer for dead, or for alive again; a suspicion that passes is none."""
    is_dead, times = False, []
    for e in node.events:
        if e["event"] == "member" and e["peer"] == peer.name and e["at"] >= since and \
                (e["state"] == "dead") != is_dead:
            is_dead = not is_dead
            times.append(e["at"])
    return times


def one_way(arguments, seed):
    """no packet gets from one node to another, or from one to all: 1 change of a member in 30 s"""
    worst, suspicions = {}, 0
    with Eight(arguments, seed, *TUNNEL_OPTIONS, network=Wired(NODES, seed)) as eight:
        cluster, wire = eight.cluster, eight.cluster.network.wire
        for kind in ("pair", "mute", "deaf"):
            a, b = eight.rng.sample(range(NODES), 2)
            wire.set({"pair": [(a, b)], "mute": [(a, j) for j in range(NODES)],
                      "deaf": [(j, a) for j in range(NODES)]}[kind], loss=1)
            since = time.monotonic()
            cluster.pass_time(arguments.last or 60)
            worst[kind] = max(most_in_window(changes_of_mind(n, peer, since), 30)
                              for n in eight.nodes for peer in eight.others(n))
            suspicions = max(suspicions, len(eight.changes(since, ("suspect",))))
            wire.heal()
            back = time.monotonic()
            cluster.within(60, "all are one again", lambda: cluster.whole(back))
        agreed_s = eight.end()
        figures = {**{"changes_%s" % k: n for k, n in worst.items()}, "suspicions": suspicions,
                   "agreed_s": agreed_s}
        if max(worst.values()) > 1:
            raise Broken("one node changed its mind of another more than once in 30 s: %s" %
                         figures)
    return figures


# ---- Bad lines and slow nodes --------------------------------------------------------------------


def bad_lines(arguments, seed, **rule):
    calm_s = undisturbed_agreement(arguments, seed, *TUNNEL_OPTIONS, network=Wired(NODES, seed))
    with Eight(arguments, seed, *TUNNEL_OPTIONS, network=Wired(NODES, seed)) as eight:
        cluster = eight.cluster
        cluster.network.wire.set([(a, b) for a in range(NODES) for b in range(NODES)], **rule)
        since, steps = time.monotonic(), [n.step for n in eight.nodes]
        exchanges = sum(n.says("exchanges") for n in eight.nodes)
        cluster.pass_time(arguments.last or 600)
        eight.no_false_death(since)
        if any(n.step == s for n, s in zip(eight.nodes, steps)):
            raise Broken("somebody made no step")
        exchanges = sum(n.says("exchanges") for n in eight.nodes) - exchanges
        agreed_s = eight.end()
        eight.no_false_death(since)
        suspicions = len(eight.changes(since, ("suspect",)))
    return {"exchanges": exchanges, "suspicions": suspicions, "agreed_s": agreed_s,
            "agreed_undisturbed_s": calm_s, "times": agreed_s / calm_s}


def loss(arguments, seed):
    """30 % of all packets lost for 10 minutes: no false death; how long an agreement then takes"""
    return bad_lines(arguments, seed, loss=0.3)


def latency(arguments, seed):
    """300 ms more on each way for 10 minutes: no false death; how long an agreement then takes"""
    return bad_lines(arguments, seed, delay_s=0.3)


class Tenth:
    """A tenth of a processor for one process: by a cgroup, else by SIGSTOP and SIGCONT in turns."""

    ROOT, PERIOD_US = "/sys/fs/cgroup/cpu", 100000

    def __init__(self, pid):
        self.pid, self.folder, self.child = pid, os.path.join(self.ROOT, "tenth-%d" % pid), None
        try:
            os.mkdir(self.folder)
            for name, value in (("cpu.cfs_period_us", self.PERIOD_US),
                                ("cpu.cfs_quota_us", self.PERIOD_US // 10), ("cgroup.procs", pid)):
                with open(os.path.join(self.folder, name), "w", encoding="ascii") as file:
                    file.write(str(value))
            self.way = "cgroup"
        except OSError:
            self.way = "signals"
            driver, self.child = os.getpid(), os.fork()
            if not self.child:
                os._exit(self.take_turns(driver))

    def take_turns(self, driver):
        try:
            while os.getppid() == driver:
                os.kill(self.pid, signal.SIGSTOP)
                time.sleep(0.9 * self.PERIOD_US / 1e6)
                os.kill(self.pid, signal.SIGCONT)
                time.sleep(0.1 * self.PERIOD_US / 1e6)
        except ProcessLookupError:
            pass
        return 0

    def close(self):
        if self.child:
            os.kill(self.child, signal.SIGKILL)
            os.waitpid(self.child, 0)
            os.kill(self.pid, signal.SIGCONT)
            return
        try:
            with open(os.path.join(self.ROOT, "cgroup.procs"), "w", encoding="ascii") as file:
                file.write(str(self.pid))
        except OSError:
            pass  # it has ended
        os.rmdir(self.folder)


def tenth(arguments, seed):
    """one of 8 at a tenth of the CPU for 10 minutes is never declared dead, nor takes others so"""
    with Eight(arguments, seed, "--model", "mlp:64", slow=5) as eight:
        victim = eight.rng.choice(eight.nodes)
        since, steps = time.monotonic(), [n.step for n in eight.nodes]
        slow = Tenth(victim.process.pid)
        try:
            eight.cluster.pass_time(arguments.last or 600)
            made = [n.step - s for n, s in zip(eight.nodes, steps)]
            eight.no_false_death(since)
            agreed_s = eight.end()
        finally:
            slow.close()
        eight.no_false_death(since)
        slow_made = made.pop(eight.nodes.index(victim))
        return {"by_" + slow.way: 1, "its_steps_to_others": slow_made / statistics.median(made),
                "suspicions": len(eight.changes(since, ("suspect",))), "agreed_s": agreed_s}


TRIALS = [detect_kill, kill_often, detect_silence, partition, one_way, loss, latency, tenth]
