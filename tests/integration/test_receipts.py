"""How far a message got, as its sender sees it: never more than is proved, for each recipient, with time and age."""

import contextlib
import json
import re
import shutil
import time
from typing import Any

import pytest

from support.heard import hear, places
from support.machine import Machine
from support.team import Team, end, state
from wire import Wire
from wire.errors import Corrupt, NotReached
from wire.protocol.encoding import seconds_of
from wire.store import outlook, presences
from wire.store.files import utc_text

HOUR = 3600.0


def api(machine: Machine) -> Wire:
    return Wire.open(environ=machine.environ())


def states(machine: Machine, message_id: str) -> dict[str, str]:
    return {one.agent: one.state for one in api(machine).trace(message_id).recipients}


# The ladder


def test_a_message_climbs_and_every_state_has_a_time(team: Team) -> None:
    one = team.mac.send("spark", "hello", "--subject", "Build")
    assert states(team.mac, one) == {"spark": "stored"}
    team.settle()
    assert states(team.mac, one) == {"spark": "pushed"}
    hear(team.mac, team.spark, read=0)
    assert states(team.mac, one) == {"spark": "delivered"}
    hear(team.mac, team.spark)
    assert states(team.mac, one) == {"spark": "read"}
    answer = team.spark.json("ack", one)["id"]
    team.settle()
    shown = team.mac.json("show", one)
    assert shown["state"] == "acked"
    told = shown["recipients"]["spark"]["states"]
    assert [each["state"] for each in told] == ["stored", "committed", "pushed", "delivered", "read", "acked"]
    assert [each["how"] for each in told] == ["disk", "commit", "fetch", "presence", "presence", answer]
    now = time.time()
    assert all(abs(now - seconds_of(each["since"]) - each["age_s"]) < 60 for each in told)
    text = team.mac.wire("show", one).stdout
    assert "spark: stored 20" in text
    assert "acked 20" in text
    assert f"by {answer}" in text
    assert team.mac.wire("sent").stdout.startswith(f"{one}  message, sent ")


def test_nothing_is_proved_by_wrong_heads_nor_by_silence(team: Team) -> None:
    first, second = team.mac.send("spark", "one"), team.mac.send("spark", "two")
    team.settle()
    ours = end(team.mac, "mac/spark")
    for place in ((2, "f" * 64, 2), (1, ours.head, 1), (3, ours.head, 3)):
        hear(team.mac, team.spark, {"mac/spark": place})
        assert states(team.mac, second) == {"spark": "pushed"}
        assert [one.id for one in api(team.mac).sent(unread=True)] == [first, second]


def test_an_ack_member_proves_delivery_where_no_presence_came(team: Team) -> None:
    one = team.mac.send("spark", "hello")
    team.settle()
    team.spark.send("mac", "something else")
    team.settle()
    shutil.rmtree(state(team.mac) / presences.FOLDER, ignore_errors=True)
    (state(team.mac) / "receipts.sqlite").unlink()
    traced = api(team.mac).trace(one)
    assert [(each.state, each.how) for each in traced.recipients[0].reached][-1] == ("delivered", "spark/mac/1")
    assert traced.missing("read") == ("spark",)


def test_what_was_proved_stays_although_its_author_says_less_later(team: Team) -> None:
    one = team.mac.send("spark", "hello")
    team.settle()
    hear(team.mac, team.spark)
    assert states(team.mac, one) == {"spark": "read"}
    hear(team.mac, team.spark, {}, counter=2)
    assert states(team.mac, one) == {"spark": "read"}


def test_damaged_receipts_are_made_again_from_lines_and_presences(team: Team) -> None:
    one = team.mac.send("spark", "hello")
    team.settle()
    hear(team.mac, team.spark)
    team.spark.wire("ack", one)
    team.settle()
    assert states(team.mac, one) == {"spark": "acked"}
    for damage in (b"", b"\0" * 8192, b"not a database at all" * 999):
        (state(team.mac) / "receipts.sqlite").write_bytes(damage)
        assert states(team.mac, one) == {"spark": "acked"}
        assert [each.state for each in api(team.mac).trace(one).recipients[0].reached][-2] == "read"
    # The first page is as it was; what it leads to is not.
    held = (state(team.mac) / "receipts.sqlite").read_bytes()
    (state(team.mac) / "receipts.sqlite").write_bytes(held[:4096] + b"\xff" * (len(held) - 4096))
    with contextlib.suppress(Corrupt):
        states(team.mac, one)
    assert states(team.mac, one) == {"spark": "acked"}


