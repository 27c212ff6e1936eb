"""`sealed.json`: closed letters, as the holders of some keys open them or do not."""

import hashlib
import json
from collections.abc import Callable, Iterator
from typing import Any

import nacl.bindings

from vectors.forge import ALPHABET, Key, b64, compact, sha
from vectors.world import ANA, MAC, MAC_NEXT, OTHER_WIRE, SPARK, WIRE

Vector = dict[str, Any]
ALG = "x25519-xchacha20poly1305"
CHANNEL = "mac/spark"
SAID: dict[str, Any] = {"subject": "the launch", "body": {"at": "noon", "odds": 0.5}, "refs": ["a1b2", "docs/x.md"]}


def make() -> dict[str, Any]:
    about = "Closed letters, each with who tries to open it; see README.md."
    return {"about": about, "wire": WIRE, "channel": CHANNEL, "vectors": list(_sealed())}


def fixed(what: str, length: int) -> bytes:
    """Return bytes that an honest writer would take at random."""
    return hashlib.shake_128(f"wire test vectors/{what}".encode()).digest(length)


def commitment(content_key: bytes) -> str:
    return sha(b"wire/v1/content-key" + content_key)


def box(key: Key, content_key: bytes) -> str:
    """Return a content key in a sealed box, whose ephemeral key is a fixed one."""
    ephemeral_public, ephemeral = nacl.bindings.crypto_box_seed_keypair(fixed(f"ephemeral for {key.title}", 32))
    public = nacl.bindings.crypto_sign_ed25519_pk_to_curve25519(key.public)
    nonce = hashlib.blake2b(ephemeral_public + public, digest_size=24).digest()
    return b64(ephemeral_public + nacl.bindings.crypto_box(content_key, nonce, public, ephemeral))


def data(text: bytes, content_key: bytes, wire: str = WIRE, channel: str = CHANNEL, nonce: bytes = b"") -> bytes:
    nonce = nonce or fixed("nonce", 24)
    bound = f"wire/v1/closed\n{wire}\n{channel}".encode()
    return nonce + nacl.bindings.crypto_aead_xchacha20poly1305_ietf_encrypt(text, bound, nonce, content_key)


K, OTHER_K = fixed("content key", 32), fixed("other content key", 32)


def close(text: bytes | dict[str, Any] = b"", *keys: Key, **changed: Any) -> dict[str, Any]:
    """Return an honest `enc` for some keys, with changes."""
    said = text if isinstance(text, bytes) and text else compact(text or SAID).encode()
    boxes = {key.id: box(key, K) for key in sorted(keys or (MAC, SPARK), key=lambda key: key.id)}
    return {"alg": ALG, "commit": commitment(K), "boxes": boxes, "data": b64(data(said, K)), **changed}


def _sealed() -> Iterator[Vector]:
    def case(name: str, enc: Any, key: Key, verdict: str, why: str, members: Any = None, **where: str) -> Vector:
        said = {"members": members} if members is not None else {}
        return {"name": name, **where, "enc": enc, "key": key.title, "verdict": verdict, **said, "reason": why}

    for key in (SPARK, MAC):
        yield case(f"as it is, for {key.title}", close(), key, "opened", "a box is for this key", SAID)
    yield case("for three", close(b"", MAC, SPARK, ANA), ANA, "opened", "a box for each", SAID)
    order = dict(reversed(close().items()))
    yield case("with its members in another order", order, SPARK, "opened", "their order is free", SAID)
    for name, said in {
        "a body alone": {"body": "noon"}, "a subject alone": {"subject": "s" * 200}, "refs alone": {"refs": []},
        "nothing": {}, "text of any script": {"body": "\U0001f600\u2028é\u0000"},
    }.items():  # fmt: skip
        text = json.dumps(said, ensure_ascii="\0" in str(said)).encode()
        yield case(f"that says {name}", close(text), SPARK, "opened", "lawful", said)
    spaced = b'{ "body" :\t"noon" }'
    yield case("with blanks", close(spaced), SPARK, "opened", "blanks say nothing", {"body": "noon"})
    for key in (ANA, MAC_NEXT):
        yield case(f"for {key.title}, who is not meant", close(), key, "other-keys", "no box under this id")
    yield from _tampered(case)
    yield from _unlawful(case)
    yield from _forms(case)


Case = Callable[..., Vector]


