"""A second implementation of PROTOCOL.md, written from that text alone, so that the product is not its own witness.

It imports nothing of the product, uses another library for Ed25519, reads git through plumbing, and is made to be read
beside the text: neither fast nor kind. This module judges lines, walks channels and verifies a repository; the forms of
everything that they are made of are in `second_forms`.
"""

import json
import re
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from support.second_forms import (
    TIME,
    H,
    Keys,
    beginning,
    checkpoint,
    extend,
    is_channel,
    keys_of,
    need,
    numbered,
    proposal,
    refusal,
    request,
    rotation,
    sha,
    signed_by,
    unb64,
)

LABEL = "[a-z0-9-]{1,32}"
LINE = re.compile(
    rf'\{{"v":1,"wire":"({H}{{32}})","from":"({LABEL})","to":"({LABEL})","seq":([1-9][0-9]{{0,14}}),"prev":"({H}{{64}})",'
    rf'"ts":"{TIME}","trust":"[1-9][0-9]{{0,8}}:{H}{{16}}","type":"([a-z][a-z0-9_-]{{0,31}})",'
    rf'(?:[^\n]*,)?"key":"({H}{{32}})","sig":"([A-Za-z0-9+/]{{85}}[AQgw]==)"\}}'
)


class End(NamedTuple):
    seq: int
    head: str
    segment: int = 1
    size: int = 0


def judge(end: End, raw: bytes, wire: str, channel: str, keys: Keys) -> tuple[str, End]:
    """Return the code of a line as the next of a channel, `ok` if it is, and the new end."""
    if len(raw) + 1 > 65_536:
        return "SIZE", end
    try:
        form = LINE.fullmatch(raw.decode())
    except UnicodeDecodeError:
        form = None
    if not form:
        return "SIGNATURE", end
    on_wire, sender, to, seq, prev, _, identifier, signature = form.groups()
    key, number, head, length = keys.get(identifier), int(seq), sha(raw), len(raw) + 1
    if not key:
        return "KEY_UNKNOWN", end
    if not signed_by(unb64(key["public"], 32), unb64(signature, 64), "line", raw[:-98] + b"}") or sender != key["name"]:
        return "SIGNATURE", end
    if (on_wire, f"{sender}/{to}") != (wire, channel):
        return "MISPLACED", end
    last, last_head = key["positions"].get(channel, (0, ""))
    if key["status"] != "active" and not (number < last or (number == last and head == last_head)):
        return "KEY_RETIRED", end
    if number != end.seq + 1:
        return ("REPLAY" if number <= end.seq else "GAP"), end
    if prev != end.head:
        return "FORK", end
    if end.size + length > 262_144:
        return "ok", End(number, head, end.segment + 1, length)
    return "ok", End(number, head, end.segment, end.size + length)


class Outcome(NamedTuple):
    end: End
    new: list[int]
    foreign: list[tuple[int, int, str]]
    lacking: list[int]


def walk(
    end: End, accepted: dict[int, bytes], carried: dict[int, bytes], wire: str, channel: str, keys: Keys
) -> Outcome:
    """Walk what a tip carries of a channel; without the fast path, so that the product's can be held against this."""
    lines = {n: accepted[n].split(b"\n")[:-1] for n in sorted(accepted)}
    everything = [raw for n in lines for raw in lines[n]]
    seqs = {raw: seq for seq, raw in enumerate(everything, 1)}
    outcome = Outcome(end, [], [], [])
    for number in sorted({*lines, *carried}):
        known, expected, offset = lines.get(number, []), 0, 0
        pieces = carried.get(number, b"").split(b"\n")
        for index, raw in enumerate(pieces):
            code = ""
            if index == len(pieces) - 1:
                code = "SIGNATURE" if raw else ""
            elif raw in known and known.index(raw) >= expected:
                outcome.lacking.extend(seqs[line] for line in known[expected : known.index(raw)])
                expected = known.index(raw) + 1
            elif raw in known:
                code = "REPLAY"
            else:
                code, after = judge(end, raw, wire, channel, keys)
                if code == "ok" and after.segment != number:
                    code = "MISPLACED"
                elif code == "ok":
                    end, code = after, ""
                    outcome.new.append(end.seq)
                    everything.append(raw)
                elif code == "REPLAY" and raw not in everything:
                    code = "FORK"
            if code:
                outcome.foreign.append((number, offset, code))
            offset += len(raw) + 1
        outcome.lacking.extend(seqs[line] for line in known[expected:])
    return outcome._replace(end=end)


