"""What bytes prove to a third person, by signatures and a checkpoint alone (PROTOCOL.md, section "Evidence").

    weighed = weigh(bundle.exhibits, chain)
    [proof.code for proof in weighed.proved]      # ["FORK"]: one key signed two lines for one place

Only what somebody signed is proved, and only about those who signed: that a host showed something, left something out
or showed it at some time, nobody signs. A proof holds whatever its maker says beside it.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, pairwise
from typing import NamedTuple

from wire.errors import TrustError
from wire.keys.chain import Chain, Verdict
from wire.keys.document import parse as parse_document
from wire.keys.exhibits import BYTES, DOCUMENT, PRESENCE, Exhibit
from wire.protocol.chain import Position, step
from wire.protocol.codes import Code
from wire.protocol.encoding import PRESENCE_TYPE, sha256_hex, verify
from wire.protocol.line import Line, LineError, content
from wire.protocol.presence import Presence, opened
from wire.protocol.presence import parse as parse_presence


class Shown(NamedTuple):
    """One exhibit, looked at.

    Attributes:
        kind: as offered, see `exhibits.KINDS`.
        found: where its maker says that it was.
        signed: whether a key that the trust lists signed exactly these bytes.
        code: why it would not count, or empty.
        text: what it is, in our words.
    """

    kind: str
    found: str
    signed: bool
    code: str
    text: str


class Proof(NamedTuple):
    """Something that signatures prove: the code that it is known by, and the sentence."""

    code: str
    text: str


class Weighed(NamedTuple):
    """All exhibits, in their order, and what they prove together."""

    shown: tuple[Shown, ...]
    proved: tuple[Proof, ...]
    lines: tuple[Line, ...]


def weigh(exhibits: Iterable[Exhibit], chain: Chain) -> Weighed:
    """Judge exhibits by a trust chain that passed a checkpoint."""
    shown: list[Shown] = []
    proved: list[Proof] = []
    lines: list[Line] = []
    presences: list[Presence] = []
    for exhibit in exhibits:
        if exhibit.kind == DOCUMENT:
            one, proof = _document(exhibit, chain)
            proved += [proof] if proof is not None else []
        elif exhibit.kind == PRESENCE:
            one, presence = _presence(exhibit, chain)
            if presence is not None:
                presences.append(presence)
                proved += _trust_named(f"the presence of {presence.agent!r}", presence.trust, chain)
        elif exhibit.kind == BYTES:
            one = Shown(BYTES, exhibit.found, False, Code.SIGNATURE, _nobody(exhibit.data))
        else:
            one, line = _line(exhibit, chain)
            if line is not None:
                lines.append(line)
                proved += _alone(line, Code(one.code) if one.code else None, one.text, chain)
        shown.append(one)
    distinct = list({line.raw: line for line in lines}.values())
    proved += [*_forks(distinct), *_views(distinct, presences), *_clones(presences)]
    return Weighed(tuple(shown), tuple(dict.fromkeys(proved)), tuple(lines))


def links(lines: Sequence[Line]) -> list[Proof]:
    """Return where lines that follow each other in a file do not follow each other in their channel."""
    found = []
    for one, other in pairwise(lines):
        if one.channel == other.channel and other.prev != one.head:
            found.append(Proof(Code.GAP, f"{other.id} does not follow the {one.id} in front of it"))
    return found


# One exhibit


def _line(exhibit: Exhibit, chain: Chain) -> tuple[Shown, Line | None]:
    verdict, line = judge_line(exhibit.data, chain)
    if line is None:
        return Shown(exhibit.kind, exhibit.found, False, verdict[0], f"{_nobody(exhibit.data)}: {verdict[1]}"), None
    code, why = verdict
    text = f"{line.id}, signed by {line.sender!r} with key {line.key_id}, head {line.head[:16]}"
    return Shown(exhibit.kind, exhibit.found, True, code, f"{text}: {why}" if why else text), line


def judge_line(raw: bytes, chain: Chain) -> tuple[tuple[str, str], Line | None]:
    """Return ((code, why), line) of one line by itself, wherever it stood; the line only where its signature holds.

    Args:
        raw: the bytes without the newline.
    """
    # Its own words say where it stands: what is left to judge is its form, its key and its signature.
    nowhere = Position.start(chain.wire, "")
    first = step(nowhere, raw, wire=chain.wire, channel="", keys=chain)
    line = first.line
    if line is None or first.code in (Code.KEY_UNKNOWN, Code.SIGNATURE):
        return (str(first.code), first.why), None
    if line.wire != chain.wire:
        return (Code.MISPLACED, f"it was signed for another wire, {line.wire}"), None
    place = Position(line.seq - 1, line.prev, 1, 0)
    found = step(place, raw, wire=chain.wire, channel=line.channel, keys=chain)
    return (str(found.code) if found.code else "", found.why), line


def _presence(exhibit: Exhibit, chain: Chain) -> tuple[Shown, Presence | None]:
    def refused(code: str, why: str) -> tuple[Shown, None]:
        return Shown(PRESENCE, exhibit.found, False, code, f"{_nobody(exhibit.data)}: {why}"), None

    try:
        signed = opened(exhibit.data)
        owner = chain.owner(signed.key)
        if owner is None:
            return refused(Code.KEY_UNKNOWN, f"no trusted key has the id {signed.key}")
        if not verify(owner[1].public, signed.signature, PRESENCE_TYPE, signed.body_bytes):
            return refused(Code.SIGNATURE, f"the signature is not that of key {signed.key}")
        presence = parse_presence(exhibit.data)
    except LineError as error:
        return refused(error.code, error.why)
    if owner[0] != presence.agent or presence.wire != chain.wire:
        return refused(Code.SIGNATURE, f"it names {presence.agent!r} of wire {presence.wire}")
    text = f"a presence of {presence.agent!r}, number {presence.counter}, signed with key {presence.key}"
    return Shown(PRESENCE, exhibit.found, True, "", text), presence


def _document(exhibit: Exhibit, chain: Chain) -> tuple[Shown, Proof | None]:
    try:
        version = parse_document(exhibit.data).version
        judged = chain.judge(version, exhibit.data, exhibit.signatures)
    except TrustError as error:
        why = f"a document that is none of this wire's: {error.message}"
        return Shown(DOCUMENT, exhibit.found, False, Code.TRUST, why), None
    if judged.verdict is Verdict.SAME:
        return Shown(DOCUMENT, exhibit.found, True, "", f"trust version {version} of the chain itself"), None
    if judged.verdict is Verdict.NEXT:
        return Shown(DOCUMENT, exhibit.found, True, "", f"trust version {version}, newer than the chain"), None
    if judged.verdict is Verdict.FORK:
        text = f"another trust version {version}, signed by enough roots"
        proof = Proof(Code.TRUST_FORK, f"the roots signed two documents with the number {version}: {judged.why}")
        return Shown(DOCUMENT, exhibit.found, True, Code.TRUST_FORK, text), proof
    why = f"a trust version {version} that does not count: {judged.why}"
    return Shown(DOCUMENT, exhibit.found, False, Code.TRUST, why), None


def _nobody(data: bytes) -> str:
    return f"{len(data)} bytes that nobody in the trust has signed, SHA-256 {sha256_hex(data)[:16]}"


# What follows


def _alone(line: Line, code: Code | None, text: str, chain: Chain) -> Iterator[Proof]:
    if code is not None:
        yield Proof(code, text)
    yield from _trust_named(line.id, line.trust, chain)
    try:
        content(line)
    except LineError as error:
        yield Proof(error.code, f"{line.sender!r} signed {line.id}, which cannot be read: {error.why}")


def _trust_named(who: str, named: str, chain: Chain) -> Iterator[Proof]:
    held = chain.at(int(named.partition(":")[0]))
    if held is None:
        newest = chain.newest.version
        yield Proof(Code.TRUST_WITHHELD, f"{who} names trust version {named}; the chain here ends with {newest}")
    elif held.reference != named:
        why = f"{who} names trust version {named}; the one of the chain here is {held.reference}"
        yield Proof(Code.SPLIT_VIEW, why)


def _forks(lines: Sequence[Line]) -> Iterator[Proof]:
    places = _by_place(lines)
    for there in places.values():
        for one, other in pairwise(there):
            keys = " and ".join(dict.fromkeys((one.key_id, other.key_id)))
            yield Proof(
                Code.FORK,
                f"{one.sender!r} signed two lines {one.id} with key {keys}: {one.head[:16]} and {other.head[:16]}",
            )
    for line in lines:
        before = places.get((line.channel, line.seq - 1), [])
        if before and all(one.head != line.prev for one in before):
            why = f"{line.sender!r} signed {line.id} behind another line {line.seq - 1} than the one shown here"
            yield Proof(Code.FORK, why)


def _by_place(lines: Iterable[Line]) -> dict[tuple[str, int], list[Line]]:
    places: dict[tuple[str, int], list[Line]] = {}
    for line in lines:
        places.setdefault((line.channel, line.seq), []).append(line)
    return places


def _views(lines: Sequence[Line], presences: Iterable[Presence]) -> Iterator[Proof]:
    """Yield where somebody signed that it holds another line than one that its author signed."""
    said: list[tuple[str, str, int, str]] = []
    for line in lines:
        try:
            members = content(line)
        except LineError:
            continue
        if "ack" in members:
            seq, head = members["ack"]
            said.append((line.id, f"{line.recipient}/{line.sender}", seq, head))
    for presence in presences:
        name = f"the presence of {presence.agent!r}"
        said += [(name, channel, seq, head) for channel, (seq, head, _) in presence.channels.items()]
    places = _by_place(lines)
    for who, channel, seq, head in said:
        there = places.get((channel, seq), [])
        if there and all(line.head != head for line in there):
            yield Proof(
                Code.SPLIT_VIEW,
                f"{who} names {head[:16]} as line {channel}/{seq}; its author signed {there[0].head[:16]} there",
            )


def _clones(presences: Sequence[Presence]) -> Iterator[Proof]:
    for one, other in combinations(presences, 2):
        if one.agent == other.agent and one.instance != other.instance:
            why = f"two machines, {one.instance[:12]} and {other.instance[:12]}, signed presences of {one.agent!r}"
            yield Proof(Code.CLONED, why)
