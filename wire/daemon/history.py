"""What happened between two tips, so that a rewrite that was undone a second later is still reported (step 6).

The tip alone decides what is accepted. This looks at the commits on the way: each one must carry, of every channel, a
beginning of what is now accepted, and never a shorter one than its parent. Git's object ids save the reading: an honest
intermediate file is a prefix of bytes that were verified here, so its id can be computed from its size.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from wire.daemon.findings import Finding
from wire.daemon.shape import Kind, classify
from wire.gitio import Change, Commit, Git
from wire.protocol.chain import KeyRing, Position, lines_of, step
from wire.protocol.codes import Code


@dataclass(frozen=True, slots=True)
class Known:
    """What the commits on the way are compared with.

    Attributes:
        segment: the accepted bytes of (channel, segment), after the tip was judged.
        end: the accepted end of a channel.
        trust: the accepted bytes of the documents, by version.
        wire: the wire id.
        keys: the trust's key ring.
    """

    segment: Callable[[str, int], bytes]
    end: Callable[[str], Position | None]
    trust: Mapping[int, bytes]
    wire: str
    keys: KeyRing


def undone(git: Git, commits: Iterable[Commit], known: Known, tip: str) -> list[Finding]:
    """Return what the commits on the way did to accepted bytes, whether or not the tip still shows it."""
    touched = [
        (commit, change)
        for commit in commits
        for change in commit.changes
        if classify(change.path, change.new_mode).kind in (Kind.SEGMENT, Kind.TRUST)
    ]
    sizes = git.sizes({oid for _, change in touched for oid in (change.old_oid, change.new_oid) if oid.strip("0")})
    findings: dict[tuple[str, str], Finding] = {}
    for commit, change in touched:
        shape = classify(change.path, change.new_mode)
        if shape.kind is Kind.TRUST:
            finding = _trust(change, known.trust.get(shape.number), sizes)
        else:
            finding = _segment(git, change, shape.channel, shape.number, known, sizes)
        if finding is not None:
            evidence = {**finding.evidence, "tip": tip, "commit": commit.oid, "path": change.path.decode("ascii")}
            if commit.parents:
                evidence["parent"] = commit.parents[0]
            key = (finding.code, finding.scope)
            findings.setdefault(key, Finding(finding.code, finding.scope, finding.message, evidence, finding.subject))
    return list(findings.values())


def blob_id(data: bytes, like: str) -> str:
    """Return git's object id of a blob, in the hash that the id `like` is written in."""
    digest = hashlib.sha256() if len(like) == 64 else hashlib.sha1(usedforsecurity=False)
    digest.update(b"blob %d\0" % len(data))
    digest.update(data)
    return digest.hexdigest()


def _segment(
    git: Git, change: Change, channel: str, number: int, known: Known, sizes: Mapping[str, int]
) -> Finding | None:
    end = known.end(channel)
    if end is None:
        return None
    accepted = known.segment(channel, number)
    before = _honest_size(change.old_oid, accepted, sizes)
    after = _honest_size(change.new_oid, accepted, sizes)
    if after is not None:
        if before is None or after >= before:
            return None
        lost = len(lines_of(accepted[after:before]))
        return Finding(
            Code.PREFIX,
            channel,
            f"history rewritten: a commit removed {lost} accepted line(s) of {channel}",
            {"lines": lost, "segment": number},
        )
    data = git.blobs([change.new_oid], max_size=2 * len(accepted) + 65_536)[change.new_oid]
    if data is None:
        return Finding(Code.SIZE, channel, f"a commit carried a segment of {sizes.get(change.new_oid, 0)} bytes")
    lines = lines_of(accepted)
    kept = 0
    carried = data.split(b"\n")
    while kept < min(len(lines), len(carried)) and lines[kept] == carried[kept]:
        kept += 1
    if before is not None and kept < len(lines_of(accepted[:before])):
        return Finding(
            Code.PREFIX,
            channel,
            f"history rewritten: a commit changed accepted lines of {channel} from line {kept + 1} of segment "
            f"{number} on",
            {"segment": number, "line": kept + 1},
        )
    odd = next((raw for raw in carried[kept:] if raw and raw not in lines), None)
    if odd is None:
        return Finding(Code.REPLAY, channel, f"a commit repeated accepted lines of {channel}", {"segment": number})
    verdict = step(end, odd, wire=known.wire, channel=channel, keys=known.keys)
    code = Code.FORK if verdict.code is Code.REPLAY else verdict.code
    if code is None or code is Code.KEY_UNKNOWN:
        return None
    return Finding(code, channel, f"a commit carried bytes in {channel} that are not its own: {verdict.why}")


def _trust(change: Change, document: bytes | None, sizes: Mapping[str, int]) -> Finding | None:
    if document is None or _honest_size(change.new_oid, document, sizes) == len(document):
        return None
    what = "removed" if not change.new_oid.strip("0") else "changed"
    return Finding(Code.TRUST, "wire", f"history rewritten: a commit {what} a trust version")


def _honest_size(oid: str, accepted: bytes, sizes: Mapping[str, int]) -> int | None:
    """Return the size of a blob that is a beginning of the accepted bytes, ending with a line; None for another."""
    if not oid.strip("0"):
        return 0
    size = sizes[oid]
    prefix = accepted[:size]
    whole = len(prefix) == size and (not prefix or prefix.endswith(b"\n"))
    return size if whole and blob_id(prefix, oid) == oid else None
