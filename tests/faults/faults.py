"""The faults of the storm: each comes over eight nodes that train, and is healed again.

A fault is a function of the storm (storm.py). It does its harm, sees that those it does not touch
train on, and undoes it; that all are one again is then the storm's to see. It returns figures or
None, and raises Broken or Skipped.
"""
import contextlib
import mmap
import os
import resource
import signal
import socket

import measured
import trials
from cluster import Broken, Node, Skipped


# ---- Deaths --------------------------------------------------------------------------------------


def kill(storm):
    """kill -9 of one; it comes back under its name"""
    victim = storm.one()
    storm.kill([victim])
    storm.hold(storm.but(victim), storm.rng.uniform(0.5, 4))
    storm.back([victim])


def kill_at_state(storm):
    """kill -9 on entering a state of an exchange, in a role, drawn"""
    if not storm.in_pairs:
        raise Skipped("this strategy makes no exchanges in pairs")
    victim = storm.node("n7")  # which tells all it does
    role = storm.rng.choice(list(trials.STATES))
    trials.kill_on_entering(victim, role, storm.rng.choice(trials.STATES[role]))
    storm.kill([victim])
    storm.hold(storm.but(victim), 1)
    storm.back([victim])


def restart_at_once(storm):
    """kill -9 of one, and its name is back before anybody can know"""
    victim = storm.one()
    storm.kill([victim])
    storm.back([victim])
    storm.hold(storm.but(victim), 1)


def half_at_once(storm):
    """kill -9 of four at once; they come back"""
    victims = storm.rng.sample(storm.nodes, 4)
    storm.kill(victims)
    storm.hold(storm.but(*victims), storm.rng.uniform(0.5, 4))
    storm.back(victims)


def all_at_once(storm):
    """kill -9 of all eight; they go on from their checkpoints"""
    storm.wait(60, "a checkpoint of each", storm.all_have_checkpoints)
    victims, epoch = list(storm.nodes), max(n.says("epoch") or 0 for n in storm.nodes)
    storm.kill(victims)
    storm.back(victims)
    storm.wait(60, "all train again", lambda: all(n.says("epoch") for n in storm.nodes))
    resumed = max(n.says("epoch") for n in storm.nodes)
    if epoch > 100 and resumed < epoch / 10:
        raise Broken("epoch %.1f before, %.1f after all were restarted" % (epoch, resumed))


def seeds_dead(storm):
    """both seeds are killed, then another whose list has none else; all come back in that order"""
    seeds, other = [storm.node("n0"), storm.node("n1")], storm.rng.choice(storm.nodes[2:])
    storm.kill([*seeds, other])
    storm.back([other])  # it finds nobody yet
    storm.hold(storm.but(*seeds, other), storm.rng.uniform(0.5, 3))
    storm.back(seeds)


def pause(storm):
    """SIGSTOP of one for up to 12 s, and SIGCONT"""
    victim = storm.one()
    victim.signal(signal.SIGSTOP)
    try:
        storm.hold(storm.but(victim), storm.rng.uniform(0.5, 12))
    finally:
        victim.signal(signal.SIGCONT)


def two_of_one_name(storm):
    """a second process under the name of a living one: it ends with status 4 and says why"""
    victim = storm.one()
    listen, = storm.cluster.ports(1)
    twin = Node(storm.cluster, victim.name, listen, victim.seeds, (), folder=victim.name + "-twin")
    try:
        storm.wait(60, "the second of one name ends", lambda: twin.status is not None)
    finally:
        twin.kill()
    if twin.status != 4 or not twin.last("error"):
        raise Broken("the second of one name ended with status %s" % twin.status)


# ---- What a machine lacks ------------------------------------------------------------------------


