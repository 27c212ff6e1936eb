"""Rotations: an agent's next key, and where its old one ends, signed by both (PROTOCOL.md, section "Rotations").

A rotation stands where requests stand, at `requests/<name>.<id of the new key>.json`, and gives its sender nothing
either. The file is one line of compact JSON with the members in this order:

    {"v":1,"wire":"<32 hex>","name":"mac","role":"agent","public":"<44>","created":"<time>","proof":"<88>",
     "replaces":"<32 hex: id of the old key>","positions":{"mac/spark":[7,"<64 hex>"]},"closed":"<88>","opened":"<88>"}

`closed` is the old key's signature and `opened` the new one's, both under the rotation type over the compact JSON of
all members before them. `positions` name the last line of the old key in each channel that it wrote to. They may be
ahead of what anybody has seen: what was sent before the closing is published after it.

Whoever has the old key can make one, a thief as well as its owner: people compare the new key's fingerprint before
they approve it. Whether the old key is the agent's active one is for who approves to say.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from wire.keys import smallfiles
from wire.keys.model import ROLES
from wire.keys.reasons import Reason, refused
from wire.keys.signatures import check_proof, prove
from wire.keys.smallfiles import HASH, KEY_ID, TIME
from wire.protocol import strictjson
from wire.protocol.encoding import (
    PUBLIC_BYTES,
    ROTATION_TYPE,
    SIGNATURE_BYTES,
    Signer,
    b64,
    fingerprint,
    key_id,
    unb64,
    valid_public,
    verify,
)
from wire.protocol.names import valid_channel, valid_name

ROTATION_MAX = 524_288
"""Bytes of a rotation: some thousand channels."""

_SIGNED = ("v", "wire", "name", "role", "public", "created", "proof", "replaces", "positions")
_MEMBERS = (*_SIGNED, "closed", "opened")


@dataclass(frozen=True, slots=True)
class Rotation:
    """A rotation whose new key signed it; whether `closed` is the old key's, `closed_by` says.

    Attributes:
        positions: per channel number and head of the last line of the old key.
    """

    name: str
    role: str
    public: bytes
    created: str
    proof: bytes
    replaces: str
    positions: Mapping[str, tuple[int, str]]
    closed: bytes
    raw: bytes = field(repr=False)

    @property
    def key_id(self) -> str:
        """The id of the new key."""
        return key_id(self.public)

    @property
    def fingerprint(self) -> str:
        """Of the new key: what two people compare before one of them approves."""
        return fingerprint(self.public)

    def closed_by(self, public: bytes) -> bool:
        """Return whether the key with these bytes is the one that is replaced, and agreed to it."""
        return key_id(public) == self.replaces and verify(public, self.closed, ROTATION_TYPE, _signed_part(self.raw))


def make(
    old: Signer,
    new: Signer,
    *,
    wire: str,
    name: str,
    role: str,
    positions: Mapping[str, tuple[int, str]],
    created: str,
) -> bytes:
    """Return a rotation as the bytes of its file.

    Args:
        positions: per channel number and head of the old key's last line.
        created: the owner's clock, `2026-11-29T11:20:00.123Z`.

    Raises:
        TrustError: `parse` would refuse it.
    """
    proof = prove(new, wire=wire, name=name, role=role)
    placed = {channel: list(positions[channel]) for channel in sorted(positions)}
    signed = dict(
        zip(
            _SIGNED,
            (1, wire, name, role, b64(new.public), created, b64(proof), old.key_id, placed),
            strict=True,
        )
    )
    payload = strictjson.dumps(signed)
    both = {"closed": b64(old.sign(ROTATION_TYPE, payload)), "opened": b64(new.sign(ROTATION_TYPE, payload))}
    raw = strictjson.dumps({**signed, **both}) + b"\n"
    parse(raw, wire=wire, file_name=f"{name}.{new.key_id}.json")
    return raw


def parse(raw: bytes, *, wire: str, file_name: str) -> Rotation:
    """Read a rotation strictly.

    Args:
        raw: the file's bytes.
        wire: the id of the wire on which it stands.
        file_name: the name of its file, without the folder.

    Raises:
        TrustError: as `requests.parse`; `closing-invalid`: the new key did not sign it.
    """
    members = smallfiles.read(raw, _MEMBERS, most=ROTATION_MAX, what="rotation", others=("positions",))
    positions = _positions(members.pop("positions"), members["name"])
    name, role, replaces = members["name"], members["role"], members["replaces"]
    if role not in ROLES or not TIME.fullmatch(members["created"]) or not KEY_ID.fullmatch(replaces):
        raise refused(Reason.REQUEST_MALFORMED, "role, time or old key of the rotation is not of its form")
    try:
        public = unb64(members["public"], PUBLIC_BYTES)
        proof, closed, opened = (unb64(members[one], SIGNATURE_BYTES) for one in ("proof", "closed", "opened"))
    except ValueError:
        raise refused(Reason.REQUEST_MALFORMED, "a key or signature of the rotation is not canonical base64") from None
    if not valid_public(public) or key_id(public) == replaces:
        raise refused(Reason.KEY_INVALID, "the new key is no usable one, or the old one")
    said, expected = members["wire"], f"{name}.{key_id(public)}.json"
    smallfiles.check_place("rotation", repr(name), said=said, wire=wire, file_name=file_name, expected=expected)
    check_proof(proof, wire=wire, name=name, role=role, public=public)
    if not verify(public, opened, ROTATION_TYPE, _signed_part(raw)):
        raise refused(Reason.CLOSING_INVALID, f"the rotation is not signed by the new key {key_id(public)}")
    return Rotation(name, role, public, members["created"], proof, replaces, positions, closed, raw)


def _signed_part(raw: bytes) -> bytes:
    """Return the JSON that both signatures are over: everything in front of them."""
    return raw[: raw.rindex(b',"closed":"')] + b"}"


def _positions(given: Any, name: Any) -> dict[str, tuple[int, str]]:
    if not isinstance(given, dict):
        raise refused(Reason.REQUEST_MALFORMED, "the positions of the rotation are no object")
    if not isinstance(name, str) or not valid_name(name):
        raise refused(Reason.NAME_INVALID, f"{str(name)[:64]!r} in the rotation is malformed or reserved")
    found = {}
    for channel, at in given.items():
        sender, _, recipient = channel.partition("/")
        good = isinstance(at, list) and len(at) == 2 and type(at[0]) is int and at[0] >= 1
        if not good or not isinstance(at[1], str) or not HASH.fullmatch(at[1]):
            raise refused(Reason.POSITION_INVALID, f"the position in {channel[:80]!r} is not a number and a head")
        if sender != name or not valid_channel(sender, recipient):
            raise refused(Reason.POSITION_INVALID, f"{channel[:80]!r} is no channel of {name!r}")
        found[channel] = (at[0], at[1])
    return found
