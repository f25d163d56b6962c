"""A child process that does something beside the driver, asked over a socket pair: a request and
its answer are one JSON object each. It ends when the driver does, whatever ends that."""
import ctypes
import json
import os
import signal
import socket
import sys

MESSAGE_BYTES = 1 << 18
PR_SET_PDEATHSIG = 1


def close_on_sigterm():
    """Who ends the driver by kill(1) ends what it has started, too, as by an interrupt: it is closed
    on the way out. Its children die of that signal as ever."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    os.register_at_fork(after_in_child=lambda: signal.signal(signal.SIGTERM, signal.SIG_DFL))


def end_with(parent):
    """Of a child that hears nothing of its driver's end: whatever ends that, it ends, too, even if it
    had ended before. Else it would hold the nodes' stdin open, at whose end they end."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


class Helper:
    """serve(socket) is the child's; it answers with reply() until take() returns None."""

    def __init__(self, serve):
        self.near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.pid = os.fork()
        if not self.pid:
            self.near.close()
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            try:
                serve(far)
            finally:
                os._exit(0)
        far.close()

    def ask(self, verb, **more):
        self.near.send(json.dumps({"verb": verb, **more}).encode())
        answer = self.near.recv(MESSAGE_BYTES)
        if not answer:
            raise RuntimeError("the helper has died of " + verb)
        answer = json.loads(answer)
        if isinstance(answer, dict) and "error" in answer:
            raise RuntimeError("%s: %s" % (verb, answer["error"]))
        return answer

    def close(self):
        self.near.close()
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def take(far):
    request = far.recv(MESSAGE_BYTES)
    return json.loads(request) if request else None


def reply(far, answer):
    far.send(json.dumps(answer).encode())
