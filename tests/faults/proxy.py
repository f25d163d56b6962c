"""A chaos proxy: nodes dial each other through it, and it does to their bytes what networks do.

Every node has an address of the proxy that it advertises. Who dials is read off the name in the
HELLO that every dialler sends first; a stream (peers/network/streams.h) belongs to the link in whose
answer its token stood. For each ordered pair of names there is a line that delays,
throttles or stalls what flows from one to the other; what is stalled is held and not lost, as TCP
would send it again, and so is the end of a connection: silence. Single links are cut after k
bytes, reset, left half open, or dialled twice.

    names a, b    a line is [a, b]: from a to b, whoever dialled
"""
import asyncio
import collections
import contextlib
import re
import socket
import struct

import helper

ROOM_BYTES = 1 << 20  # a pipe that holds more reads no further
FIRST_BYTES = 1 << 14  # kept of what a dialler says first, and of what it is answered
STREAM, STREAM_BYTES = b"Ps\x01", 16  # what it says instead, with the token at the end
NAME = re.compile(rb"\xa4name(?:[\xa0-\xbf]|\xd9.)([^\xa0-\xff]+)", re.DOTALL)
END, RESET = object(), object()


def reset(transport):
    """Ends with RST, where a close would say FIN."""
    sock = transport.get_extra_info("socket")
    if sock is not None and sock.fileno() >= 0:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()


class Line:
    def __init__(self):
        self.heal()

    def heal(self):
        self.delay_s, self.rate, self.stalled = 0, 0, False

    def is_plain(self):
        return not (self.delay_s or self.rate or self.stalled)