def test_a_damaged_clone_does_not_change_what_is_told(team: Team) -> None:
    one = team.mac.send("spark", "hello")
    team.settle()
    team.spark.wire("reply", one, "done")
    team.settle()
    (state(team.mac) / "receipts.sqlite").unlink()
    team.mac.segment("spark/mac").write_bytes(b"nothing of it\n")
    team.mac.segment("mac/spark").write_bytes(b"")
    assert states(team.mac, one) == {"spark": "acked"}


# Several recipients


def test_groups_and_all_show_who_is_missing(team: Team) -> None:
    studio = team.join("studio")
    team.mac.wire("group", "set", "review", "mac", "spark", "studio")
    team.settle()
    to_all, to_group = team.mac.send("all", "freeze at noon"), team.mac.send("review", "look")
    team.settle()
    ends = {name: end(team.mac, f"mac/{name}") for name in ("all", "review")}
    read = {f"mac/{name}": (1, one.head, 1) for name, one in ends.items()}
    hear(team.mac, team.spark, read)
    hear(team.mac, studio, {"mac/all": (1, ends["all"].head, 0)})
    assert states(team.mac, to_all) == {"spark": "read", "studio": "delivered"}
    assert states(team.mac, to_group) == {"spark": "read", "studio": "pushed"}
    found = {one["id"]: one for one in team.mac.jsonl("sent", "--unread")}
    assert found[to_all]["unread_by"] == ["studio"]
    assert found[to_group]["state"] == "pushed"
    text = team.mac.wire("sent").stdout
    assert "    studio: delivered" in text
    assert "    spark: read" in text
    late = team.mac.wire("send", "all", "and now", "--wait", "delivered", "--timeout", "0.1", "--json", check=False)
    assert late.status == 3
    details = late.jsonl()[-1]["details"]
    assert (details["ids"], details["missing"]) == (["mac/all/2"], {"mac/all/2": ["spark", "studio"]})
    hear(team.mac, studio, read, counter=2)
    assert (
        team.mac.wire("sent", "--unread", "review").stdout
        == "everything that was sent to review is proved to be read\n"
    )


def test_who_joined_later_is_no_recipient_of_what_was_said_before(team: Team) -> None:
    one = team.mac.send("all", "before")
    team.settle()
    team.join("studio")
    team.settle()
    assert list(states(team.mac, one)) == ["spark"]


# Waiting


def test_waiting_ends_when_the_state_is_proved_and_names_who_is_missing(team: Team) -> None:
    one = team.mac.send("spark", "hello")
    team.settle()
    hear(team.mac, team.spark, read=0)
    assert [(sent.id, sent.state) for sent in api(team.mac).wait([one], "delivered", 5)] == [(one, "delivered")]
    with pytest.raises(NotReached, match=r"was not read within 0\.1 s by spark \(delivered\)"):
        api(team.mac).wait([one], "read", 0.1)
    waiting = team.mac.spawn("send", "spark", "and this", "--wait", "read", "--timeout", "30")
    assert waiting.stdout is not None
    assert waiting.stdout.readline() == b"mac/spark/2 stored\n"
    team.mac.wire("sync")
    hear(team.mac, team.spark, counter=2)
    out, _ = waiting.communicate(timeout=30)
    assert out == b"mac/spark/2 read\n"
    assert waiting.returncode == 0


# Acks


def test_an_ack_is_one_line_however_often_it_is_given(team: Team) -> None:
    one = team.mac.send("spark", "hello", "--ack-required")
    team.settle()
    assert [each.id for each in api(team.spark).owed()] == [one]
    first = team.spark.json("ack", one)
    assert team.spark.json("ack", one) == {**first, "again": True}
    noted = team.spark.json("ack", one, "with a note")
    assert (first["id"], noted["id"]) == ("spark/mac/1", "spark/mac/2")
    assert api(team.spark).owed() == []
    refused = team.spark.wire("ack", "spark/mac/1", check=False)
    assert refused.status == 2
    assert "is a message of 'spark' itself" in refused.stderr
    assert team.spark.wire("ack", "mac/spark/99", check=False).status == 2
    team.settle()
    assert states(team.mac, one) == {"spark": "acked"}
    assert team.spark.json("show", first["id"])["line"]["re"] == one
    # Nobody waits for the answer to an answer.
    assert api(team.spark).sent(unacked=True) == []
    assert [each.id for each in api(team.spark).sent()] == [first["id"], noted["id"]]


