"""Which files below `requests/` have nothing left to ask, and which names look alike.

On the wire of the tables mac has a key and had another one before, spark lost its key, left is removed, and review is
a group.
"""

import pytest

from support.trusts import HEAD, NOW, ROOT, begun, edited, enrolled, grouped, retired, signed, signer, unchanged
from wire.keys import requests, rotations
from wire.keys.alike import alike
from wire.keys.answered import is_free, over
from wire.keys.trust import Chain
from wire.protocol.encoding import Signer

MAC, MAC_2, NEW, EVE = signer("mac"), signer("mac-2"), signer("new"), signer("eve")


def made() -> Chain:
    chain = begun()
    for name in ("mac", "spark", "left"):
        chain = enrolled(chain, name, signer(name))
    chain = grouped(chain, "review", ["mac"])
    chain = retired(chain, "mac", MAC, "retired", {"mac/spark": (2, HEAD)}, next_key=MAC_2)
    chain = retired(chain, "spark", signer("spark"), "revoked", {})
    chain = retired(chain, "left", signer("left"), "revoked", {})
    raw = edited(unchanged(chain), lambda fields: fields["agents"]["left"].update(status="removed"))
    return chain.extend(raw, signed(raw, ROOT))


CHAIN = made()


def asks(name: str, key: Signer = NEW, wire: str = CHAIN.wire) -> tuple[str, bytes]:
    raw = requests.make(key, wire=wire, name=name, role="agent", created=NOW)
    return requests.file_name(name, key.key_id), raw


def rotates(name: str, old: Signer, new: Signer = NEW, wire: str = CHAIN.wire) -> tuple[str, bytes]:
    raw = rotations.make(old, new, wire=wire, name=name, role="agent", positions={}, created=NOW)
    return requests.file_name(name, new.key_id), raw


FILES: dict[str, tuple[str, bytes | None, bool]] = {
    "a new name": (*asks("lee"), False),
    "the name of an agent that lost its key": (*asks("spark"), False),
    "the name of an agent that has one": (*asks("mac"), True),
    "the name of a removed agent": (*asks("left"), True),
    "the name of a group": (*asks("review"), True),
    "a key that is somebody's": (*asks("lee", MAC_2), True),
    "a key that was somebody's": (*asks("lee", signer("left")), True),
    "the file of a key that is somebody's, whatever it holds": (f"mac.{MAC_2.key_id}.json", b"", True),
    "another wire's": (*asks("lee", wire="0" * 32), True),
    "another name's file": (asks("lee")[0], asks("zoe")[1], True),
    "no request": (asks("lee")[0], b"hello", True),
    "too large to be one": (asks("lee")[0], None, True),
    "a name without an end": ("lee", b"", True),
    "a rotation of the active key": (*rotates("mac", MAC_2), False),
    "a rotation of a key that was replaced": (*rotates("mac", MAC), True),
    "a rotation by a stranger": (*rotates("mac", EVE), True),
    "a rotation of a key that was revoked": (*rotates("spark", signer("spark")), True),
    "a rotation of nobody's key": (*rotates("lee", EVE), True),
    "a rotation on another wire": (*rotates("mac", MAC_2, wire="0" * 32), True),
}


@pytest.mark.parametrize(("file_name", "raw", "gone"), FILES.values(), ids=FILES)
def test_what_has_nothing_left_to_ask(file_name: str, raw: bytes | None, gone: bool) -> None:
    assert over(CHAIN, file_name, raw) is gone


def test_names_that_can_be_asked_for() -> None:
    names = ("lee", "spark", "mac", "left", "review")
    assert [name for name in names if is_free(CHAIN, name)] == ["lee", "spark"]


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("spark", "5park"), ("spark-1", "sparkl"), ("b0b", "8ob"), ("mac", "rnac"), ("walt", "vvalt"), ("dan", "clan"),
        ("ai", "al"), ("in", "ln"), ("build-bot", "buildbot"), ("0158i-", "olsbl"),
    ],
)  # fmt: skip
def test_names_that_look_alike(name: str, other: str) -> None:
    assert alike(name, ["zoe", other, name]) == (other,)
    assert alike(other, [name, other]) == (name,)


def test_names_that_do_not() -> None:
    assert alike("mac", ["mac", "max", "mark", "spark", "macs"]) == ()
    assert alike("cia", ["da"]) == ()
