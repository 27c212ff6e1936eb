"""`trust.json` and `requests.json`: trust versions as the next of a chain, checkpoints, recipients, requests."""

import json
from collections.abc import Iterator
from typing import Any

from vectors.forge import ALPHABET, PROOF, TRUST, Key, b64, compact, notation, sha, start
from vectors.make_lines import with_torsion
from vectors.world import (
    ANA,
    CHAIN,
    CREATED,
    FIRST,
    MAC,
    MALLORY,
    OTHER_WIRE,
    ROOT,
    SECOND_ROOT,
    SPARK,
    THIRD_ROOT,
    WIRE,
    agent,
    agents,
    checkpoint,
    document,
    first,
    follow,
    key_entry,
    proof,
    signatures,
)

Vector = dict[str, Any]
ONE, TWO, THREE, _FOUR, FIVE, SIX, SEVEN = (raw for raw, _ in CHAIN)
NEW = Key("newcomer")
BOTH = (ROOT, SECOND_ROOT)


def make() -> dict[str, Any]:
    return {
        "about": "Trust versions, each judged as the next one of a chain; see README.md.",
        "wire": WIRE,
        "chain": [{"document": notation(raw), "signatures": notation(sigs)} for raw, sigs in CHAIN],
        "hashes": [sha(raw) for raw, _ in CHAIN],
        "checkpoints": list(_checkpoints()),
        "recipients": list(_recipients()),
        "vectors": [*_first(), *_good(), *_form(), *_keys(), *_names(), *_positions(), *_place(), *_signed(), *_kept()],
    }


def _vector(name: str, after: int, raw: bytes, sigs: bytes, reason: str | None, why: str) -> Vector:
    return {
        "name": name, "after": after, "document": notation(raw), "signatures": notation(sigs),
        "verdict": reason or "ok", "reason": why,
    }  # fmt: skip


def _checkpoints() -> Iterator[Vector]:
    for version, (raw, _) in enumerate(CHAIN, 1):
        yield {"checkpoint": checkpoint(version, raw), "passes": True}
    yield {"checkpoint": checkpoint(2, THREE), "passes": False}
    yield {"checkpoint": checkpoint(8, SEVEN), "passes": False}
    yield {"checkpoint": checkpoint(1, document(**first(nonce="0" * 32))), "passes": False}


def _recipients() -> Iterator[Vector]:
    for recipient, version, who in (
        ("all", 1, []), ("all", 2, ["mac"]), ("all", 3, ["ana", "mac", "spark"]), ("all", 6, ["mac", "spark"]),
        ("all", 99, ["mac", "spark"]), ("review", 2, []), ("review", 3, ["mac", "spark"]), ("review", 6, []),
        ("spark", 1, ["spark"]), ("spark", 7, ["spark"]), ("nobody", 7, []),
    ):  # fmt: skip
        yield {"recipient": recipient, "version": version, "members": who}


def _first() -> Iterator[Vector]:
    def case(name: str, raw: bytes, reason: str | None, why: str, sigs: bytes | None = None) -> Vector:
        return _vector(f"version 1, {name}", 0, raw, signatures(raw, ROOT) if sigs is None else sigs, reason, why)

    yield case("as it is", FIRST, None, "signed by its own root")
    yield case(
        "compact, in another order", compact(dict(reversed(first().items()))).encode(), None, "exact bytes are signed"
    )
    yield case("unsigned", FIRST, "too-few-new-signatures", "its own root must sign", b"")
    yield case(
        "signed by another", FIRST, "too-few-new-signatures", "its own root must sign", signatures(FIRST, MALLORY)
    )
    two = document(**first(roots=[b64(ROOT.public), b64(SECOND_ROOT.public)], threshold=2))
    yield case("with two roots, both signed", two, None, "the threshold is met", signatures(two, *BOTH))
    yield case("with two roots, one signed", two, "too-few-new-signatures", "the threshold is 2")
    yield case(
        "with two roots, one signed twice", two, "too-few-new-signatures", "once per key", signatures(two, ROOT, ROOT)
    )
    listed = document(**first(agents={"mac": agent(key_entry(MAC, "mac"))}))
    yield case("with an agent", listed, "first-not-empty", "a proof names the wire, which begins here")
    listed = document(**first(groups={"review": {"status": "active", "members": []}}))
    yield case("with a group", listed, "first-not-empty", "it lists nobody")
    for member, value in (
        ("wire", WIRE),
        ("prev", sha(ONE)),
        ("nonce", None),
        ("nonce", "0" * 31),
        ("nonce", "A" * 32),
    ):
        yield case(f"{member} {value}", document(**first(**{member: value})), "trust-malformed", "not so in version 1")
    yield case("that is a version 2", TWO, "not-next", "a chain begins with version 1")


