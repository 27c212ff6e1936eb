"""`evidence.json`: evidence files, what of them is well-formed, and what their signatures prove."""

import json
from collections.abc import Iterator
from typing import Any

from vectors.forge import TS, Author, Key, b64, compact, middle, notation, sha
from vectors.make_presence import presence
from vectors.world import CHAIN, MAC, MALLORY, OTHER_WIRE, ROOT, SPARK, WIRE, checkpoint, follow, signatures
from vectors.world import document as trust_document

Vector = dict[str, Any]
CHANNEL = "mac/spark"
TRUSTED = CHAIN[:3]
"""In it mac's and spark's keys are active, and one root signs."""
NEWEST = f"3:{sha(TRUSTED[-1][0])[:16]}"
CLAIM = {"code": "FORK", "scope": CHANNEL, "message": "two lines", "first": TS, "last": TS, "count": 1}


def _lines(key: Key, channel: str, *bodies: str) -> list[bytes]:
    author = Author(key, WIRE, channel, NEWEST)
    return [author.write(middle(body=body)) for body in bodies]


ONE, TWO = _lines(MAC, CHANNEL, "one", "two")
(OTHER_ONE,) = _lines(MAC, CHANNEL, "another one")


def exhibit(kind: str, data: bytes, **more: Any) -> dict[str, Any]:
    """Return an exhibit as it stands in a file."""
    return {"kind": kind, "found": "somewhere", "bytes": b64(data), **more}


def bundle(*exhibits: dict[str, Any], **changed: Any) -> dict[str, Any]:
    """Return an honest file's members with changes."""
    trust = [[b64(raw), b64(signed)] for raw, signed in TRUSTED]
    whole = {"v": 1, "type": "wire-evidence", "wire": WIRE, "claim": CLAIM, "trust": trust}
    return {**whole, "exhibits": list(exhibits), **changed}


def make() -> Vector:
    about = "Evidence files of the world's wire, checked with the checkpoint of its first version; see README.md."
    return {"about": about, "checkpoint": checkpoint(1, TRUSTED[0][0]), "vectors": list(_vectors())}


