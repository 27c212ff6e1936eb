"""Sending and reading between two machines, through the shipped command and `wire sync`."""

import json
import os
import subprocess
import time
from typing import Any

import pytest

from support.team import Team, incidents, pin, read, state, write
from support.waiting import eventually
from wire import Wire
from wire.verbs.sending import Draft


def items(team: Team, machine: str, *args: str) -> list[dict[str, Any]]:
    return [one for one in getattr(team, machine).wire("tail", "--json", *args).jsonl() if "id" in one]


# Sending


def test_a_send_prints_the_id_and_the_state_and_is_on_disk(team: Team) -> None:
    result = team.mac.wire("send", "spark", "hello")
    assert result.stdout == "mac/spark/1 stored\n"
    assert (state(team.mac) / "journal/mac/spark/000001.jsonl").read_bytes().count(b"\n") == 1
    assert (
        team.mac.segment("mac/spark").read_bytes() == (state(team.mac) / "journal/mac/spark/000001.jsonl").read_bytes()
    )


def test_bodies_come_from_the_argument_standard_input_a_file_and_json(team: Team) -> None:
    file = team.folder / "body.txt"
    file.write_text("from a file\nwith two lines", "utf-8")
    team.mac.send("spark", "as an argument")
    team.mac.send("spark", "-", input="from standard input")
    team.mac.send("spark", "--file", file)
    assert team.mac.json("send", "spark", '{"build": 7, "ratio": 0.1}')["id"] == "mac/spark/4"
    team.settle()
    assert read(team.spark) == [
        "as an argument",
        "from standard input",
        "from a file\nwith two lines",
        {"build": 7, "ratio": 0.1},
    ]


def test_all_members_arrive_as_they_were_given(team: Team) -> None:
    first = team.mac.send("spark", "root")
    team.mac.wire(
        *("send", "spark", "see this", "--type", "request", "--subject", "Build", "--thread", first, "--re", first),
        *("--ref", "a1b2c3", "--ref", "docs/x.md", "--priority", "urgent", "--needs", "human", "--ack-required"),
        *("--expires", "2099-01-01T00:00:00.000Z", "--idem", "k1"),
    )
    team.settle()
    line = items(team, "spark")[1]["line"]
    assert {name: line[name] for name in ("type", "subject", "thread", "re", "refs", "priority", "needs")} == {
        "type": "request",
        "subject": "Build",
        "thread": first,
        "re": first,
        "refs": ["a1b2c3", "docs/x.md"],
        "priority": "urgent",
        "needs": "human",
    }
    assert line["ack_required"] is True
    assert line["expires"] == "2099-01-01T00:00:00.000Z"


def test_a_batch_is_one_send_in_order_and_a_bad_line_sends_nothing(team: Team) -> None:
    lines = "".join(json.dumps({"to": "spark", "body": f"n{n}"}) + "\n" for n in range(50))
    result = team.mac.wire("send", "--batch", input=lines)
    assert result.stdout.split("\n")[:2] == ["mac/spark/1 stored", "mac/spark/2 stored"]
    refused = team.mac.wire("send", "--batch", input=lines + '{"to": "spark", "colour": "red"}\n', check=False)
    assert refused.status == 2
    assert "line 51 of the batch: unknown member 'colour'; nothing was sent" in refused.stderr
    team.settle()
    assert read(team.spark) == [f"n{n}" for n in range(50)]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("send", "mac", "x"), "is not a recipient for 'mac'"),
        (("send", "SPARK", "x"), "is not a recipient"),
        (("send", "spark", "x", "--subject", "s" * 201), "'subject' is not a string of up to 200 characters"),
        (("send", "spark", "x", "--re", "spark-1"), "'spark-1' is not a message id; one is written mac/spark/42"),
        (("send", "spark", "x", "--type", "reply"), "names a message in 're'"),
        (("send", "spark", "x", "--type", "two words"), "'two words' is no message type"),
        (("send", "spark", "x", "--type", "x" * 33), "is no message type"),
        (("send", "spark", "x" * 70_000), "the limit"),
        (("send", "spark", "--file", "/nowhere/at/all"), "cannot read /nowhere/at/all"),
        (("send", "spark", '{"a":1,"a":2}', "--json"), "duplicate key 'a'"),
        (("send", "spark", '{"a":' + "[" * 1000 + "]" * 1000 + "}", "--json"), "nesting too deep"),
        (("send", "spark", '{"a":NaN}', "--json"), "NaN is not a JSON number"),
        (("send",), "say to whom"),
        (("send", "spark"), "a message without a text says nothing"),
        (("send", "spark", "-"), "a message without a text says nothing"),
        (("send", "spark", "--type", "request"), "a request without a text says nothing"),
        (("tail", "--since", "yesterday"), "is not a time"),
        (("show", "mac/spark/99"), "there is no message mac/spark/99 here; nothing of mac/spark is here"),
        (("read", "mac/sprak/1"), "nothing of mac/sprak is here, and 'sprak' is not in this machine's copy of the"),
        (("show", "nonsense"), "is not a message id"),
    ],
)
def test_wrong_use_says_what_was_found_and_writes_nothing(team: Team, args: tuple[str, ...], words: str) -> None:
    result = team.mac.wire(*args, check=False)
    assert result.status == 2
    assert words in result.stderr + result.stdout
    assert "Traceback" not in result.stderr
    assert not (state(team.mac) / "journal/mac/spark/000001.jsonl").exists()


