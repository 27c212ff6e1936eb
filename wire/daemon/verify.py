"""The verifier: one tip, judged against what this machine accepted (PROTOCOL.md, section "Verification").

The steps, with their numbers there; 0, 1, 9 and 10 are the cycle's:
    2  ancestry: the verified commit should be an ancestor of the tip          FORCED
    3  shape of every path below `_coordination/`                              SHAPE
    4  trust, one version at a time, from `trust/` alone                       TRUST, TRUST_FORK
    5  positions of keys that were retired or revoked                          KEY_RETIRED
    6  each channel, and the commits on the way                                PREFIX, SIGNATURE, …
    7  content                                                                 SCHEMA, SIZE
    8  acks against what we know                                               SPLIT_VIEW

Only differences to the accepted bytes are looked at: git compares the trees by hash, and an equal hash means bytes that
were verified here before. Nothing is decided by comparing one tip with another.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from wire.daemon.accepted import Accepted, Blobs
from wire.daemon.contents import SHOWN, ContentSteps, types
from wire.daemon.findings import BLANK_TOLD, WIRE, Finding, where
from wire.daemon.history import Known, undone
from wire.daemon.judged import Before, Judged, end_of, forks_in_force
from wire.daemon.shape import ATTRIBUTES, Kind, Shape, carried, classify, segment_path
from wire.daemon.truststeps import TRUST_KINDS, TrustSteps
from wire.gitio import Change, Commit, Git, GitFailed
from wire.protocol.chain import Foreign, KeyLike, KeyRing, Position, walk
from wire.protocol.codes import Code

GROUP = 64
"""Segments of one channel that are walked at a time: bounds the memory of a first clone."""
COMMITS_WALKED = 2_000


@dataclass(slots=True)
class _Walked:
    """What the walk over one channel found beside new lines.

    `rows` has the number of the line, for people, by segment and offset, for the first foreign piece of each code;
    `more` counts foreign pieces that are not listed.
    """

    foreign: list[Foreign] = field(default_factory=list)
    rows: dict[tuple[int, int], int] = field(default_factory=dict)
    lacking: list[int] = field(default_factory=list)
    more: int = 0


class _Nobody:
    """A key ring of nobody, with which a walk accepts nothing."""

    def owner(self, key_id: str) -> tuple[str, KeyLike] | None:
        return None


class Verifier:
    """Judges one tip. One use: make, `judge`, throw away."""

    def __init__(self, git: Git, blobs: Blobs, accepted: Accepted, before: Before, tip: str) -> None:
        self._git = git
        self._blobs = blobs
        self._accepted = accepted
        self._before = before
        self._tip = tip
        self._judged = Judged(before.chain)
        self._missing: list[str] = []
        self._blank: dict[str, int] = {}

    def judge(self) -> Judged:
        """Run steps 2 to 8 and return what was found."""
        before, judged = self._before, self._judged
        commits: Sequence[Commit] = ()
        descends = True
        if before.verified is not None and before.verified != self._tip:
            descends, commits = self._history(before.verified)
        judged.changes = changes = self._changes(commits)
        self._shape([(change, classify(change.path, change.new_mode)) for change in changes])
        shaped = [(carried(change), classify(change.path)) for change in changes]
        self._attributes(shaped)
        judged.requests = {
            change.path.rpartition(b"/")[2].decode("ascii"): change.new_oid
            for change, shape in shaped
            if shape.kind is Kind.REQUEST and change.new_oid.strip("0")
        }
        trust = TrustSteps(self._blobs, self._accepted, before, judged, self._find)
        trust.versions([item for item in shaped if item[1].kind in TRUST_KINDS])
        trust.positions()
        self._missing += trust.missing
        self._channels([item for item in shaped if item[1].kind is Kind.SEGMENT])
        if not descends:
            self._forced()
        if judged.frozen is None and commits:
            for finding in undone(self._git, self._blobs, commits, self._known(), self._tip):
                judged.findings.append(finding)
                if finding.code == Code.FORK:
                    judged.forks[finding.scope] = finding.evidence["key"]
        ContentSteps(self._accepted, before, judged, self._find, self._tip).judge()
        return judged

    def _history(self, verified: str) -> tuple[bool, Sequence[Commit]]:
        """Step 2: return whether the tip descends from the verified commit, and the commits on the way."""
        try:
            history = self._git.history(verified, self._tip, max_count=COMMITS_WALKED)
        except GitFailed:
            if self._git.resolve(f"{verified}^{{commit}}") is not None:
                raise
            # The repository was made anew and the remote does not have that commit any more.
            return False, ()
        return history.descends, history.commits

    def _changes(self, commits: Sequence[Commit]) -> Sequence[Change]:
        """Return what differs from the accepted commit to the tip."""
        held = self._accepted.commit
        if len(commits) == 1 and commits[0].parents == (held,) and commits[0].oid == self._tip:
            return commits[0].changes  # one more commit on the accepted one
        return self._git.diff(held, self._tip)

    def _find(self, code: str, scope: str, message: str, subject: str = "", **evidence: object) -> Finding:
        finding = Finding(code, scope, message, {"tip": self._tip, **evidence}, subject)
        self._judged.findings.append(finding)
        return finding

    # Step 2.

    def _forced(self) -> None:
        old = self._before.verified or ""
        if not self._missing:
            self._find(
                Code.FORCED,
                WIRE,
                f"the remote's history was replaced: {self._tip[:12]} does not descend from {old[:12]}; "
                "everything that was accepted is still there",
                old_tip=old,
                new_tip=self._tip,
            )
            return
        self._judged.frozen = self._find(
            Code.FORCED,
            WIRE,
            f"the remote's history was replaced: {self._tip[:12]} does not descend from {old[:12]} and lacks "
            f"{', '.join(self._missing[:SHOWN])}; nothing is accepted or published until that is healed, "
            "and everything that was accepted is kept here",
            subject="frozen",
            old_tip=old,
            new_tip=self._tip,
            missing=self._missing[:64],
        )

    # Step 3.

    def _shape(self, shaped: Iterable[tuple[Change, Shape]]) -> None:
        present = [(change, shape) for change, shape in shaped if change.new_oid.strip("0")]
        outside = [change for change, shape in present if shape.kind is Kind.FOREIGN]
        if outside:
            self._find(
                Code.SHAPE,
                WIRE,
                f"{len(outside)} path(s) outside _coordination/ on the wire's branch; they are ignored",
                subject="outside",
                paths=_shown(outside),
            )
        illegal = [change for change, shape in present if shape.kind is Kind.ILLEGAL]
        if illegal:
            self._find(
                Code.SHAPE,
                WIRE,
                f"{len(illegal)} path(s) below _coordination/ that no wire has (a link, a mode, a name); "
                "they are ignored and left out of this machine's next commit",
                subject="illegal",
                paths=_shown(illegal),
                modes=sorted({change.new_mode for change in illegal}),
            )

    def _attributes(self, shaped: Iterable[tuple[Change, Shape]]) -> None:
        for change, shape in shaped:
            if shape.kind is Kind.ATTRIBUTES and self._blobs.get(change.new_oid) != ATTRIBUTES:
                self._judged.restore = True
                self._find(Code.SHAPE, WIRE, "_coordination/.gitattributes is not the protocol's", subject="attributes")

    # Step 6.

    def _channels(self, shaped: Iterable[tuple[Change, Shape]]) -> None:
        agents = self._judged.chain.newest.agents
        known, unknown = [], set()
        for item in shaped:
            sender = item[1].channel.partition("/")[0]
            if sender in agents:
                known.append(item)
            else:
                unknown.add(sender)
        if unknown:
            self._find(
                Code.SHAPE,
                WIRE,
                f"folders of {len(unknown)} name(s) that the trust does not know; they are not read",
                subject="unknown-names",
                names=sorted(unknown)[:64],
            )
        frozen = forks_in_force(self._before.forks, self._judged.chain)
        grouped = groupby(sorted(known, key=_by_channel), key=lambda item: item[1].channel)
        channels = [(channel, {shape.number: change for change, shape in items}) for channel, items in grouped]
        for index, (channel, changed) in enumerate(channels):
            if index % GROUP == 0:
                # Whoever can push can make thousands, in the name of anybody; a child for each would be dear.
                firsts = [one[min(one)] for _, one in channels[index : index + GROUP]]
                self._blobs.fetch(oid for first in firsts for oid in (first.old_oid, first.new_oid))
            if channel in frozen:
                # It accepts nothing, and what it has accepted is still missed where it is gone.
                self._report_lacking(channel, self._walk(channel, self._end(channel), changed, _Nobody()).lacking)
            elif channel.partition("/")[0] in self._before.own:
                self._own_channel(channel, changed)
            else:
                self._channel(channel, changed)
        if len(self._blank) > BLANK_TOLD:
            self._find(
                Code.SHAPE,
                WIRE,
                f"{len(self._blank)} channels hold foreign bytes and no accepted line; not each of them is told",
                subject="blank-channels",
                count=len(self._blank),
            )

    def _tells(self, channel: str) -> bool:
        """Return whether what is wrong in a channel is told by itself."""
        return self._end(channel).seq > 0 or self._blank.setdefault(channel, len(self._blank)) < BLANK_TOLD

    def _channel(self, channel: str, changed: Mapping[int, Change]) -> None:
        found = self._walk(channel, self._end(channel), changed)
        self._report(channel, found)
        self._report_lacking(channel, found.lacking)

    def _own_channel(self, channel: str, changed: Mapping[int, Change]) -> None:
        """Judge a channel that this machine writes: the remote may lack what was not pushed, or know more than us."""
        judged = self._judged
        published = self._before.published.get(channel, 0)
        end = self._end(channel)
        found = self._walk(channel, end, changed)
        conflict = any(f.code is Code.FORK and f.line is not None and f.line.seq > published for f in found.foreign)
        if conflict and published < end.seq:
            # Lines of ours that nobody has yet, against lines of our key that we do not have: theirs stay where they
            # are, since others may have accepted them; ours are issued again behind them.
            judged.new.pop(channel, None)
            keep = self._accepted.position_at(channel, published, Position.start(judged.chain.wire, channel))
            judged.displaced[channel] = self._accepted.cut(channel, end, keep)
            judged.ends[channel] = end = keep
            found = self._walk(channel, keep, changed)
        if judged.new.get(channel):
            judged.adopted[channel] = end
        self._report(channel, found)
        lost = [seq for seq in found.lacking if seq <= published]
        self._report_lacking(channel, lost)
        judged.carried[channel] = (found.lacking[0] - 1) if found.lacking else self._end(channel).seq
        judged.restore = judged.restore or bool(lost or found.foreign)

    def _walk(self, channel: str, end: Position, changed: Mapping[int, Change], keys: KeyRing | None = None) -> _Walked:
        """Walk the segments that differ, in order; see `walk`."""
        found = _Walked()
        numbers = sorted(changed)
        for index, number in enumerate(numbers):
            # Nothing that stands behind a segment which carries no next line can be the next line: one such segment is
            # looked at, so that what it is can be told, and the others are counted.
            beyond = number > end.segment + 1
            group = numbers[index : index + 1] if beyond else numbers[index : index + GROUP]
            if beyond or index % GROUP == 0:
                self._blobs.fetch(oid for n in group for oid in (changed[n].old_oid, changed[n].new_oid))
            end = self._walk_segment(channel, end, number, changed[number], keys or self._judged.chain, found)
            if beyond:
                found.more += len(numbers) - index - 1
                break
        return found

    def _walk_segment(
        self, channel: str, end: Position, number: int, change: Change, keys: KeyRing, walked: _Walked
    ) -> Position:
        judged = self._judged
        data = self._blobs.get(change.new_oid)
        if data is None and self._tells(channel):
            self._find(
                Code.SIZE,
                channel,
                f"segment {number} of {channel} is too large to be one and is not read",
                subject="segment",
                path=segment_path(channel, number),
                blob=change.new_oid,
            )
        found = walk(
            end,
            {number: data or b""},
            lambda n: self._accepted.segment(channel, n),
            wire=judged.chain.wire,
            channel=channel,
            keys=keys,
        )
        if found.new:
            lines = [line.raw for line in found.new]
            self._accepted.append(channel, end, lines, {number: (change.new_oid, data or b"")})
            judged.new.setdefault(channel, []).extend(found.new)
            judged.ends[channel] = found.end
        walked.foreign += found.foreign
        for item in {item.code: item for item in reversed(found.foreign)}.values():
            walked.rows[number, item.offset] = (data or b"").count(b"\n", 0, item.offset) + 1
        walked.lacking += found.lacking
        walked.more += found.more
        return found.end

    def _report(self, channel: str, found: _Walked) -> None:
        foreign = found.foreign
        if foreign and not self._tells(channel):
            return
        waiting = [item for item in foreign if item.code is Code.KEY_UNKNOWN]
        if waiting:
            self._judged.pending[channel] = len(waiting)
            self._judged.unknown[channel] = where(channel, waiting[0], found.rows)
        for code, count in Counter(item.code for item in foreign if item.code is not Code.KEY_UNKNOWN).items():
            first = next(item for item in foreign if item.code is code)
            if code is Code.FORK and first.line is not None:
                self._judged.forks[channel] = first.line.key_id
            self._find(
                code,
                channel,
                f"{count} line(s) in {channel} that are not the accepted chain's, the first is line"
                f" {found.rows[first.segment, first.offset]} of segment {first.segment}: {first.why}",
                **where(channel, first, found.rows),
                count=count,
                more=found.more,
                types=types(item.line for item in foreign if item.code is code is not Code.SIGNATURE),
                **({"other_head": first.line.head} if first.line is not None else {}),
            )

    def _report_lacking(self, channel: str, lacking: Sequence[int]) -> None:
        if not lacking:
            return
        self._missing.append(f"{len(lacking)} line(s) of {channel}")
        self._find(
            Code.PREFIX,
            channel,
            f"{len(lacking)} accepted line(s) of {channel} are gone from the remote or were changed there, "
            f"the first is {channel}/{lacking[0]}; the accepted ones are kept and shown",
            first=lacking[0],
            last=lacking[-1],
            count=len(lacking),
            verified=self._before.verified or "",
        )

    def _end(self, channel: str) -> Position:
        return end_of(self._before, self._judged, channel)

    def _known(self) -> Known:
        judged = self._judged
        agents = judged.chain.newest.agents
        # A version of which two documents are known was told of by step 4; the commit that brought it is no news.
        forked = {finding.subject for finding in judged.findings if finding.code is Code.TRUST_FORK}
        return Known(
            segment=self._accepted.segment,
            end=lambda channel: self._end(channel) if channel.partition("/")[0] in agents else None,
            trust={
                document.version: (document.raw, signatures)
                for document, signatures in zip(judged.chain.documents, judged.chain.signatures, strict=True)
                if str(document.version) not in forked
            },
            wire=judged.chain.wire,
            keys=judged.chain,
        )


def _by_channel(item: tuple[Change, Shape]) -> tuple[str, int]:
    return item[1].channel, item[1].number


def _shown(changes: Sequence[Change]) -> list[str]:
    return [change.path[:200].decode("utf-8", "backslashreplace") for change in changes[:SHOWN]]