def _eight(**changed: Any) -> bytes:
    return document(**follow(SEVEN, **changed))


def _next(
    name: str, reason: str | None, why: str, *, by: tuple[Key, ...] = (SECOND_ROOT, THIRD_ROOT), **changed: Any
) -> Vector:
    raw = _eight(**changed)
    return _vector(name, 7, raw, signatures(raw, *by), reason, why)


def _good() -> Iterator[Vector]:
    for version, (raw, sigs) in enumerate(CHAIN[1:], 2):
        yield _vector(f"version {version} of the chain", version - 1, raw, sigs, None, "an honest successor")
    enrolled = agents(SEVEN, new=agent(key_entry(NEW, "new")))
    yield _next("a newcomer", None, "with a proof", agents=enrolled)
    raw = compact(follow(SEVEN)).encode()
    yield _vector("compact, without a newline", 7, raw, signatures(raw, THIRD_ROOT), None, "exact bytes are signed")
    raw = _eight().replace(b"\n", b"\r\n")
    yield _vector("with CR LF", 7, raw, signatures(raw, THIRD_ROOT), None, "exact bytes are signed")
    yield _next("time goes back", None, "created is for display", created="1999-01-01T00:00:00.000Z")
    yield _next("a policy of anything", None, "it decides no validity", policy={"x": [1, {"y": None}], "": "é"})
    yield _next(
        "a group of nobody", None, "an empty group", groups={"review": _group([], "removed"), "empty": _group([])}
    )
    yield _next("a removed agent that is new", None, "nobody can use it", agents=agents(
        SEVEN, gone=agent(key_entry(NEW, "gone", status="revoked"), status="removed")))  # fmt: skip
    yield _next(
        "a human", None, "a role", agents=agents(SEVEN, eve=agent(key_entry(NEW, "eve", "human"), role="human"))
    )
    moved = _mac(positions={"mac/spark": [1, "0" * 64], "mac/all": [0, start(WIRE, "mac/all").head]})
    yield _next("a position moved, and one more", None, "positions may change", agents=moved)
    yield _next("retired, then revoked", None, "a status goes forward", agents=_mac(status="revoked"))
    yield _next("without a root", None, "roots may change", roots=[b64(THIRD_ROOT.public)])
    former = agent(key_entry(ROOT, "former"))
    yield _next("a key that was a root", None, "it is none any more", agents=agents(SEVEN, former=former))


def _group(members: list[Any], status: str = "active") -> dict[str, Any]:
    return {"status": status, "members": members}


def _mac(*, status: str = "retired", positions: dict[str, Any] | None = None, drop: str = "") -> dict[str, Any]:
    """Return version 7's agents with mac's old key changed."""
    listed = agents(SEVEN)
    old = listed["mac"]["keys"][0]
    old["status"] = status
    if positions is not None:
        old["positions"] = positions
    if drop:
        del old[drop]
    return listed


