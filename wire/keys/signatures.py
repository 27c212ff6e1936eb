"""Signatures of trust documents, and proofs that a key agrees to a name (PROTOCOL.md, section "Trust").

A signature file is JSONL beside the document, one line per root key, in exactly one form:

    {"key":"<32 hex: id of a root key>","sig":"<88 base64>"}

A line for an unknown key, a second line for a key, and a signature that does not hold count nothing and do no harm, so
that nobody can spoil a document by adding to its signatures. Another form refuses the whole file.
"""

import re
from collections.abc import Iterable

from wire.keys.reasons import Reason, refused
from wire.protocol import strictjson
from wire.protocol.encoding import PROOF_TYPE, SIGNATURE_BYTES, TRUST_TYPE, Signer, b64, key_id, unb64, verify

SIGNATURES_MAX = 32_768
"""Bytes of a signature file: 64 old and 64 new roots need 17,920."""

_LINE = re.compile(rb'\{"key":"([0-9a-f]{32})","sig":"([A-Za-z0-9+/]{86}==)"\}')


def sign_document(raw: bytes, signer: Signer) -> bytes:
    """Return one line of a signature file for a trust document, newline included.

    The lines of several roots, one after the other, make the file.
    """
    return _line(signer.key_id, signer.sign(TRUST_TYPE, raw))


def _line(signer: str, signature: bytes) -> bytes:
    return b'{"key":"%s","sig":"%s"}\n' % (signer.encode("ascii"), b64(signature).encode("ascii"))


def read_signatures(signatures: bytes) -> list[tuple[str, bytes]]:
    """Return the (key id, signature) of every line of a signature file; nothing is verified here.

    Raises:
        TrustError: `signatures-malformed`.
    """
    if len(signatures) > SIGNATURES_MAX:
        raise refused(
            Reason.SIGNATURES_MALFORMED,
            f"a signature file of {len(signatures)} bytes; the limit is {SIGNATURES_MAX}",
        )
    if not signatures:
        return []
    if not signatures.endswith(b"\n"):
        raise refused(Reason.SIGNATURES_MALFORMED, "the last line of the signature file has no newline")
    found = []
    for number, line in enumerate(signatures[:-1].split(b"\n"), 1):
        match = _LINE.fullmatch(line)
        if match is None:
            raise refused(
                Reason.SIGNATURES_MALFORMED,
                f'line {number} of the signature file is not {{"key":"<32 hex>","sig":"<88 base64>"}}',
            )
        try:
            signature = unb64(match[2], SIGNATURE_BYTES)
        except ValueError:
            raise refused(
                Reason.SIGNATURES_MALFORMED, f"line {number} of the signature file is not in canonical base64"
            ) from None
        found.append((match[1].decode("ascii"), signature))
    return found


def signers_of(raw: bytes, signatures: bytes, roots: Iterable[bytes]) -> dict[str, bytes]:
    """Return the ids of the roots that signed exactly these bytes, each with its line of the signature file.

    Args:
        raw: the document.
        signatures: its signature file.
        roots: the public keys that count.

    Raises:
        TrustError: `signatures-malformed`.
    """
    waiting = {key_id(public): public for public in roots}
    found: dict[str, bytes] = {}
    for signer, signature in read_signatures(signatures):
        public = waiting.get(signer)
        if public is not None and verify(public, signature, TRUST_TYPE, raw):
            del waiting[signer]
            found[signer] = _line(signer, signature)
    return found


def proof_payload(wire: str, name: str, role: str, public: bytes) -> bytes:
    """Return the bytes that a key signs (as `PROOF_TYPE`) to agree to a name and a role on one wire.

    Compact JSON with the members `wire`, `name`, `role`, `public`, in this order.
    """
    return strictjson.dumps({"wire": wire, "name": name, "role": role, "public": b64(public)})


def prove(signer: Signer, *, wire: str, name: str, role: str) -> bytes:
    """Return the 64-byte proof by which a key agrees to a name and a role on one wire."""
    return signer.sign(PROOF_TYPE, proof_payload(wire, name, role, signer.public))


def proof_holds(proof: bytes, *, wire: str, name: str, role: str, public: bytes) -> bool:
    """Return whether `proof` is `public`'s agreement to this name and role on this wire."""
    return verify(public, proof, PROOF_TYPE, proof_payload(wire, name, role, public))


def check_proof(proof: bytes, *, wire: str, name: str, role: str, public: bytes) -> None:
    """Refuse a proof that does not hold.

    Raises:
        TrustError: `proof-invalid`.
    """
    if not proof_holds(proof, wire=wire, name=name, role=role, public=public):
        raise refused(Reason.PROOF_INVALID, f"key {key_id(public)} did not agree to be {name!r} ({role}) on this wire")
