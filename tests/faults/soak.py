"""Trials of real nodes under faults, repeated: a table of tries and held, and the worst figures.

  tests/soak.sh [--count N] [--seed S] [--parley PATH] [--data SPEC] [TRIAL ...]

Every trial starts nodes, does what its name says at a time drawn by the seed, and checks what
must hold. The first ones are for the nodes of a small cluster and take seconds each (trials.py);
those that measure what is promised take minutes, and run only if named (measured.py, siege.py,
streams.py, takeover.py).
A trial that does not hold keeps its folder and prints its name; what this machine can't do is
SKIPPED. Exit status: 0 if all held that could be tried. Only processes started here are
signalled, and all are ended; nothing leaves this machine.
"""
import argparse
import random
import sys

import helper
import machine
import measured
import siege
import streams
import takeover
import trials
from cluster import Broken, Cluster, Skipped


def try_small(trial, arguments, seed):
    cluster = Cluster(arguments, random.Random(seed))
    cluster.seed, held = seed, False
    try:
        figures = trial(cluster)
        held = True
        return figures
    except Broken as broken:
        raise Broken("%s, in %s" % (broken, cluster.folder)) from None
    finally:
        cluster.close(keep=not held)


def try_once(trial, arguments, seed):
    try:
        if trial in trials.TRIALS:
            return try_small(trial, arguments, seed), None
        return trial(arguments, seed), None
    except Broken as broken:
        return {}, "%s, seed %d: %s" % (trial.__name__, seed, broken)


def less_stalls(figures, stall_ms):
    """What stood still with the machine is not the nodes' to answer for: a gap between steps, or a
    turn of a besieged loop, has the machine's own longest stall of that try taken off."""
    if stall_ms is None:
        return figures
    less = {name + " less stall": max(0, figures[key] - stall_ms)
            for name, key in (("gap", "gap_max_ms"), ("turn", "turn_max_ms")) if key in figures}
    return {**figures, **({"stall_max_ms": stall_ms, **less} if less else {})}


GAP_LONGER_MS, TURN_MS = 50, 20


def too_long(trial, seed, figures):
    """A line if a gap, or a turn of a besieged loop, was longer than it may be."""
    gap_ms = figures.get("gap less stall", figures.get("gap_max_ms", 0))
    if "gap_undisturbed_ms" in figures and gap_ms > figures["gap_undisturbed_ms"] + GAP_LONGER_MS:
        return "%s, seed %d: a gap of %.1f ms, undisturbed %.1f ms" % (
            trial.__name__, seed, gap_ms, figures["gap_undisturbed_ms"])
    turn_ms = figures.get("turn less stall", figures.get("turn_max_ms", 0))
    if "turn_calm_ms" in figures and turn_ms > max(TURN_MS, figures["turn_calm_ms"]):
        return "%s, seed %d: a turn of %.1f ms" % (trial.__name__, seed, turn_ms)
    return None


BEST_IS_MOST = ("accuracy", "its_steps_to_others", "speed", "its_own_speed")
SUMMED = ("killed in that very state", "exchanges_in_all", "kills")


def worst_of(tries):
    keys = list(dict.fromkeys(key for figures in tries for key in figures))
    worst = []
    for key in keys:
        values = [f[key] for f in tries if f.get(key) is not None]
        of = min if key in BEST_IS_MOST else sum if key in SUMMED else max
        if values:
            worst.append("%s %.4g" % (key, of(values)))
    return ", ".join(worst)


def try_all(trial, arguments, stalls):
    """Prints the trial's row. False if it has not held."""
    tries, broken = [], []
    try:
        for i in range(arguments.count):
            stalls.begin()
            figures, why = try_once(trial, arguments, arguments.seed + i)
            tries.append(less_stalls(figures, stalls.worst_ms()))
            why = why or too_long(trial, arguments.seed + i, tries[-1])
            if why:
                broken.append(why)
    except Skipped as skipped:
        print("%-18s SKIPPED: %s" % (trial.__name__, skipped), flush=True)
        return True
    print("%-18s %5d %5d  %s" % (trial.__name__, len(tries), len(tries) - len(broken),
                                 worst_of(tries)), flush=True)
    for line in broken:
        print("  not held: " + line, flush=True)
    return not broken


def main():
    names = {t.__name__: t for t in trials.TRIALS + measured.TRIALS + siege.TRIALS + streams.TRIALS +
             takeover.TRIALS}
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n", maxsplit=1)[0],
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="trials:\n" + "\n".join("  %-18s %s" % (n, t.__doc__) for n, t in names.items()))
    parser.add_argument("trials", nargs="*", metavar="TRIAL",
                        help="all that take seconds if none is named")
    parser.add_argument("--count", type=int, default=3, help="times each (default 3)")
    parser.add_argument("--seed", type=int, default=1, help="of the first time (default 1)")
    parser.add_argument("--tries", type=int, help="of a fault within a trial that measures")
    parser.add_argument("--last", type=float, metavar="SECONDS",
                        help="how long a fault lasts in a trial that measures")
    parser.add_argument("--parley", default="build/peers/parley", help="the program to try")
    parser.add_argument("--data", default="digits")
    arguments = parser.parse_args()
    unknown = [t for t in arguments.trials if t not in names]
    if unknown:
        parser.error("no trial is called %s" % unknown[0])
    helper.close_on_sigterm()
    stalls = machine.Stalls()
    print("%-18s %5s %5s  %s" % ("trial", "tries", "held", "worst"), flush=True)
    try:
        held = [try_all(names[name], arguments, stalls)
                for name in arguments.trials or [t.__name__ for t in trials.TRIALS]]
    finally:
        stalls.close()
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
