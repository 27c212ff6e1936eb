"""More of everything than anybody should have to look at, and moves on channels of several segments.

Each flood comes in the size that a test gives; in `FLOODS` they are small, since what follows is the same.
"""

import random

from support.besieged import Siege
from support.hostile_host import ROOT, Changes, File, HostileHost, document, presence_ref, segment
from support.moves_files import CHANNEL, SQUATTED, Move
from support.moves_signed import request
from wire.protocol.encoding import Signer

MB = 1 << 20


def junk(megabytes: float, seed: int = 1) -> bytes:
    """Return bytes that do not compress and hold no newline."""
    return random.Random(seed).randbytes(int(megabytes * MB)).replace(b"\n", b"x")


def huge_line(siege: Siege, megabytes: float = 0.1) -> None:
    """Put a line without end behind the last one."""
    siege.host.append(CHANNEL, junk(megabytes))


def huge_files(siege: Siege, megabytes: float = 1.1) -> None:
    """Put the same huge file in the place of everything that is no line of `mac/spark`."""
    paths = ("README.md", document(5), f"{ROOT}/trust.json", f"{ROOT}/requests/zoe.{'0' * 32}.json")
    everywhere = (*paths, f"{ROOT}/.gitattributes", segment("lee/mac", 2))
    siege.host.commit(dict.fromkeys(everywhere, junk(megabytes)))


def nothing_but_lines(siege: Siege, unit: bytes = b"x\n", megabytes: float = 0.1) -> None:
    """Fill segments with the shortest lines there are, each of which is foreign."""
    room = int(megabytes * MB)
    have = len(siege.host.read(segment(CHANNEL)) or b"")
    siege.host.append(CHANNEL, unit * ((room - have) // len(unit)))
    siege.host.commit({segment(SQUATTED, number): unit * (room // len(unit)) for number in (1, 2)})


def segments_without_end(siege: Siege, count: int = 50) -> None:
    """Put files that would be segments, each with something else in it, behind the only one that is."""
    siege.host.commit({segment(CHANNEL, number): b"junk %d\n" % number * 50 for number in range(2, count)})


def files_without_end(siege: Siege, count: int = 20) -> None:
    """Put files outside, of illegal shape, of unknown names, of trust versions and of requests."""
    raw = siege.host.trust[1]
    changes: dict[str | bytes, bytes | File | None] = {}
    for number in range(count):
        changes[f"junk/{number}"] = b"%d" % number
        changes[f"{ROOT}/mac/junk-{number}"] = b"%d" % number
        changes[f"{ROOT}/lee/spark/{number}.jsonl"] = File(b"elsewhere", "120000")
        changes[f"{ROOT}/mallory-{number}/mac/000001.jsonl"] = b"%d\n" % number
        changes[f"{ROOT}/trust/{number + 100:06}.json"] = raw + b" " * number
        changes[f"{ROOT}/requests/zoe-{number}.{number:032x}.json"] = b"%d" % number
    siege.host.commit(changes)


def commits_without_end(siege: Siege, count: int = 3) -> None:
    """Rewrite a line again and again, and at last leave everything as it was."""
    tip = siege.host.tip
    for number in range(count):
        siege.host.rewrite(CHANNEL, 2, lambda raw, n=number: raw.replace(b"number", b"%d" % n))  # type: ignore[misc]
        siege.host.commit({}, base=tip)


def junk_requests(siege: Siege) -> None:
    """Put requests of every wrong kind there, and one honest one (of vera) among them."""
    key = siege.host.key.key_id
    path, genuine = request(siege, "vera", siege.host.key)
    folder = f"{ROOT}/requests"
    changes: Changes = {
        path: genuine,
        f"{folder}/root.{key}.json": genuine,
        f"{folder}/eve.{key}.json": genuine.replace(b'"vera"', b'"eve"'),
        f"{folder}/big.{'1' * 32}.json": b"{" * 5000,
        f"{folder}/deep.{'2' * 32}.json": b'{"a":' * 700,
        f"{folder}/empty.{'3' * 32}.json": b"",
        f"{folder}/link.{'4' * 32}.json": File(b"/etc/passwd", "120000"),
        **dict([request(siege, "other", siege.host.key, wire="0" * 32)]),
    }
    siege.host.commit(changes)


def requests_without_end(siege: Siege, count: int = 20) -> None:
    """Let as many keys ask, for many names and for one."""
    keys = [Signer((number + 10).to_bytes(32, "big")) for number in range(count)]
    asked = [request(siege, f"z{number}" if number % 5 else "vera", key) for number, key in enumerate(keys)]
    siege.host.commit(dict(asked))


def refs_without_end(siege: Siege, count: int = 20, *, names: tuple[str, ...] = ("spark", "zorro")) -> None:
    """Put refs beside the presences, of names that nobody has."""
    commit = siege.host.put_presence("junk", b"junk")
    siege.host.set_refs({presence_ref(f"{name}-{number}"): commit for number in range(count) for name in names})


FLOODS: dict[str, Move] = {
    "a huge line": huge_line,
    "huge files": huge_files,
    "nothing but lines": nothing_but_lines,
    "segments without end": segments_without_end,
    "files without end": files_without_end,
    "commits without end": commits_without_end,
    "junk among the requests": junk_requests,
    "requests without end": requests_without_end,
    "refs without end": refs_without_end,
}


# Deep in a channel of three segments

LONG = "mac/lee"
"""The channel that the moves of `DEEP` are about."""


def _two_swapped(host: HostileHost) -> None:
    one, two = (host.read(segment(LONG, number)) for number in (1, 2))
    host.commit({segment(LONG, 1): two, segment(LONG, 2): one})


def _line_moved_to_the_next(host: HostileHost) -> None:
    one, two = (host.read(segment(LONG, number)) or b"" for number in (1, 2))
    last = host.lines(LONG, 1)[-1] + b"\n"
    host.commit({segment(LONG, 1): one[: -len(last)], segment(LONG, 2): last + two})


def _all_in_one(host: HostileHost) -> None:
    together = b"".join(host.read(segment(LONG, number)) or b"" for number in (1, 2, 3))
    host.commit({segment(LONG, 1): together, segment(LONG, 2): None, segment(LONG, 3): None})


def _renamed(host: HostileHost) -> None:
    host.commit({segment(LONG, 3): None, segment(LONG, 4): host.read(segment(LONG, 3))})


DEEP: dict[str, Move] = {
    f"{title}, in a long channel": lambda siege, move=move: move(siege.host)  # type: ignore[misc]
    for title, move in {
        "the middle one deleted": lambda host: host.replace_segment(LONG, None, 2),
        "the first one deleted": lambda host: host.replace_segment(LONG, None, 1),
        "two swapped": _two_swapped,
        "a line moved to the next": _line_moved_to_the_next,
        "all in one": _all_in_one,
        "renamed": _renamed,
    }.items()
}  # fmt: skip
