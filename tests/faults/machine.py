"""How long the machine itself stood still: what no program on it can be blamed for.

A watcher of real-time priority on each processor sleeps a millisecond at a time; whatever it sleeps
longer, everybody else on that processor slept, too. Guests of a shared host are paused for tens of
milliseconds without a trace in /proc/stat. Without the right to such a priority nothing is said.
"""
import mmap
import os
import signal
import struct
import time

TICK_S = 0.001


class Stalls:
    """The longest stall of any processor since begin(), in milliseconds; None if unknown."""

    def __init__(self):
        processors = sorted(os.sched_getaffinity(0))
        self.longest = mmap.mmap(-1, 8 * len(processors))
        self.watchers = []
        driver = os.getpid()
        for i, processor in enumerate(processors):
            watcher = os.fork()
            if not watcher:
                os._exit(self.watch(i, processor, driver))
            self.watchers.append(watcher)
        self.count = len(processors)

    def watch(self, i, processor, driver):
        try:
            os.sched_setaffinity(0, [processor])
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
        except OSError:
            struct.pack_into("d", self.longest, 8 * i, -1)
            return 0
        last = time.monotonic()
        while os.getppid() == driver:
            time.sleep(TICK_S)
            now = time.monotonic()
            if now - last - TICK_S > struct.unpack_from("d", self.longest, 8 * i)[0]:
                struct.pack_into("d", self.longest, 8 * i, now - last - TICK_S)
            last = now
        return 0

    def known(self):
        return all(s >= 0 for s in struct.unpack("%dd" % self.count, self.longest[:]))

    def begin(self):
        if self.known():
            self.longest[:] = bytes(8 * self.count)

    def worst_ms(self):
        if not self.known():
            return None
        return 1e3 * max(struct.unpack("%dd" % self.count, self.longest[:]))

    def close(self):
        for watcher in self.watchers:
            os.kill(watcher, signal.SIGKILL)
            os.waitpid(watcher, 0)