def _tampered(case: Case) -> Iterator[Vector]:
    honest = close()
    mac, spark = honest["boxes"][MAC.id], honest["boxes"][SPARK.id]
    swapped = {MAC.id: spark, SPARK.id: mac}
    yield case("with two boxes exchanged", close(boxes=swapped), SPARK, "refused", "the box is for another key")
    yield case("with another's box", close(boxes={ANA.id: spark}), ANA, "refused", "the box is for another key")
    two = {MAC.id: mac, SPARK.id: box(SPARK, OTHER_K)}
    yield case("with another content key for one", close(boxes=two), SPARK, "refused", "it is not the committed one")
    yield case("the same, for the other", close(boxes=two), MAC, "opened", "this one is", SAID)
    said = compact({"body": "another text"}).encode()
    both = close(boxes=two, commit=commitment(OTHER_K), data=b64(data(said, OTHER_K)))
    yield case(
        "committed to the other content key", both, SPARK, "opened", "all of it agrees", {"body": "another text"}
    )
    yield case("the same, for who has the first", both, MAC, "refused", "it is not the committed one")
    wrong = close(commit=commitment(OTHER_K))
    yield case("with a wrong commitment", wrong, SPARK, "refused", "it is not that of the content key")
    plain = close(commit=sha(K))
    yield case("with a bare hash as commitment", plain, SPARK, "refused", "its beginning is missing")
    sealed = data(compact(SAID).encode(), K)
    for name, changed in {
        "cut by a byte": sealed[:-1], "with a byte more": sealed + b"\0", "with a flipped bit": sealed[:40] + bytes(
            [sealed[40] ^ 1]) + sealed[41:], "with another nonce": fixed("another nonce", 24) + sealed[24:],
        "with a flipped tag": sealed[:-1] + bytes([sealed[-1] ^ 128]),
        "of the content key alone": data(compact(SAID).encode(), OTHER_K),
    }.items():  # fmt: skip
        yield case(f"data {name}", close(data=b64(changed)), SPARK, "refused", "it does not open")
    for name, other in {
        "another wire": {"wire": OTHER_WIRE}, "another channel": {"channel": "mac/ana"},
        "the channel back": {"channel": "spark/mac"}, "everybody": {"channel": "mac/all"},
    }.items():  # fmt: skip
        yield case(f"moved to {name}", close(), SPARK, "refused", "it is bound to where it was", **other)
        there = close(data=b64(data(compact(SAID).encode(), K, **other)))
        yield case(f"moved from {name}", there, SPARK, "refused", "it is bound to where it was")
        yield case(f"closed for {name}", there, SPARK, "opened", "it stands where it belongs", SAID, **other)


def _unlawful(case: Case) -> Iterator[Vector]:
    for name, text in {
        "no JSON": b"noon", "an array": b"[]", "a member twice": b'{"body":"a","body":"b"}',
        "a member that is not closed": b'{"body":"a","priority":"high"}', "an unknown member": b'{"to":"ana"}',
        "members out of order": b'{"body":"a","subject":"b"}', "a float outside of the body": b'{"refs":[1.5]}',
        "a long subject": compact({"subject": "s" * 201}).encode(), "a body of a number": b'{"body":1}',
        "too many refs": compact({"refs": ["r"] * 65}).encode(), "a lone surrogate": b'{"body":"\\ud800"}',
        "bytes that are no UTF-8": b'{"body":"\xff"}', "two objects": b"{}{}",
        "a newline between tokens": b'{"body":\n"noon"}', "a newline behind it": b'{"body":"noon"}\n',
        "brackets without end": b'{"body":{"a":' + b"[" * 40 + b"]" * 40 + b"}}",
    }.items():  # fmt: skip
        yield case(f"that says {name}", close(text), SPARK, "refused", "what is closed is unlawful")


def _forms(case: Case) -> Iterator[Vector]:
    honest = close()
    spark = honest["boxes"][SPARK.id]
    later: dict[str, Any] = {"alg": "mlkem768-x25519", "to": ["anything"], "n": 3}
    yield case("of a later version", later, SPARK, "refused", "lawful, and shown as closed")
    yield case("of a later version, otherwise alike", close(alg="x"), SPARK, "refused", "lawful, and shown as closed")
    bad: dict[str, Any] = {
        "without anything": {}, "without alg": {k: v for k, v in honest.items() if k != "alg"},
        "with an alg of no text": close(alg=1), "without data": {k: v for k, v in honest.items() if k != "data"},
        "without boxes": {k: v for k, v in honest.items() if k != "boxes"},
        "without a commitment": {k: v for k, v in honest.items() if k != "commit"},
        "with another member": close(nonce=""), "with no box": close(boxes={}),
        "with a list of boxes": close(boxes=[spark]),
        "with a box of null": close(boxes={SPARK.id: None}),
        "with an upper-case id": close(boxes={SPARK.id.upper(): spark}),
        "with a short id": close(boxes={SPARK.id[:31]: spark}), "with a name for an id": close(boxes={"spark": spark}),
        "with a box of 79 bytes": close(boxes={SPARK.id: b64(bytes(79))}),
        "with a box of 81 bytes": close(boxes={SPARK.id: b64(bytes(81))}),
        "with a box spelled otherwise": close(boxes={SPARK.id: spark[:-2] + _next(spark[-2]) + "="}),
        "with a box without padding": close(boxes={SPARK.id: spark.rstrip("=")}),
        "with a short commitment": close(commit=honest["commit"][:63]),
        "with an upper-case commitment": close(commit=honest["commit"].upper()),
        "with a number to commit": close(commit=7),
        "with empty data": close(data=""), "with data of 41 bytes": close(data=b64(bytes(41))),
        "with data of no base64": close(data="*" * 80), "with data that is no text": close(data=[honest["data"]]),
        "with data in two lines": close(data=honest["data"][:40] + "\n" + honest["data"][40:]),
    }  # fmt: skip
    for name, enc in bad.items():
        yield case(name, enc, SPARK, "SCHEMA", "not of the form")
    least = close(data=b64(bytes(42)))
    yield case("with data of 42 bytes", least, SPARK, "refused", "the least that there can be, and it does not open")


def _next(character: str) -> str:
    """Return another spelling of base64's last character, which decodes alike."""
    return ALPHABET[ALPHABET.index(character) ^ 1]
