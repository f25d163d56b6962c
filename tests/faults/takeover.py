"""A trial of what becomes of a dead node's samples: how soon the others train on them."""
import statistics
import time

from cluster import Broken
from measured import Eight, of_most


def took_over(eight, victim, since):
    """When the first of the others said that it trains on a sample it took over; None: nobody yet."""
    said = [e["at"] for node in eight.others(victim) for e in node.events
            if e["event"] == "takeover" and e["at"] >= since]
    return min(said) if said else None


def takeover(arguments, seed):
    """kill -9 of one of 8: another trains on its samples within 2 s"""
    tries, took = arguments.tries or 20, []
    with Eight(arguments, seed, "--model", "mlp:64") as eight:
        cluster = eight.cluster
        for _ in range(tries):
            victim = eight.rng.choice(eight.nodes)
            victim.kill()
            since = time.monotonic()
            cluster.within(30, "somebody took over from " + victim.name,
                           lambda v=victim, s=since: took_over(eight, v, s))
            took.append(took_over(eight, victim, since) - since)
            cluster.again(victim)
            back = time.monotonic()
            cluster.within(60, victim.name + " is back", lambda b=back: cluster.whole(b))
        if max(took) > 2:
            raise Broken("taken over after %.2f s" % max(took))
        agreed_s = eight.end()
    return {"p50_s": statistics.median(took), "p90_s": of_most(took, 0.9), "worst_s": max(took),
            "agreed_s": agreed_s}


TRIALS = [takeover]
