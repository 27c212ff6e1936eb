"""The wire that all vectors are about: its keys, and a chain of seven honest trust versions."""

import json
from typing import Any

from vectors.forge import PROOF, TRUST, Key, b64, compact, sha

ROOT, SECOND_ROOT, THIRD_ROOT = Key("root"), Key("second root"), Key("third root")
MAC, MAC_NEXT, SPARK, ANA, MALLORY = Key("mac"), Key("mac next"), Key("spark"), Key("ana"), Key("mallory")
KEYS = (ROOT, SECOND_ROOT, THIRD_ROOT, MAC, MAC_NEXT, SPARK, ANA, MALLORY)
CREATED = "2026-11-29T10:00:00.000Z"

Members = dict[str, Any]


def document(**members: Any) -> bytes:
    return (json.dumps(members, indent=1, ensure_ascii=False) + "\n").encode()


def signatures(raw: bytes, *roots: Key) -> bytes:
    return b"".join(b'{"key":"%s","sig":"%s"}\n' % (r.id.encode(), b64(r.sign(TRUST, raw)).encode()) for r in roots)


def proof(key: Key, wire: str, name: str, role: str = "agent", *, signed_by: Key | None = None) -> str:
    payload = compact({"wire": wire, "name": name, "role": role, "public": b64(key.public)})
    return b64((signed_by or key).sign(PROOF, payload.encode()))


def first(**changed: Any) -> Members:
    members = {
        "v": 1, "version": 1, "wire": None, "prev": None, "nonce": "00112233445566778899aabbccddeeff",
        "created": CREATED, "threshold": 1, "roots": [b64(ROOT.public)], "agents": {}, "groups": {}, "policy": {},
    }  # fmt: skip
    return {**members, **changed}


FIRST = document(**first())
WIRE = sha(FIRST)[:32]
OTHER_WIRE = sha(b"another wire")[:32]


def key_entry(key: Key, name: str, role: str = "agent", status: str = "active", **positions: Any) -> Members:
    return {
        "public": b64(key.public),
        "status": status,
        "proof": proof(key, WIRE, name, role),
        "positions": positions.get("positions", {}),
    }


def agent(*keys: Members, role: str = "agent", status: str = "active") -> Members:
    return {"role": role, "status": status, "keys": list(keys)}


def follow(raw: bytes, **changed: Any) -> Members:
    """Return the members of an honest successor, with changes."""
    old = json.loads(raw)
    following = {"version": old["version"] + 1, "wire": WIRE, "prev": sha(raw), "nonce": None}
    return {**old, **following, **changed}


def agents(raw: bytes, **changed: Any) -> Members:
    return {**json.loads(raw)["agents"], **changed}


def _chain() -> list[tuple[bytes, bytes]]:
    mac, spark, ana = agent(key_entry(MAC, "mac")), agent(key_entry(SPARK, "spark")), key_entry(ANA, "ana", "human")
    one = FIRST
    two = document(**follow(one, agents={"mac": mac}))
    three = document(
        **follow(
            two,
            agents={"mac": mac, "spark": spark, "ana": agent(ana, role="human")},
            groups={"review": {"status": "active", "members": ["mac", "spark"]}},
            policy={"max_body": 4000, "said": "é"},
        )
    )
    four = document(**follow(three, roots=[b64(ROOT.public), b64(SECOND_ROOT.public)], threshold=2))
    positions = {"mac/spark": [2, sha(b"the head of line 2")]}
    retired = key_entry(MAC, "mac", status="retired", positions=positions)
    five = document(**follow(four, agents=agents(four, mac=agent(retired, key_entry(MAC_NEXT, "mac")))))
    revoked = key_entry(ANA, "ana", "human", status="revoked")
    six = document(
        **follow(
            five,
            agents=agents(five, ana=agent(revoked, role="human", status="removed")),
            groups={"review": {"status": "removed", "members": ["mac", "spark"]}},
        )
    )
    seven = document(**follow(six, roots=[b64(SECOND_ROOT.public), b64(THIRD_ROOT.public)], threshold=1))
    return [
        (one, signatures(one, ROOT)),
        (two, signatures(two, ROOT)),
        (three, signatures(three, ROOT)),
        (four, signatures(four, ROOT, SECOND_ROOT)),
        (five, signatures(five, SECOND_ROOT, ROOT)),
        (six, signatures(six, ROOT, SECOND_ROOT)),
        (seven, signatures(seven, ROOT, SECOND_ROOT, THIRD_ROOT)),
    ]


CHAIN = _chain()
TRUST_REF = f"3:{sha(CHAIN[2][0])[:16]}"


def checkpoint(version: int, raw: bytes) -> str:
    return f"{version}:SHA256:" + b64(bytes.fromhex(sha(raw))).rstrip("=")