@pytest.mark.parametrize("kind", ["reply", "accept", "reject", "counter", "receipt"])
def test_what_answers_a_message(team: Team, kind: str) -> None:
    one = team.mac.send("spark", "shall we?", "--type", "proposal", "--ack-required")
    team.settle()
    team.spark.wire("reply", one, "so", "--type", kind)
    team.settle()
    assert api(team.spark).owed() == []
    assert states(team.mac, one) == {"spark": "acked"}


def test_a_word_about_a_message_that_answers_nothing(team: Team) -> None:
    one = team.mac.send("spark", "please", "--ack-required")
    team.settle()
    team.spark.wire("send", "mac", "hm", "--re", one)
    team.mac.wire("send", "spark", "still", "--type", "reply", "--re", one)
    team.settle()
    assert states(team.mac, one) == {"spark": "delivered"}
    assert [each.id for each in api(team.spark).owed()] == [one]


# What is owed, and what is late


def test_what_is_owed_and_what_is_overdue(team: Team) -> None:
    past, later = utc_text(time.time() - 60), utc_text(time.time() + HOUR)
    plain = team.mac.send("spark", "no answer wanted")
    asked = team.mac.send("spark", "answer in time", "--ack-required", "--expires", later)
    late = team.mac.send("spark", "answer in the past", "--ack-required", "--expires", past)
    urgent = team.mac.send("spark", "now", "--priority", "urgent")
    unread = team.mac.send("spark", "read in the past", "--expires", past)
    team.settle()
    owed = {one.id: one for one in api(team.spark).owed()}
    assert list(owed) == [asked, late, urgent]
    assert (owed[asked].overdue, owed[late].overdue, owed[late].expired, owed[urgent].overdue) == (
        False, True, True, False,
    )  # fmt: skip
    assert [(one.id, one.wanted, one.missing) for one in api(team.mac).overdue()] == [
        (late, "acked", ("spark",)),
        (unread, "read", ("spark",)),
    ]
    told = team.mac.json("status", check=False)
    assert [one["id"] for one in told["overdue"]] == [late, unread]
    assert f"overdue: {late} was to be acked by spark 6" in team.mac.wire("status", check=False).stdout
    hear(team.mac, team.spark)
    assert [one.id for one in api(team.mac).overdue()] == [late]
    for one in (asked, late, urgent):
        team.spark.wire("ack", one)
    team.settle()
    assert api(team.mac).overdue() == []
    assert api(team.spark).owed() == []
    assert [one.id for one in api(team.mac).sent(unacked=True)] == [plain, unread]


# What a sender is told


def warned(machine: Machine, to: str, *args: str) -> list[str]:
    result = machine.wire("send", to, "x", *args, "--json")
    found: list[str] = result.json()["warnings"]
    assert result.stderr == "".join(f"wire: {text}\n" for text in found)
    return found


def test_a_recipient_that_is_well_is_no_reason_to_warn(team: Team) -> None:
    team.mac.send("spark", "hello")
    team.settle()
    hear(team.mac, team.spark, read=0)
    team.mac.wire("sync")
    assert warned(team.mac, "spark") == []


def test_a_stale_recipient_is_told_of_but_not_while_we_cannot_look(team: Team) -> None:
    hear(team.mac, team.spark, ago=2 * HOUR)
    team.mac.wire("sync")
    (told,) = warned(team.mac, "spark")
    assert told.startswith("'spark' was last heard of 2 h ago, longer than promised")
    assert warned(team.mac, "all") == [told]
    # The same promise, broken after our own last look: nobody knows.
    hear(team.mac, team.spark, ago=60, interval=10.0, counter=2)
    stamp = json.loads((state(team.mac) / "progress.json").read_bytes())
    (state(team.mac) / "progress.json").write_text(json.dumps({**stamp, "fetched": time.time() - 55}))
    api(team.mac).sent()
    assert warned(team.mac, "spark") == []


def test_unread_messages_older_than_an_hour_are_told_of(team: Team) -> None:
    one = team.mac.send("spark", "old")
    team.settle()
    hear(team.mac, team.spark, read=0)
    team.mac.wire("sync")
    known = outlook.load(places(team.mac))
    assert known is not None
    assert known.channels["mac/spark"].unread["spark"].messages == 1
    old = known.channels["mac/spark"]._replace(unread={"spark": outlook.Unread(1, time.time() - 2 * HOUR)})
    outlook.save(places(team.mac), known._replace(channels={"mac/spark": old}))
    (told,) = warned(team.mac, "spark")
    assert told.startswith("'spark' is not known to have read 1 message(s) in mac/spark, the oldest from 2 h ago")
    assert one in team.mac.wire("sent", "--unread").stdout


