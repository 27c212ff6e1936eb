"""`world.json`, `names.json`, `encodings.json` and `json.json`: the pieces that everything else is made of."""

import hashlib
from collections.abc import Iterator
from typing import Any

import nacl.bindings

from vectors.forge import ALPHABET, LINE, ORDER, PRESENCE, PROOF, TRUST, Key, b64, notation, pae, start, words
from vectors.make_lines import with_torsion, without_torsion
from vectors.world import CHAIN, KEYS, MAC, OTHER_WIRE, WIRE, checkpoint

Vector = dict[str, Any]


def world() -> dict[str, Any]:
    return {
        "about": "The keys of all vectors, and the wire; see README.md.",
        "wire": WIRE,
        "other_wire": OTHER_WIRE,
        "keys": {
            key.title: {
                "seed": key.seed.hex(),
                "public": b64(key.public),
                "id": key.id,
                "fingerprint": key.fingerprint,
            }
            for key in KEYS
        },
    }


def names() -> dict[str, Any]:
    about = "Texts that are, or are not, a name, a recipient, a channel, an id or a segment; see README.md."
    return {"about": about, "vectors": list(_names())}


def _names() -> Iterator[Vector]:
    def each(kind: str, reason: str, valid: bool, *texts: str) -> Iterator[Vector]:
        for text in texts:
            yield {"name": f"{kind} {text!r}", "kind": kind, "text": text, "valid": valid, "reason": reason}

    yield from each("name", "1 to 32 of the alphabet", True, "a", "7", "mac", "review-bot", "a--b", "0x0", "m" * 32)
    yield from each("name", "not 1 to 32", False, "", "m" * 33)
    yield from each("name", "a hyphen at an end", False, "-", "-a", "a-", "--")
    yield from each(
        "name",
        "another character",
        False,
        "Mac",
        "a_b",
        "a.b",
        "..",
        "a/b",
        "a b",
        "a\n",
        "\u00e4",
        "\u0430",
        "a\0",
        "\u0661",
    )
    devices = ("con", "prn", "aux", "nul", "com0", "com1", "com9", "lpt0", "lpt1", "lpt9")
    yield from each("name", "reserved", False, "all", "trust", "requests", "wire", "presence", *devices)
    yield from each("name", "only like a reserved word", True, "all1", "com10", "con-1", "trusted", "wires")
    yield from each("recipient", "a name, or all", True, "all", "spark")
    yield from each("recipient", "no name", False, "trust", "", "Spark", "nul")
    yield from each("channel", "two names", True, "mac/spark", "mac/all", "a/b")
    yield from each("channel", "from and to differ", False, "mac/mac", "all/all")
    yield from each(
        "channel",
        "not <from>/<to>",
        False,
        "mac",
        "mac/",
        "/spark",
        "mac/spark/x",
        "mac//spark",
        "all/mac",
        "mac/trust",
        " mac/spark",
        "mac\\spark",
    )
    yield from each("id", "a channel and a seq", True, "mac/spark/1", "mac/all/999999999999999")
    yield from each(
        "id",
        "no seq of 1 to 15 digits",
        False,
        "mac/spark",
        "mac/spark/",
        "mac/spark/0",
        "mac/spark/01",
        "mac/spark/-1",
        "mac/spark/+1",
        "mac/spark/1000000000000000",
        "mac/spark/1\n",
        "mac/spark/\u0661",
        "mac/spark/1.0",
        "mac/spark/1/2",
    )
    yield from each(
        "segment", "at least six digits", True, "000001.jsonl", "999999.jsonl", "1000000.jsonl", "999999999.jsonl"
    )
    spelled = ("1.jsonl", "000000.jsonl", "0000001.jsonl", "1000000000.jsonl", "000001.JSONL", "00000\u0661.jsonl")
    yield from each("segment", "another spelling, or no number", False, *spelled)
    others = ("000001.json", "000001.jsonl.bak", "-00001.jsonl", "000001.jsonl\n", "000001.jsonl/")
    yield from each("segment", "another form", False, *others)


