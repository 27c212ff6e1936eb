"""Steps 4 and 5 of the verifier: the trust at a tip, and what a new version takes back (PROTOCOL.md, "Verification").

From `trust/` alone, one version at a time. `trust.json` is a copy for people: a wrong one decides nothing.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from wire.daemon.accepted import Accepted, Blobs
from wire.daemon.findings import WIRE, Finding
from wire.daemon.judged import Before, Judged
from wire.daemon.shape import Kind, Shape, trust_path
from wire.errors import TrustError
from wire.gitio import Change
from wire.keys.trust import ACTIVE, Chain, Verdict
from wire.protocol.chain import Position, lines_of
from wire.protocol.codes import Code
from wire.protocol.line import parse

GROUP = 32
"""Versions that are read at a time; each may have a megabyte."""
TRUST_KINDS = (Kind.TRUST, Kind.TRUST_SIGNATURES, Kind.NEWEST_TRUST)


class TrustSteps:
    """Judges the trust that a tip carries, into the `Judged` that it is given.

    Attributes:
        missing: paths of held versions that the tip lacks or changed.
    """

    def __init__(
        self, blobs: Blobs, accepted: Accepted, before: Before, judged: Judged, find: Callable[..., Finding]
    ) -> None:
        self.missing: list[str] = []
        self._followed = 0
        self._blobs = blobs
        self._accepted = accepted
        self._before = before
        self._judged = judged
        self._find = find

    def versions(self, shaped: Iterable[tuple[Change, Shape]]) -> None:
        """Step 4: take over the versions that follow, and say what is wrong with the others."""
        judged = self._judged
        self._follow()
        by_kind: dict[Kind, dict[int, Change]] = {kind: {} for kind in TRUST_KINDS}
        for change, shape in shaped:
            by_kind[shape.kind][shape.number] = change
        documents, signatures = by_kind[Kind.TRUST], by_kind[Kind.TRUST_SIGNATURES]
        lost: dict[int, str] = {}
        versions = sorted({*documents, *signatures})
        for index, version in enumerate(versions):
            if version > judged.chain.newest.version + 1:
                if judged.other is None:
                    self._future(versions[index:])
                break
            if index % GROUP == 0:
                group = versions[index : index + GROUP]
                self._blobs.fetch(c.new_oid for n in group for c in (documents.get(n), signatures.get(n)) if c)
            held = judged.chain.at(version)
            raw = self._carried(documents.get(version), held.raw if held else b"")
            signed = self._carried(signatures.get(version), judged.chain.signatures[version - 1] if held else b"")
            if not raw and held:
                if judged.other is None:
                    lost[version] = "is gone from the remote"
                continue
            if not raw and not signed and self._followed:
                continue  # of the line that is not followed any more, and gone from the tip
            judgement = judged.chain.judge(version, raw or b"", signed or b"")
            if judgement.verdict is Verdict.NEXT and judgement.chain is not None:
                judged.chain = judgement.chain
                if self._followed:
                    self._accepted.replace_trust(judged.chain, self._followed)
                else:
                    self._accepted.put_trust(judged.chain)
            elif judged.other is not None:
                # What follows in the other line says nothing of the one held here; what follows the held one counts, so
                # that somebody whose key counted once cannot stop everything that was decided since.
                continue
            elif judgement.verdict is Verdict.FORK:
                judged.other = judgement.chain
                self._find(
                    Code.TRUST_FORK,
                    WIRE,
                    f"two validly signed documents claim to be trust version {version}: {judgement.why}; "
                    "the one held here stays in force",
                    subject=str(version),
                    held=held.hash if held else "",
                    other=judgement.chain.newest.hash if judgement.chain else "",
                )
            elif judgement.verdict is Verdict.INVALID and held:
                lost[version] = f"was changed at the remote ({judgement.why})"
            elif judgement.verdict is not Verdict.SAME:
                self._find(
                    Code.TRUST,
                    WIRE,
                    f"trust version {version} at the remote does not count: {judgement.why}; "
                    f"version {judged.chain.newest.version} stays in force",
                    subject=str(version),
                )
        self._lost(lost)
        self._newest_copy(by_kind[Kind.NEWEST_TRUST].get(0))

    def _follow(self) -> None:
        """Take the documents that a person decided to follow in place of those held, with what follows at the tip."""
        judged = self._judged
        for version, one in sorted(self._before.decided.items()):
            held = judged.chain.at(version)
            if held is None or held.raw == one.raw:
                continue
            try:
                judged.chain = judged.chain.until(version - 1).extend(one.raw, one.signatures)
            except TrustError:
                continue  # it follows a version that is not held any more
            self._followed = self._followed or version
            self._accepted.replace_trust(judged.chain, version)

    def _future(self, versions: Sequence[int]) -> None:
        """Say of versions whose predecessor is not there that nothing can be said of them; they are not read."""
        newest = self._judged.chain.newest.version
        self._find(
            Code.TRUST,
            WIRE,
            f"{len(versions)} trust version(s) at the remote, the first is {versions[0]}, follow none that is held; "
            f"version {newest} stays in force",
            subject="later",
            count=len(versions),
        )

    def _newest_copy(self, change: Change | None) -> None:
        """Compare trust.json, which is for people: a wrong one decides nothing here, and is put right."""
        if change is None:
            if self._judged.chain is not self._before.chain and self._accepted.commit is not None:
                self._judged.restore = True
            return
        if self._blobs.get(change.new_oid) == self._judged.chain.newest.raw:
            return
        if any(finding.code is Code.TRUST_FORK for finding in self._judged.findings):
            # The copy is of the other document, which is told of already; after a fork nobody touches the trust.
            return
        self._judged.restore = True
        self._find(
            Code.TRUST,
            WIRE,
            "trust.json at the remote is not a copy of the trust in force; only the signed versions below trust/ count",
            subject="trust.json",
            sha256=change.new_oid,
        )

    def _lost(self, lost: Mapping[int, str]) -> None:
        """Tell of held versions that the tip lacks or changed, and have them put back."""
        if not lost:
            return
        self.missing += [trust_path(version) for version in lost]
        self._judged.restore = True
        first, what = next(iter(lost.items()))
        more = f", and {len(lost) - 1} more are changed or gone" if len(lost) > 1 else ""
        self._find(
            Code.TRUST,
            WIRE,
            f"trust version {first} {what}{more}; what is held here stays in force and is put back",
            subject="held",
            versions=list(lost)[:64],
        )

    def _carried(self, change: Change | None, held: bytes) -> bytes | None:
        return held if change is None else self._blobs.get(change.new_oid)

    def positions(self) -> None:
        """Step 5: cut what no longer counts once a key was retired or revoked, or another document is followed."""
        judged = self._judged
        if judged.chain is self._before.chain:
            return
        for channel, end in self._before.ends.items():
            sender = channel.partition("/")[0]
            agent = judged.chain.newest.agents.get(sender)
            if not self._followed and (agent is None or all(key.status == ACTIVE for key in agent.keys)):
                continue
            keep = self._still_counts(channel, end, judged.chain)
            if keep == end:
                continue
            cut = self._accepted.cut(channel, end, keep)
            judged.ends[channel] = keep
            judged.cut[channel] = cut
            self._find(
                Code.KEY_RETIRED,
                channel,
                f"{end.seq - keep.seq} accepted line(s) of {channel} after line {keep.seq} no longer count: "
                "their key was retired or revoked before them",
                subject="cut",
                first=keep.seq + 1,
                last=end.seq,
                trust=judged.chain.newest.reference,
                cut=[parse(raw).head for raw in lines_of(cut)[:64]],
            )

    def _still_counts(self, channel: str, end: Position, chain: Chain) -> Position:
        position = Position.start(chain.wire, channel)
        for number in range(1, end.segment + 1):
            for raw in lines_of(self._accepted.segment(channel, number)):
                line = parse(raw)
                owner = chain.owner(line.key_id)
                mine = owner is not None and owner[0] == line.sender
                if owner is None or not mine or not owner[1].covers(channel, line.seq, line.head):
                    return position
                position = position.after(len(raw) + 1, line.head)
        return position
