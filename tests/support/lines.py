"""Signed lines of one channel, one after the other, for tests that need real ones.

author = Author("mac/spark")
journal.append(places, WIRE, "mac/spark", author.saying("hello"))
"""

from collections.abc import Callable
from hashlib import sha256

from wire.protocol.chain import Position
from wire.protocol.encoding import Signer
from wire.protocol.line import head, seal

WIRE = "00112233445566778899aabbccddeeff"
NOW = "2026-11-29T11:20:00.123Z"
TRUST = "2:0011223344556677"


class Author:
    """Whoever writes a channel, with a key of its own that is the same in every run."""

    def __init__(self, channel: str, wire: str = WIRE, key: str = "") -> None:
        self.channel = channel
        self.wire = wire
        self.sender, self.recipient = channel.split("/")
        self.signer = Signer(sha256((key or self.sender).encode()).digest())

    @property
    def start(self) -> Position:
        """The end of the channel before its first line."""
        return Position.start(self.wire, self.channel)

    def line(self, end: Position, body: str = "") -> bytes:
        """Return the line that follows `end`, newline included."""
        return seal(
            self.signer,
            wire=self.wire,
            sender=self.sender,
            recipient=self.recipient,
            seq=end.seq + 1,
            prev=end.head,
            ts=NOW,
            trust=TRUST,
            type="message",
            body=body or f"line {end.seq + 1}",
        )

    def lines(self, end: Position, count: int, body: str = "") -> list[bytes]:
        """Return `count` lines that follow `end` and each other."""
        made: list[bytes] = []
        for _ in range(count):
            made.append(self.line(end, body))
            end = end.after(len(made[-1]), head(made[-1][:-1]))
        return made

    def saying(self, *bodies: str) -> Callable[[Position], list[bytes]]:
        """Return what `journal.append` calls to have these messages signed."""

        def build(end: Position) -> list[bytes]:
            made: list[bytes] = []
            for body in bodies:
                made.append(self.line(end, body))
                end = end.after(len(made[-1]), head(made[-1][:-1]))
            return made

        return build


def end_of(start: Position, lines: list[bytes]) -> Position:
    """Return the end after lines that follow `start`."""
    for line in lines:
        start = start.after(len(line), head(line[:-1]))
    return start


def laid_out(start: Position, lines: list[bytes]) -> dict[int, bytes]:
    """Return the bytes per segment of lines that follow `start`, which is the beginning of a channel."""
    segments: dict[int, bytes] = {}
    for line in lines:
        start = start.after(len(line), head(line[:-1]))
        segments[start.segment] = segments.get(start.segment, b"") + line
    return segments
