"""Lines changed, moved or made by somebody who may not: none is ever shown, and the honest ones go on.

In each of these a vandal pushes ordinary commits to the branch. Everybody notices it at the next look, the owner's next
commit puts the channel right, and all end with the same accepted chain.
"""

from support import hostile_host as hostile
from support.besieged import Siege, all_incidents, incidents, pin, shown, signer, site, tail
from wire.store.incidents import Incident

CHANNEL = "mac/spark"


def _goes_on(siege: Siege) -> None:
    """Let the two who are not the owner look, then everybody, the owner sending more, and let it arrive."""
    siege.sync(siege.spark, siege.lee)
    siege.send("mac", "spark", "the owner goes on")
    siege.send("lee", "mac", "and so do others")
    siege.settle()


# Changes of what was there


def test_reorder_of_lines_that_nobody_has_seen(siege: Siege) -> None:
    # Whoever sees them in the wrong order takes the first one, finds a gap, and gets the rest from the owner.
    siege.send("mac", "spark", "five")
    siege.send("mac", "spark", "six")
    siege.sync(siege.mac)
    siege.host.reorder(CHANNEL, 5)
    siege.sync(siege.spark)
    assert f"{CHANNEL}/5" in shown(siege.spark)
    _goes_on(siege)
    siege.check(
        spark={f"GAP {CHANNEL}"},
        lee={f"GAP {CHANNEL}"},
        mac={f"PREFIX {CHANNEL}", f"REPLAY {CHANNEL}"},
    )


def test_withheld_line(siege: Siege) -> None:
    # The host drops a line before anybody sees it and shows the ones behind it: they wait, and nothing is skipped.
    siege.send("mac", "spark", "five")
    siege.send("mac", "spark", "six")
    siege.sync(siege.mac)
    siege.host.delete(CHANNEL, 5)
    siege.sync(siege.spark)
    assert not {f"{CHANNEL}/5", f"{CHANNEL}/6"} & shown(siege.spark).keys()
    _goes_on(siege)
    # That line 5 had been there, and was taken away, they learn from the commits on the way.
    siege.check(everyone={f"GAP {CHANNEL}", f"PREFIX {CHANNEL}"}, mac={f"PREFIX {CHANNEL}"})


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


# Lines that nobody may have signed


def test_spelling_of_a_line_that_is_new(siege: Siege) -> None:
    # The same on the first sight of a line: nobody takes the wrong spelling, and everybody takes the right one later.
    siege.send("mac", "spark", "five")
    siege.sync(siege.mac)
    raw = siege.host.lines(CHANNEL)[-1]
    other = hostile.spellings(hostile.signature_text(raw))[7]
    siege.host.rewrite(CHANNEL, 5, lambda _: hostile.with_signature(hostile.signed_part(raw), other)[:-1])
    _goes_on(siege)
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


def test_deep_nesting(siege: Siege) -> None:
    # 30,000 brackets, validly signed: the line keeps its place, is shown as unreadable, and stops nobody.
    deep = b'"body":' + b"[" * 30_000 + b"]" * 30_000 + b","
    _signed_by_mac(siege, deep)
    _unreadable(siege, "nesting")


def test_duplicate_keys(siege: Siege) -> None:
    # Two bodies: no component may show the first one while another shows the last.
    _signed_by_mac(siege, b'"body":"yes","body":"no",')
    _unreadable(siege, "duplicate")


def test_duplicate_of_a_fixed_member(siege: Siege) -> None:
    # The place is read by position, so that a second `seq` moves nothing.
    _signed_by_mac(siege, b'"seq":99,"from":"lee","body":"which?",')
    _unreadable(siege, "")


def test_not_a_number(siege: Siege) -> None:
    _signed_by_mac(siege, b'"body":{"n":NaN},')
    _unreadable(siege, "NaN")


def test_no_json_at_all(siege: Siege) -> None:
    _signed_by_mac(siege, b'"body":}{,')
    _unreadable(siege, "JSON")