def _form() -> Iterator[Vector]:
    bad = "trust-malformed"
    for member in first():
        members = follow(SEVEN)
        del members[member]
        raw = document(**members)
        yield _vector(f"without {member}", 7, raw, signatures(raw, THIRD_ROOT), bad, "all members are there")
    yield _next("an unknown member", bad, "and no others", colour="red")
    for member, values in {
        "v": [2, 0, "1", True, None], "version": [0, -8, "8", True, 10**9, None],
        "wire": [None, WIRE.upper(), WIRE[:31], 7],
        "prev": [None, sha(SEVEN)[:32], sha(SEVEN).upper()], "nonce": ["0" * 32, ""],
        "created": ["2026-11-29", "2026-11-29T10:00:00Z", None, 0], "threshold": ["1", True, None],
        "roots": [None, {}, [None], ["x"], [b64(THIRD_ROOT.public[:31])],
                  [b64(THIRD_ROOT.public) + "\n"], [b64(THIRD_ROOT.public)[:-1]]],
        "agents": [None, [], {"mac": None}], "groups": [None, [], {"review": []}], "policy": [None, [], "x"],
    }.items():  # fmt: skip
        for number, value in enumerate(values, 1):
            yield _next(f"{member}, {number}: {value!r:.40}", bad, "not what this member may be", **{member: value})
    for text, name in (("1.0", "a float"), ("1e400", "infinity"), ("NaN", "NaN"), ("9007199254740992", "2^53")):
        raw = _eight(policy={"x": 0}).replace(b'"x": 0', b'"x": ' + text.encode())
        yield _vector(f"{name} in the policy", 7, raw, signatures(raw, THIRD_ROOT), bad, "strict JSON, without floats")
    for name, raw in (
        ("nothing", b""), ("an array", b"[]"), ("a member twice", _eight().replace(b'"v": 1,', b'"v": 1, "v": 1,')),
        ("no UTF-8", _eight().replace(b"policy", b"p\xff")), ("a byte order mark", b"\xef\xbb\xbf" + _eight()),
        ("half of it", _eight()[:400]), ("too deep", _eight(policy={"x": json.loads("[" * 31 + "]" * 31)})),
        ("100,000 opening brackets", b'{"v":' + b"[" * 100_000),
    ):  # fmt: skip
        yield _vector(name, 7, raw, signatures(raw, THIRD_ROOT), bad, "not strict JSON")
    large = _eight() + b" " * (1_048_576 - len(_eight()))
    yield _vector("1,048,576 bytes", 7, large, signatures(large, THIRD_ROOT), None, "exactly the limit")
    large += b" "
    yield _vector(
        "1,048,577 bytes", 7, large, signatures(large, THIRD_ROOT), "trust-too-large", "one more than the limit"
    )
    for drop in ("role", "status", "keys"):
        listed = agents(SEVEN)
        del listed["spark"][drop]
        yield _next(f"an agent without {drop}", bad, "all members are there", agents=listed)
    for drop in ("public", "status", "proof", "positions"):
        yield _next(f"a key without {drop}", bad, "all members are there", agents=_mac(drop=drop))
    for name, entry in {
        "of an unknown role": agent(key_entry(NEW, "new"), role="root"),
        "of another status": agent(key_entry(NEW, "new"), status="off"),
        "of no keys": agent(), "with another member": {**agent(key_entry(NEW, "new")), "x": 1},
        "of 65 keys": agent(*[key_entry(Key(f"many {n}"), "new", status="retired") for n in range(65)]),
        "with a key of another status": agent({**key_entry(NEW, "new"), "status": "lost"}),
        "with a short proof": agent({**key_entry(NEW, "new"), "proof": b64(bytes(63))}),
    }.items():  # fmt: skip
        yield _next(f"an agent {name}", bad, "not what an agent may be", agents=agents(SEVEN, new=entry))
    text = proof(NEW, WIRE, "new")
    spelled = text[:85] + ALPHABET[ALPHABET.index(text[85]) + 1] + "=="
    listed = agents(SEVEN, new=agent({**key_entry(NEW, "new"), "proof": spelled}))
    yield _next("a proof in another spelling", bad, "base64 is canonical", agents=listed)
    groups = json.loads(SEVEN)["groups"]
    for name, group in {
        "of another status": _group([], "off"), "without members": {"status": "active"},
        "of one member twice": _group(["mac", "mac"]),
        "of a number": _group([1]), "of a list": _group([["mac"]]),
    }.items():  # fmt: skip
        yield _next(f"a group {name}", bad, "not what a group may be", groups={**groups, "g": group})


