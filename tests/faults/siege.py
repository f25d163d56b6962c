"""Strangers by the thousand: what they cost the node they besiege, and the others.

Besieged and calm windows take turns. What is judged is the nodes' own work, and real besiegers bring
processors of their own. So these have the machine's last processor to themselves and the nodes the
others. Eight nodes that fill one processor would each be told of every microsecond that any other
uses, and a turn of the loop would be mostly waiting for it. So each step sleeps besides, as where a
device computes it. The sleep is of one length: as a multiple of the step it would multiply the wait
for the processor, too. In calm windows the besiegers go on alike, against a listener of no node
beside them, as processors of one machine share caches and clocks. Speed is in steps a second by the clock; `busy` is the part of
the nodes' processors that they take, calm and besieged, and `costs` what the besieged one takes more
of one processor. A besieged window is compared with the calm ones before and after it, as machines
are not of one speed for long. With one processor there is no such place.
"""
import contextlib
import mmap
import os
import resource
import select
import signal
import socket
import statistics
import struct
import time

from cluster import Broken, Skipped
from helper import end_with
from measured import Eight
from trials import BAD_FRAMES

SLOW, NEW_A_SECOND = 1000, 5000
STEP_SLEEP_US = 5000
MEMORY_KIB, SPEED = 16 << 10, 0.95


def places():
    """The nodes' processors and the besiegers'."""
    processors = sorted(os.sched_getaffinity(0))
    if len(processors) < 2:
        raise Skipped("besiegers need a processor of their own")
    return set(processors[:-1]), {processors[-1]}


def pin(pid, processors):
    for thread in os.listdir("/proc/%d/task" % pid):
        os.sched_setaffinity(int(thread), processors)


class Nobody:
    """A listener beside the besiegers that takes all connections and what they say."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.address = self.listener.getsockname()
        driver, self.pid = os.getpid(), os.fork()
        if not self.pid:
            with contextlib.suppress(BaseException):
                end_with(driver)
                os.sched_setaffinity(0, places()[1])
                self.serve()
            os._exit(0)

    def serve(self):
        poll, open_ones = select.epoll(), {}
        poll.register(self.listener, select.EPOLLIN)
        while True:
            for descriptor, _ in poll.poll():
                if descriptor == self.listener.fileno():
                    s = self.listener.accept()[0]
                    open_ones[s.fileno()] = s
                    poll.register(s, select.EPOLLIN)
                    continue
                with contextlib.suppress(OSError):
                    if open_ones[descriptor].recv(4096):
                        continue
                open_ones.pop(descriptor).close()

    def close(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        self.listener.close()


class Besiegers:
    """A process that goes on until it is ended; how many connections it has opened."""

    def __init__(self, way, address):
        self.count = mmap.mmap(-1, 8)
        driver, self.pid = os.getpid(), os.fork()
        if not self.pid:
            with contextlib.suppress(BaseException):
                end_with(driver)
                os.sched_setaffinity(0, places()[1])
                way(address, self.counted)
            os._exit(0)

    def counted(self):
        struct.pack_into("q", self.count, 0, self.opened() + 1)

    def opened(self):
        return struct.unpack("q", self.count[:])[0]

    def close(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def connect(address):
    """Under way, and it will end with RST: no port waits for its end."""
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    s.setblocking(False)
    s.connect_ex(address)
    return s


def slow(address, counted):
    """A thousand at a time, each of which sends a byte a second; who is thrown out comes again."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    open_ones, word = [], b"Py\x01\x01\x10\x10\0\0" + bytes(4096)
    while True:
        start = time.monotonic()
        for s in list(open_ones):
            try:
                s[0].send(word[s[1]:s[1] + 1])
                s[1] += 1
                s[0].recv(1)
                gone = True
            except BlockingIOError:
                gone = False
            except OSError:
                gone = True
            if gone:
                s[0].close()
                open_ones.remove(s)
        while len(open_ones) < SLOW:
            open_ones.append([connect(address), 0])
            counted()
        time.sleep(max(0.0, start + 1 - time.monotonic()))


