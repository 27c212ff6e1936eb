"""Lines changed, moved or made by somebody who may not: none is ever shown, and the honest ones go on.

In each of these a vandal pushes ordinary commits to the branch. Everybody notices it at the next look, the owner's next
commit puts the channel right, and all end with the same accepted chain.
"""

from support import hostile_host as hostile
from support.besieged import Siege, all_incidents, incidents, pin, shown, signer, tail
from support.moves import MOVES
from support.moves_signed import UNREADABLE, says
from wire.store.incidents import Incident

CHANNEL = "mac/spark"


def _goes_on(siege: Siege) -> None:
    """Let the two who are not the owner look, then everybody, the owner sending more, and let it arrive."""
    siege.sync(siege.spark, siege.lee)
    siege.send("mac", "spark", "the owner goes on")
    siege.send("lee", "mac", "and so do others")
    siege.settle()


def test_withheld_line(siege: Siege) -> None:
    # The host drops a line before anybody sees it and shows the ones behind it: they wait, and nothing is skipped.
    MOVES["a new line is held back, and the next one shown"](siege)
    siege.sync(siege.spark)
    assert not {f"{CHANNEL}/5", f"{CHANNEL}/6"} & shown(siege.spark).keys()
    assert pin(siege.spark).accepted[CHANNEL].seq == 4
    _goes_on(siege)
    assert pin(siege.spark).accepted[CHANNEL].seq == 7


def test_rewrite_seen_through_the_command_line(siege: Siege) -> None:
    # The whole of the first one by hand: what each person types, and what each command says and exits with.
    tip = siege.host.rewrite(CHANNEL, 2)
    looked = siege.spark.wire("sync", check=False)
    assert looked.status == 4
    assert f"SIGNATURE in {CHANNEL}" in looked.stderr
    assert siege.spark.wire("status", check=False).status == 4
    told = {(one["code"], one["scope"]): one for one in siege.spark.jsonl("incidents")}
    assert set(told) == {("PREFIX", CHANNEL), ("SIGNATURE", CHANNEL)}
    evidence = siege.spark.json("incidents", "show", told["SIGNATURE", CHANNEL]["id"])["evidence"]
    assert evidence["path"] == hostile.segment(CHANNEL)
    assert evidence["tip"] == tip
    read = siege.spark.wire("tail", "--all", "--json", check=False)
    assert read.status == 4
    bodies = [item["line"]["body"] for item in read.jsonl() if item.get("from") == "mac" and item["to"] == "spark"]
    assert bodies == [f"mac to spark, number {number}" for number in (1, 2, 3, 4)]
    assert siege.spark.wire("verify", "--full").status == 0
    siege.mac.wire("sync", check=False)
    siege.mac.send("spark", "the owner goes on")
    siege.mac.wire("sync")
    assert b"not mac to spark" not in (siege.host.read(hostile.segment(CHANNEL)) or b"")
    siege.spark.wire("sync", check=False)
    for one in told.values():
        siege.spark.wire("incidents", "ack", one["id"])
    new = siege.spark.jsonl("tail")
    assert [item["line"]["body"] for item in new if item.get("id") == f"{CHANNEL}/5"] == ["the owner goes on"]
    siege.sent[f"{CHANNEL}/5"] = siege.host.lines(CHANNEL)[4]
    siege.settle()
    siege.check(everyone={f"PREFIX {CHANNEL}", f"SIGNATURE {CHANNEL}"})


# Lines signed by somebody else, or for somewhere else


def test_unknown_key_between_good_lines(siege: Siege) -> None:
    # Its trust version may be on its way, so nothing is said at first; both good lines are there at once.
    siege.send("mac", "spark", "before")
    siege.sync(siege.mac)
    siege.host.append(CHANNEL, siege.host.author(CHANNEL).only())
    for _ in range(2):
        siege.sync(siege.spark)
    assert "KEY_UNKNOWN mac/spark" not in incidents(siege.spark)
    siege.sync(siege.spark)
    assert "KEY_UNKNOWN mac/spark" in incidents(siege.spark), "it lasts, and nobody was told"
    assert not _unknown(siege).ended, "it still stands there"
    for _ in range(3):
        siege.sync(siege.spark)
    assert _unknown(siege).count == 1, "one condition, counted with every look"
    _goes_on(siege)
    assert _unknown(siege).ended, "the owner put it right"
    siege.check(spark={"KEY_UNKNOWN mac/spark"})


def _unknown(siege: Siege) -> Incident:
    (found,) = all_incidents(siege.spark, "KEY_UNKNOWN")
    return found


# What the owner of the key signed, and nobody can read


def test_what_no_two_parsers_read_alike(siege: Siege) -> None:
    # Brackets without end, members twice, numbers that are none, escapes: each keeps its place and says why it cannot
    # be read, stops nobody, and no part of it is shown.
    MOVES["lines that nobody can read"](siege)
    siege.sync(siege.mac)
    siege.send("mac", "spark", "readable again")
    siege.settle()
    items = {item["id"]: item for item in tail(siege.spark).jsonl()}
    for number, why in enumerate(UNREADABLE, 5):
        item = items[f"{CHANNEL}/{number}"]
        assert (item["verdict"], why in item["why"], "line" in item) == ("unreadable", True, False), item["why"]
    assert items[f"{CHANNEL}/{len(UNREADABLE) + 5}"]["verdict"] == "verified"
    result = siege.spark.wire("tail", "--all", check=False)
    assert b"\x1b" not in result.out + result.err


def test_time_that_no_calendar_has(siege: Siege) -> None:
    # A time is a claim and decides nothing: it may be of 2099, or of the 99th of a 99th month.
    MOVES["lines of other times"](siege)
    siege.settle(rounds=1)
    items = {item["id"]: item for item in tail(siege.spark).jsonl()}
    assert {items[f"{CHANNEL}/{number}"]["verdict"] for number in (5, 6, 7)} == {"verified"}
    assert "clock-ahead" in items[f"{CHANNEL}/5"]["flags"]
    assert siege.spark.wire("tail", "--all", check=False).status in (0, 4)


def test_trust_that_goes_down(siege: Siege) -> None:
    # A line of the owner's key names an older trust version than the line before it: valid, shown, and told.
    MOVES["a line of an older trust"](siege)
    siege.settle(rounds=1)
    items = {item["id"]: item for item in tail(siege.spark).jsonl()}
    assert items[f"{CHANNEL}/6"]["verdict"] == "verified"
    assert f"{CHANNEL}/6" in siege.spark.wire("incidents", "--json").stdout
    # The first line of what a fetch brings is compared with what was accepted before.
    author = siege.host.author(CHANNEL, signer(siege.mac))
    says(siege, author, author.line("and now?", trust=siege.chain.at(2).reference))
    siege.settle(rounds=1)
    assert f"{CHANNEL}/8" in siege.spark.wire("incidents", "--json").stdout
