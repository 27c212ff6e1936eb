"""What happened between two tips, so that a rewrite that was undone a second later is still reported (step 6).

The tip alone decides what is accepted. This looks at the commits on the way: each one must carry, of every channel, at
least the lines that its parent carried, and nothing foreign. Git's object ids save the reading: an honest intermediate
file is a beginning of bytes that were verified here, so its id can be computed from its size. What that does not
explain is walked like a tip, as far as `INSPECTED` allows: nobody's commits may cost others more than that.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from wire.daemon.accepted import BLOB_MAX, Blobs
from wire.daemon.findings import BLANK_TOLD, WIRE, Finding
from wire.daemon.shape import Kind, carried, classify
from wire.gitio import Change, Commit, Git, blob_id
from wire.protocol.chain import KeyRing, Position, lines_of, walk
from wire.protocol.codes import Code
from wire.protocol.line import Line, parse

INSPECTED = 16
"""Changes of one channel that are read and walked at most; further ones are of the same kind or come to the tip."""
_BLANK = ""
"""Stands for all channels without an accepted line, of which there can be thousands: together they count as few."""


@dataclass(frozen=True, slots=True)
class Known:
    """What the commits on the way are compared with.

    Attributes:
        segment: the accepted bytes of (channel, segment), after the tip was judged.
        end: the accepted end of a channel; None where nobody that the trust knows writes it.
        trust: the accepted documents and signature files, by version.
        wire: the wire id.
        keys: the trust's key ring.
    """

    segment: Callable[[str, int], bytes]
    end: Callable[[str], Position | None]
    trust: Mapping[int, tuple[bytes, bytes]]
    wire: str
    keys: KeyRing


def undone(git: Git, blobs: Blobs, commits: Iterable[Commit], known: Known, tip: str) -> list[Finding]:
    """Return what the commits on the way did to accepted bytes, whether or not the tip still shows it."""
    touched = [
        (commit, carried(change), shape)
        for commit in commits
        for change in commit.changes
        if (shape := classify(change.path)).kind in (Kind.SEGMENT, Kind.TRUST, Kind.TRUST_SIGNATURES)
    ]
    sizes = blobs.sizes({oid for _, change, _ in touched for oid in (change.old_oid, change.new_oid) if oid.strip("0")})
    inspected: Counter[str] = Counter()
    findings: dict[tuple[str, str], Finding] = {}
    for commit, change, shape in touched:
        if shape.kind is Kind.SEGMENT:
            found = _segment(git, change, shape.channel, shape.number, known, sizes, inspected)
        else:
            found = _trust(change, known.trust.get(shape.number), shape.kind, sizes)
        for finding in found:
            evidence = {**finding.evidence, "tip": tip, "commit": commit.oid, "path": change.path.decode("ascii")}
            if commit.parents:
                evidence["parent"] = commit.parents[0]
            key = (finding.code, finding.scope)
            findings.setdefault(key, Finding(finding.code, finding.scope, finding.message, evidence, finding.subject))
    return list(findings.values())


def _segment(
    git: Git,
    change: Change,
    channel: str,
    number: int,
    known: Known,
    sizes: Mapping[str, int],
    inspected: Counter[str],
) -> Iterator[Finding]:
    end = known.end(channel)
    if end is None:
        return
    accepted = known.segment(channel, number)
    before = _honest_size(change.old_oid, accepted, sizes)
    after = _honest_size(change.new_oid, accepted, sizes)
    if before is not None and after is not None and before <= after:
        return
    inspected[channel] += 1
    inspected[_BLANK] += end.seq == 0
    if inspected[channel] > INSPECTED or (end.seq == 0 and inspected[_BLANK] > BLANK_TOLD):
        return

    def lines(oid: str, honest: int | None) -> tuple[set[int], dict[Code, tuple[str, Line | None]]]:
        """Return the numbers of the chain's lines that a blob carries, and what else it has."""
        if honest is not None:
            return {parse(raw).seq for raw in lines_of(accepted[:honest])}, {}
        data = git.blobs([oid], max_size=BLOB_MAX)[oid]
        if data is None:
            return set(), {Code.SIZE: (f"a segment of {sizes[oid]} bytes", None)}
        found = walk(
            end,
            {number: data},
            lambda n: known.segment(channel, n),
            wire=known.wire,
            channel=channel,
            keys=known.keys,
        )
        here = {parse(raw).seq for raw in lines_of(accepted)} - {*found.lacking} | {line.seq for line in found.new}
        return here, {piece.code: (piece.why, piece.line) for piece in reversed(found.foreign)}

    there, _ = lines(change.old_oid, before)
    here, foreign = lines(change.new_oid, after)
    if lost := sorted(there - here):
        yield Finding(
            Code.PREFIX,
            channel,
            f"history rewritten: a commit removed or changed {len(lost)} line(s) of {channel}, the first is "
            f"{channel}/{lost[0]}",
            {"first": lost[0], "last": lost[-1], "count": len(lost), "segment": number},
        )
    for code, (why, line) in foreign.items():
        if code is not Code.KEY_UNKNOWN:
            signed = {"key": line.key_id, "other_head": line.head} if line is not None else {}
            yield Finding(code, channel, f"a commit carried bytes in {channel} that are not its own: {why}", signed)


def _trust(change: Change, held: tuple[bytes, bytes] | None, kind: Kind, sizes: Mapping[str, int]) -> Iterator[Finding]:
    if held is None:
        return
    bytes_held = held[kind is Kind.TRUST_SIGNATURES]
    if not change.new_oid.strip("0"):
        yield Finding(Code.TRUST, WIRE, "history rewritten: a commit removed a trust version or its signatures")
    elif _honest_size(change.new_oid, bytes_held, sizes) != len(bytes_held):
        yield Finding(Code.TRUST, WIRE, "history rewritten: a commit changed a trust version or its signatures")


def _honest_size(oid: str, accepted: bytes, sizes: Mapping[str, int]) -> int | None:
    """Return the size of a blob that is a beginning of the accepted bytes, ending with a line; None for another."""
    if not oid.strip("0"):
        return 0
    size = sizes[oid]
    prefix = accepted[:size]
    whole = len(prefix) == size and (not prefix or prefix.endswith(b"\n"))
    return size if whole and blob_id(prefix, oid) == oid else None