def _vectors() -> Iterator[Vector]:
    def case(name: str, members: dict[str, Any], verdict: str, reason: str, *proved: str) -> Vector:
        raw = compact(members).encode() + b"\n"
        found = {"name": name, "evidence": notation(raw), "verdict": verdict, "reason": reason}
        return found | ({"proved": sorted(proved)} if verdict == "ok" else {})

    lines = [exhibit("line", ONE), exhibit("line", OTHER_ONE)]
    yield case("two lines of one place", bundle(*lines), "ok", "whoever has the key signed both", "FORK")
    yield case("a line behind another", bundle(exhibit("line", OTHER_ONE), exhibit("line", TWO)), "ok",
               "its prev is not the head of the line in front of it", "FORK")  # fmt: skip
    yield case("one line twice", bundle(lines[0], lines[0]), "ok", "a copy is no second line")
    yield case("lines that follow", bundle(lines[0], exhibit("line", TWO)), "ok", "nothing is wrong with them")
    yield case("no exhibits", bundle(), "ok", "a claim without bytes is its maker's word")
    stranger = [exhibit("line", one) for one in _lines(MALLORY, CHANNEL, "a", "b")]
    yield case("a line of nobody's", bundle(*stranger), "ok", "what no key of the trust signed proves nothing")
    changed = ONE.replace(b'"one"', b'"One"')
    yield case("a byte of a line changed", bundle(lines[0], exhibit("line", changed)), "ok", "nobody signed that")
    yield case("bytes of no form", bundle(exhibit("bytes", b"junk")), "ok", "nobody signed them")
    content = Author(MAC, WIRE, CHANNEL, NEWEST).line(b'"body":"a","body":"b",')
    yield case("content that is unlawful", bundle(exhibit("line", content)), "ok", "mac signed it",
               "SCHEMA")  # fmt: skip
    later = Author(MAC, WIRE, CHANNEL, "99:" + "0" * 16).write(middle(body="x"))
    yield case("a line that names a later version", bundle(exhibit("line", later)), "ok",
               "the chain here ends before it", "TRUST_WITHHELD")  # fmt: skip
    named = Author(MAC, WIRE, CHANNEL, "3:" + "0" * 16).write(middle(body="x"))
    yield case("a line that names another version", bundle(exhibit("line", named)), "ok", "mac was shown another trust",
               "SPLIT_VIEW")  # fmt: skip
    mine = presence(trust=NEWEST, channels={CHANNEL: [1, sha(ONE), 1]})
    yield case("a presence that agrees", bundle(lines[0], exhibit("presence", mine)), "ok", "the same head")
    other = presence(trust=NEWEST, channels={CHANNEL: [1, sha(OTHER_ONE), 1]})
    yield case("a presence that names another head", bundle(lines[0], exhibit("presence", other)), "ok",
               "spark was shown another line", "SPLIT_VIEW")  # fmt: skip
    acked = Author(SPARK, WIRE, "spark/mac", NEWEST).write(middle(ack=[1, sha(OTHER_ONE)]))
    yield case("an ack that names another head", bundle(lines[0], exhibit("line", acked)), "ok",
               "spark was shown another line", "SPLIT_VIEW")  # fmt: skip
    twin = presence(trust=NEWEST, channels={}, counter=8, instance="ff" * 16)
    yield case("two instances", bundle(exhibit("presence", mine), exhibit("presence", twin)), "ok",
               "one key on two machines", "CLONED")  # fmt: skip
    fork = trust_document(**{**json.loads(TRUSTED[-1][0]), "policy": {"other": True}})
    signed = exhibit("document", fork, signatures=b64(signatures(fork, ROOT)))
    yield case("a second document of a number", bundle(signed), "ok", "the roots signed both", "TRUST_FORK")
    unsigned_one = exhibit("document", fork, signatures=b64(signatures(fork, MALLORY)))
    yield case("a document of nobody's", bundle(unsigned_one), "ok", "no root signed it")
    follows = trust_document(**follow(TRUSTED[-1][0]))
    whole = bundle(*lines, trust=[*bundle()["trust"], [b64(follows), b64(signatures(follows, ROOT))]])
    yield case("a longer chain", whole, "ok", "the trust may be newer than the checkpoint", "FORK")

    bad = "evidence-malformed"
    yield case("another version", bundle(*lines, v=2), bad, "v is 1")
    yield case("v is true", bundle(*lines, v=True), bad, "a number and nothing like one")
    yield case("another type", bundle(*lines, type="evidence"), bad, "the type is fixed")
    yield case("a member more", bundle(*lines, note=""), bad, "exactly these members")
    missing = bundle(*lines)
    del missing["claim"]
    yield case("a member less", missing, bad, "exactly these members")
    yield case("members in another order", dict(reversed(bundle(*lines).items())), bad, "in this order")
    yield case("a wire that is none", bundle(*lines, wire="x" * 32), bad, "32 hex digits")
    yield case("a code that is none", bundle(claim={**CLAIM, "code": "NETWORK"}), bad, "of incidents about bytes")
    yield case("a count of zero", bundle(claim={**CLAIM, "count": 0}), bad, "from 1 on")
    yield case("a claim with a number as text", bundle(claim={**CLAIM, "message": 7}), bad, "texts are texts")
    yield case("too many exhibits", bundle(*[exhibit("bytes", b"")] * 65), bad, "at most 64")
    yield case("an exhibit of no kind", bundle(exhibit("song", ONE)), bad, "four kinds")
    yield case("signatures of a line", bundle(exhibit("line", ONE, signatures="")), bad, "documents alone have them")
    yield case("a document without signatures", bundle(exhibit("document", fork)), bad, "documents have them")
    spelled = exhibit("line", ONE) | {"bytes": b64(b"a").replace("YQ==", "YR==")}
    yield case("base64 spelled otherwise", bundle(spelled), bad, "one spelling")
    yield case("bytes that are a number", bundle(exhibit("line", ONE) | {"bytes": 1}), bad, "base64")
    yield case("trust that is no list", bundle(*lines, trust={}), bad, "a list of pairs")
    yield case("trust with a lone document", bundle(*lines, trust=[[b64(TRUSTED[0][0])]]), bad, "a list of pairs")
    yield case("another wire's trust", bundle(*lines, wire=OTHER_WIRE), "wrong-wire", "the trust is this wire's")
    cut = bundle(*lines, trust=[[b64(raw), b64(signatures(raw, MALLORY))] for raw, _ in TRUSTED])
    yield case("trust that nobody signed", cut, "too-few-new-signatures", "the roots of a document sign it")