class Pipe:
    """One direction of a link: what was read waits here until it may be written."""

    def __init__(self, link, line):
        self.link, self.line = link, line
        self.held, self.held_bytes = collections.deque(), 0
        self.full = self.timer = None  # the sink takes no more; when to look again
        self.cut_after, self.ended = None, False
        self.source = self.sink = None

    def feed(self, data):
        if self.sink.is_closing():
            return
        is_bytes = data is not END and data is not RESET
        if is_bytes and not (self.held or self.full) and self.line.is_plain() and \
                self.cut_after is None:
            self.sink.write(data)
            return
        self.held.append((self.link.loop.time() + self.line.delay_s, data))
        self.held_bytes += len(data) if is_bytes else 0
        if self.held_bytes > ROOM_BYTES and not self.source.is_closing():
            self.source.pause_reading()
        self.pump()

    def pump(self):
        if self.timer:
            self.timer.cancel()
            self.timer = None
        while self.held and not self.full and not self.line.stalled:
            if self.sink.is_closing():
                self.held.clear()
                return
            due, data = self.held[0]
            wait_s = due - self.link.loop.time()
            if wait_s > 0 and self.line.delay_s:
                self.timer = self.link.loop.call_later(wait_s, self.pump)
                return
            self.held.popleft()
            if data is END or data is RESET:
                self.link.end(self, data is RESET)
                return
            wait_s = self.write(due, data)
            if wait_s:
                self.timer = self.link.loop.call_later(wait_s, self.pump)
                return

    def write(self, due, data):
        """Returns how long the rate then wants to wait."""
        part = data
        if self.line.rate:
            part = data[:max(1, self.line.rate // 50)]
            if len(part) < len(data):
                self.held.appendleft((due, data[len(part):]))
        self.held_bytes -= len(part)
        if self.cut_after is not None and len(part) >= self.cut_after:
            self.sink.write(part[:self.cut_after])
            self.link.close()
            return 0
        if self.cut_after is not None:
            self.cut_after -= len(part)
        self.sink.write(part)
        if self.held_bytes < ROOM_BYTES // 2 and not self.source.is_closing():
            self.source.resume_reading()
        return len(part) / self.line.rate if self.line.rate else 0


class End(asyncio.Protocol):
    """The proxy's end of a connection to the dialler (front) or to whom it dials."""

    def __init__(self, link, is_front):
        self.link, self.is_front = link, is_front

    def connection_made(self, transport):
        self.link.made(self, transport)

    def pipes(self):
        """The pipe that is fed by this end, and the one that writes to it."""
        there, back = self.link.there, self.link.back
        return (there, back) if self.is_front else (back, there)

    def data_received(self, data):
        self.link.read(self, data)

    def eof_received(self):
        self.link.read(self, END)
        return True  # the other direction lives on

    def connection_lost(self, error):
        self.link.lost(self, error)

    def pause_writing(self):
        pipe = self.pipes()[1]
        if pipe:
            pipe.full = True

    def resume_writing(self):
        pipe = self.pipes()[1]
        if pipe:
            pipe.full = False
            pipe.pump()


class Link:
    def __init__(self, proxy, target):
        self.proxy, self.loop, self.target, self.dialler = proxy, proxy.loop, target, None
        self.first, self.answer, self.is_stream = bytearray(), bytearray(), False
        self.front = self.far = self.there = self.back = None
        self.half_open = False

    def made(self, end, transport):
        if end.is_front:
            self.front = transport
            self.proxy.links.add(self)

    def read(self, end, data):
        if self.dialler is None:
            self.introduce(data)
        elif self.there is None:
            self.first_held(data)
        elif not self.half_open:
            if not end.is_front and data not in (END, RESET) and len(self.answer) < FIRST_BYTES:
                self.answer += data
            end.pipes()[0].feed(data)

    def introduce(self, data):
        if data is END:
            self.close()
            return
        self.first += data
        self.is_stream = self.first.startswith(STREAM)
        if self.is_stream:
            self.dialler = self.stream_dialler()
        else:
            name = NAME.search(self.first)
            self.dialler = name.group(1).decode("ascii", "replace") if name else None
        if self.dialler:
            self.task = self.loop.create_task(self.dial())
        elif len(self.first) > FIRST_BYTES:
            self.close()

    def stream_dialler(self):
        """Whose link was answered with this token; None where it has not come whole, or is no
        link's."""
        token = bytes(reversed(self.first[8:STREAM_BYTES]))  # in msgpack the highest byte is first
        return next((link.dialler for link in self.proxy.links if len(token) == 8 and
                     link.target == self.target and b"\xcf" + token in link.answer), None)

    def first_held(self, data):
        """The far end is still being dialled."""
        if data is END:
            self.close()
        else:
            self.first += data

    async def dial(self):
        address = self.proxy.targets[self.target]
        try:
            self.far, _ = await self.loop.create_connection(lambda: End(self, False), *address)
        except OSError:
            reset(self.front)
            return
        if self.front.is_closing():
            self.far.abort()
            return
        self.there = Pipe(self, self.proxy.line(self.dialler, self.target))
        self.back = Pipe(self, self.proxy.line(self.target, self.dialler))
        self.there.source = self.back.sink = self.front
        self.there.sink = self.back.source = self.far
        self.there.feed(bytes(self.first))
        del self.first[FIRST_BYTES:]

    def end(self, pipe, by_reset):
        pipe.ended = True
        if by_reset:
            reset(pipe.sink)
        elif self.there.ended and self.back.ended:
            self.close()
        else:
            with contextlib.suppress(OSError):  # it has just been reset from there
                pipe.sink.write_eof()

    def lost(self, end, error):
        if self.there is None:
            self.close()
        elif not self.half_open and not end.pipes()[0].ended:
            end.pipes()[0].feed(RESET if error else END)
        if all(t is None or t.is_closing() for t in (self.front, self.far)):
            self.proxy.links.discard(self)

    def close(self):
        for transport in (self.front, self.far):
            if transport:
                transport.close()

    def pipe_from(self, name):
        return self.there if name == self.dialler else self.back


class Deaf:
    """The link of a replayed connection: nobody hears what is said on it."""

    there = back = None

    def made(self, end, transport):
        pass

    def read(self, end, data):
        pass

    def lost(self, end, error):
        pass


DEAF = Deaf()


class Proxy:
    def __init__(self, loop, far):
        self.loop, self.far = loop, far
        self.lines, self.links, self.targets, self.servers = {}, set(), {}, {}

    def line(self, a, b):
        return self.lines.setdefault((a, b), Line())

    def between(self, a, b, stream=False):
        """A whole link between the two, or one of its streams; or None."""
        for link in self.links:
            if link.there and {link.dialler, link.target} == {a, b} and not link.half_open and \
                    link.is_stream == stream and not link.front.is_closing() and not link.far.is_closing():
                return link
        return None

    async def listen(self, name, target, port=0):
        host, its_port = target.rsplit(":", 1)
        self.targets[name] = (host, int(its_port))
        self.servers[name] = await self.loop.create_server(
            lambda: End(Link(self, name), True), "127.0.0.1", port)
        return self.servers[name].sockets[0].getsockname()[1]

    async def up(self, name, is_up, port):
        """A dead node's address refuses; it is back where it was."""
        if not is_up:
            self.servers[name].close()
        elif not self.servers[name].is_serving():
            self.servers[name] = await self.loop.create_server(
                lambda: End(Link(self, name), True), "127.0.0.1", port)

    async def set(self, lines, delay_s=0, rate=0, stalled=False):
        for a, b in lines:
            line = self.line(a, b)
            line.delay_s, line.rate, line.stalled = delay_s, rate, stalled
        self.pump()

    def pump(self):
        for link in list(self.links):
            for pipe in (link.there, link.back):
                if pipe:
                    pipe.pump()

    async def heal(self):
        for line in self.lines.values():
            line.heal()
        for link in list(self.links):
            for pipe in (link.there, link.back):
                if pipe:
                    pipe.cut_after = None
            if link.half_open:
                link.close()
        self.pump()

    async def cut(self, a, b, after, stream=False):
        link = self.between(a, b, stream)
        if link:
            link.pipe_from(a).cut_after = after
        return bool(link)

    async def reset(self, a, b):
        link = self.between(a, b)
        if link:
            reset(link.front)
            reset(link.far)
        return bool(link)

    async def half_open(self, a, b):
        """b's end breaks and a hears nothing of it, ever."""
        link = self.between(a, b)
        if link:
            link.half_open = True
            reset(link.far if b == link.target else link.front)
        return bool(link)

    async def duplicate(self, a, b):
        """What was said first is said once more, on a second connection."""
        link = self.between(a, b)
        if link:
            again, _ = await self.loop.create_connection(
                lambda: End(DEAF, False), *self.targets[link.target])
            again.write(bytes(link.first))
        return bool(link)

    async def count(self):
        return len(self.links)

    def asked(self):
        request = helper.take(self.far)
        if request is None:
            self.loop.stop()
            return
        verb = getattr(self, request.pop("verb"))
        self.loop.create_task(self.answer(verb, request))

    async def answer(self, verb, request):
        try:
            helper.reply(self.far, await verb(**request))
        except OSError as error:
            helper.reply(self.far, {"error": str(error)})


def serve(far):
    loop = asyncio.new_event_loop()
    proxy = Proxy(loop, far)
    loop.add_reader(far, proxy.asked)
    loop.run_forever()
