"""What proves how far a message came: a table of pins, presences, acks and answers. Wrong heads prove nothing."""

from collections.abc import Mapping
from itertools import product
from typing import Any

import pytest

from wire.protocol.encoding import Signer, new_seed
from wire.protocol.line import genesis, parse, seal
from wire.protocol.presence import Presence
from wire.store.proofs import Proof, of_ack, of_presence
from wire.store.receipts import Answer, Known
from wire.verbs.receipts import Reached, Recipient, Traced, ladder
from wire.verbs.states import STATES, least

WIRE = "0" * 32
HEADS = {n: f"{n:064x}" for n in range(1, 6)}
OURS = "mac/spark"


def heads(channel: str, seq: int) -> str | None:
    return HEADS.get(seq) if channel in (OURS, "mac/all") else None


def presence(channels: Mapping[str, tuple[int, str, int]], agent: str = "spark") -> Presence:
    zeros = "0" * 32
    return Presence(WIRE, agent, zeros, 1, "", "idle", "", None, "T0", 30.0, "1:" + "0" * 16, channels, zeros, b"")


PRESENCES: dict[str, tuple[dict[str, tuple[int, str, int]], list[tuple[str, int]]]] = {
    "nothing is said of our channel": ({}, []),
    "it accepted three and read none": ({OURS: (3, HEADS[3], 0)}, [("delivered", 3)]),
    "it accepted three and read two": ({OURS: (3, HEADS[3], 2)}, [("delivered", 3), ("read", 2)]),
    "it read everything": ({OURS: (5, HEADS[5], 5)}, [("delivered", 5), ("read", 5)]),
    "a head that is not ours proves nothing": ({OURS: (3, "f" * 64, 3)}, []),
    "the head of another line of ours proves nothing": ({OURS: (3, HEADS[2], 3)}, []),
    "a line behind our end proves nothing": ({OURS: (6, HEADS[5], 6)}, []),
    "no line at all proves nothing": ({OURS: (0, genesis(WIRE, OURS), 0)}, []),
    "more read than accepted counts as far as accepted": (
        {OURS: (2, HEADS[2], 4)},
        [("delivered", 2), ("read", 2)],
    ),
    "what it says of others' channels is not ours": ({"studio/spark": (3, HEADS[3], 3)}, []),
    "a channel to all counts for the one who says it": (
        {"mac/all": (1, HEADS[1], 1), OURS: (2, "0" * 64, 2)},
        [("delivered", 1), ("read", 1)],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("channels", "proved"), list(PRESENCES.values()), ids=list(PRESENCES))
def test_what_a_presence_proves(channels: dict[str, Any], proved: list[tuple[str, int]]) -> None:
    found = list(of_presence(presence(channels), {"mac"}, heads))
    assert [(one.state, one.seq) for one in found] == proved
    assert all(one.agent == "spark" and one.head == HEADS[one.seq] for one in found)


ACKS: dict[str, tuple[object, str, int | None]] = {
    "our line": ([3, HEADS[3]], "mac", 3),
    "another head": ([3, "f" * 64], "mac", None),
    "the head of another line": ([3, HEADS[4]], "mac", None),
    "behind our end": ([9, HEADS[5]], "mac", None),
    "no number": (["3", HEADS[3]], "mac", None),
    "no ack": (None, "mac", None),
    "to somebody else": ([3, HEADS[3]], "studio", None),
}


@pytest.mark.parametrize(("ack", "to", "proved"), list(ACKS.values()), ids=list(ACKS))
def test_what_an_ack_proves(ack: object, to: str, proved: int | None) -> None:
    raw = seal(
        Signer(new_seed()), wire=WIRE, sender="spark", recipient=to, seq=1, prev=genesis(WIRE, f"spark/{to}"),
        ts="2026-11-29T11:20:00.123Z", trust="1:" + "0" * 16, type="message",
    )  # fmt: skip
    found = of_ack(parse(raw[:-1]), ack, {"mac"}, heads)
    assert found == (None if proved is None else Proof(OURS, "spark", "delivered", proved, HEADS[proved]))


BASES = [[Reached(state, f"at {state}", "here") for state in STATES[: n + 1]] for n in range(3)]
DELIVERED, READ = Known("t-delivered", "presence"), Known("t-read", "presence")
ANSWER = Answer("spark", "spark/mac/7", "t-acked")


@pytest.mark.parametrize(
    ("base", "delivered", "read", "answer"), list(product(BASES, (None, DELIVERED), (None, READ), (None, ANSWER)))
)
def test_every_mixture_of_proofs(
    base: list[Reached], delivered: Known | None, read: Known | None, answer: Answer | None
) -> None:
    states = ladder(base, delivered, read, answer)
    furthest = "acked" if answer else "read" if read else "delivered" if delivered else base[-1].state
    # Never a later state than what is proved, no gap below it, and no moment that nobody told.
    assert [one.state for one in states] == list(STATES[: STATES.index(furthest) + 1])
    told = {one.state: one.since for one in base}
    told |= {"delivered": DELIVERED.when} if delivered else {}
    told |= {"read": READ.when} if read else {}
    told |= {"acked": ANSWER.seen} if answer else {}
    assert {one.state: one.since for one in states} == {one.state: told.get(one.state) for one in states}


def test_several_recipients_have_reached_what_the_last_of_them_has() -> None:
    from wire.store.receipts import Kept

    ways = {"spark": BASES[2], "studio": [*BASES[2], Reached("delivered", "t", "presence")], "bot": BASES[2]}
    line = Kept("mac/all", 1, HEADS[1], "", "", "message", 1)
    traced = Traced(line, tuple(Recipient(name, tuple(way)) for name, way in ways.items()))
    assert traced.state == "pushed"
    assert traced.missing("delivered") == ("spark", "bot")
    assert traced.missing("pushed") == ()
    assert least(["acked", "stored", "read"]) == "stored"
