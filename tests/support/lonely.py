"""A network of its own: a loopback interface and nothing else, so that what runs there reaches nobody.

    with LonelyNet() as net:
        server = HTTPServer(...); server.socket = net.listener     # answers on 127.0.0.1:net.port, in there alone
        subprocess.run([*net.enter, "curl", f"http://127.0.0.1:{net.port}/"])

A listening socket belongs to the network that it was made in, whoever holds it: the holder of the network makes one
and hands it to the tests. Name servers, the real services of a client and this machine's own ports are all equally far.
Root makes the network directly; others through a user namespace.
"""

import os
import socket
import subprocess
import sys

_HOLDER = """
import fcntl, socket, struct, sys
with socket.socket() as ours:
    UP, SET = 1, 0x8914
    fcntl.ioctl(ours, SET, struct.pack("16sh14x", b"lo", UP))
listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen(64)
with socket.socket(fileno=int(sys.argv[1])) as tests:
    socket.send_fds(tests, [b"."], [listener.fileno()])
    listener.close()
    tests.recv(1)
"""


class LonelyNet:
    """One network, which lasts as long as the holder of it."""

    def __init__(self) -> None:
        root = os.geteuid() == 0
        self._ours, theirs = socket.socketpair()
        with theirs:
            self._holder = subprocess.Popen(
                [
                    *("unshare", "--net", *([] if root else ["--user", "--map-current-user", "--keep-caps"])),
                    *(sys.executable, "-P", "-c", _HOLDER, str(theirs.fileno())),
                ],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        self._ours.settimeout(20)
        _, files, _, _ = socket.recv_fds(self._ours, 1, 1)
        assert files, "no network could be made: is `unshare --net` allowed here?"
        self.listener = socket.socket(fileno=files[0])
        """Listens on the loopback interface in there."""
        self.port: int = self.listener.getsockname()[1]
        users = [] if root else ["--user", "--preserve-credentials"]
        self.enter = ("nsenter", f"--target={self._holder.pid}", "--net", *users, "--")
        """In front of a command, lets it run in there."""

    def __enter__(self) -> "LonelyNet":
        return self

    def __exit__(self, *_: object) -> None:
        self.listener.close()
        self._ours.close()
        self._holder.wait(10)