def disk_full(storm):
    """no room for checkpoints at one: it says so and trains on"""
    victim = storm.node("n6")
    if not storm.has_small_disk:
        raise Skipped("no right to mount a small file system")
    filler = os.path.join(storm.cluster.folder_of("n6"), "filler")
    said = os.path.getsize(victim.talk)
    try:
        with open(filler, "wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(1 << 14))
        # A page for what it says, which stands on that disk too.
        os.truncate(filler, os.path.getsize(filler) - mmap.PAGESIZE)
        victim.signal(signal.SIGUSR1)
        storm.hold(storm.nodes, 2)
    finally:
        os.remove(filler)
    victim.signal(signal.SIGUSR1)
    storm.wait(30, "a word on the full disk", lambda: b"No space left" in storm.talk(victim, said))


def limited(storm, victim, limit, value, count, first):
    """Under a limit of the kernel's, while so many connect and say `first`."""
    before = resource.prlimit(victim.process.pid, limit)
    resource.prlimit(victim.process.pid, limit, (value, before[1]))
    try:
        with strangers(victim, count, lambda i: first):
            storm.hold(storm.nodes, 2)
    finally:
        if victim.status is None:
            resource.prlimit(victim.process.pid, limit, before)


@contextlib.contextmanager
def strangers(victim, count, words):
    """So many connections to it, each of which says words(i); who is refused, is."""
    host, port = victim.listen.rsplit(":", 1)
    with contextlib.ExitStack() as stack:
        for i in range(count):
            s = stack.enter_context(socket.socket())
            s.settimeout(1)
            with contextlib.suppress(OSError):
                s.connect((host, int(port)))
                s.sendall(words(i))
        yield


def descriptors(storm):
    """one may have 64 descriptors, and 100 strangers connect to it"""
    limited(storm, storm.one(), resource.RLIMIT_NOFILE, 64, 100, b"")


def memory(storm):
    """one may have 512 KiB more than it has, and 60 strangers want buffers"""
    victim = storm.one()
    now = 1024 * storm.status_of(victim, "VmSize")
    limited(storm, victim, resource.RLIMIT_AS, now + (512 << 10), 60, b"Py\x01\x01\x10\x10\0\0half")


def bad_frames(storm):
    """200 strangers: random bytes, lengths of 4 GiB, msgpack bombs, silence"""
    frames = trials.BAD_FRAMES + [b"", storm.rng.randbytes(4096)]
    with strangers(storm.one(), 200, lambda i: frames[i % len(frames)]):
        storm.hold(storm.nodes, 2)


def slow_node(storm):
    """a tenth of a processor for one, 5 s"""
    victim = storm.one()
    slow = measured.Tenth(victim.process.pid)
    try:
        storm.hold(storm.but(victim), 5)
    finally:
        slow.close()


# ---- What a network does: all through the proxy --------------------------------------------------


def lines_of(storm, victim, there=True, back=True):
    others = [n.name for n in storm.but(victim)]
    return [[victim.name, o] for o in others if there] + [[o, victim.name] for o in others if back]


def lines_fault(storm, lines, seconds, untouched, **how):
    storm.ask("set", lines=lines, **how)
    storm.hold(untouched, seconds)


def delay(storm):
    """300 ms more to and from one"""
    lines_fault(storm, lines_of(storm, storm.one()), storm.rng.uniform(2, 6), storm.nodes,
                delay_s=0.3)


def throttle(storm):
    """20 kB a second to and from one"""
    lines_fault(storm, lines_of(storm, storm.one()), storm.rng.uniform(2, 6), storm.nodes,
                rate=20000)


def stall(storm):
    """silence to and from one for up to 12 s"""
    lines_fault(storm, lines_of(storm, storm.one()), storm.rng.uniform(0.5, 12), storm.nodes,
                stalled=True)


def stall_one_way(storm):
    """silence one way between one and all for up to 12 s"""
    there = storm.rng.random() < 0.5
    lines_fault(storm, lines_of(storm, storm.one(), there, not there),
                storm.rng.uniform(0.5, 12), storm.nodes, stalled=True)


def partition(storm):
    """4 | 4 for up to 12 s"""
    half = {n.name for n in storm.rng.sample(storm.nodes, 4)}
    lines = [[a.name, b.name] for a in storm.nodes for b in storm.nodes
             if (a.name in half) != (b.name in half)]
    lines_fault(storm, lines, storm.rng.uniform(0.5, 12), storm.nodes, stalled=True)


def links_fault(storm, verb, **how):
    hit = 0
    for _ in range(12):
        a, b = storm.rng.sample(storm.nodes, 2)
        more = {key: draw() for key, draw in how.items()}
        hit += storm.ask(verb, a=a.name, b=b.name, **more)
        storm.hold(storm.nodes, 0.1)
    return {"links": hit}


def cut(storm):
    """links end after k more bytes, k drawn: within a header, a frame, a model"""
    return links_fault(storm, "cut",
                       after=lambda: int(storm.rng.choice([1, 10, 100, 1000]) *
                                         storm.rng.uniform(0, 10)))


def reset(storm):
    """links end with RST"""
    return links_fault(storm, "reset")


def half_open(storm):
    """one end of a link is gone, and the other hears nothing of it for 3 s"""
    figures = links_fault(storm, "half_open")
    storm.hold(storm.nodes, 3)
    return figures


def duplicate(storm):
    """a link's first bytes come once more, on a second connection"""
    return links_fault(storm, "duplicate")


FAULTS = [kill, kill_at_state, restart_at_once, half_at_once, all_at_once, seeds_dead, pause,
          two_of_one_name, disk_full, descriptors, memory, bad_frames, slow_node, delay, throttle,
          stall, stall_one_way, partition, cut, reset, half_open, duplicate]
