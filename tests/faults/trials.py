"""Trials of small clusters under the faults that come to nodes: deaths, pauses, strangers.

Each gets a cluster and returns its figures, or raises Broken.
"""
import os
import random
import signal
import socket
import struct
import time

from cluster import Broken, Cluster


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
            other.close(keep=options not in references)
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


STRATEGIES = ["allreduce", "local-sgd", "diloco", "gossip-sync", "choco", "push-sum", "noloco",
              "ps-bsp", "ps-asp", "ps-ssp:2"]


def kill_by_strategy(cluster):
    """one of 4 killed, each strategy in turn: the others go on, agree, and take no other for dead"""
    strategy = STRATEGIES[cluster.seed % len(STRATEGIES)]
    nodes = cluster.start_all(4, "--strategy", strategy, "--model", "mlp:512,256", "--epochs",
                              "1000000", "--time", "8s")
    cluster.training()
    cluster.pass_time(cluster.rng.uniform(0, 2))
    victim = cluster.rng.choice(nodes)
    victim.kill()
    rest, killed = [n for n in nodes if n is not victim], time.monotonic()
    cluster.until("news since then", lambda: all(n.says("step", since=killed) is not None or
                                                 n.status is not None for n in rest))
    steps = {n: n.step for n in rest}
    accuracy = cluster.agreed(rest, 4)
    for node in rest:
        if node.step <= steps[node]:
            raise Broken("%s: %s made no further step" % (strategy, node.name))
        for other in rest:
            if node.said_of(other.name, "dead", since=killed):
                raise Broken("%s: %s took %s for dead" % (strategy, node.name, other.name))
    return {"accuracy": accuracy, **cluster.worst(rest)}


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


STATES = {"offer": ["taking", "offered", "streaming", "diffing", "ready", "adding"],
         "answer": ["taking", "streaming", "diffing", "ready", "adding"]}


def kill_on_entering(victim, role, state):
    """By its debug lines, which never cease while it trains. Returns those it still got to."""
    with open(victim.talk, encoding="utf-8") as talk:
        talk.seek(0, os.SEEK_END)
        entered = ""
        while not (entered.startswith("parley: " + role) and entered.endswith("-> %s\n" % state)):
            entered = talk.readline()
            if not entered and victim.process.poll() is not None:
                raise Broken("the run ended before %s %s" % (role, state))
        victim.kill()
        return [line for line in talk if line.startswith("parley: " + role)]


def kill_at_state(cluster):
    """one of 4 killed on entering a state of an exchange, each state of each role in turn"""
    turns = [(role, state) for role, states in STATES.items() for state in states]
    role, state = turns[cluster.seed % len(turns)]
    nodes = cluster.start_all(4, "--model", "mlp:1024,512", "--steps", "60", "--log-level", "debug")
    cluster.training()
    victim = cluster.rng.choice(nodes)
    after = kill_on_entering(victim, role, state)
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


BAD_FRAMES = [b"Py\x01\x01" + struct.pack("<I", 0xffffffff),
              b"Py\x01\x18" + struct.pack("<I", 0x7fffffff),
              b"Py\x01\x01\x05\0\0\0\xdf\xff\xff\xff\xff", b"GET / HTTP/1.1\r\n\r\n"]


def hostile(cluster):
    """random bytes, a huge length, 1,000 silent connections on a node's port: training goes on"""
    nodes = cluster.start_all(3, "--epochs", "1000000", "--time", "5s")
    cluster.training()
    host, port = nodes[0].listen.rsplit(":", 1)
    open_sockets = []
    refused = 0
    for bytes_ in BAD_FRAMES + [cluster.rng.randbytes(4096)] + [b""] * 1000:
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


TRIALS = [undisturbed, any_order, kill_two_of_five, kill_half, kill_by_strategy, kill_in_exchange,
          kill_at_state, kill_in_agreement, late_joiner, pause, hostile]
