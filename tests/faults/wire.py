"""A network of one's own: each node in a network namespace with a TUN device, and one process
that carries the packets between them, or loses or delays them, as ordered pairs are told to. What
`tc netem` would do where the kernel has it; here the kernel needs TUN and the right to make
namespaces, and tests that lack them say SKIPPED.
"""
import ctypes
import fcntl
import heapq
import os
import random
import select
import struct
import subprocess
import threading
import time

import helper

CLONE_NEWNET = 0x40000000
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
MTU = 1500
TURN_PACKETS = 64  # of one device before the others have their turn


class Unable(Exception):
    """Why there can be no such network here."""


def checked(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def apart(function):
    """Runs it in a thread of its own, whose namespaces may change; returns or raises as it does."""
    said = {}

    def run():
        try:
            said["result"] = function()
        except (OSError, subprocess.SubprocessError) as error:
            said["error"] = error
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if "error" in said:
        raise said["error"]
    return said["result"]


def address_of(number):
    return "10.77.0.%d" % (number + 1)


def make(number):
    """A namespace with one device up: descriptors of both."""
    libc = ctypes.CDLL(None, use_errno=True)
    checked(libc.unshare(CLONE_NEWNET))
    space = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    tun = os.open("/dev/net/tun", os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
    fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH", b"wire", IFF_TUN | IFF_NO_PI))
    for command in ("link set lo up", "addr add %s/24 dev wire" % address_of(number),
                    "link set wire mtu %d up" % MTU):
        subprocess.run(["ip", *command.split()], check=True, stderr=subprocess.PIPE)
    return space, tun


class Wire:
    """For `count` nodes; node i is at address_of(i)."""

    def __init__(self, count, seed):
        try:
            made = [apart(lambda i=i: make(i)) for i in range(count)]
        except (OSError, subprocess.SubprocessError) as error:
            raise Unable("no network namespaces with TUN: %s" % error) from None
        self.spaces, tuns = [m[0] for m in made], [m[1] for m in made]
        self.helper = helper.Helper(lambda far: Carrier(far, tuns, seed).serve())
        for tun in tuns:
            os.close(tun)

    def run_in(self, number, function):
        def enter():
            checked(ctypes.CDLL(None, use_errno=True).setns(self.spaces[number], CLONE_NEWNET))
            return function()
        return apart(enter)

    def set(self, pairs, loss=0, delay_s=0):
        """Of packets from a to b, (a, b) in pairs; 1 loses all."""
        self.helper.ask("set", pairs=pairs, loss=loss, delay_s=delay_s)

    def heal(self):
        return self.helper.ask("heal")["lost"]

    def close(self):
        self.helper.close()
        for space in self.spaces:
            os.close(space)


class Carrier:
    def __init__(self, far, tuns, seed):
        self.far, self.tuns, self.rng = far, tuns, random.Random(seed)
        self.rules, self.late, self.order, self.lost = {}, [], 0, 0

    def serve(self):
        poll = select.poll()
        sources = {tun: i for i, tun in enumerate(self.tuns)}
        for descriptor in [self.far.fileno(), *self.tuns]:
            poll.register(descriptor, select.POLLIN)
        while True:
            for descriptor, _ in poll.poll(self.wait_ms()):
                if descriptor in sources:
                    self.carry(descriptor, sources[descriptor])
                elif not self.asked():
                    return
            self.deliver()

    def wait_ms(self):
        return max(0, 1000 * (self.late[0][0] - time.monotonic())) if self.late else None

    def carry(self, tun, source):
        for _ in range(TURN_PACKETS):
            try:
                packet = os.read(tun, 65536)
            except BlockingIOError:
                return
            if packet[0] >> 4 != 4:
                continue  # IPv6's own talk
            target = packet[19] - 1  # the last byte of the address
            if not 0 <= target < len(self.tuns):
                continue
            loss, delay_s = self.rules.get((source, target), (0, 0))
            if loss and self.rng.random() < loss:
                self.lost += 1
            elif delay_s:
                self.order += 1
                heapq.heappush(self.late, (time.monotonic() + delay_s, self.order, target, packet))
            else:
                self.put(target, packet)

    def put(self, target, packet):
        try:
            os.write(self.tuns[target], packet)
        except OSError:
            self.lost += 1

    def deliver(self):
        now = time.monotonic()
        while self.late and self.late[0][0] <= now:
            _, _, target, packet = heapq.heappop(self.late)
            self.put(target, packet)

    def asked(self):
        request = helper.take(self.far)
        if request is None:
            return False
        if request["verb"] == "set":
            for a, b in request["pairs"]:
                self.rules[a, b] = (request["loss"], request["delay_s"])
        else:
            self.rules = {}
        helper.reply(self.far, {"lost": self.lost})
        return True
