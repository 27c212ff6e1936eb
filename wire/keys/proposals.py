"""Proposals: the exact bytes of a next trust version, on their way to enough signatures (PROTOCOL.md, "Proposals").

A proposal stands where requests stand, at `requests/trust.<id of the proposing root's key>.json`: `trust` is nobody's
name, and a root has one proposal at a time, so that there are never more to look at than roots. The file is one line of
compact JSON, and behind it, byte for byte, a signature file of the document:

    {"v":1,"wire":"<32 hex>","base":[2,"<64 hex>"],"created":"<time>","expires":"<time>","by":"<key id>",
     "note":"<text>","document":"<base64>","offered":"<88>"}
    {"key":"<key id of a root>","sig":"<88 base64>"}

`offered` is the proposing root's signature, under the proposal type, over the compact JSON of all members before it. It
says that the root offers the document, and is no signature of the document: one may offer without agreeing yet. `base`
is the version in force, by number and hash, which the document follows. A signature of the document itself never
expires; it is worth something only while the base is the newest version, and `expires` is for those who are still to
sign.

    raw = make(root, chain, document, note="enroll zoe", created=now, expires=later)
    found = weigh(chain, parse(raw, wire=chain.wire, file_name=file_name(root.key_id)), now)
    found.state, found.signed, found.lacking
"""

import binascii
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from wire.errors import TrustError
from wire.keys import smallfiles
from wire.keys.chain import Chain
from wire.keys.model import VERSION_MAX, Document
from wire.keys.reasons import Reason, refused
from wire.keys.signatures import SIGNATURES_MAX, read_signatures, signers_of
from wire.keys.smallfiles import HASH, KEY_ID, TIME
from wire.protocol import strictjson
from wire.protocol.encoding import PROPOSAL_TYPE, SIGNATURE_BYTES, Signer, b64, key_id, sha256_hex, unb64, verify

OWNER = "trust"
"""What stands for a name in the file's; no agent can be called that."""
PROPOSAL_MAX = 1_048_576
"""Bytes of a proposal, its signatures among them."""
NOTE_MAX = 200
ID_DIGITS = 32

_MEMBERS = ("v", "wire", "base", "created", "expires", "by", "note", "document", "offered")


@dataclass(frozen=True, slots=True)
class Proposal:
    """A well-formed proposal; whether a root offers it, and what it is worth, `weigh` says.

    Attributes:
        by: id of the key that offers it.
        base: number and hash of the version that it follows.
        note: what it is for, in its author's words.
        document: the exact bytes of the next version.
        head: the first line, newline included.
        signatures: what stands behind it, a signature file.
    """

    by: str
    base: tuple[int, str]
    created: str
    expires: str
    note: str
    document: bytes = field(repr=False)
    offered: bytes = field(repr=False)
    head: bytes = field(repr=False)
    signatures: bytes = field(repr=False)

    @property
    def hash(self) -> str:
        """SHA-256 of the document, 64 hex digits."""
        return sha256_hex(self.document)

    @property
    def id(self) -> str:
        """By what people name it: the first 32 hex digits of the document's hash."""
        return self.hash[:ID_DIGITS]

    @property
    def file_name(self) -> str:
        """The name of its file, below `requests/`."""
        return file_name(self.by)

    def offered_by(self, publics: Iterable[bytes]) -> bool:
        """Return whether one of these keys is the one that is said to offer it, and does."""
        payload = self.head[: self.head.rindex(b',"offered":"')] + b"}"
        return any(key_id(one) == self.by and verify(one, self.offered, PROPOSAL_TYPE, payload) for one in publics)

    def check_offered(self, publics: Iterable[bytes]) -> None:
        """Refuse a proposal that none of these keys offers.

        Raises:
            TrustError: `proposer-unknown`.
        """
        if not self.offered_by(publics):
            raise refused(Reason.PROPOSER_UNKNOWN, f"the key {self.by} is no root's, or does not offer this proposal")

    def signed(self, lines: Iterable[bytes]) -> bytes:
        """Return the file with these lines as its signatures."""
        return self.head + b"".join(lines)


class State(StrEnum):
    """What a proposal is worth."""

    OPEN = "open"
    """It waits for signatures."""
    EXPIRED = "expired"
    """Its time is over; a root may offer the same document again."""
    SUPERSEDED = "superseded"
    """Another version is in force than the one that it follows."""
    UNLAWFUL = "unlawful"
    """No signatures could make it the next version."""


@dataclass(frozen=True, slots=True)
class Weighed:
    """A proposal beside the trust in force.

    Attributes:
        draft: what the document says; None where the base is another one, or it is no lawful successor.
        signed: per root that signed it, in force or to be, its line of the signature file.
        lacking: how many signatures it still needs, of roots in force and of its own.
        why: for `unlawful` what is wrong, empty otherwise.
    """

    proposal: Proposal
    state: State
    draft: Document | None
    signed: dict[str, bytes]
    lacking: tuple[int, int]
    why: str = ""


