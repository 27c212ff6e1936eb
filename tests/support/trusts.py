"""The trust of a small wire, from fixed seeds, for tests that bend it.

chain = enrolled(begun(), "mac", signer("mac"))
raw = edited(raw, lambda fields: fields["agents"]["mac"].update(role="human"))
chain.extend(raw, signed(raw, ROOT))
"""

import json
from collections.abc import Callable, Iterable
from hashlib import sha256
from typing import Any

from wire.keys.trust import Chain, enroll, found, prove, retire, set_group, sign_document, successor
from wire.protocol.encoding import Signer

NOW = "2026-11-29T11:20:00.123Z"
NONCE = "00112233445566778899aabbccddeeff"
HEAD = "ab" * 32
OTHER_HEAD = "cd" * 32


def signer(label: str) -> Signer:
    """Return the key of this label, the same one in every run."""
    return Signer(sha256(label.encode()).digest())


ROOT = signer("root")
ROOTS = (ROOT, signer("root-2"), signer("root-3"))


def signed(raw: bytes, *signers: Signer) -> bytes:
    """Return the signature file that these keys make."""
    return b"".join(sign_document(raw, each) for each in signers)


def edited(raw: bytes, edit: Callable[[dict[str, Any]], object]) -> bytes:
    """Return a document after a change to its parsed members, whatever it then says."""
    fields = json.loads(raw)
    edit(fields)
    return json.dumps(fields, indent=1).encode() + b"\n"


def begun(roots: Iterable[Signer] = (ROOT,), threshold: int = 1) -> Chain:
    """Return a chain of version 1."""
    roots = tuple(roots)
    raw = found(roots=[root.public for root in roots], nonce=NONCE, created=NOW, threshold=threshold)
    return Chain.genesis(raw, signed(raw, *roots))


def enrolled(chain: Chain, name: str, key: Signer, role: str = "agent", by: Iterable[Signer] = (ROOT,)) -> Chain:
    """Return the chain with one more agent."""
    proof = prove(key, wire=chain.wire, name=name, role=role)
    raw = enroll(chain.newest, chain.wire, name=name, role=role, public=key.public, proof=proof, created=NOW)
    return chain.extend(raw, signed(raw, *by))


def grouped(chain: Chain, name: str, members: Iterable[str], by: Iterable[Signer] = (ROOT,)) -> Chain:
    """Return the chain with a group set."""
    raw = set_group(chain.newest, chain.wire, name=name, members=members, created=NOW)
    return chain.extend(raw, signed(raw, *by))


def retired(
    chain: Chain,
    name: str,
    key: Signer,
    status: str,
    positions: dict[str, tuple[int, str]],
    *,
    next_key: Signer | None = None,
    by: Iterable[Signer] = (ROOT,),
) -> Chain:
    """Return the chain with a key retired or revoked, and perhaps the next one in its place."""
    role = chain.newest.agents[name].role
    replacement = None
    if next_key is not None:
        replacement = next_key.public, prove(next_key, wire=chain.wire, name=name, role=role)
    raw = retire(
        chain.newest, chain.wire, name=name, key_id=key.key_id, status=status, positions=positions, created=NOW,
        replacement=replacement,
    )  # fmt: skip
    return chain.extend(raw, signed(raw, *by))


def unchanged(chain: Chain) -> bytes:
    """Return a successor of the newest version that changes nothing."""
    return successor(chain.newest, chain.wire, NOW)


def old_wire() -> Chain:
    """Return a chain with a past; every status occurs in its newest version, and two of three roots must sign.

    `mac` has a retired key (its position: line 2 of `mac/spark`) and the active key `mac-2`; `spark` is active; `left`
    is removed and its key revoked; `review` is a group of `mac` and `spark`; `gone` is a removed group.
    """
    two = ROOTS[:2]
    chain = begun(ROOTS, threshold=2)
    for name in ("mac", "spark", "left"):
        chain = enrolled(chain, name, signer(name), by=two)
    chain = grouped(chain, "review", ["spark", "mac"], by=two)
    chain = grouped(chain, "gone", ["mac"], by=two)
    chain = retired(chain, "mac", signer("mac"), "retired", {"mac/spark": (2, HEAD)}, next_key=signer("mac-2"), by=two)
    chain = retired(chain, "left", signer("left"), "revoked", {}, by=two)

    def remove(fields: dict[str, Any]) -> None:
        fields["agents"]["left"]["status"] = "removed"
        fields["groups"]["gone"]["status"] = "removed"

    raw = edited(unchanged(chain), remove)
    return chain.extend(raw, signed(raw, *two))