def encodings() -> dict[str, Any]:
    return {
        "about": "Base64, keys, signatures, beginnings and checkpoints; see README.md.",
        "base64": list(_base64()),
        "keys": list(_keys()),
        "payloads": list(_payloads()),
        "signatures": list(_signatures()),
        "beginnings": list(_beginnings()),
        "checkpoints": list(_checkpoints()),
    }


def _base64() -> Iterator[Vector]:
    def case(name: str, text: str, length: int, data: bytes | None, reason: str) -> Vector:
        shown = None if data is None else data.hex()
        return {"name": name, "text": text, "length": length, "bytes": shown, "reason": reason}

    for length, spare, data in ((64, 4, MAC.sign(LINE, b"{}")), (32, 2, MAC.public)):
        text = b64(data)
        yield case(f"{length} bytes", text, length, data, "the one spelling")
        bare, padding = text.rstrip("="), text[len(text.rstrip("=")) :]
        last = ALPHABET.index(bare[-1])
        for low in range(1, 2**spare):
            spelled = bare[:-1] + ALPHABET[last + low] + padding
            yield case(f"{length} bytes, spelling {low + 1}", spelled, length, None, "spare bits that are not zero")
        yield case(f"{length} bytes without padding", bare, length, None, "full padding")
        yield case(f"{length} bytes with too much padding", text + "=", length, None, "full padding, no more")
        yield case(f"{length} bytes and a newline", text + "\n", length, None, "no whitespace")
        yield case(f"a space before {length} bytes", " " + text, length, None, "no whitespace")
        yield case(f"a newline within {length} bytes", text[:8] + "\n" + text[8:], length, None, "no whitespace")
        yield case(f"{length} bytes for URLs", "-_" + text[2:], length, None, "another alphabet")
        yield case(f"{length} bytes where {length + 1} are expected", text, length + 1, None, "another length")
        yield case(f"{length - 1} bytes where {length} are expected", b64(data[:-1]), length, None, "another length")
        yield case(f"beyond ASCII, for {length} bytes", "\u0391" + text[1:], length, None, "another alphabet")
    yield case("nothing where 32 are expected", "", 32, None, "another length")
    yield case("zeros", b64(bytes(32)), 32, bytes(32), "any bytes are bytes")


def _keys() -> Iterator[Vector]:
    def case(name: str, public: bytes, usable: bool, reason: str) -> Vector:
        made: Vector = {"name": name, "public": public.hex(), "usable": usable, "reason": reason}
        if usable:
            made["id"] = hashlib.sha256(b"wire/v1/key" + public).hexdigest()[:32]
            made["fingerprint"] = "SHA256:" + b64(hashlib.sha256(public).digest()).rstrip("=")
            made["words"] = words(hashlib.sha256(public).digest())
        return made

    prime = 2**255 - 19
    yield case("mac's", MAC.public, True, "an honest key")
    yield case("a point of the owner's choice", without_torsion()[0], True, "a point of the prime-order subgroup")
    yield case("31 bytes", MAC.public[:31], False, "length comes before anything else")
    yield case("33 bytes", MAC.public + b"\0", False, "length comes before anything else")
    yield case("no bytes", b"", False, "length comes before anything else")
    small = {
        "the neutral element": (1).to_bytes(32, "little"),
        "the point of order 2": (prime - 1).to_bytes(32, "little"),
        "a point of order 4": bytes(32),
        "the other point of order 4": bytes(31) + b"\x80",
        "a point of order 8": bytes.fromhex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"),
    }
    for name, public in small.items():
        yield case(name, public, False, "small order")
    yield case("a point of mixed order", with_torsion()[0], False, "not in the prime-order subgroup")
    yield case("y is the prime plus one", (prime + 1).to_bytes(32, "little"), False, "not canonical")
    yield case("the neutral element with a sign", bytes([1, *([0] * 30), 0x80]), False, "not canonical")
    yield case("y is no coordinate of a point", (2).to_bytes(32, "little"), False, "not on the curve")
    yield case("all bits", b"\xff" * 32, False, "not canonical")


