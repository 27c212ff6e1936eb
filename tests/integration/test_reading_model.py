"""What counts as read, against a model: a set of messages that were taken, whatever way and in whatever order.

Each history has a reader of its own on the same messages, does what agents do (list, read by id, wait, tail, and end in
the middle of each of them), and after each step the unread messages are exactly those that were never taken.
"""

import random
from itertools import islice

import pytest

from support.sizes import size
from support.team import Team
from wire import Wire
from wire.verbs.reading import Filters

HISTORIES = size(30, 1000, "histories of a reader")
STEPS = 12


def conversation(team: Team) -> list[str]:
    """Fill several channels, with lines between them that are not for spark, and return what is."""
    team.mac.wire("group", "set", "others", "mac")
    for n in range(4):
        team.mac.send("spark", f"a{n}", "--type", ("message", "request")[n % 2])
        team.mac.send("others", "not for spark")
        team.mac.send("all", f"b{n}")
        team.mac.send("all", '{"state": "idle"}', "--json", "--type", "heartbeat")
    team.mac.wire("group", "set", "others", "mac", "spark")
    team.mac.send("others", "for spark, too")
    team.mac.send("spark", "a4", "--re", "mac/spark/1", "--type", "reply")
    team.settle()
    return [item.id for item in Wire.open(environ=team.spark.environ()).inbox().items]


def step(spark: Wire, reader: str, chance: random.Random, everything: list[str]) -> set[str]:
    """Do one thing that agents do, and return the messages that were taken by it."""
    ends_well = chance.random() < 0.8
    kind = chance.choice(["list", "some", "ids", "wait", "tail", "peek"])
    if kind == "list":
        box = spark.inbox(reader=reader, limit=chance.randint(1, 5))
        if ends_well:
            box.save()
            return {item.id for item in box.items}
    elif kind == "some":
        box = spark.inbox(reader=reader)
        shown = [item for item in box.items if chance.random() < 0.3]
        if ends_well:
            box.save(shown)
            return {item.id for item in shown}
    elif kind == "ids":
        picked = spark.read(chance.sample(everything, chance.randint(1, 3)), reader=reader)
        if ends_well:
            picked.save()
            return {item.id for item in picked.items}
    elif kind == "wait":
        wanted = Filters(types=frozenset({chance.choice(["request", "reply"])}))
        waited = spark.wait_for_message(wanted, timeout=0, reader=reader, limit=chance.randint(1, 3))
        if ends_well:
            waited.inbox.save()
            return {item.id for item in waited.inbox.items}
    elif kind == "tail":
        found = spark.tail(Filters(), reader=reader)
        many = chance.randint(1, 4)
        taken = [item.id for item in islice(found.items, many)]
        if ends_well:
            found.save()
            # Of the last one nobody knows whether it was handled, unless the next was asked for.
            return set(taken if len(taken) < many else taken[:-1])
    else:
        list(spark.tail(Filters(), reader=reader, peek=True).items)
        list(islice(spark.monitor(reader=reader), 1))
    return set()


@pytest.mark.parametrize("part", range(3))
def test_the_unread_messages_are_those_that_were_never_taken(team: Team, part: int) -> None:
    everything = conversation(team)
    assert len(everything) == 10
    spark = Wire.open(environ=team.spark.environ())
    for seed in range(part, HISTORIES, 3):
        chance, reader = random.Random(seed), f"r{seed}"
        taken: set[str] = set()
        for number in range(STEPS):
            taken |= step(spark, reader, chance, everything)
            left = [item.id for item in spark.inbox(reader=reader).items]
            assert left == [one for one in everything if one not in taken], f"history {seed}, step {number}"
        spark.inbox(reader=reader).save()
        assert spark.inbox(reader=reader).total == 0
    assert spark.inbox().total == len(everything), "the agent's own place has not moved"