def test_a_type_of_ones_own_is_sent_and_told_of(team: Team) -> None:
    (typo,) = team.mac.json("send", "spark", "please", "--type", "requst")["warnings"]
    assert typo == "'requst' is a type of your own, which no program here knows; did you mean 'request'?"
    (own,) = team.mac.json("send", "spark", "four", "--type", "weather")["warnings"]
    assert own == "'weather' is a type of your own, which no program here knows"
    assert team.mac.json("send", "spark", "please", "--type", "request")["warnings"] == []
    team.settle()
    assert [one["line"]["type"] for one in team.spark.jsonl("tail")] == ["requst", "weather", "request"]


def test_idem_gives_the_old_id_for_the_same_content_and_refuses_other_content(team: Team) -> None:
    first = team.mac.json("send", "spark", "once", "--idem", "job-7")
    again = team.mac.json("send", "spark", "once", "--idem", "job-7")
    assert (first["id"], first["again"]) == ("mac/spark/1", False)
    assert (again["id"], again["again"]) == ("mac/spark/1", True)
    other = team.mac.wire("send", "spark", "twice", "--idem", "job-7", check=False)
    assert other.status == 2
    assert "which says something else; nothing was sent" in other.stderr
    # The key may look like a part of another message without being one.
    team.mac.send("spark", 'a body with "idem":"job-8" in it')
    assert team.mac.json("send", "spark", "new", "--idem", "job-8")["again"] is False


def test_states_climb_as_they_are_proved(team: Team) -> None:
    sent = team.mac.send("spark", "hello")
    assert team.mac.json("show", sent)["state"] == "stored"
    team.remote.path.rename(team.folder / "gone.git")
    assert team.mac.wire("sync", check=False).status == 6
    assert team.mac.json("show", sent)["state"] == "committed"
    waited = team.mac.wire("send", "spark", "and on", "--wait", "pushed", "--timeout", "0.2", check=False)
    assert waited.status == 3
    assert waited.stdout == "mac/spark/2 stored\n"
    assert "do not send it again" in waited.stderr
    (team.folder / "gone.git").rename(team.remote.path)
    team.mac.wire("sync")
    assert team.mac.json("show", sent)["state"] == "pushed"
    assert team.mac.json("show", sent)["states"] == ["stored", "committed", "pushed"]
    team.spark.wire("sync")
    shown = team.spark.json("show", sent)
    assert (shown["verdict"], shown["state"], shown["signed_by"]) == ("verified", "delivered", "mac")
    assert (shown["commit"], shown["incidents"]) == (team.remote.tip(), [])
    assert shown["key"] in team.spark.wire("show", sent).stdout


def test_a_reply_finds_its_way_and_threads_hold_together(team: Team) -> None:
    question = team.mac.send("spark", "ready?", "--type", "request")
    team.settle()
    answer = team.spark.remember(team.spark.wire("reply", question, "yes"))[0]
    team.settle()
    further = team.mac.remember(team.mac.wire("reply", answer, "good"))[0]
    team.mac.send("spark", "something else")
    team.settle()
    line = next(one["line"] for one in items(team, "spark") if one["id"] == further)
    assert (line["to"], line["re"], line["thread"], line["type"]) == ("spark", answer, question, "reply")
    for machine in (team.mac, team.spark):
        thread = machine.wire("thread", answer, "--json").jsonl()
        assert [one["id"] for one in thread] == [question, answer, further]
    team.check()