def file_name(by: str) -> str:
    """Return the name of a proposal's file, below `requests/`, by the id of the root's key."""
    return f"{OWNER}.{by}.json"


def make(signer: Signer, chain: Chain, document: bytes, *, note: str, created: str, expires: str) -> bytes:
    """Return a proposal without signatures as the bytes of its file.

    Args:
        signer: the root's key that offers it.
        chain: ends in the version that the document follows.
        created, expires: the proposer's clock, `2026-11-29T11:20:00.123Z`.

    Raises:
        TrustError: the document is not lawful, or `parse` would refuse the file.
    """
    base = chain.newest
    chain.draft(document)
    values = (1, chain.wire, [base.version, base.hash], created, expires, signer.key_id, note, b64(document))
    members = dict(zip(_MEMBERS[:-1], values, strict=True))
    offered = b64(signer.sign(PROPOSAL_TYPE, strictjson.dumps(members)))
    raw = strictjson.dumps({**members, "offered": offered}) + b"\n"
    if len(raw) + SIGNATURES_MAX > PROPOSAL_MAX:
        raise refused(
            Reason.TOO_LARGE, f"a trust document of {len(document)} bytes is too large for a proposal: {PROPOSAL_MAX}"
        )
    parse(raw, wire=chain.wire, file_name=file_name(signer.key_id))
    return raw


def parse(raw: bytes, *, wire: str, file_name: str) -> Proposal:
    """Read a proposal strictly; who offers it is not checked.

    Args:
        raw: the file's bytes.
        wire: the id of the wire on which it stands.
        file_name: the name of its file, without the folder.

    Raises:
        TrustError: `request-malformed`, `signatures-malformed`, `wrong-wire`, `request-misplaced`.
    """
    if len(raw) > PROPOSAL_MAX:
        raise refused(Reason.REQUEST_MALFORMED, f"a proposal of {len(raw)} bytes; the limit is {PROPOSAL_MAX}")
    first, _, signatures = raw.partition(b"\n")
    head = first + b"\n"
    members = smallfiles.read(head, _MEMBERS, most=PROPOSAL_MAX, what="proposal", others=("base",))
    base, created, expires, by, note = (members[one] for one in ("base", "created", "expires", "by", "note"))
    if not _is_base(base):
        raise refused(Reason.REQUEST_MALFORMED, "the base of the proposal is not a version's number and hash")
    times = TIME.fullmatch(created) and TIME.fullmatch(expires) and created < expires
    if not times or not KEY_ID.fullmatch(by) or len(note) > NOTE_MAX:
        raise refused(Reason.REQUEST_MALFORMED, "times, key or note of the proposal are not of their form")
    try:
        offered = unb64(members["offered"], SIGNATURE_BYTES)
        document = binascii.a2b_base64(members["document"].encode("ascii"), strict_mode=True)
    except ValueError:
        document = b""
    if b64(document) != members["document"] or not document:
        raise refused(Reason.REQUEST_MALFORMED, "document or signature of the proposal is not canonical base64")
    said, expected = members["wire"], f"{OWNER}.{by}.json"
    smallfiles.check_place("proposal", f"key {by}", said=said, wire=wire, file_name=file_name, expected=expected)
    read_signatures(signatures)
    return Proposal(by, (base[0], base[1]), created, expires, note, document, offered, head, signatures)


def weigh(chain: Chain, proposal: Proposal, now: str) -> Weighed:
    """Return what a proposal is worth beside the trust in force.

    Args:
        now: the time, as `2026-11-29T11:20:00.123Z`; such texts sort as times do.
    """
    if proposal.base != (chain.newest.version, chain.newest.hash):
        return Weighed(proposal, State.SUPERSEDED, None, {}, (0, 0))
    try:
        draft = chain.draft(proposal.document)
    except TrustError as error:
        return Weighed(proposal, State.UNLAWFUL, None, {}, (0, 0), error.message)
    old = signers_of(proposal.document, proposal.signatures, chain.newest.roots)
    new = signers_of(proposal.document, proposal.signatures, draft.roots)
    lacking = (max(0, chain.newest.threshold - len(old)), max(0, draft.threshold - len(new)))
    state = State.EXPIRED if proposal.expires <= now else State.OPEN
    return Weighed(proposal, state, draft, {**old, **new}, lacking)


def same_change(one: Document, other: Document) -> bool:
    """Return whether two drafts say the same, whenever they were written."""
    return _content(one) == _content(other)


def _content(document: Document) -> tuple[object, ...]:
    return (
        document.version,
        document.prev,
        document.threshold,
        document.roots,
        document.agents,
        document.groups,
        document.policy,
    )


def _is_base(value: object) -> bool:
    if not isinstance(value, list) or len(value) != 2:
        return False
    version, digest = value
    numbered = type(version) is int and 1 <= version < VERSION_MAX
    return numbered and isinstance(digest, str) and HASH.fullmatch(digest) is not None
