"""Presences: what is sealed is taken, and whatever is odd about one is refused; and their files."""

import os
from pathlib import Path
from typing import Any

import pytest

from wire.errors import UsageError
from wire.protocol import presence as presences
from wire.protocol import strictjson
from wire.protocol.encoding import LINE_TYPE, PRESENCE_TYPE, Signer, b64, verify
from wire.protocol.line import LineError
from wire.protocol.presence import PRESENCE_MAX, Presence, check_declared, opened, parse, seal
from wire.store import presences as store
from wire.store.paths import WirePlaces
from wire.store.presences import Declared, Heard, Refusal, stale

SPARK = Signer(bytes(range(32)))
HEAD = "ab" * 32
SAYS: dict[str, Any] = {
    "wire": "0" * 32,
    "agent": "spark",
    "instance": "1" * 32,
    "counter": 7,
    "ts": "2026-11-29T11:20:00.123Z",
    "trust": "2:0011223344556677",
    "state": "busy",
    "tier": "T1",
    "interval": 270.0,
    "channels": {"mac/spark": (3, HEAD, 2), "mac/all": (1, HEAD, 0)},
    "note": "lint & tests é",
    "eta": "2026-11-29T12:00:00.000Z",
}


def sealed(**changes: Any) -> bytes:
    return seal(SPARK, **{**SAYS, **changes})


def signed(raw: bytes) -> bytes:
    """Return members, which are written without key and signature, as a presence that spark signed."""
    body = raw[:-1] + b',"key":"%s"}' % SPARK.key_id.encode()
    return body[:-1] + b',"sig":"%s"}' % b64(SPARK.sign(PRESENCE_TYPE, body)).encode()


def members(**changes: Any) -> bytes:
    found = strictjson.loads(sealed()[:-1])
    del found["key"], found["sig"]
    return strictjson.dumps({**found, **changes})


def test_what_is_sealed_is_read_back_and_verifies_as_a_presence_alone() -> None:
    raw = sealed()
    assert raw.endswith(b"}\n")
    assert raw.count(b"\n") == 1
    found = parse(raw[:-1])
    assert {name: getattr(found, name) for name in SAYS} == SAYS
    assert (found.key, found.raw) == (SPARK.key_id, raw[:-1])
    trailer = opened(raw[:-1])
    assert verify(SPARK.public, trailer.signature, PRESENCE_TYPE, trailer.body_bytes)
    assert not verify(SPARK.public, trailer.signature, LINE_TYPE, trailer.body_bytes)


def test_nothing_said_needs_no_member() -> None:
    raw = sealed(note="", eta=None, channels={})
    assert b"note" not in raw
    assert b"eta" not in raw
    found = parse(raw[:-1])
    assert (found.note, found.eta, found.channels) == ("", None, {})


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("another version", {"v": 2}),
        ("a version that is true", {"v": True}),
        ("a wire id that is none", {"wire": "0" * 31}),
        ("a reserved name", {"agent": "all"}),
        ("an instance in capitals", {"instance": "A" * 32}),
        ("counter 0", {"counter": 0}),
        ("a counter that is true", {"counter": True}),
        ("a counter of 16 digits", {"counter": 10**15}),
        ("a counter as text", {"counter": "7"}),
        ("a time without its zone", {"ts": "2026-11-29T11:20:00.123"}),
        ("a trust that is none", {"trust": "2"}),
        ("an unknown state", {"state": "asleep"}),
        ("a state in a list", {"state": ["idle"]}),
        ("an unknown tier", {"tier": "T9"}),
        ("a promise of nothing", {"interval_ms": 0}),
        ("a promise of more than a day", {"interval_ms": 86_400_001}),
        ("a note that is too long", {"note": "x" * 201}),
        ("a note that is a list", {"note": []}),
        ("an eta in words", {"eta": "soon"}),
        ("channels in a list", {"channels": []}),
        ("a channel of its own", {"channels": {"spark/mac": [1, HEAD, 0]}}),
        ("a channel that is none", {"channels": {"mac": [1, HEAD, 0]}}),
        ("a place that is a number", {"channels": {"mac/spark": 5}}),
        ("an instance that is a number", {"instance": 5}),
        ("a place without read", {"channels": {"mac/spark": [1, HEAD]}}),
        ("read beyond what was accepted", {"channels": {"mac/spark": [1, HEAD, 2]}}),
        ("a head that is none", {"channels": {"mac/spark": [1, HEAD[:-1], 0]}}),
        ("a place before the first line", {"channels": {"mac/spark": [0, HEAD, 0]}}),
        ("an unknown member", {"mood": "fine"}),
    ],
)
def test_what_is_not_as_it_must_be_is_refused(name: str, changes: dict[str, Any]) -> None:
    raw = signed(members(**changes))
    trailer = opened(raw)
    assert verify(SPARK.public, trailer.signature, PRESENCE_TYPE, trailer.body_bytes)
    with pytest.raises(LineError) as refused:
        parse(raw)
    assert refused.value.code == "SCHEMA", name


