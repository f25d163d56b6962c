"""A child process that does something beside the driver, asked over a socket pair: a request and
its answer are one JSON object each. It ends when the driver does, whatever ends that."""
import json
import os
import signal
import socket

MESSAGE_BYTES = 1 << 18


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
        return json.loads(answer)

    def close(self):
        self.near.close()
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def take(far):
    request = far.recv(MESSAGE_BYTES)
    return json.loads(request) if request else None


def reply(far, answer):
    far.send(json.dumps(answer).encode())
