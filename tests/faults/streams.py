"""`--streams N` under faults, and what it is for, measured: a big model over a long line that loses packets. Of the
congestion controls the one that every kernel lets a namespace have, Reno, is also the one whose
share of such a line is known: 1.2 segments a round trip over the root of the loss.

Each trial gets the arguments and a seed and returns its figures, or raises Broken or Skipped.
"""
import random

from cluster import Broken, Cluster, Proxied, Wired

DELAY_S, LOSS = 0.05, 0.001
MODEL = "mlp:3160,3150"  # of the small table's 16 columns and 4 classes: 10,023,474 parameters
SLOW = 20  # the processors are for those who carry packets
LIMIT_S = 600

NODES, CUTS = 4, 8
THROUGH_PROXY = ("--streams", "4", "--no-lane", "--model", "mlp:256,256", "--epochs", "10")


def use_reno():
    """In this thread's namespace."""
    with open("/proc/sys/net/ipv4/tcp_congestion_control", "w", encoding="ascii") as file:
        file.write("reno")


def no_death(nodes):
    if any(e["event"] == "member" and e["state"] == "dead" for n in nodes for e in n.events):
        raise Broken("one was taken for dead")


def seconds(arguments, seed, streams):
    """From the second node's first step until both have averaged, which takes a model each way."""
    network = Wired(2, seed)
    cluster = Cluster(arguments, random.Random(seed), ["--model", MODEL, "--streams", str(streams)],
                      network, endless=True, slow=SLOW)
    held = False
    try:
        for i in range(2):
            network.wire.run_in(i, use_reno)
        network.wire.set([(0, 1), (1, 0)], LOSS, DELAY_S)
        nodes = cluster.start_all(2)
        cluster.training()
        took_s = cluster.within(LIMIT_S, "an exchange",
                                lambda: all(n.says("exchanges") for n in nodes))
        no_death(nodes)
        held = True
        return took_s
    finally:
        cluster.close(keep=not held)


def streams(arguments, seed):
    """two nodes, 50 ms each way and 0.1 % lost: seconds to average 10^7 floats"""
    one_s, eight_s = (seconds(arguments, seed, n) for n in (1, 8))
    if eight_s >= one_s:
        raise Broken("%.1f s with 8 streams, %.1f s with one" % (eight_s, one_s))
    return {"1 stream": one_s, "8 streams": eight_s}


def cut_streams(arguments, seed):
    """four nodes, single streams of theirs cut after k bytes while they train: one digest"""
    network = Proxied()
    cluster = Cluster(arguments, random.Random(seed), THROUGH_PROXY, network)
    hit, held = 0, False
    try:
        nodes = cluster.start_all(NODES)
        cluster.training()
        while hit < CUTS and all(n.phase == "train" for n in nodes):
            a, b = cluster.rng.sample(nodes, 2)
            hit += network.ask("cut", a=a.name, b=b.name, stream=True,
                               after=cluster.rng.randrange(1 << 20))
            cluster.pass_time(0.1)
        accuracy = cluster.agreed(nodes, NODES)
        no_death(nodes)
        held = hit > 0
        if not held:
            raise Broken("no stream was there to be cut, in " + cluster.folder)
        return {"accuracy": accuracy, "cuts": hit}
    finally:
        cluster.close(keep=not held)


TRIALS = [cut_streams, streams]
