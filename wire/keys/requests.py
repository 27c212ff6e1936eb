"""Requests to join: a newcomer's key, signed by itself (PROTOCOL.md, section "Requests").

A request stands at `requests/<name>.<key id>.json` and gives its sender nothing: it only puts a public key and its
proof where a root can find them. The file is one line of compact JSON with the members in this order:

    {"v":1,"wire":"<32 hex>","name":"spark","role":"agent","public":"<44>","created":"<time>","proof":"<88>"}

and `"mac":"<44>"` behind `proof` where the newcomer was invited (see `invitations`).

`proof` is the one that enters the trust document: it binds wire, name, role and key. `created` is not signed; it is the
newcomer's or the host's word and only for display. Anybody can write a request for any free name, so people compare
the fingerprint before they approve one.
"""

from dataclasses import dataclass, field

from wire.keys import smallfiles
from wire.keys.invitations import MAC_BYTES
from wire.keys.model import ROLES
from wire.keys.reasons import Reason, refused
from wire.keys.signatures import check_proof, prove
from wire.keys.smallfiles import TIME
from wire.protocol import strictjson
from wire.protocol.encoding import (
    PUBLIC_BYTES,
    SIGNATURE_BYTES,
    Signer,
    b64,
    fingerprint,
    key_id,
    unb64,
    valid_public,
)
from wire.protocol.names import valid_name

REQUEST_MAX = 4_096
"""Bytes of a request."""

_MEMBERS = ("v", "wire", "name", "role", "public", "created", "proof")
_INVITED = (*_MEMBERS, "mac")


@dataclass(frozen=True, slots=True)
class Request:
    """A request whose key agreed to the name and role; that the name is free is not checked.

    Attributes:
        mac: what an invited newcomer proves with, 32 bytes; whether it holds is for who invited to say.
    """

    name: str
    role: str
    public: bytes
    created: str
    proof: bytes
    raw: bytes = field(repr=False)
    mac: bytes | None = None

    @property
    def key_id(self) -> str:
        """The id of the newcomer's key."""
        return key_id(self.public)

    @property
    def fingerprint(self) -> str:
        """What two people compare before one of them approves."""
        return fingerprint(self.public)


def file_name(name: str, key_id: str) -> str:
    """Return the file name of a request, below `requests/`."""
    return f"{name}.{key_id}.json"


def make(signer: Signer, *, wire: str, name: str, role: str, created: str, mac: bytes | None = None) -> bytes:
    """Return a request as the bytes of its file.

    Args:
        created: the newcomer's clock, `2026-11-29T11:20:00.123Z`.
        mac: of the invitation, where there is one.

    Raises:
        TrustError: `parse` would refuse it.
    """
    raw = _encode(wire, name, role, signer.public, created, prove(signer, wire=wire, name=name, role=role), mac)
    parse(raw, wire=wire, file_name=file_name(name, signer.key_id))
    return raw


def parse(raw: bytes, *, wire: str, file_name: str) -> Request:
    """Read a request strictly.

    Args:
        raw: the file's bytes.
        wire: the id of the wire on which it stands.
        file_name: the name of its file, without the folder.

    Raises:
        TrustError: `request-malformed`, `name-invalid`, `key-invalid`, `wrong-wire`, `request-misplaced`,
            `proof-invalid`.
    """
    members = smallfiles.read(raw, _MEMBERS, _INVITED, most=REQUEST_MAX, what="request")
    values = list(members.values())[1:]
    said_wire, name, role, said_public, created, said_proof, *said_mac = values
    if role not in ROLES or TIME.fullmatch(created) is None:
        raise refused(Reason.REQUEST_MALFORMED, "the role or the time of the request is not of its form")
    try:
        public, proof = unb64(said_public, PUBLIC_BYTES), unb64(said_proof, SIGNATURE_BYTES)
        mac = unb64(said_mac[0], MAC_BYTES) if said_mac else None
    except ValueError:
        raise refused(Reason.REQUEST_MALFORMED, "key, proof or MAC of the request is not canonical base64") from None
    if not valid_name(name):
        raise refused(Reason.NAME_INVALID, f"{name[:64]!r} in the request is malformed or reserved")
    if not valid_public(public):
        raise refused(Reason.KEY_INVALID, "the public key of the request is not a point of the prime-order group")
    owner, expected = f"{name!r} with key {key_id(public)}", f"{name}.{key_id(public)}.json"
    smallfiles.check_place("request", owner, said=said_wire, wire=wire, file_name=file_name, expected=expected)
    check_proof(proof, wire=wire, name=name, role=role, public=public)
    return Request(name, role, public, created, proof, raw, mac)


def _encode(wire: str, name: str, role: str, public: bytes, created: str, proof: bytes, mac: bytes | None) -> bytes:
    members = [1, wire, name, role, b64(public), created, b64(proof), *([] if mac is None else [b64(mac)])]
    return strictjson.dumps(dict(zip(_INVITED, members, strict=False))) + b"\n"