def test_the_log_is_the_same_on_every_machine(team: Team) -> None:
    for n in range(3):
        question = team.mac.send("spark", f"q{n}")
        team.settle()
        team.spark.wire("reply", question, f"a{n}")
        team.settle()
    logs = [[one["id"] for one in machine.wire("log", "--json").jsonl()] for machine in team.machines]
    assert logs[0] == logs[1]
    assert logs[0] == [f"{c}/{n}" for n in (1, 2, 3) for c in ("mac/spark", "spark/mac")]


# Reading


def test_the_cursor_moves_and_peeks_and_counts_leave_it(team: Team) -> None:
    for n in range(5):
        team.mac.send("spark", f"n{n}")
    team.settle()
    assert read(team.spark, "--peek") == [f"n{n}" for n in range(5)]
    assert read(team.spark, "-n", "2") == ["n3", "n4"]
    assert read(team.spark, "--type", "request") == []
    assert read(team.spark) == [f"n{n}" for n in range(5)]
    assert read(team.spark) == []
    assert read(team.spark, "--all") == [f"n{n}" for n in range(5)]
    assert read(team.spark, "--reader", "other") == [f"n{n}" for n in range(5)]


def test_reading_one_sender_leaves_the_others_unread(team: Team) -> None:
    bee = team.join("bee")
    team.settle()
    team.mac.send("spark", "from mac")
    bee.send("spark", "from bee")
    team.settle()
    assert read(team.spark, "bee") == ["from bee"]
    assert read(team.spark, "--from", "bee") == []
    assert read(team.spark) == ["from mac"]


def test_groups_and_all_reach_those_who_belong_when_it_is_sent(team: Team) -> None:
    team.mac.wire("group", "set", "review", "mac", "spark")
    team.settle()
    team.mac.send("review", "for the group")
    team.mac.send("all", "for all")
    team.settle()
    bee = team.join("bee")
    team.settle()
    assert sorted(read(team.spark)) == ["for all", "for the group"]
    assert read(bee) == [], "a newcomer's cursor starts at the first line that includes it"
    team.mac.send("all", "welcome")
    team.mac.wire("group", "set", "review", "mac", "bee")
    team.settle()
    team.mac.send("review", "without spark")
    team.settle()
    assert sorted(read(bee)) == ["welcome", "without spark"]
    assert read(team.spark) == ["welcome"]


def test_nothing_new_could_not_look_and_lost_my_place_differ(team: Team) -> None:
    quiet = team.spark.wire("tail", "--json", check=False)
    assert (quiet.status, quiet.json()["result"]) == (0, "nothing-new")
    progress = state(team.spark) / "progress.json"
    stamp = json.loads(progress.read_bytes())
    progress.write_text(json.dumps({**stamp, "fetched": time.time() - 7 * 86400}), "utf-8")
    blind = team.spark.wire("tail", "--json", check=False)
    assert (blind.status, blind.json()["result"]) == (6, "could-not-look")
    assert "nobody knows" in team.spark.wire("tail", check=False).stderr
    progress.unlink()
    assert team.spark.wire("tail", check=False).status == 6, "never is not the same as nothing new"
    team.mac.send("spark", "one")
    team.settle()
    assert read(team.spark) == ["one"]
    cursor = next((state(team.spark) / "cursors").rglob("*.json"))
    cursor.write_bytes(
        cursor.read_bytes().replace(pin(team.spark).accepted["mac/spark"].head[:8].encode(), b"00000000")
    )
    lost = team.spark.wire("tail", "--json", check=False)
    assert lost.status == 4
    assert lost.jsonl()[0]["line"]["body"] == "one", "shown again rather than not at all"
    assert "lost the place in mac/spark" in lost.stderr
    assert read(team.spark) == []


def test_json_shows_the_very_bytes_that_were_signed(team: Team) -> None:
    body = '{"big": 9007199254740991, "small": 1e-05, "one": 1.0, "text": "ü\\u2028\\n"}'
    team.mac.wire("send", "spark", body, "--json")
    batch = '{"subject": "s", "body" : {"n": [0.00001, 1.10, -0]} , "to": "spark"}\n'
    team.mac.wire("send", "--batch", input=batch)
    team.settle()
    printed = team.spark.wire("tail", "--json").out
    first, second = team.spark.segment("mac/spark").read_bytes().split(b"\n")[:2]
    assert b'"line":' + first + b"}\n" in printed
    assert '"body":{"big":9007199254740991,"small":1e-05,"one":1.0,"text":"ü\\u2028\\n"}'.encode() in first
    assert b'"line":' + second + b"}\n" in printed
    assert b'"subject":"s","body":{"n":[0.00001,1.10,-0]}' in second


