"""Hearing from the kernel that the network came back: a new route appeared (rtnetlink(7), Linux).

A hint like any other. Where the kernel or the service's sandbox does not offer it, nothing is ever heard, and the
cadence's own retries find out.
"""

import socket
import struct
from contextlib import suppress

_GROUPS = 0x40 | 0x400  # RTMGRP_IPV4_ROUTE, RTMGRP_IPV6_ROUTE
_NEW_ROUTE = 24
_HEADER = struct.Struct("=IHHII")


class Routes:
    """A listener for new routes.

    Attributes:
        listening: the socket to wait on, or None where there is nothing to hear.
    """

    def __init__(self) -> None:
        self.listening: socket.socket | None = None
        if not hasattr(socket, "AF_NETLINK"):
            return
        with suppress(OSError):
            line = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, 0)
            try:
                line.setblocking(False)
                line.bind((0, _GROUPS))
            except OSError:
                line.close()
                raise
            self.listening = line

    def appeared(self) -> bool:
        """Take what was said, and return whether a route appeared."""
        found = False
        while self.listening is not None:
            try:
                found = has_new_route(self.listening.recv(65536)) or found
            except BlockingIOError:
                break
            except OSError:
                found = True  # so many at once that some were lost
                break
        return found

    def close(self) -> None:
        """Stop listening."""
        if self.listening is not None:
            self.listening.close()
            self.listening = None


def has_new_route(data: bytes) -> bool:
    """Return whether one of the messages in a datagram announces a new route."""
    at = 0
    while at + _HEADER.size <= len(data):
        length, kind, *_ = _HEADER.unpack_from(data, at)
        if kind == _NEW_ROUTE:
            return True
        if length < _HEADER.size:
            break
        at += (length + 3) & ~3
    return False