def test_the_fourth_unanswered_urgent_message_is_told_of(team: Team) -> None:
    ids = [team.mac.send("spark", f"now {n}", "--priority", "urgent") for n in range(2)]
    team.settle()
    assert warned(team.mac, "spark", "--priority", "urgent") == []
    (told,) = warned(team.mac, "spark", "--priority", "urgent")
    assert told.startswith("4 urgent messages to 'spark' are not answered")
    assert warned(team.mac, "spark") == []
    team.settle()
    for one in ids:
        team.spark.wire("ack", one)
    team.settle()
    assert warned(team.mac, "spark", "--priority", "urgent") == []


def test_who_is_unknown_and_who_only_asks_to_join(team: Team, machines: Any) -> None:
    (told,) = warned(team.mac, "ghost")
    assert "'ghost' is not in this machine's copy of the trust" in told
    assert "did you mean" not in told
    assert warned(team.mac, "sprak")[0].endswith("; did you mean 'spark'?")
    newcomer = machines("nova")
    checkpoint = team.mac.json("trust", "show")["checkpoint"]
    newcomer.wire("join", team.remote.url, "--as", "nova", "--trust", checkpoint)
    team.mac.wire("sync")
    (told,) = warned(team.mac, "nova")
    assert "'nova' asks to join and is not approved yet" in told


@pytest.mark.parametrize("damage", [b"", b"\0" * 100, b"0\n{", b"0.0\n[]\n", b"nan\n{}\n", b"x" * 100])
def test_a_damaged_outlook_costs_a_warning_and_nothing_else(team: Team, damage: bytes) -> None:
    (state(team.mac) / "outlook").write_bytes(damage)
    assert warned(team.mac, "spark") == []
    assert warned(team.mac, "spark", "--priority", "urgent") == []


# Everybody


def test_agents_shows_everybody_with_what_lies_between(team: Team) -> None:
    team.join("studio")
    asked = team.mac.send("spark", "please", "--type", "request")
    read_this = team.mac.send("spark", "and say that you have read this", "--ack-required")
    owed = team.spark.send("mac", "you too", "--ack-required")
    team.settle()
    ours = end(team.mac, "mac/spark")
    hear(team.mac, team.spark, {"mac/spark": (2, ours.head, 1)}, state="busy", note="the \x1b[31mparser\u202e", ago=30)
    shown = {one["name"]: one for one in team.mac.jsonl("agents")}
    assert list(shown) == ["mac", "spark", "studio"]
    spark = shown["spark"]
    assert (spark["role"], spark["state"], spark["stale"]) == ("agent", "busy", False)
    assert 25 < spark["presence_age_s"] < 90
    assert (spark["undelivered"], spark["unread_by_them"], spark["unread_by_us"]) == (0, 1, 1)
    assert (spark["they_owe"], spark["we_owe"]) == ([asked, read_this], [owed])
    studio = shown["studio"]
    if not (state(team.mac) / presences.FOLDER / "studio").exists():
        assert (studio["state"], studio["presence_age_s"], studio["unread_by_them"]) == (None, None, None)
    text = team.mac.wire("agents").stdout
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "busy (the \\u001b[31mparser\\u202e); heard of 3" in text
    assert f"has to answer {asked}, {read_this}; waits for an answer to {owed}" in text
    told = team.mac.json("status", check=False)["peers"]["spark"]
    assert (told["state"], told["undelivered"], told["unread"], told["unanswered"]) == ("busy", 0, 1, 1)
    assert 0 <= told["oldest_unanswered_age_s"] < 60
    text = team.mac.wire("status", check=False).stdout
    assert re.search(r"spark: busy, heard of \d+ s ago; 0 undelivered, 1 unread, 1 unanswered, the oldest \d+ s", text)


def test_an_agent_says_how_it_stands(team: Team) -> None:
    assert team.mac.wire("state").stdout == "idle\n"
    set_ = team.mac.json("state", "busy", "the parser", "--eta", "2h")
    assert (set_["state"], set_["note"]) == ("busy", "the parser")
    assert abs(seconds_of(set_["eta"]) - time.time() - 2 * HOUR) < 60
    assert team.mac.json("state") == set_
    assert team.mac.wire("state", "sleeping", check=False).status == 2
    assert team.mac.wire("state", "busy", "x" * 500, check=False).status == 2
    assert team.mac.json("state")["note"] == "the parser"