def test_an_open_incident_about_a_channel_shows_in_the_exit_status_until_somebody_saw_it(team: Team) -> None:
    team.mac.send("spark", "one")
    team.settle()
    vandal = team.vandal()
    vandal.append("_coordination/mac/spark/000001.jsonl", b"junk\n")
    vandal.commit("junk")
    vandal.push()
    team.spark.wire("sync", check=False)
    told = team.spark.wire("tail", "--json", check=False)
    assert told.status == 4
    assert [one["line"]["body"] for one in told.jsonl() if "line" in one] == ["one"]
    for incident in incidents(team.spark):
        team.spark.wire("incidents", "ack", incident["id"])
    assert team.spark.wire("tail", "--json", check=False).status == 0


def test_following_prints_each_message_as_it_is_accepted(team: Team) -> None:
    team.mac.send("spark", "before")
    team.settle()
    follower = team.spark.spawn("tail", "-f", "--json", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert follower.stdout is not None
    assert b'"before"' in follower.stdout.readline()
    team.mac.send("spark", "after")
    team.settle()
    assert b'"after"' in follower.stdout.readline()
    # The cursor moves after the output was taken, so that a kill in between would show it again.
    eventually(lambda: read(team.spark, "--peek") == [])
    follower.terminate()
    follower.wait(10)
    assert read(team.spark) == []


def test_two_local_agents_have_to_be_told_apart(team: Team) -> None:
    checkpoint = team.mac.json("trust", "show")["checkpoint"]
    joined = team.spark.json("join", team.remote.url, "--as", "bot", "--trust", checkpoint)
    team.mac.wire("trust", "approve", "bot", "--fingerprint", joined["fingerprint"])
    unclear = team.spark.wire("send", "mac", "x", check=False)
    assert unclear.status == 2
    assert "spark" in unclear.stderr
    assert "bot" in unclear.stderr
    team.spark.wire("sync")
    team.spark.remember(team.spark.wire("--as", "bot", "send", "mac", "from bot"))
    team.spark.remember(team.spark.wire("send", "mac", "from spark", env={"WIRE_AGENT": "spark"}))
    team.settle()
    assert sorted(read(team.mac)) == ["from bot", "from spark"]
    (team.spark.home / ".wire.toml").write_text('agent = "bot"\n', "utf-8")
    project = team.spark.home / "project" / "deep"
    project.mkdir(parents=True)
    (team.spark.home / "project" / ".wire.toml").write_text('agent = "bot"\n', "utf-8")
    assert team.spark.wire("send", "mac", "bound", cwd=project).stdout.startswith("bot/mac/2 ")


def test_lines_that_an_agent_appends_by_itself_are_adopted(team: Team) -> None:
    team.mac.send("spark", "sent")
    line = write(team.mac, "mac/spark", "nothing yet", after=None)
    team.mac.wire("sync")
    line = write(team.mac, "mac/spark", "by hand")
    with open(team.mac.segment("mac/spark"), "ab") as file:
        file.write(line[0])
        os.fsync(file.fileno())
    team.settle()
    assert read(team.spark) == ["sent", "by hand"]
    team.check(sent=["mac/spark/1", "mac/spark/2"])


def test_the_python_api_has_the_same_verbs(team: Team) -> None:
    spark = Wire.open(as_="spark", environ=team.spark.env)
    mac = Wire.open(environ=team.mac.env)
    first = mac.send("spark", "by the api", refs=["a1b2c3"], priority="high")
    many = mac.send_all([Draft("spark", body=f"n{n}") for n in range(3)])
    assert (first.id, first.state) == ("mac/spark/1", "stored")
    assert [one.id for one in many.sent] == [f"mac/spark/{n}" for n in (2, 3, 4)]
    assert mac.sync().pushed == 4
    spark.sync()
    seen = spark.messages()
    item = next(seen)
    assert (item.id, item.members["body"], item.verdict) == ("mac/spark/1", "by the api", "verified")
    seen.close()
    assert next(spark.messages(peek=True)).id == "mac/spark/1", "its handling never came to an end"
    assert len(list(spark.messages())) == 4
    assert list(spark.messages()) == []
    answer = spark.reply("mac/spark/1", "seen")
    spark.sync()
    mac.sync()
    following = mac.follow()
    assert next(following).id == answer.id
    spark.send("mac", "and on")
    spark.sync()
    mac.sync()
    assert next(following).members["body"] == "and on"
    checked = mac.verify(full=True)
    assert (checked.lines, checked.problems) == (6, ())
    assert [one.id for one in mac.thread(answer.id)] == ["mac/spark/1", answer.id]
    assert mac.incidents() == []
