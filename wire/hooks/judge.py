"""The verdict on the changes of a commit, staged or pushed, by the daemon's own walk (PROTOCOL.md, "Verification").

Judged is what a commit would *change*: what was wrong in HEAD already is not held against it, and taking foreign bytes
out of one's own folder is lawful. The steps, with the protocol's numbers:

    3  shape of every changed path                                             SHAPE
    4  trust versions, from `trust/` alone, one at a time                      TRUST
    6  channels: only one's own, and only the valid next lines behind          NOT_YOURS, PREFIX, GAP, SIGNATURE, …
       what is accepted, all of which that was there stays
    7  content of the new lines                                                SCHEMA, SIZE
    -  private keys, wherever they are                                         PRIVATE_KEY

What it does not do: decide what peers accept. They verify for themselves, so a commit made around this hook gains
nothing.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from wire.daemon.accepted import Blobs
from wire.daemon.shape import ATTRIBUTES, NEWEST_TRUST_PATH, Kind, Shape, classify, segment_path, trust_path
from wire.errors import TrustError
from wire.gitio import Change, Entry
from wire.hooks.ground import Channel, Ground, segments
from wire.hooks.private import find
from wire.hooks.problems import Problem, at
from wire.keys import trust as trusts
from wire.keys.trust import Chain
from wire.protocol.chain import Foreign, Position, Walk, lines_of, walk
from wire.protocol.codes import Code
from wire.protocol.line import Line, LineError, content, parse
from wire.store.segments import common_length

_FILE_MODES = ("100644", "100755", "120000")
_TOGETHER = 16
"""Files that are read at a time: so many of the largest size are still few enough for one child."""


class Staging(NamedTuple):
    """What a commit would change, and what it stands on.

    Attributes:
        changes: paths that differ from HEAD.
        entries: the files of HEAD.
        blobs: contents by object id.
    """

    changes: Sequence[Change]
    entries: Mapping[bytes, Entry]
    blobs: Blobs

    def old(self, change: Change) -> bytes:
        """Return what HEAD has at a changed path."""
        return self._read(change.old_mode, change.old_oid)

    def new(self, change: Change) -> bytes:
        """Return what is staged at a changed path, empty for nothing and for what is no readable file."""
        return self._read(change.new_mode, change.new_oid)

    def _read(self, mode: str, oid: str) -> bytes:
        return (self.blobs.get(oid) or b"") if mode in _FILE_MODES else b""


def judge_keys(staging: Staging, *, strict: bool) -> tuple[list[Problem], list[bytes]]:
    """Return every private key that the changes would bring in, and the paths that were too large to be looked at.

    Args:
        strict: such a path is a problem, too.
    """
    problems: list[Problem] = []
    passed_over: list[bytes] = []
    readable = [change for change in staging.changes if change.new_mode in _FILE_MODES]
    for start in range(0, len(readable), _TOGETHER):
        group = readable[start : start + _TOGETHER]
        staging.blobs.fetch(change.new_oid for change in group)
        for change in group:
            if staging.blobs.get(change.new_oid) is not None:
                problems += _keys_in(staging, change)
            elif strict:
                problems.append(Problem(Code.SIZE, change.path, "too large to be looked through, and to be lawful"))
            else:
                passed_over.append(change.path)
        if not strict:
            staging.blobs.drop()
    return problems, passed_over


def _keys_in(staging: Staging, change: Change) -> Iterable[Problem]:
    new = staging.new(change)
    found = find(new)
    # Each line of a segment stands by itself, and those of HEAD are not this commit's.
    is_segment = bool(found) and classify(change.path, change.new_mode).kind is Kind.SEGMENT
    there = set(lines_of(staging.old(change))) if is_segment else set()
    for offset, what in found:
        begin = new.rfind(b"\n", 0, offset) + 1
        if there and new[begin:].partition(b"\n")[0] in there:
            continue
        line = new.count(b"\n", 0, offset) + 1
        yield Problem("PRIVATE_KEY", change.path, f"{what}; those never leave their machine", line, offset)


class Verdict(NamedTuple):
    """What the changes of a wire turned out to be.

    Attributes:
        problems: everything that is wrong with them.
        chain: the trust that they make.
        ends: of each channel that they change where it ends then; None where it carries something else, too.
    """

    problems: list[Problem]
    chain: Chain
    ends: dict[str, Position | None]


def judge(staging: Staging, ground: Ground) -> Verdict:
    """Judge the changes of a wire."""
    problems = []
    shaped: dict[Kind, list[tuple[Change, Shape]]] = {}
    for change in staging.changes:
        if change.status == "U":
            problems.append(Problem("UNMERGED", change.path, "a conflict in it is not resolved"))
            continue
        shape = classify(change.path, change.new_mode)
        shaped.setdefault(shape.kind, []).append((change, shape))
    problems += _shapes(staging, shaped, alone=ground.alone)
    trust = _Trust(staging, ground.chain)
    problems += trust.judge(shaped)
    asked = [item[0] for item in shaped.get(Kind.REQUEST, [])]
    problems += _requests(staging, ground, trust.chain, asked) if asked else ()
    proposed = [change for change, _ in shaped.get(Kind.PROPOSAL, ())]
    if proposed:
        from wire.hooks.proposed import judge_proposals  # as rarely needed

        problems += judge_proposals(staging, ground, trust.chain, proposed)
    ends: dict[str, Position | None] = {}
    changed = sorted(shaped.get(Kind.SEGMENT, []), key=_by_channel)
    for name, items in groupby(changed, key=lambda item: item[1].channel):
        channel = _Channel(staging, ground, trust.chain, name, {shape.number: change for change, shape in items})
        problems += channel.judge()
        ends[name] = channel.end
    return Verdict(problems, trust.chain, ends)


def _by_channel(item: tuple[Change, Shape]) -> tuple[str, int]:
    return item[1].channel, item[1].number


# Step 3.


def _shapes(
    staging: Staging, shaped: Mapping[Kind, Sequence[tuple[Change, Shape]]], *, alone: bool
) -> Iterable[Problem]:
    for change, _ in shaped.get(Kind.ILLEGAL, ()):
        if change.new_oid.strip("0"):
            what = f"no wire has this path with mode {change.new_mode}"
            yield Problem(Code.SHAPE, change.path, what, begins=staging.new(change)[:40])
    for change, _ in shaped.get(Kind.FOREIGN, ()) if alone else ():
        if change.new_oid.strip("0"):
            yield Problem(Code.SHAPE, change.path, "the wire's branch holds nothing but _coordination/")
    for change, _ in shaped.get(Kind.ATTRIBUTES, ()):
        new = staging.new(change)
        if new != ATTRIBUTES:
            yield Problem(Code.SHAPE, change.path, "it is not the protocol's, which switches every filter off")


# Step 4.


class _Trust:
    """The trust that the changes would make; `chain` ends with what they add lawfully."""

    def __init__(self, staging: Staging, chain: Chain) -> None:
        self.chain = chain
        self._staging = staging
        self._staged: dict[bytes, Change] = {change.path: change for change in staging.changes}

    def judge(self, shaped: Mapping[Kind, Sequence[tuple[Change, Shape]]]) -> list[Problem]:
        problems = []
        touched = [*shaped.get(Kind.TRUST, ()), *shaped.get(Kind.TRUST_SIGNATURES, ())]
        for version in sorted({shape.number for _, shape in touched}):
            path = trust_path(version).encode()
            raw, signatures = self._carried(path), self._carried(path + b".sig")
            if not raw or not signatures:
                gone = path if not raw else path + b".sig"
                problems.append(Problem(Code.TRUST, gone, "a trust version and its signatures are never removed"))
                continue
            judged = self.chain.judge(version, raw, signatures)
            if judged.verdict is trusts.Verdict.NEXT and judged.chain is not None:
                self.chain = self._with_later(judged.chain)
            elif judged.verdict is not trusts.Verdict.SAME:
                code = Code.TRUST_FORK if judged.verdict is trusts.Verdict.FORK else Code.TRUST
                problems.append(Problem(code, path, judged.why or "it does not follow what is held", 1, 0, raw[:40]))
        for change, _ in shaped.get(Kind.NEWEST_TRUST, ()):
            new = self._staging.new(change)
            if new != self.chain.newest.raw:
                why = f"it is not a copy of trust version {self.chain.newest.version}, the newest that is signed"
                problems.append(Problem(Code.TRUST, NEWEST_TRUST_PATH.encode(), why, 1, 0, new[:40]))
        return problems

    def _with_later(self, chain: Chain) -> Chain:
        """Return a chain with the versions behind its end that were there already, and followed none that was."""
        while True:
            path = trust_path(chain.newest.version + 1).encode()
            if path in self._staged:
                return chain
            raw = self._carried(path)
            longer = chain.judge(chain.newest.version + 1, raw, self._carried(path + b".sig")).chain if raw else None
            if longer is None:
                return chain
            chain = longer

    def _carried(self, path: bytes) -> bytes:
        change = self._staged.get(path)
        if change is not None:
            return self._staging.new(change)
        entry = self._staging.entries.get(path)
        return (self._staging.blobs.get(entry.oid) or b"") if entry is not None and entry.kind == "blob" else b""


def _requests(staging: Staging, ground: Ground, chain: Chain, changes: Sequence[Change]) -> Iterable[Problem]:
    if not changes:
        return
    from wire.keys import requests, rotations  # rarely needed, and the host's hook is waited for
    from wire.keys.answered import over

    # Whoever makes a trust version answers requests, and tidies in the same commit.
    tidies = chain.newest.version > ground.chain.newest.version
    if not tidies:
        staging.blobs.fetch(change.old_oid for change in changes if not change.new_oid.strip("0"))
    for change in changes:
        name = change.path.rpartition(b"/")[2].decode("ascii")
        owner = name.partition(".")[0]
        if not change.new_oid.strip("0"):
            mine = ground.own is not None and owner in ground.own
            if not (mine or tidies or over(chain, name, staging.old(change))):
                yield Problem("NOT_YOURS", change.path, f"the request of {owner!r} was not answered yet; it stays")
            continue
        raw = staging.new(change)
        try:
            # An agent that asks for another key does it in the same place, by another form.
            judge = rotations.parse if b'"replaces":' in raw else requests.parse
            judge(raw, wire=chain.wire, file_name=name)
        except TrustError as error:
            yield Problem("REQUEST", change.path, error.message, 1, 0, raw[:40])


# Steps 6 and 7.


class _Channel:
    """One channel of which segments are changed.

    Attributes:
        end: where it ends with the changes; None where the walk found anything but lines, or did not take place.
    """

    def __init__(
        self, staging: Staging, ground: Ground, chain: Chain, name: str, changed: Mapping[int, Change]
    ) -> None:
        self._staging = staging
        self._ground = ground
        self._chain = chain
        self._name = name
        self._held: Channel = ground.channel(name, chain)
        self.end: Position | None = None
        self._before = {number: staging.old(change) for number, change in changed.items()}
        self._after = {number: staging.new(change) for number, change in changed.items()}
        # What HEAD lacks of other segments belongs to the walk: a line behind a hole is none.
        there = segments(staging.entries, name)
        for number in {*there, *range(1, self._held.end.segment + 1)} - changed.keys():
            entry = there.get(number)
            if entry is not None and entry.oid == self._held.blob(number):
                continue
            data = (staging.blobs.get(entry.oid) or b"") if entry is not None else b""
            if data != self._held.segment(number):
                self._before[number] = self._after[number] = data

    def judge(self) -> list[Problem]:
        owner = self._name.partition("/")[0]
        if self._ground.own is not None and owner not in self._ground.own:
            return list(self._strange(owner))
        before, after = self._walk(self._before), self._walk(self._after)
        self.end = None if after.foreign or after.more or after.lacking else after.end
        return [
            *self._foreign(before, after),
            *self._removed(before, after),
            *self._holes(before, after),
            *self._twice(after),
            *self._unreadable(before, after),
        ]

    def _walk(self, carried: Mapping[int, bytes]) -> Walk:
        held = self._held
        return walk(held.end, carried, held.segment, wire=self._chain.wire, channel=self._name, keys=self._chain)

    def _path(self, number: int) -> bytes:
        return segment_path(self._name, number).encode()

    def _strange(self, owner: str) -> Iterable[Problem]:
        """Somebody else's folder: a commit may carry what this machine accepted, and nothing else."""
        mine = ", ".join(sorted(self._ground.own or ())) or "none"
        why = f"the folder is {owner!r}'s alone; this machine's agents: {mine}"
        for number, after in self._after.items():
            before = self._before[number]
            whole = not after or after.endswith(b"\n")
            if after == before or (whole and after.startswith(before) and self._held.segment(number).startswith(after)):
                continue
            split = common_length(before, after)
            data = before if split == len(after) else after
            yield at("NOT_YOURS", self._path(number), why, data, data.rfind(b"\n", 0, split) + 1)

    def _foreign(self, before: Walk, after: Walk) -> Iterable[Problem]:
        """Bytes that are no valid next line, and were not there before."""
        there = Counter((item.segment, item.raw) for item in before.foreign)
        for item in after.foreign:
            if there[item.segment, item.raw] > 0:
                there[item.segment, item.raw] -= 1
                continue
            yield at(item.code, self._path(item.segment), _cause(item), self._after[item.segment], item.offset)
        if after.more:
            why = f"more than {len(after.foreign)} pieces that are no lines of the channel; take all of them out"
            yield Problem(Code.SIGNATURE, self._path(max(self._after)), why)

    def _removed(self, before: Walk, after: Walk) -> Iterable[Problem]:
        """Valid lines that HEAD has, accepted here or not yet, and that are gone or changed."""
        kept = {line.raw for line in after.new}
        unseen = {line.raw for line in before.new if line.raw not in kept}
        lost = set(after.lacking) - set(before.lacking)
        for number, data in self._before.items():
            accepted = set(lines_of(self._held.segment(number)))
            offset = 0
            for raw in lines_of(data):
                if raw in unseen or (raw in accepted and parse(raw).seq in lost):
                    seq = parse(raw).seq
                    why = f"line {self._name}/{seq} of HEAD is gone or changed; a channel is only ever appended to"
                    yield at(Code.PREFIX, self._path(number), why, data, offset)
                    lost.discard(seq)
                offset += len(raw) + 1
        for seq in sorted(lost):
            yield Problem(Code.PREFIX, self._path(1), f"the accepted line {self._name}/{seq} would be gone")

    def _holes(self, before: Walk, after: Walk) -> Iterable[Problem]:
        """Lines behind a hole: HEAD lacks accepted lines, and later ones are staged without them."""
        top_before = self._top(before, self._before)
        top_after = self._top(after, self._after)
        holes = [seq for seq in after.lacking if top_before < seq < top_after]
        if holes:
            why = (
                f"line {self._name}/{top_after} is staged, and the accepted line {self._name}/{holes[0]} is missing "
                "in front of it"
            )
            number = max(self._after)
            data = self._after[number]
            yield at(Code.GAP, self._path(number), why, data, data.rfind(b"\n", 0, max(0, len(data) - 1)) + 1)

    def _top(self, found: Walk, carried: Mapping[int, bytes]) -> int:
        """Return the number of the last line of the chain that these files carry."""
        if found.new:
            return found.new[-1].seq
        lacking = set(found.lacking)
        return next((seq for seq in range(self._held.end.seq, 0, -1) if seq not in lacking), 0) if carried else 0

    def _twice(self, after: Walk) -> Iterable[Problem]:
        """Lines that differ from what this machine's own journal has under the same numbers."""
        for line in after.new:
            stored = self._held.stored.get(line.seq, line.raw)
            if stored != line.raw:
                why = f"this machine's journal has another line {line.id}, sent and not synced yet"
                yield self._at_line(Code.FORK, line, why)

    def _unreadable(self, before: Walk, after: Walk) -> Iterable[Problem]:
        known = {line.raw for line in before.new}
        for line in after.new:
            if line.raw in known:
                continue
            try:
                content(line)
            except LineError as error:
                yield self._at_line(error.code, line, error.why)

    def _at_line(self, code: str, line: Line, why: str) -> Problem:
        for number, data in self._after.items():
            offset = data.find(line.raw + b"\n")
            if offset >= 0:
                return at(code, self._path(number), why, data, offset)
        return Problem(code, self._path(1), why)


def _cause(item: Foreign) -> str:
    if item.code is Code.KEY_UNKNOWN:
        return f"{item.why}; where its agent is not approved yet, its lines wait in the journal and are not committed"
    return item.why
