"""Lines changed, moved or made by somebody who may not: none is ever shown, and the honest ones go on.

In each of these a vandal pushes ordinary commits to the branch. Everybody notices it at the next look, the owner's next
commit puts the channel right, and all end with the same accepted chain.
"""

from support import hostile_host as hostile
from support.besieged import Siege, all_incidents, incidents, pin, shown, signer, site, tail
from support.hostile_host import Author
from wire.store.incidents import Incident

CHANNEL = "mac/spark"


def _goes_on(siege: Siege) -> None:
    """Let the two who are not the owner look, then everybody, the owner sending more, and let it arrive."""
    siege.sync(siege.spark, siege.lee)
    siege.send("mac", "spark", "the owner goes on")
    siege.send("lee", "mac", "and so do others")
    siege.settle()


# Changes of what was there


def test_rewrite(siege: Siege) -> None:
    # An old line says something else: still JSON, still with a signature, only not that of these bytes.
    siege.host.rewrite(CHANNEL, 2)
    _goes_on(siege)
    siege.check(everyone={f"PREFIX {CHANNEL}", f"SIGNATURE {CHANNEL}"})


def test_rewrite_of_the_last_line(siege: Siege) -> None:
    # The newest line is the one that a verifier which compares beginnings of files would take for a longer file.
    siege.host.rewrite(CHANNEL, 4)
    _goes_on(siege)
    siege.check(everyone={f"PREFIX {CHANNEL}", f"SIGNATURE {CHANNEL}"})


def test_rewrite_of_whitespace(siege: Siege) -> None:
    # To a JSON parser it is the same message; to a signature it is not.
    siege.host.rewrite(CHANNEL, 2, lambda raw: raw.replace(b'"type":', b'"type": ', 1))
    _goes_on(siege)
    siege.check(everyone={f"PREFIX {CHANNEL}", f"SIGNATURE {CHANNEL}"})


def test_delete(siege: Siege) -> None:
    siege.host.delete(CHANNEL, 2)
    _goes_on(siege)
    siege.check(everyone={f"PREFIX {CHANNEL}"})


def test_truncate(siege: Siege) -> None:
    siege.host.truncate(CHANNEL, 1)
    _goes_on(siege)
    siege.check(everyone={f"PREFIX {CHANNEL}"})


def test_delete_the_whole_channel(siege: Siege) -> None:
    siege.host.replace_segment(CHANNEL, None)
    _goes_on(siege)
    siege.check(everyone={f"PREFIX {CHANNEL}"})


def test_empty_the_whole_channel(siege: Siege) -> None:
    siege.host.replace_segment(CHANNEL, b"")
    _goes_on(siege)
    siege.check(everyone={f"PREFIX {CHANNEL}"})


def test_reorder(siege: Siege) -> None:
    # Two lines change places. The one that comes too late is a copy of an accepted one where none belongs.
    siege.host.reorder(CHANNEL, 2)
    _goes_on(siege)
    siege.check(everyone={f"PREFIX {CHANNEL}", f"REPLAY {CHANNEL}"})


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


def test_insert(siege: Siege) -> None:
    siege.host.insert(CHANNEL, 3, siege.host.author(CHANNEL).only()[:-1])
    _goes_on(siege)
    siege.check()


def test_carriage_returns(siege: Siege) -> None:
    # What a clone with autocrlf and an editor make of a file.
    path = hostile.segment(CHANNEL)
    siege.host.commit({path: (siege.host.read(path) or b"").replace(b"\n", b"\r\n")})
    _goes_on(siege)
    siege.check(everyone={f"PREFIX {CHANNEL}", f"SIGNATURE {CHANNEL}"})


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


def test_unsigned(siege: Siege) -> None:
    raw = siege.host.author(CHANNEL).only()
    siege.host.append(CHANNEL, hostile.signed_part(raw) + b"\n")
    _goes_on(siege)
    siege.check(everyone={f"SIGNATURE {CHANNEL}"})


def test_signature_that_is_none(siege: Siege) -> None:
    signed = hostile.signed_part(siege.host.author(CHANNEL, signer(siege.mac)).only())
    siege.host.append(CHANNEL, *(hostile.with_signature(signed, text) for text in ("", "null", "AAAA")))
    _goes_on(siege)
    siege.check(everyone={f"SIGNATURE {CHANNEL}"})


def test_signature_of_another_line(siege: Siege) -> None:
    # A genuine signature by the genuine key, for other bytes.
    raw = siege.host.author(CHANNEL, signer(siege.mac)).only()
    stolen = hostile.signature_text(siege.host.lines(CHANNEL)[0])
    siege.host.append(CHANNEL, hostile.with_signature(hostile.signed_part(raw), stolen))
    _goes_on(siege)
    siege.check(everyone={f"SIGNATURE {CHANNEL}"})