def _payloads() -> Iterator[Vector]:
    cases = {
        "nothing of no type": (b"", b""), "a line": (LINE, b'{"v":1}'), "text beyond ASCII": (LINE, "é".encode()),
        "spaces and newlines": (b"a b", b" \n "), "ten bytes": (b"t", b"0123456789"), "not UTF-8": (TRUST, b"\xff\0"),
    }  # fmt: skip
    for name, (payload_type, payload) in cases.items():
        encoded = pae(payload_type, payload)
        yield {"name": name, "type": payload_type.decode(), "payload": payload.hex(), "encoded": encoded.hex()}


def _signatures() -> Iterator[Vector]:
    def case(name: str, signature: bytes, holds: bool, reason: str, public: bytes = MAC.public) -> Vector:
        return {
            "name": name, "public": public.hex(), "type": LINE.decode(), "payload": payload.hex(),
            "signature": signature.hex(), "holds": holds, "reason": reason,
        }  # fmt: skip

    payload = b'{"v":1}'
    message = pae(LINE, payload)
    good = MAC.sign(LINE, payload)
    yield case("an honest one", good, True, "RFC 8032")
    for length in (0, 63, 65, 128):
        yield case(f"of {length} bytes", (good * 2)[:length], False, "64 bytes")
    for name, kind in (("trust", TRUST), ("proof", PROOF), ("presence", PRESENCE)):
        yield case(f"of type {name}", MAC.sign(kind, payload), False, "made for another type")
    bare = nacl.bindings.crypto_sign(payload, nacl.bindings.crypto_sign_seed_keypair(MAC.seed)[1])[:64]
    yield case("without the encoding", bare, False, "over the bare payload")
    for length in (0, 31, 33):
        public = (MAC.public * 2)[:length]
        yield case(f"under a key of {length} bytes", good, False, "32 bytes", public)
    yield case("of another key", Key("spark").sign(LINE, payload), False, "does not hold")
    for bit in (0, 255, 256, 511):
        flipped = bytearray(good)
        flipped[bit // 8] ^= 1 << bit % 8
        yield case(f"bit {bit} changed", bytes(flipped), False, "does not hold")
    high = good[:32] + (int.from_bytes(good[32:], "little") + ORDER).to_bytes(32, "little")
    yield case("S plus the order", high, False, "S is below the order")
    choices = {
        "R of the neutral element": ((1).to_bytes(32, "little"), 0), "R of order 8": (_order_8(), 0),
        "R in another encoding": ((2**255 - 18).to_bytes(32, "little"), 0), "R of mixed order": with_torsion(),
    }  # fmt: skip
    for name, (encoded, scalar) in choices.items():
        yield case(name, MAC.sign_with_r(encoded, scalar, message), False, "R is no small or mixed order")
    chosen = MAC.sign_with_r(*without_torsion(), message)
    yield case("R of the owner's choice", chosen, True, "any R of the prime-order subgroup")
    encoded, scalar = without_torsion()
    forged = encoded + scalar.to_bytes(32, "little")
    yield case("under the neutral element as a key", forged, False, "no usable key", (1).to_bytes(32, "little"))


def _order_8() -> bytes:
    return bytes.fromhex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a")


def _beginnings() -> Iterator[Vector]:
    for wire, channel in ((WIRE, "mac/spark"), (WIRE, "spark/mac"), (WIRE, "mac/all"), (OTHER_WIRE, "mac/spark")):
        yield {"name": f"{channel} of {wire}", "wire": wire, "channel": channel, "head": start(wire, channel).head}


def _checkpoints() -> Iterator[Vector]:
    digest = hashlib.sha256(CHAIN[2][0]).digest()
    good = checkpoint(3, CHAIN[2][0])
    yield {"name": "of version 3", "text": good, "version": 3, "hash": digest.hex(), "reason": "its one form"}
    bare, last = good[:-1], ALPHABET.index(good[-1])
    bad = {
        "another spelling": bare + ALPHABET[last + 1], "padded": good + "=", "short": bare, "no version": good[1:],
        "version 0": "0" + good[1:], "a leading zero": "0" + good, "a sign": "+" + good, "a newline": good + "\n",
        "in hexadecimal": f"3:SHA256:{digest.hex()}", "another hash": good.replace("SHA256", "SHA512"),
        "lower case": good.replace("SHA256", "sha256"), "a fingerprint alone": good[2:], "a space in front": " " + good,
        "ten digits": "1000000000" + good[1:], "digits beyond ASCII": "\u0663" + good[1:], "nothing": "",
    }  # fmt: skip
    for name, text in bad.items():
        yield {"name": name, "text": text, "version": None, "hash": None, "reason": "not the one form"}


def strict_json() -> dict[str, Any]:
    about = "Documents that are, or are not, strict JSON, with floats below `body` and with none; see README.md."
    return {"about": about, "vectors": list(_strict_json())}


def _strict_json() -> Iterator[Vector]:
    def case(name: str, data: str | bytes, reason: str, *, body: bool = False, nowhere: bool = False) -> Vector:
        raw = data if isinstance(data, bytes) else data.encode()
        return {
            "name": name, "bytes": notation(raw), "strict": body, "strict_without_floats": nowhere, "reason": reason,
        }  # fmt: skip

    def good(name: str, data: str | bytes, reason: str) -> Vector:
        return case(name, data, reason, body=True, nowhere=True)

    yield good("an empty object", "{}", "an object")
    yield good("values of all kinds", '{"a":[null,true,false,0,"x",{}]}', "an object")
    yield good("whitespace within and behind", '{ "a" :\t1 ,\r\n "b" : [ ] }\n \t\r\n', "whitespace of JSON")
    for name, data in {
        "nothing": "", "a space in front": " {}", "an array": "[]", "a string": '"x"', "two objects": "{}{}",
        "a comma behind": "{},",
        "a NUL byte behind": b"{}\0", "a byte order mark": b"\xef\xbb\xbf{}", "UTF-16": "{}".encode("utf-16-le"),
        "a form feed as whitespace": b"{\x0c}", "a no-break space as whitespace": "{\u00a0}",
        "an open object": '{"a":1',
        "an open array": '{"a":[1}', "an open string": '{"a":"x', "a trailing comma": '{"a":1,}',
        "a missing colon": '{"a" 1}',
        "a bare name": "{a:1}", "a number as name": "{1:1}", "single quotes": "{'a':1}", "a comment": '{"a":1}//',
        "words": '{"a":None}', "a raw newline in a string": '{"a":"x\ny"}', "a raw tab in a string": '{"a":"x\ty"}',
        "an unknown escape": '{"a":"\\v"}', "a short escape": '{"a":"\\u00g0"}', "an octal escape": '{"a":"\\101"}',
    }.items():  # fmt: skip
        yield case(name, data, "not one object of JSON")
    for name, data in {
        "invalid": b"\xff", "overlong": b"\xc0\xaf", "a surrogate": b"\xed\xa0\x80",
        "past the last": b"\xf4\x90\x80\x80",
        "cut": b"\xe2\x80",
    }.items():  # fmt: skip
        yield case(f"UTF-8, {name}", b'{"a":"' + data + b'"}', "not UTF-8")
    for name, data in {
        "at the top": '{"a":1,"a":1}', "deep": '{"x":[{"a":1,"b":2,"a":3}]}', "once escaped": '{"a":1,"\\u0061":1}',
        "empty": '{"":1,"":2}', "as a pair of escapes": '{"\U0001f600":1,"\\ud83d\\ude00":2}',
    }.items():  # fmt: skip
        yield case(f"a name twice, {name}", data, "names stand once")
    yield good("names that differ in normalisation", '{"\u00e9":1,"e\u0301":2}', "no normalisation")
    yield good("one name at two levels", '{"a":{"a":{"a":1}}}', "once per object")
    for text in ("9007199254740991", "-9007199254740991", "0", "-0"):
        yield good(f"integer {text}", f'{{"a":{text}}}', "within 2^53-1")
    for text in ("9007199254740992", "-9007199254740992", "1" + "0" * 5000):
        yield case(f"integer {text[:24]}", f'{{"a":{text}}}', "beyond 2^53-1")
    for text in ("1.0", "-0.0", "1e2", "1E-2", "1e-400", "0.1", "123456789012345678901234567890.5"):
        yield case(f"float {text} in body", f'{{"body":{{"x":[{text}]}}}}', "floats stand below body alone", body=True)
        yield case(
            f"float {text} beside body", f'{{"body":1,"a":[{{"body":{text}}}]}}', "only the top-level body counts"
        )
    for text in ("1e400", "-1e400", "1.7976931348623159e308", "NaN", "Infinity", "-Infinity", "-NaN"):
        yield case(f"number {text}", f'{{"body":{text}}}', "infinity, or no JSON")
    yield case("the largest double", '{"body":1.7976931348623157e308}', "finite", body=True)
    for text in ("01", "-01", "+1", ".5", "1.", "1.e1", "1e", "1e+", "--1", "0x1", "1_0", "\uff11", "1 2"):
        yield case(f"number {text}", f'{{"body":{text}}}', "no number of JSON")
    for depth in (31, 32):
        arrays = "[" * (depth - 1) + "]" * (depth - 1)
        yield good(f"{depth} levels of arrays", f'{{"a":{arrays}}}', "at most 32")
        yield good(f"{depth} levels of objects", '{"a":' * depth + "1" + "}" * depth, "at most 32")
    yield case("33 levels of arrays", '{"a":' + "[" * 32 + "]" * 32 + "}", "at most 32")
    yield case("33 levels of objects", '{"a":' * 33 + "1" + "}" * 33, "at most 32")
    yield case("33 levels in body", '{"body":' + "[" * 32 + "1.5" + "]" * 32 + "}", "at most 32")
    yield case("100,000 levels", '{"a":' + "[" * 100_000 + "]" * 100_000 + "}", "at most 32, and no crash")
    yield case("100,000 opening brackets", '{"a":' + "[" * 100_000, "too deep, and no JSON")
    yield case("100,000 opening braces", '{"a":' * 100_000, "too deep, and no JSON")
    yield good("brackets in a string", '{"a":"' + "[{" * 500 + '"}', "text is not structure")
    yield good("many arrays, side by side", '{"a":[' + "[]," * 99 + "[]]}", "depth, not number")
    for name, data in {
        "high": '{"a":"\\ud83d"}', "low": '{"a":"\\ude00"}', "reversed": '{"a":"\\ude00\\ud83d"}',
        "in a name": '{"\\udfff":1}',
        "high and text": '{"a":"\\ud83dx\\ude00"}', "twice high": '{"a":"\\ud83d\\ud83d\\ude00"}',
    }.items():  # fmt: skip
        yield case(f"a lone surrogate, {name}", data, "no text of Unicode")
    yield good("an escaped pair", '{"a":"\\uD83D\\uDE00"}', "one character")
    yield good("a backslash before a u", '{"a":"\\\\ud83d"}', "no escape of a surrogate")
    yield good("escaped control characters", '{"a":"\\u0000\\u001f\\b\\f\\n\\r\\t\\/\\"\\\\"}', "escapes of JSON")
    yield good("raw separators", '{"a":"\x7f\u0085\u2028\u2029\ufeff"}', "above U+001F nothing needs an escape")