@pytest.mark.parametrize(
    ("name", "raw", "code"),
    [
        ("nothing", b"", "SIGNATURE"),
        ("no signature", members(), "SIGNATURE"),
        ("another spelling of the signature", sealed()[:-5] + b'B=="}', "SIGNATURE"),
        ("too long", b"{" + b" " * PRESENCE_MAX, "SIZE"),
        ("a duplicate key", signed(members()[:-1] + b',"v":1}'), "SCHEMA"),
        ("a float", signed(members(counter=7.5)), "SCHEMA"),
        ("another order", signed(strictjson.dumps(dict(reversed(strictjson.loads(members()).items())))), "SCHEMA"),
        ("no UTF-8", signed(members().replace("é".encode(), b"\xe9")), "SCHEMA"),
    ],
)
def test_bytes_that_are_no_presence_are_refused(name: str, raw: bytes, code: str) -> None:
    with pytest.raises(LineError) as refused:
        parse(raw)
    assert refused.value.code == code, name


def test_channels_beyond_the_limit_are_left_out_from_the_end() -> None:
    channels = {f"{n:032d}/spark": (10**14, HEAD, 10**14) for n in range(2000)}
    raw = sealed(channels=channels)
    assert PRESENCE_MAX - 1000 < len(raw) <= PRESENCE_MAX
    kept = list(parse(raw[:-1]).channels)
    assert kept == list(channels)[: len(kept)]
    # Not one that would still fit behind one that does not: the order is the sender's.
    first = dict(list(channels.items())[: len(kept) + 1])
    assert list(parse(sealed(channels={**first, "a/spark": (1, HEAD, 0)})[:-1]).channels) == kept


def test_no_presence_is_too_long_whatever_is_left_out() -> None:
    channels = {f"{n:032d}/spark": (10**14, HEAD, 10**14) for n in range(500)}
    sizes = [len(sealed(channels=channels, note="n" * length)) for length in range(1, 160, 4)]
    assert PRESENCE_MAX - 250 < max(sizes) <= PRESENCE_MAX


def test_what_no_reader_would_take_is_not_sealed() -> None:
    for changes in ({"note": "\ud800"}, {"state": "asleep"}, {"counter": 0}, {"channels": {"spark/mac": (1, HEAD, 0)}}):
        with pytest.raises(UsageError):
            sealed(**changes)
    with pytest.raises(UsageError) as refused:
        sealed(note="\udfff")
    assert refused.value.reason == "bad-content"
    for number in ("1", "9" * 9):
        assert parse(sealed(trust=f"{number}:{'f' * 16}")[:-1]).trust.startswith(number)
    for trust in (f"{'9' * 10}:{'f' * 16}", f"0:{'f' * 16}", f"1:{'f' * 15}"):
        with pytest.raises(UsageError):
            sealed(trust=trust)
    assert parse(sealed(interval=0.0, counter=1)[:-1]).interval == 0.001
    assert parse(sealed(interval=1e9)[:-1]).interval == presences.INTERVAL_MAX
    assert parse(sealed(interval=0.2)[:-1]).interval == 0.2


