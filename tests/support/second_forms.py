"""The forms of PROTOCOL.md for the second implementation: keys, names, strict JSON, messages, trust versions, requests.

Written from that text alone; see `second`, which verifies with them. Refusals are `ValueError`s with the reason.
"""

import base64
import hashlib
import json
import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

# Signatures and keys
P, L = 2**255 - 19, 2**252 + 27742317777372353535851937790883648493
D, NEUTRAL = -121665 * pow(121666, -1, P) % P, b"\1" + bytes(31)


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def pae(kind: str, payload: bytes) -> bytes:
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind.encode(), len(payload), payload)


def unb64(text: Any, length: int) -> bytes:
    form = isinstance(text, str) and len(text) % 4 == 0 and re.fullmatch("[A-Za-z0-9+/]*={0,2}", text)
    data = base64.b64decode(text) if form else b""
    if len(data) != length or base64.b64encode(data).decode() != text:
        raise ValueError("trust-malformed")
    return data


def add(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    t = D * a[0] * b[0] * a[1] * b[1] % P
    return (a[0] * b[1] + b[0] * a[1]) * pow(1 + t, -1, P) % P, (a[1] * b[1] + a[0] * b[0]) * pow(1 - t, -1, P) % P


@lru_cache
def usable(public: bytes) -> bool:
    y = int.from_bytes(public, "little") & (2**255 - 1)
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    x = x if x * x % P == square else x * pow(2, (P - 1) // 4, P) % P
    if len(public) != 32 or y >= P or x * x % P != square or public == NEUTRAL or (x == 0 and public[31] > 127):
        return False
    total, point = (0, 1), (x, y)  # the sign of x does not change a point's order
    for bit in f"{L:b}":
        total = add(total, total)
        total = add(total, point) if bit == "1" else total
    return total == (0, 1)


def key_id(public: bytes) -> str:
    return sha(b"wire/v1/key" + public)[:32]


def spoken(public: bytes) -> str:
    """Return the ten words by which people compare a key."""
    known = (Path(__file__).parents[2] / "wire" / "keys" / "words.txt").read_bytes().split()
    value = int(hashlib.sha256(public).hexdigest()[:32], 16)
    return b" ".join(known[value // 7776**place % 7776] for place in range(9, -1, -1)).decode()


def signed_by(public: bytes, signature: bytes, kind: str, payload: bytes) -> bool:
    if len(signature) != 64 or not usable(public) or signature[:32] == NEUTRAL:
        return False
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(
            signature, pae(f"application/vnd.git-wire.{kind}+json;v=1", payload)
        )
    except InvalidSignature:
        return False
    return True


# Names, strict JSON, checkpoints
PORTS = [f"{port}{n}" for port in ("com", "lpt") for n in range(10)]
RESERVED = {"all", "trust", "requests", "wire", "presence", "con", "prn", "aux", "nul", *PORTS}


def is_name(text: Any) -> bool:
    form = isinstance(text, str) and re.fullmatch("[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?", text)
    return bool(form) and text not in RESERVED


def is_channel(text: str) -> bool:
    sender, _, to = text.partition("/")
    return is_name(sender) and (to == "all" or is_name(to)) and sender != to


def is_id(text: Any) -> bool:
    channel, _, seq = text.rpartition("/") if isinstance(text, str) else ("", "", "")
    return is_channel(channel) and bool(re.fullmatch("[1-9][0-9]{0,14}", seq))


def numbered(name: str, suffix: str) -> int:
    number = re.fullmatch("([0-9]{6,9})" + re.escape(suffix), name)
    return int(number[1]) if number and name == f"{int(number[1]):06d}{suffix}" else 0


def checkpoint(text: str) -> tuple[int, str]:
    form = re.fullmatch("([1-9][0-9]{0,8}):SHA256:(.{43})", text)
    if not form:
        raise ValueError("no checkpoint")
    return int(form[1]), unb64(form[2] + "=", 32).hex()


def strict(raw: bytes, floats: str | None = "body") -> dict[str, Any]:
    def object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        return dict(pairs) if len(dict(pairs)) == len(pairs) else refuse()

    def integer(text: str) -> int:
        return int(text) if len(text) < 18 and abs(int(text)) < 2**53 else refuse()

    def refuse(*_: Any) -> Any:
        raise ValueError("not strict JSON")

    def check(value: Any, level: int, may_float: bool) -> None:
        if isinstance(value, float) and (not may_float or value in (float("inf"), float("-inf"))):
            refuse()
        if isinstance(value, dict | list):
            for name, member in value.items() if isinstance(value, dict) else enumerate(value):
                check(member, level + 1, may_float or (level == 1 and name == floats))
            _ = refuse() if level > 32 else None

    try:
        top = json.loads(raw.decode(), object_pairs_hook=object_of, parse_int=integer, parse_constant=refuse)
        check(top, 1, False) if raw[:1] == b"{" else refuse()
        json.dumps(top, ensure_ascii=False).encode()
    except RecursionError:
        refuse()
    return top  # type: ignore[no-any-return]  # the first byte makes it an object


# Lines and messages
H, TIME = "[0-9a-f]", r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z"


def beginning(wire: str, channel: str) -> str:
    return sha(f"wire/v1/genesis\n{wire}\n{channel}".encode())


def text_of(most: int, least: int = 0) -> Any:
    return lambda value: len(value) <= most if isinstance(value, str) and len(value) >= least else None


def one_of(*choices: str) -> Any:
    return lambda value: (isinstance(value, str) and value in choices) or None


def refs_of(value: Any) -> bool | None:
    texts = isinstance(value, list) and all(isinstance(ref, str) for ref in value)
    return (len(value) <= 64 and all(len(ref) <= 1024 for ref in value)) if texts else None


def ack_of(value: Any) -> bool | None:
    match value:
        case [int(seq), str(head)] if type(seq) is int and seq > 0 and re.fullmatch("[0-9a-f]{64}", head):
            return True
    return None


def enc_of(value: Any) -> bool | None:
    from support.second_sealed import is_lawful  # which knows these forms

    return is_lawful(value) or None


# Each gives True for lawful, False for SIZE, None for SCHEMA.
MEMBERS: dict[str, Any] = {
    "thread": lambda value: is_id(value) or None, "re": lambda value: is_id(value) or None, "subject": text_of(200),
    "body": lambda value: isinstance(value, str | dict) or None, "refs": refs_of,
    "priority": one_of("low", "normal", "high", "urgent"), "needs": one_of("none", "agent", "human"),
    "ack_required": lambda value: isinstance(value, bool) or None,
    "expires": lambda value: (isinstance(value, str) and bool(re.fullmatch(TIME, value))) or None,
    "idem": text_of(200, 1), "ack": ack_of, "enc": lambda value: enc_of(value),
}  # fmt: skip
ORDER = ["v", "wire", "from", "to", "seq", "prev", "ts", "trust", "type", *MEMBERS, "key", "sig"]
NEED_RE = {"reply", "ack", "correction", "receipt", "counter", "accept", "reject", "release"}


def content(raw: bytes) -> str:
    """Return `readable`, `SCHEMA` or `SIZE` for a line whose place is right."""
    try:
        said = strict(raw)
    except ValueError:
        return "SCHEMA"
    if [name for name in ORDER if name in said] != list(said) or ("ack" in said and said["to"] == "all"):
        return "SCHEMA"
    if "enc" in said and not said.keys().isdisjoint(("subject", "body", "refs")):
        return "SCHEMA"
    for name in MEMBERS.keys() & said:
        if (lawful := MEMBERS[name](said[name])) is not True:
            return "SCHEMA" if lawful is None else "SIZE"
    if said["type"] in NEED_RE and "re" not in said:
        return "SCHEMA"
    body = said.get("body")
    told = isinstance(body, dict) and {"code", "scope", "evidence"} <= body.keys()
    return "SCHEMA" if said["type"] == "incident" and not told else "readable"


# Trust
Keys = dict[str, dict[str, Any]]  # key id: public, name, status, positions


def need(holds: object, reason: str) -> None:
    if not holds:
        raise ValueError(reason)


def refusal(judge: Callable[[], object]) -> str:
    """Return the reason for which something is refused, empty if it is not."""
    try:
        judge()
    except ValueError as error:
        return str(error)
    return ""


def fields(value: Any, *names: str) -> list[Any]:
    need(isinstance(value, dict) and value.keys() == set(names), "trust-malformed")
    return [value[name] for name in names]


def table(value: Any, most: int = 4096) -> dict[str, Any]:
    need(isinstance(value, dict) and len(value) <= most, "trust-malformed")
    return value  # type: ignore[no-any-return]


def listing(value: Any, most: int) -> list[Any]:
    need(isinstance(value, list) and len(value) <= most, "trust-malformed")
    return value  # type: ignore[no-any-return]


def matches(value: Any, form: str) -> bool:
    return isinstance(value, str) and re.fullmatch(form, value) is not None


def public_key(text: Any) -> str:
    need(usable(unb64(text, 32)), "key-invalid")
    return key_id(unb64(text, 32))


def signers(raw: bytes, sigs: bytes, roots: list[str]) -> int:
    """Return how many distinct roots signed."""
    lines = sigs.decode("latin-1").split("\n")
    form = r'\{"key":"([0-9a-f]{32})","sig":"([A-Za-z0-9+/]{85}[AQgw]==)"\}'
    well = len(sigs) <= 32_768 and lines[-1] == "" and all(re.fullmatch(form, line) for line in lines[:-1])
    need(well, "signatures-malformed")
    made = [(line[8:40], unb64(line[49:-2], 64)) for line in lines[:-1]]
    public = {key_id(unb64(root, 32)): unb64(root, 32) for root in roots}
    return len({who for who, sig in made if who in public and signed_by(public[who], sig, "trust", raw)})


def document(raw: bytes) -> dict[str, Any]:
    """Return a trust document that is well-formed by itself (4a, 4c)."""
    need(len(raw) <= 1_048_576, "trust-too-large")
    try:
        doc = strict(raw, floats=None)
    except ValueError:
        raise ValueError("trust-malformed") from None
    v, version, wire, prev, nonce, created, threshold, roots, agents, groups, _ = fields(
        doc, "v", "version", "wire", "prev", "nonce", "created", "threshold", "roots", "agents", "groups", "policy"
    )
    whole = all(type(number) is int for number in (v, version, threshold))
    need(whole and v == 1 and 1 <= version <= 999_999_999 and matches(created, TIME), "trust-malformed")
    later = matches(wire, H + "{32}") and matches(prev, H + "{64}") and nonce is None
    need((wire is None and prev is None and matches(nonce, H + "{32}")) if version == 1 else later, "trust-malformed")
    table(doc["policy"], 1 << 30)
    ids = [public_key(root) for root in listing(roots, 64)]
    need(1 <= threshold <= len(ids), "threshold-invalid")
    for name, entry in table(agents).items():
        role, status, keys = fields(entry, "role", "status", "keys")
        need(is_name(name), "name-invalid")
        need(role in ("agent", "human") and status in ("active", "removed") and listing(keys, 64), "trust-malformed")
        for key in keys:
            public, state, proof, positions = fields(key, "public", "status", "proof", "positions")
            need(state in ("active", "retired", "revoked") and unb64(proof, 64), "trust-malformed")
            need(not table(positions, 8192) or state != "active", "position-invalid")
            for channel, place in positions.items():
                zero = [0, beginning(wire or "", channel)]
                need(is_channel(channel) and channel.startswith(f"{name}/"), "position-invalid")
                need(ack_of(place) or (place == zero and type(place[0]) is int), "position-invalid")
            ids.append(public_key(public))
        active = [key for key in keys if key["status"] == "active"]
        need(len(active) < 2, "two-active-keys")
        need(not active or status == "active", "removed-with-active-key")
    for name, entry in table(groups).items():
        status, members = fields(entry, "status", "members")
        need(is_name(name), "name-invalid")
        texts = all(isinstance(member, str) for member in listing(members, 4096)) and len({*members}) == len(members)
        need(texts and status in ("active", "removed"), "trust-malformed")
    need(version > 1 or not (agents or groups), "first-not-empty")
    need(not agents.keys() & groups.keys(), "name-clash")
    need(all(member in agents for group in groups.values() for member in group["members"]), "member-unknown")
    need(len(set(ids)) == len(ids), "key-shared")
    return doc


def proved(wire: str, name: str, role: str, key: dict[str, Any]) -> bool:
    claim = json.dumps({"wire": wire, "name": name, "role": role, "public": key["public"]}, separators=(",", ":"))
    return signed_by(unb64(key["public"], 32), unb64(key["proof"], 64), "proof", claim.encode())


def kept(old: dict[str, Any], new: dict[str, Any], wire: str) -> None:
    """Check that a document keeps everything of its predecessor (4f)."""
    statuses = ("active", "retired", "revoked", "removed")
    for kind, other in (("agents", "groups"), ("groups", "agents")):
        for name, was in old[kind].items():
            need(name not in new[other], "name-reused")
            need(name in new[kind], "name-vanished")
            need(was["status"] == "active" or new[kind][name]["status"] == "removed", "name-revived")
    for name, agent in new["agents"].items():
        before = old["agents"].get(name, {"role": agent["role"], "keys": []})
        need(before["role"] == agent["role"], "role-changed")
        now, then = ({key["public"]: key for key in entry["keys"]} for entry in (agent, before))
        need(then.keys() <= now.keys(), "key-vanished")
        for public, key in now.items():
            was = then.get(public)
            need(was or proved(wire, name, agent["role"], key), "proof-invalid")
            need(not was or was["proof"] == key["proof"], "proof-changed")
            need(not was or statuses.index(was["status"]) <= statuses.index(key["status"]), "key-revived")
            need(not was or was["positions"].keys() <= key["positions"].keys(), "position-vanished")


def extend(chain: list[bytes], raw: bytes, sigs: bytes) -> None:
    """Check a document as the next of a chain of documents, or as the first of an empty one."""
    old = json.loads(chain[-1]) if chain else None
    need(len(raw) <= 1_048_576, "trust-too-large")
    need(not old or signers(raw, sigs, old["roots"]) >= old["threshold"], "too-few-old-signatures")
    new = document(raw)
    need(new["version"] == len(chain) + 1, "not-next")
    need(not old or new["wire"] == sha(chain[0])[:32], "wrong-wire")
    need(not old or new["prev"] == sha(chain[-1]), "wrong-prev")
    need(signers(raw, sigs, new["roots"]) >= new["threshold"], "too-few-new-signatures")
    if old:
        kept(old, new, sha(chain[0])[:32])


def keys_of(doc: dict[str, Any]) -> Keys:
    named = [(name, key) for name, agent in doc["agents"].items() for key in agent["keys"]]
    return {key_id(unb64(key["public"], 32)): {**key, "name": name} for name, key in named}


def members(chain: list[dict[str, Any]], recipient: str, version: int) -> set[str]:
    doc = chain[min(version, len(chain)) - 1]
    if recipient in chain[-1]["agents"]:
        return {recipient}
    group = doc["groups"].get(recipient, {"status": "removed"})
    listed = doc["agents"] if recipient == "all" else group["members"] if group["status"] == "active" else []
    return {name for name in listed if doc["agents"][name]["status"] == "active"}


def request(raw: bytes, wire: str, file: str) -> None:
    """Check a request to join."""
    try:
        asked = strict(raw, floats=None)
        members = ["v", "wire", "name", "role", "public", "created", "proof", *(["mac"] if "mac" in asked else [])]
        v, of, name, role, public, created, *_ = fields(asked, *members)
        text = [isinstance(value, str) for value in (of, name, role, public, created)]
        known = type(v) is int and v == 1 and role in ("agent", "human") and matches(created, TIME) and all(text)
        need(known and unb64(public, 32) and unb64(asked["proof"], 64) and len(raw) <= 4096, "")
        need(json.dumps(asked, ensure_ascii=False, separators=(",", ":")).encode() + b"\n" == raw, "")
        need(list(asked) == members and ("mac" not in asked or unb64(asked["mac"], 32)), "")
    except ValueError:
        raise ValueError("request-malformed") from None
    need(is_name(name), "name-invalid")
    need(usable(unb64(public, 32)), "key-invalid")
    need(of == wire, "wrong-wire")
    need(file == f"{name}.{key_id(unb64(public, 32))}.json", "request-misplaced")
    need(proved(wire, name, role, asked), "proof-invalid")


def rotation(raw: bytes, wire: str, file: str, active: str) -> None:
    """Check a rotation of an agent whose active key is given."""
    names = ("v", "wire", "name", "role", "public", "created", "proof", "replaces", "positions", "closed", "opened")
    try:
        asked = strict(raw, floats=None)
        v, of, name, role, public, created, proof, replaces, positions, closed, opened = fields(asked, *names)
        need(type(v) is int and v == 1 and list(asked) == list(names) and len(raw) <= 524288, "")
        need(json.dumps(asked, ensure_ascii=False, separators=(",", ":")).encode() + b"\n" == raw, "")
        need(isinstance(of, str) and isinstance(name, str) and role in ("agent", "human"), "")
        need(matches(created, TIME) and matches(replaces, H + "{32}") and isinstance(positions, dict), "")
        need(unb64(public, 32) and unb64(proof, 64) and unb64(closed, 64) and unb64(opened, 64), "")
    except ValueError:
        raise ValueError("request-malformed") from None
    need(is_name(name), "name-invalid")
    for channel, at in positions.items():
        pair = isinstance(at, list) and len(at) == 2 and type(at[0]) is int and at[0] > 0
        need(pair and matches(at[1], H + "{64}"), "position-invalid")
        need(is_channel(channel) and channel.split("/")[0] == name, "position-invalid")
    need(usable(unb64(public, 32)) and key_id(unb64(public, 32)) != replaces, "key-invalid")
    need(of == wire, "wrong-wire")
    need(file == f"{name}.{key_id(unb64(public, 32))}.json", "request-misplaced")
    need(proved(wire, name, role, asked), "proof-invalid")
    said = {member: asked[member] for member in names[:-2]}
    payload = json.dumps(said, ensure_ascii=False, separators=(",", ":")).encode()
    need(key_id(unb64(active, 32)) == replaces, "closing-invalid")
    need(signed_by(unb64(active, 32), unb64(closed, 64), "rotation", payload), "closing-invalid")
    need(signed_by(unb64(public, 32), unb64(opened, 64), "rotation", payload), "closing-invalid")


def proposal(raw: bytes, wire: str, file: str, roots: list[str]) -> None:
    """Check a proposal where these keys are the roots in force."""
    names = ("v", "wire", "base", "created", "expires", "by", "note", "document", "offered")
    first, _, sigs = raw.partition(b"\n")
    try:
        asked = strict(first, floats=None)
        v, of, base, created, expires, by, note, text, offered = fields(asked, *names)
        need(type(v) is int and v == 1 and list(asked) == list(names) and len(raw) <= 1048576, "")
        need(json.dumps(asked, ensure_ascii=False, separators=(",", ":")).encode() == first and isinstance(of, str), "")
        need(matches(created, TIME) and matches(expires, TIME) and created < expires and matches(by, H + "{32}"), "")
        need(isinstance(note, str) and len(note) <= 200 and isinstance(base, list) and len(base) == 2, "")
        need(type(base[0]) is int and 0 < base[0] < 999_999_999 and matches(base[1], H + "{64}"), "")
        whole = base64.b64decode(text, validate=True) if isinstance(text, str) else b""
        need(whole and base64.b64encode(whole).decode() == text and unb64(offered, 64), "")
    except ValueError:
        raise ValueError("request-malformed") from None
    need(of == wire, "wrong-wire")
    need(file == f"trust.{by}.json", "request-misplaced")
    signers(b"", sigs, [])
    said = {member: asked[member] for member in names[:-1]}
    payload = json.dumps(said, ensure_ascii=False, separators=(",", ":")).encode()
    named = [unb64(root, 32) for root in roots if key_id(unb64(root, 32)) == by]
    need(named and signed_by(named[0], unb64(offered, 64), "proposal", payload), "proposer-unknown")


def root_line(text: str, wire: str, wanted: str) -> None:
    """Check a line that carries a root's key, for a name."""
    kind, _, rest = "".join(text.split()).partition(".")
    body, _, check = rest.rpartition(".")
    try:
        raw = base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))
        need(kind == "wire-root-1" and raw and sha(raw)[:8] == check and re.fullmatch("[A-Za-z0-9_-]+", body), "")
        said = strict(raw, floats=None)
        of, name, public, shown = fields(said, "wire", "name", "public", "proof")
        need(isinstance(of, str) and isinstance(name, str) and unb64(public, 32) and unb64(shown, 64), "")
    except ValueError:
        raise ValueError("root-line-invalid") from None
    need(of == wire, "wrong-wire")
    need(name == wanted, "name-invalid")
    need(usable(unb64(public, 32)), "key-invalid")
    need(proved(wire, name, "root", said), "proof-invalid")