def test_signature_of_another_length(siege: Siege) -> None:
    # 0, 63, 65 and 128 bytes, and bytes of the body moved into the signature: refused by their form, before anything
    # is handed to cryptography.
    signed = hostile.signed_part(siege.host.author(CHANNEL, signer(siege.mac)).only())
    texts = [hostile.b64((b"\x01" * 128)[:length]) for length in (0, 63, 65, 128)]
    siege.host.append(CHANNEL, *(hostile.with_signature(signed, text) for text in texts))
    last = siege.host.lines(CHANNEL)[3]
    siege.host.append(CHANNEL, hostile.with_signature(hostile.signed_part(last), hostile.signature_text(last) + "AAAA"))
    _goes_on(siege)
    siege.check(everyone={f"SIGNATURE {CHANNEL}"})


def test_sixteen_spellings_of_a_signature(siege: Siege) -> None:
    # Fifteen other texts decode to the same 64 bytes. Each would give the line another head, and split the channel.
    *before, last = siege.host.lines(CHANNEL)
    spelled = [
        hostile.with_signature(hostile.signed_part(last), text)
        for text in hostile.spellings(hostile.signature_text(last))
    ]
    assert spelled[0] == last + b"\n"
    assert len(set(spelled)) == 16
    siege.host.replace_segment(CHANNEL, b"".join([*(line + b"\n" for line in before), *spelled[1:]]))
    siege.sync(siege.spark)
    assert shown(siege.spark)[f"{CHANNEL}/4"] == last
    _goes_on(siege)
    siege.check(everyone={f"PREFIX {CHANNEL}", f"SIGNATURE {CHANNEL}"})


def test_spelling_of_a_line_that_is_new(siege: Siege) -> None:
    # The same on the first sight of a line: nobody takes the wrong spelling, and everybody takes the right one later.
    siege.send("mac", "spark", "five")
    siege.sync(siege.mac)
    raw = siege.host.lines(CHANNEL)[-1]
    other = hostile.spellings(hostile.signature_text(raw))[7]
    siege.host.rewrite(CHANNEL, 5, lambda _: hostile.with_signature(hostile.signed_part(raw), other)[:-1])
    _goes_on(siege)
    siege.check(everyone={f"PREFIX {CHANNEL}", f"SIGNATURE {CHANNEL}"})


def test_another_version_of_the_format(siege: Siege) -> None:
    # Signed by the owner's own key, so a version of the future at best: no line of this one.
    siege.host.append(CHANNEL, siege.host.author(CHANNEL, signer(siege.mac)).only(v=2))
    _goes_on(siege)
    siege.check(everyone={f"SIGNATURE {CHANNEL}"})


# Lines signed by somebody else, or for somewhere else


def test_forged_by_another_agent(siege: Siege) -> None:
    # lee is on the wire, and signs as mac.
    siege.host.append(CHANNEL, siege.host.author(CHANNEL, signer(siege.lee)).only("this is mac speaking"))
    _goes_on(siege)
    siege.check(everyone={f"SIGNATURE {CHANNEL}"})


def test_right_key_in_the_wrong_folder(siege: Siege) -> None:
    # lee signs as lee, and puts it where mac speaks.
    siege.host.append(CHANNEL, siege.host.author(CHANNEL, signer(siege.lee)).only(sender="lee"))
    _goes_on(siege)
    siege.check(everyone={f"MISPLACED {CHANNEL}"})


def test_replay_into_another_channel(siege: Siege) -> None:
    # What mac said to spark is shown to lee as if it had been said to him.
    siege.host.append("mac/lee", *(line + b"\n" for line in siege.host.lines(CHANNEL)))
    _goes_on(siege)
    siege.check(everyone={"MISPLACED mac/lee"})


def test_replay_from_another_wire(siege: Siege) -> None:
    # One owner, one key on two wires (the product never does that): the line names its wire.
    author = siege.host.author(CHANNEL, signer(siege.mac))
    other = Author(author.signer, "00112233445566778899aabbccddeeff", CHANNEL, author.trust, [author.last or b""])
    siege.host.append(CHANNEL, other.only("pay the bill of the other wire"))
    _goes_on(siege)
    siege.check(everyone={f"MISPLACED {CHANNEL}"})


def test_replay_of_an_old_line(siege: Siege) -> None:
    siege.host.append(CHANNEL, siege.host.lines(CHANNEL)[1] + b"\n")
    _goes_on(siege)
    siege.check(everyone={f"REPLAY {CHANNEL}"})


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