# What is kept


@pytest.fixture
def places(tmp_path: Path) -> WirePlaces:
    return WirePlaces(str(tmp_path / "state"), "team", str(tmp_path / "clone"))


def heard(**changes: Any) -> Presence:
    return parse(sealed(**changes)[:-1])


def test_what_was_heard_is_there_again_and_only_the_newest(places: WirePlaces) -> None:
    assert store.load(places) == {}
    assert store.load_one(places, "spark") is None
    store.keep(places, heard(), 1000.0)
    store.keep(places, heard(counter=8), 1030.25)
    store.keep(places, heard(agent="mac", channels={}), 5.0)
    assert store.load(places) == {
        "mac": Heard(heard(agent="mac", channels={}), 5.0),
        "spark": Heard(heard(counter=8), 1030.25),
    }
    assert os.stat(os.path.join(places.root, "presences", "spark")).st_mode & 0o777 == 0o600


@pytest.mark.parametrize("damage", [b"", b"\0" * 700, b"1000.0\n", b"soon\n" + sealed(), b"1000.0\n" + sealed()[:-40]])
def test_a_damaged_file_is_an_agent_that_was_not_heard_of(places: WirePlaces, damage: bytes) -> None:
    store.keep(places, heard(), 1000.0)
    path = Path(places.root, "presences", "spark")
    path.write_bytes(damage)
    assert store.load(places) == {}
    path.rename(path.with_name("mac"))
    path.with_name("mac").write_bytes(b"1000.0\n" + sealed())
    assert store.load(places) == {}, "a presence under another name was taken"


def test_stale_is_three_missed_promises_at_our_last_look() -> None:
    one = Heard(heard(interval=30.0), 1000.0)
    assert not stale(one, 1090.0)
    assert stale(one, 1090.1)
    assert not stale(one, None), "who never looked cannot know"
    assert not stale(one, 900.0), "heard of by another way than our last look"


def test_what_an_agent_says_is_there_again(places: WirePlaces) -> None:
    assert store.declared(places, "spark") == Declared("idle", "", None)
    says = Declared("blocked", "waits for a review \u202e", "2026-11-29T12:00:00.000Z")
    store.declare(places, "spark", says)
    assert store.declared(places, "spark") == says
    assert store.declared(places, "mac") == Declared()
    for wrong in (Declared("asleep"), Declared(note="x" * 201), Declared(eta="soon"), Declared(note="\ud800")):
        with pytest.raises(UsageError):
            store.declare(places, "spark", wrong)
    assert store.declared(places, "spark") == says
    for damage in (b"", b"[]", b'{"state":"asleep"}', b'{"state":[]}', b'{"note":1}', b"\0\0"):
        Path(places.root, "presences", "spark.says").write_bytes(damage)
        assert store.declared(places, "spark") == Declared()
    for state, note, eta, reason in (
        ("idle", "", "2026-11-29", "bad-eta"),
        ("asleep", "", None, "bad-state"),
        ("idle", "x" * 201, None, "bad-note"),
    ):
        with pytest.raises(UsageError) as caught:
            check_declared(state, note, eta)
        assert caught.value.reason == reason
    check_declared("paused", "x" * 200, "2026-11-29T12:00:00.000Z")
    check_declared("paused", "", None)


def test_a_refusal_is_there_until_it_is_over(places: WirePlaces) -> None:
    store.refuse(places, None)
    assert store.refusal(places) is None
    store.refuse(places, Refusal(1.0, 2.0, "hidden ref", 3.0, True))
    assert store.refusal(places) == Refusal(1.0, 2.0, "hidden ref", 3.0, True)
    store.refuse(places, None)
    assert store.refusal(places) is None
    Path(places.root, "presences", "refused.json").write_bytes(b'{"since":"x"}')
    assert store.refusal(places) is None