def _keys() -> Iterator[Vector]:
    neutral = b64(bytes([1, *([0] * 31)]))
    yield _next(
        "a root that is the neutral element", "key-invalid", "not usable", roots=[b64(THIRD_ROOT.public), neutral]
    )
    mixed = b64(with_torsion()[0])
    yield _next("a root of mixed order", "key-invalid", "not usable", roots=[b64(THIRD_ROOT.public), mixed])
    entry = {**key_entry(NEW, "new"), "public": b64(bytes(32))}
    yield _next("an agent's key of order 4", "key-invalid", "not usable", agents=agents(SEVEN, new=agent(entry)))
    same = [b64(THIRD_ROOT.public), b64(THIRD_ROOT.public)]
    yield _next("a root twice", "key-shared", "a key stands once", roots=same)
    yield _next("a root's key for an agent", "key-shared", "a key stands once", agents=agents(
        SEVEN, new=agent(key_entry(THIRD_ROOT, "new"))))  # fmt: skip
    yield _next("spark's key for a newcomer", "key-shared", "a key stands once", agents=agents(
        SEVEN, new=agent(key_entry(SPARK, "new"))))  # fmt: skip
    twice = agent(key_entry(NEW, "new"), key_entry(NEW, "new", status="retired"))
    yield _next("a key twice for one agent", "key-shared", "a key stands once", agents=agents(SEVEN, new=twice))
    two = agent(key_entry(NEW, "new"), key_entry(MALLORY, "new"))
    yield _next("two active keys", "two-active-keys", "one key is one writer", agents=agents(SEVEN, new=two))
    listed = agents(SEVEN)
    listed["spark"]["status"] = "removed"
    yield _next("removed, with an active key", "removed-with-active-key", "its keys end with it", agents=listed)


def _names() -> Iterator[Vector]:
    for name in ("New", "all", "trust", "nul", "-new", "n" * 33, "", "a/b", "../x", "n\u00e9w"):
        listed = agents(SEVEN, **{name: agent(key_entry(NEW, name))})
        yield _next(f"an agent called {name!r}", "name-invalid", "no name", agents=listed)
    groups = json.loads(SEVEN)["groups"]
    for name in ("Review", "all", "requests"):
        yield _next(f"a group called {name!r}", "name-invalid", "no name", groups={**groups, name: _group([])})
    yield _next("a group called spark", "name-clash", "one namespace", groups={**groups, "spark": _group([])})
    for name in ("nobody", "review", "all"):
        yield _next(
            f"a group with the member {name}", "member-unknown", "no agent", groups={**groups, "g": _group([name])}
        )
    for threshold in (0, -1, 3, 2**53 - 1):
        yield _next(f"a threshold of {threshold}", "threshold-invalid", "1 to the number of roots", threshold=threshold)
    yield _next("no roots", "threshold-invalid", "nobody could sign", roots=[])


def _positions() -> Iterator[Vector]:
    head, reason = sha(b"x"), "position-invalid"
    good = {"mac/spark": [2, head]}
    for name, positions in {
        "in no channel": {"mac": [2, head]}, "of another agent": {"spark/mac": [2, head]},
        "to itself": {"mac/mac": [2, head]},
        "to a reserved word": {"mac/trust": [2, head]}, "of three": {"mac/ana": [2, head, head]},
        "that is a number": {"mac/ana": 2},
        "of a negative seq": {"mac/ana": [-1, head]}, "of true": {"mac/ana": [True, head]},
        "in words": {"mac/ana": ["2", head]},
        "with a short head": {"mac/ana": [2, head[:16]]}, "with an upper-case head": {"mac/ana": [2, head.upper()]},
        "without a head": {"mac/ana": [2, None]}, "of 0 with another head": {"mac/ana": [0, head]},
        "of 0 with another channel's beginning": {"mac/ana": [0, start(WIRE, "mac/spark").head]},
    }.items():  # fmt: skip
        yield _next(f"a position {name}", reason, "not a place of a line", agents=_mac(positions={**good, **positions}))
    entry = {**key_entry(NEW, "new"), "positions": {"new/mac": [1, head]}}
    yield _next("a position of an active key", reason, "it has no end", agents=agents(SEVEN, new=agent(entry)))


def _place() -> Iterator[Vector]:
    yield _next("version 9 behind 7", "not-next", "exactly one more", version=9)
    yield _next("version 7 behind 7", "not-next", "exactly one more", version=7)
    yield _next("of another wire", "wrong-wire", "a wire has one chain", wire=OTHER_WIRE)
    yield _next("behind another version 7", "wrong-prev", "it names its predecessor", prev=sha(b"another"))
    yield _next("behind version 6", "wrong-prev", "it names its predecessor", prev=sha(SIX))
    raw, sigs = CHAIN[5]
    yield _vector(
        "version 6 again", 7, raw, sigs, "not-next", "one of its roots is still in force, but it is no successor"
    )
    yield _vector("version 1 again", 7, *CHAIN[0], "too-few-old-signatures", "its root is no longer in force")


