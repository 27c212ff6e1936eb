"""The chain of trust versions: what is in force, and whether bytes may follow it (PROTOCOL.md, section "Trust").

A chain is made only by `genesis` and `extend`, so having one means that every rule held from version 1 on. It never
changes; `extend` returns a longer one.

    chain = Chain.genesis(raw_1, signatures_1).extend(raw_2, signatures_2)
    chain.passes(*parse_checkpoint(text))          # is this the wire that a person named?
    chain.judge(3, raw, signatures).verdict        # what a remote's tip carries as version 3

Within step 4 of the verifier, the order for one version is:
    4a  size
    4b  enough signatures of the roots in force, over the exact bytes, before any of them are parsed
    4c  form, and what the document says by itself
    4d  place: number, wire, hash of the predecessor
    4e  enough signatures of its own roots
    4f  nothing of the predecessor lost or turned back; every new key proved

Which files a tip carries, and what to do about a verdict, is not decided here. Nor is whether a line's key counts at
its place: `protocol.chain.step` does that.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

from wire.errors import TrustError
from wire.keys.document import DOCUMENT_MAX, parse
from wire.keys.model import ACTIVE, Document, Key
from wire.keys.reasons import Reason, refused
from wire.keys.rules import check_kept, check_place
from wire.keys.signatures import signers_of
from wire.protocol.names import EVERYONE


class Verdict(StrEnum):
    """What bytes offered as one trust version are to a chain."""

    SAME = "same"
    """The version that is held, with signatures that suffice."""
    NEXT = "next"
    """The valid successor of the newest version."""
    FORK = "fork"
    """Another document than the held one, and as validly signed: `TRUST_FORK`."""
    INVALID = "invalid"
    """Neither; `reason` says why. The trust that is held stays in force."""
    FUTURE = "future"
    """A version whose predecessor is not held, so that nothing can be said of it."""


class Chain(NamedTuple):
    """All trust versions of a wire, from 1 to the newest that is held, each verified.

    `documents` and `signatures` run in parallel: a version's document and the bytes of its signature file.
    """

    documents: tuple[Document, ...]
    signatures: tuple[bytes, ...]
    wire: str

    @classmethod
    def genesis(cls, raw: bytes, signatures: bytes) -> "Chain":
        """Return the chain that version 1 begins. Whether it is the wanted wire only a checkpoint can say.

        Raises:
            TrustError: see `reasons.Reason`.
        """
        document = parse(raw)
        if document.version != 1:
            raise refused(Reason.NOT_NEXT, f"trust version {document.version} where 1 is the first")
        _own_signatures_suffice(document, signatures)
        return cls((document,), (signatures,), document.wire_id)

    @classmethod
    def replay(cls, files: Iterable[tuple[bytes, bytes]]) -> "Chain":
        """Return the chain of (document, signature file) pairs, from version 1 on.

        Raises:
            TrustError: see `reasons.Reason`; also for no files at all (`not-next`).
        """
        chain: Chain | None = None
        for raw, signatures in files:
            chain = cls.genesis(raw, signatures) if chain is None else chain.extend(raw, signatures)
        if chain is None:
            raise refused(Reason.NOT_NEXT, "no trust version at all; version 1 is the first")
        return chain

    def extend(self, raw: bytes, signatures: bytes) -> "Chain":
        """Return the chain that is longer by one version.

        Raises:
            TrustError: see `reasons.Reason`; this chain stays in force.
        """
        old = self.newest
        _check_size(raw)  # 4a
        _signatures_suffice(raw, signatures, old.roots, old.threshold, Reason.TOO_FEW_OLD)  # 4b
        new = parse(raw, known=old)  # 4c
        check_place(old, new, self.wire)  # 4d
        _own_signatures_suffice(new, signatures)  # 4e
        check_kept(old, new, self.wire)  # 4f
        return Chain((*self.documents, new), (*self.signatures, signatures), self.wire)

    def draft(self, raw: bytes) -> Document:
        """Return what the bytes of a next version say, judged by every rule but those about signatures.

        Raises:
            TrustError: see `reasons.Reason`; no signatures could make it the next version.
        """
        new = parse(raw, known=self.newest)  # 4a, 4c
        check_place(self.newest, new, self.wire)  # 4d
        check_kept(self.newest, new, self.wire)  # 4f
        return new

    def judge(self, version: int, raw: bytes, signatures: bytes) -> "Judgement":
        """Return what bytes that stand at a version's place are to this chain; never raises for what they hold.

        Args:
            version: the number of the file that carries them.
            raw: the document's bytes.
            signatures: its signature file's bytes, empty when there is none.
        """
        if version > self.newest.version + 1:
            return Judgement(Verdict.FUTURE, None, f"version {self.newest.version + 1} is not held", None)
        held = self.at(version)
        try:
            if held is not None and raw == held.raw:
                self._signatures_hold(held, signatures)
                return Judgement(Verdict.SAME, None, "", None)
            if version <= 1:
                # Anybody can sign a version 1 of their own: it is another wire's, and no fork of this one.
                raise refused(Reason.WRONG_WIRE, f"it is not the version 1 that wire {self.wire} is named after")
            chain = self.until(version - 1).extend(raw, signatures)
        except TrustError as error:
            return Judgement(Verdict.INVALID, Reason(error.reason), error.message, None)
        if held is None:
            return Judgement(Verdict.NEXT, None, "", chain)
        why = f"it hashes to {chain.newest.hash}, the held one to {held.hash}; both are validly signed"
        return Judgement(Verdict.FORK, None, why, chain)

    @property
    def newest(self) -> Document:
        """The version in force."""
        return self.documents[-1]

    def at(self, version: int) -> Document | None:
        """Return one version, or None when it is not held."""
        return self.documents[version - 1] if 1 <= version <= len(self.documents) else None

    def until(self, version: int) -> "Chain":
        """Return the chain as it was when `version` (from 1 on) was its newest."""
        return Chain(self.documents[:version], self.signatures[:version], self.wire)

    def passes(self, version: int, digest: bytes) -> bool:
        """Return whether the chain goes through a checkpoint: it holds that version, with that SHA-256 (32 bytes)."""
        document = self.at(version)
        return document is not None and document.digest == digest

    def owner(self, key_id: str) -> tuple[str, Key] | None:
        """Return the name that a key id belongs to, and the key as it stands in the newest version."""
        return self.newest.owners.get(key_id)

    def key(self, name: str, key_id: str) -> Key | None:
        """Return an agent's key as it stands in the newest version."""
        owner = self.owner(key_id)
        return owner[1] if owner is not None and owner[0] == name else None

    def members(self, recipient: str, version: int) -> frozenset[str]:
        """Return the agents that a line is for, its author among them where the group or `all` includes it.

        An agent is the recipient of what is addressed to it, whatever the version. A group or `all` means the agents
        that were active, and members of the active group, at the version that the line names; a version that is not
        held yet is judged by the newest one, until it arrives. An unknown recipient is nobody.
        """
        if recipient in self.newest.agents:
            return frozenset({recipient})
        document = self.at(min(version, self.newest.version))
        if document is None:
            return frozenset()
        listed: Sequence[str] = ()
        group = document.groups.get(recipient)
        if recipient == EVERYONE:
            listed = tuple(document.agents)
        elif group is not None and group.status == ACTIVE:
            listed = group.members
        return frozenset(name for name in listed if document.agents[name].status == ACTIVE)

    def _signatures_hold(self, held: Document, signatures: bytes) -> None:
        """Refuse a signature file that does not suffice for a version that is held."""
        before = self.at(held.version - 1)
        if before is not None:
            _signatures_suffice(held.raw, signatures, before.roots, before.threshold, Reason.TOO_FEW_OLD)
        _own_signatures_suffice(held, signatures)


class Judgement(NamedTuple):
    """A verdict on offered bytes."""

    verdict: Verdict
    reason: Reason | None
    """Why, for `invalid`."""
    why: str
    """The same for people."""
    chain: Chain | None
    """For `next` the longer chain; for `fork` the one that ends in the other document, as evidence."""


def _check_size(raw: bytes) -> None:
    if len(raw) > DOCUMENT_MAX:
        raise refused(Reason.TOO_LARGE, f"a trust document of {len(raw)} bytes; the limit is {DOCUMENT_MAX}")


def _own_signatures_suffice(document: Document, signatures: bytes) -> None:
    _signatures_suffice(document.raw, signatures, document.roots, document.threshold, Reason.TOO_FEW_NEW)


def _signatures_suffice(raw: bytes, signatures: bytes, roots: Sequence[bytes], threshold: int, reason: Reason) -> None:
    count = len(signers_of(raw, signatures, roots))
    if count < threshold:
        whose = "the roots in force" if reason is Reason.TOO_FEW_OLD else "its own roots"
        raise refused(reason, f"signed by {count} of {whose}; {threshold} must sign")