def paced(address, counted, rate, words):
    """So many new ones a second; each says its word and is gone 10 ms later at the earliest."""
    start, opened, waiting = time.monotonic(), 0, []
    while True:
        now = time.monotonic()
        for _ in range(min(rate // 100, int((now - start) * rate) - opened)):
            waiting.append((now, connect(address), words[opened % len(words)]))
            opened += 1
            counted()
        start = max(start, now - opened / rate - 0.1)  # what could not be done is not made up for
        while waiting and now > waiting[0][0] + 0.01:
            _, s, word = waiting.pop(0)
            with contextlib.suppress(OSError):
                s.send(word)
            s.close()
        select.select([], [], [], 0.002)


def new(address, counted):
    """Half of them say something."""
    paced(address, counted, NEW_A_SECOND, [b"", b"P"])


def bombs(address, counted):
    """msgpack that declares 4 billion, lengths of 4 GiB, other protocols."""
    paced(address, counted, 500, BAD_FRAMES)


class Watch:
    """Steps and processor time of some nodes from here on."""

    def __init__(self, cluster, nodes):
        self.cluster, self.nodes = cluster, nodes
        self.then = [self.now(n) for n in nodes]
        self.since = time.monotonic()

    def now(self, node):
        """By the scheduler's own account: ticks of a clock miss what lasts microseconds."""
        tasks, ran_ns = "/proc/%d/task" % node.process.pid, 0
        for thread in os.listdir(tasks):
            with open("%s/%s/schedstat" % (tasks, thread), encoding="ascii") as file:
                ran_ns += int(file.read().split()[0])
        return node.step, ran_ns / 1e9

    def speed(self):
        """Steps a second, and processors taken, of all of them together."""
        seconds = time.monotonic() - self.since
        parts = [(b[0] - a[0], b[1] - a[1]) for a, b in
                 zip(self.then, [self.now(n) for n in self.nodes])]
        return sum(p[0] for p in parts) / seconds, sum(p[1] for p in parts) / seconds


def memory_kib(node):
    with open("/proc/%d/status" % node.process.pid, encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))


def window(eight, victim, seconds, way, address):
    """Speeds of the others and of the victim, processors that those and this one take, its most
    memory; how many came a second."""
    besiegers = Besiegers(way, address)
    try:
        eight.cluster.pass_time(1)
        came, start = besiegers.opened(), time.monotonic()
        others, own = Watch(eight.cluster, eight.others(victim)), Watch(eight.cluster, [victim])
        most = 0
        while time.monotonic() < start + seconds:
            eight.cluster.pass_time(0.5)
            most = max(most, memory_kib(victim))
        rate = (besiegers.opened() - came) / (time.monotonic() - start)
        speed, busy = others.speed()
        own_speed, own_busy = own.speed()
        return speed, own_speed, busy, own_busy, most, rate
    finally:
        besiegers.close()


def besieged(arguments, seed, way):
    seconds, turns = arguments.last or 5, arguments.tries or 5
    ours, _ = places()
    nobody = Nobody()
    with Eight(arguments, seed, "--model", "mlp:64") as eight, contextlib.closing(nobody):
        for node in eight.nodes:
            node.say("sleep %d" % STEP_SLEEP_US)
            pin(node.process.pid, ours)
        victim = eight.rng.choice(eight.nodes)
        host, port = victim.listen.rsplit(":", 1)
        calmly = lambda: window(eight, victim, seconds, way, nobody.address)
        calm, under = [calmly()], []
        turn_calm = eight.cluster.worst([victim])["turn_max_ms"]
        for _ in range(turns):
            under.append(window(eight, victim, seconds, way, (host, int(port))))
            calm.append(calmly())
        turn_max = eight.cluster.worst([victim])["turn_max_ms"]
        eight.no_false_death(eight.nodes[0].since + 5)
        eight.end()
    around = [tuple((a + b) / 2 for a, b in zip(*pair)) for pair in zip(calm, calm[1:])]
    median = lambda of: statistics.median(of(u, c) for u, c in zip(under, around))
    figures = {"speed": median(lambda u, c: u[0] / c[0]),
               "its_own_speed": median(lambda u, c: u[1] / c[1]),
               "busy_calm": median(lambda u, c: c[2] + c[3]) / len(ours),
               "busy": median(lambda u, c: u[2] + u[3]) / len(ours),
               "costs": median(lambda u, c: u[3] - c[3]),
               "mib_more": (max(w[4] for w in under) - calm[0][4]) / 1024,
               "turn_max_ms": turn_max, "turn_calm_ms": turn_calm,
               "a_second": median(lambda u, c: u[5])}
    if figures["speed"] < SPEED or figures["mib_more"] * 1024 > MEMORY_KIB:
        raise Broken(", ".join("%s %.4g" % f for f in figures.items()))
    return figures


def siege_slow(arguments, seed):
    """1,000 connections that send a byte a second: others at 95 %, < 16 MiB, no turn over 20 ms"""
    return besieged(arguments, seed, slow)


def siege_new(arguments, seed):
    """5,000 new connections a second: the same"""
    return besieged(arguments, seed, new)


def siege_bombs(arguments, seed):
    """500 a second with msgpack bombs and lengths of 4 GiB: the same"""
    return besieged(arguments, seed, bombs)


TRIALS = [siege_slow, siege_new, siege_bombs]