def _signed() -> Iterator[Vector]:
    few = "too-few-old-signatures"
    yield _next("unsigned", few, "the roots in force must sign", by=())
    yield _next("signed by nobody known", few, "the roots in force must sign", by=(MALLORY,))
    yield _next("signed by an agent", few, "agents are no roots", by=(SPARK,))
    yield _next("signed by a root that was replaced", few, "it is no longer in force", by=(ROOT,))
    raw = document(**follow(FIVE))
    yield _vector("one of two signatures", 5, raw, signatures(raw, ROOT), few, "the threshold is 2")
    yield _vector("one signature twice", 5, raw, signatures(raw, ROOT, ROOT), few, "once per key")
    yield _vector("two signatures, one of another key", 5, raw, signatures(raw, ROOT, THIRD_ROOT), few, "once per root")
    yield _vector(
        "two signatures and one of another key",
        5,
        raw,
        signatures(raw, MALLORY, ROOT, SECOND_ROOT),
        None,
        "others count nothing",
    )
    wrong = signatures(raw, SECOND_ROOT).replace(SECOND_ROOT.id.encode(), ROOT.id.encode())
    yield _vector(
        "a signature under another root's id", 5, raw, wrong + signatures(raw, SECOND_ROOT), few, "it does not hold"
    )
    yield _vector(
        "a bad signature before the good ones",
        5,
        raw,
        wrong + signatures(raw, *BOTH),
        None,
        "what does not hold counts nothing",
    )
    other = document(**follow(FIVE, policy={}))
    yield _vector("the signatures of another document", 5, raw, signatures(other, *BOTH), few, "exact bytes are signed")
    yield _vector("one more space", 5, raw + b" ", signatures(raw, *BOTH), few, "exact bytes are signed")
    typed = b"".join(b'{"key":"%s","sig":"%s"}\n' % (r.id.encode(), b64(r.sign(PROOF, raw)).encode()) for r in BOTH)
    yield _vector("signatures of another type", 5, raw, typed, few, "made for proofs")
    fresh = Key("fourth root")
    added = _eight(roots=[b64(THIRD_ROOT.public), b64(fresh.public)], threshold=2)
    yield _vector(
        "more roots, unsigned by the new one",
        7,
        added,
        signatures(added, THIRD_ROOT),
        "too-few-new-signatures",
        "its own threshold is 2",
    )
    yield _vector(
        "more roots, all signed", 7, added, signatures(added, THIRD_ROOT, fresh), None, "both thresholds are met"
    )
    taken = _eight(roots=[b64(MALLORY.public)])
    yield _vector(
        "roots replaced by their successor alone", 7, taken, signatures(taken, MALLORY), few, "the old roots must sign"
    )
    yield from _signature_files(raw)