# A repository


class Verified(NamedTuple):
    """What stands at a branch's tip, verified."""

    wire: str
    trust: int
    channels: dict[str, tuple[int, str]]
    problem: str | None
    """The first thing at the tip that no honest machine leaves there."""


def tree(repository: Path, branch: str) -> Iterator[tuple[str, str, bytes]]:
    """Yield mode, path and bytes of everything at a branch's tip."""

    def git(*args: str, asked: str = "") -> bytes:
        argv = ["git", f"--git-dir={repository}", *args]
        return subprocess.run(argv, input=asked.encode(), capture_output=True, check=True).stdout

    listed = git("ls-tree", "-r", "-z", "--full-tree", branch).decode("utf-8", "surrogateescape").split("\0")[:-1]
    entries = [(*facts.split(), path) for facts, path in (entry.split("\t", 1) for entry in listed)]
    answers = git("cat-file", "--batch", asked="".join(f"{oid}\n" for _, kind, oid, _ in entries if kind == "blob"))
    for mode, kind, _, path in entries:
        size = int(answers[: answers.index(b"\n")].split()[2]) if kind == "blob" else 0
        begins = answers.index(b"\n") + 1 if kind == "blob" else 0
        yield mode, path, answers[begins : begins + size]
        answers = answers[begins + size + 1 :] if kind == "blob" else answers


def asks(raw: bytes, wire: str, file: str, newest: dict[str, Any]) -> bool:
    """Return whether somebody asks for something: a request, a rotation of a listed key, or what a root proposes."""
    keys = newest["agents"].get(file.partition(".")[0], {}).get("keys", [])
    if file.startswith("trust."):
        return not refusal(partial(proposal, raw, wire, file, newest["roots"]))
    judges = [partial(request, raw, wire, file), *(partial(rotation, raw, wire, file, key["public"]) for key in keys)]
    return any(not refusal(judge) for judge in judges)


def verify_repository(repository: Path, given: str, *, branch: str = "HEAD") -> Verified:
    """Verify the tip of a branch in a bare repository, from a checkpoint and nothing else.

    Raises:
        ValueError: the trust chain does not hold, or does not pass through the checkpoint.
    """
    problems: list[str] = []
    files: dict[str, bytes] = {}
    for mode, path, data in tree(repository, branch):
        if mode == "100644" and path.startswith("_coordination/"):
            files[path.removeprefix("_coordination/")] = data
        else:
            problems.append(f"SHAPE {path}")
    chain: list[bytes] = []
    while raw := files.pop(f"trust/{len(chain) + 1:06d}.json", b""):
        extend(chain, raw, files.pop(f"trust/{len(chain) + 1:06d}.json.sig", b""))
        chain.append(raw)
    version, digest = checkpoint(given)
    need(len(chain) >= version and sha(chain[version - 1]) == digest, "the chain does not pass through the checkpoint")
    wire, newest = sha(chain[0])[:32], json.loads(chain[-1])
    channels: dict[str, dict[int, bytes]] = {}
    for path, data in files.items():
        channel, _, name = path.rpartition("/")
        if is_channel(channel) and numbered(name, ".jsonl"):
            channels.setdefault(channel, {})[numbered(name, ".jsonl")] = data
        elif channel == "requests" and asks(data, wire, name, newest):
            continue
        elif path not in ("trust.json", ".gitattributes") or (path == "trust.json" and data != chain[-1]):
            problems.append(f"SHAPE {path}")
    ends = {}
    for channel, carried in sorted(channels.items()):
        outcome = walk(End(0, beginning(wire, channel)), {}, carried, wire, channel, keys_of(newest))
        problems.extend(f"{code} {channel} segment {number} byte {at}" for number, at, code in outcome.foreign)
        ends[channel] = (outcome.end.seq, outcome.end.head)
    return Verified(wire, len(chain), ends, problems[0] if problems else None)