def test_terminal_escapes_in_an_unreadable_line(siege: Siege) -> None:
    _signed_by_mac(siege, b'"body":"\x1b[2J\x1b]0;owned\x07",')
    siege.settle()
    result = siege.spark.wire("tail", "--all", check=False)
    assert b"\x1b" not in result.out + result.err


def _signed_by_mac(siege: Siege, middle: bytes) -> None:
    """Publish a line with the owner's key that his tools would not make, and one that they made behind it."""
    author = siege.host.author(CHANNEL, signer(siege.mac))
    raw = author.line(middle=middle)
    siege.host.append(CHANNEL, raw)
    siege.sent[f"{CHANNEL}/5"] = raw[:-1]
    siege.sync(siege.mac)
    siege.send("mac", "spark", "readable again")


def _unreadable(siege: Siege, why: str) -> None:
    siege.settle()
    result = tail(siege.spark)
    items = {item["id"]: item for item in result.jsonl()}
    assert items[f"{CHANNEL}/5"]["verdict"] == "unreadable"
    assert why in items[f"{CHANNEL}/5"]["why"]
    assert items[f"{CHANNEL}/6"]["verdict"] == "verified"
    schema = f"SCHEMA {CHANNEL}"
    # For mac the line is one that its own state did not know.
    siege.check(mac={schema, f"STATE_LOST {CHANNEL}"}, spark={schema}, lee={schema})


def test_time_that_no_calendar_has(siege: Siege) -> None:
    # A time is a claim and decides nothing: it may be of 2099, or of the 99th of a 99th month.
    author = siege.host.author(CHANNEL, signer(siege.mac))
    for number, ts in enumerate(
        ("2099-01-01T00:00:00.000Z", "9999-99-99T99:99:99.999Z", "0000-00-00T00:00:00.000Z"), 5
    ):
        raw = author.line("when is now?", ts=ts)
        siege.host.append(CHANNEL, raw)
        siege.sent[f"{CHANNEL}/{number}"] = raw[:-1]
    siege.settle()
    items = {item["id"]: item for item in tail(siege.spark).jsonl()}
    assert items[f"{CHANNEL}/5"]["verdict"] == "verified"
    assert "clock-ahead" in items[f"{CHANNEL}/5"]["flags"]
    assert siege.spark.wire("tail", "--all", check=False).status in (0, 4)
    siege.check(mac={f"STATE_LOST {CHANNEL}"})
    assert pin(siege.spark).accepted[CHANNEL].seq == 7


def test_trust_that_goes_down(siege: Siege) -> None:
    # A line of the owner's key names an older trust version than the line before it: valid, shown, and told.
    chain = site(siege.spark).trust(pin(siege.spark))
    author = siege.host.author(CHANNEL, signer(siege.mac))
    for number, trust in enumerate((chain.newest.reference, chain.at(2).reference, chain.newest.reference), 5):
        raw = author.line("which trust?", trust=trust)
        siege.host.append(CHANNEL, raw)
        siege.sent[f"{CHANNEL}/{number}"] = raw[:-1]
    siege.settle()
    items = {item["id"]: item for item in tail(siege.spark).jsonl()}
    assert items[f"{CHANNEL}/6"]["verdict"] == "verified"
    schema = f"SCHEMA {CHANNEL}"
    siege.check(mac={schema, f"STATE_LOST {CHANNEL}"}, spark={schema}, lee={schema})
    assert f"{CHANNEL}/6" in siege.spark.wire("incidents", "--json").stdout
    # The first line of what a fetch brings is compared with what was accepted before.
    raw = author.line("and now?", trust=chain.at(2).reference)
    siege.host.append(CHANNEL, raw)
    siege.sent[f"{CHANNEL}/8"] = raw[:-1]
    siege.settle()
    assert f"{CHANNEL}/8" in siege.spark.wire("incidents", "--json").stdout