def _signature_files(raw: bytes) -> Iterator[Vector]:
    good = signatures(raw, *BOTH)
    line = signatures(raw, ROOT)
    text = b64(ROOT.sign(TRUST, raw))
    spelled = text[:85] + ALPHABET[ALPHABET.index(text[85]) + 1] + "=="
    for name, sigs in {
        "without the last newline": good[:-1], "with an empty line": good + b"\n",
        "with CR LF": good.replace(b"\n", b"\r\n"),
        "with spaces": good.replace(b":", b": "), "in the other order": line.replace(b'"key"', b'"sig"', 1),
        "with another member": line.replace(b"}", b',"x":1}'), "with a byte order mark": b"\xef\xbb\xbf" + good,
        "with junk behind": good + b"junk\n", "that is an array": b"[" + good[:-1] + b"]\n",
        "with an upper-case id": good.replace(ROOT.id.encode(), ROOT.id.upper().encode()),
        "with another spelling": line.replace(text.encode(), spelled.encode()),
        "with a short signature": line.replace(text.encode(), text[4:].encode()),
        "of 32,769 bytes": good + b"x" * (32_768 - len(good)) + b"\n",
    }.items():  # fmt: skip
        yield _vector(
            f"a signature file {name}", 5, raw, sigs, "signatures-malformed", "of another form, and refused whole"
        )
    filler = signatures(raw, MALLORY)
    most = filler * ((32_768 - len(good)) // len(filler)) + good
    yield _vector("a signature file nearly full of others", 5, raw, most, None, "others do no harm")


def _kept() -> Iterator[Vector]:
    def without(name: str) -> dict[str, Any]:
        return {key: value for key, value in agents(SEVEN).items() if key != name}

    groups = json.loads(SEVEN)["groups"]
    yield _next("a removed agent that vanished", "name-vanished", "removed is not absent", agents=without("ana"))
    alone = {"review": _group(["mac"], "removed")}
    yield _next(
        "an agent that vanished", "name-vanished", "nothing may disappear", agents=without("spark"), groups=alone
    )
    yield _next("a group that vanished", "name-vanished", "nothing may disappear", groups={})
    yield _next(
        "an agent that became a group",
        "name-reused",
        "a name is one thing",
        agents=without("ana"),
        groups={**groups, "ana": _group([])},
    )
    review = agent(key_entry(NEW, "review"))
    yield _next(
        "a group that became an agent",
        "name-reused",
        "a name is one thing",
        groups={},
        agents=agents(SEVEN, review=review),
    )
    listed = agents(SEVEN)
    listed["ana"]["status"] = "active"
    yield _next("a removed agent that is back", "name-revived", "a name goes once", agents=listed)
    yield _next("a removed group that is back", "name-revived", "a name goes once", groups={"review": _group(["mac"])})
    listed = agents(SEVEN)
    listed["spark"]["role"] = "human"
    yield _next("another role", "role-changed", "it was proved with the key", agents=listed)
    listed = agents(SEVEN)
    del listed["mac"]["keys"][0]
    yield _next("a key that vanished", "key-vanished", "old lines are judged by it", agents=listed)
    listed = agents(SEVEN)
    listed["spark"]["keys"] = [key_entry(NEW, "spark")]
    yield _next("a key that was replaced", "key-vanished", "old lines are judged by it", agents=listed)
    listed = _mac(status="active", positions={})
    listed["mac"]["keys"][1]["status"] = "retired"
    yield _next("a retired key that is active again", "key-revived", "a status goes forward", agents=listed)
    listed = agents(SEVEN)
    listed["ana"]["keys"][0]["status"] = "retired"
    yield _next("a revoked key that is only retired", "key-revived", "a status goes forward", agents=listed)
    yield _next("a position that vanished", "position-vanished", "nothing may disappear", agents=_mac(positions={}))
    listed = agents(SEVEN)
    listed["spark"]["keys"][0]["proof"] = b64(bytes(64))
    yield _next("another proof", "proof-changed", "it was accepted as it was", agents=listed)
    for name, entry in {
        "of zeros": {**key_entry(NEW, "new"), "proof": b64(bytes(64))},
        "for another name": {**key_entry(NEW, "new"), "proof": proof(NEW, WIRE, "spark")},
        "for another wire": {**key_entry(NEW, "new"), "proof": proof(NEW, OTHER_WIRE, "new")},
        "for another role": {**key_entry(NEW, "new"), "proof": proof(NEW, WIRE, "new", "human")},
        "by another key": {**key_entry(NEW, "new"), "proof": proof(NEW, WIRE, "new", signed_by=MALLORY)},
    }.items():  # fmt: skip
        yield _next(f"a proof {name}", "proof-invalid", "the key did not agree", agents=agents(SEVEN, new=agent(entry)))
    payload = compact({"wire": WIRE, "name": "new", "role": "agent", "public": b64(NEW.public)}).encode()
    entry = {**key_entry(NEW, "new"), "proof": b64(NEW.sign(TRUST, payload))}
    yield _next("a proof of another type", "proof-invalid", "made for trust", agents=agents(SEVEN, new=agent(entry)))
    listed = agents(SEVEN)
    retired = {**listed["spark"]["keys"][0], "status": "retired"}
    rotated = {**listed["spark"], "keys": [retired, {**key_entry(NEW, "spark"), "proof": proof(NEW, WIRE, "new")}]}
    yield _next(
        "a next key without a proof of its own",
        "proof-invalid",
        "the key did not agree",
        agents={**listed, "spark": rotated},
    )


def requests() -> dict[str, Any]:
    about = "Requests to join, each with the name of its file; see README.md."
    return {"about": about, "wire": WIRE, "vectors": list(_requests())}


def request(key: Key = NEW, **changed: Any) -> dict[str, Any]:
    members = {
        "v": 1, "wire": WIRE, "name": "new", "role": "agent", "public": b64(key.public), "created": CREATED,
        "proof": "",
        **changed,
    }  # fmt: skip
    payload = compact({name: members[name] for name in ("wire", "name", "role", "public")}).encode()
    return members if "proof" in changed else {**members, "proof": b64(key.sign(PROOF, payload))}


def _requests() -> Iterator[Vector]:
    def case(name: str, members: dict[str, Any] | bytes, reason: str | None, why: str, file: str = "") -> Vector:
        raw = members if isinstance(members, bytes) else compact(members).encode() + b"\n"
        file = file or f"new.{NEW.id}.json"
        return {"name": name, "file": file, "request": notation(raw), "verdict": reason or "ok", "reason": why}

    good, bad = compact(request()).encode() + b"\n", "request-malformed"
    yield case("as it is", good, None, "key, name and proof agree")
    yield case("of somebody invited", request(mac=b64(bytes(range(32)))), None, "a MAC is for who invited to check")
    for value in ("", "x", b64(bytes(31)), None, 7):
        yield case(f"mac of {value!r:.50}", request(mac=value), bad, "not what this member may be")
    before = {
        **{k: v for k, v in request().items() if k != "proof"},
        "mac": b64(bytes(32)),
        "proof": request()["proof"],
    }
    yield case("with a MAC before the proof", before, bad, "not of the one form")
    yield case("of a human", request(role="human"), None, "a role")
    yield case("of another time", request(created="1970-01-01T00:00:00.000Z"), None, "created is for display")
    redated = good.replace(b"2026-11-29", b"2030-01-01")
    yield case("dated by somebody else", redated, None, "created is not signed")
    for name, raw in (
        ("empty", b""), ("without a newline", good[:-1]), ("with a newline more", good + b"\n"),
        ("with spaces", good.replace(b":", b": ")),
        ("in another order", compact(dict(reversed(request().items()))).encode() + b"\n"),
        ("of 4,097 bytes", good[:-1] + b" " * (4097 - len(good)) + b"\n"),
        ("with CR LF", good[:-1] + b"\r\n"), ("with a member twice", good.replace(b'"v":1,', b'"v":1,"v":1,')),
        ("no JSON", b"{\n"),
        ("with an escape", good.replace(b'"new"', b'"n\\u0065w"')),
    ):  # fmt: skip
        yield case(name, raw, bad, "not of the one form")
    for member, values in {
        "v": [2, "1", True, 1.0], "role": ["root", None], "created": ["now", None],
        "proof": ["", "x", b64(bytes(63))], "wire": [None],
        "public": ["", b64(NEW.public[:31]), b64(NEW.public)[:-1]], "name": [None, 7],
    }.items():  # fmt: skip
        for value in values:
            yield case(f"{member} of {value!r:.50}", request(**{member: value}), bad, "not what this member may be")
    yield case("with another member", {**request(), "x": 1}, bad, "not of the one form")
    yield case("without created", {k: v for k, v in request().items() if k != "created"}, bad, "not of the one form")
    for name in ("New", "all", "trust", ""):
        yield case(f"for {name!r}", request(name=name), "name-invalid", "no name", f"{name}.{NEW.id}.json")
    neutral = b64(bytes([1, *([0] * 31)]))
    yield case("of an unusable key", request(public=neutral), "key-invalid", "the neutral element")
    yield case("for another wire", request(wire=OTHER_WIRE), "wrong-wire", "it stands on this one")
    for file in (
        f"new.{MAC.id}.json",
        f"spark.{NEW.id}.json",
        f"new.{NEW.id}.JSON",
        "new.json",
        f"../new.{NEW.id}.json",
    ):
        yield case(f"in the file {file}", good, "request-misplaced", "the file is named after name and key", file)
    yield case(
        "with a proof for another name", request(proof=proof(NEW, WIRE, "spark")), "proof-invalid", "it does not hold"
    )
    yield case(
        "with somebody else's proof",
        request(proof=proof(NEW, WIRE, "new", signed_by=ANA)),
        "proof-invalid",
        "it does not hold",
    )
    yield case(
        "with a proof for another role",
        request(proof=proof(NEW, WIRE, "new", "human")),
        "proof-invalid",
        "it does not hold",
    )
