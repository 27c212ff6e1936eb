"""What somebody meets who does not know wire yet: helps, mistakes and their next steps, and what the lists say."""

import json
import re
from typing import Any

from support.machine import Machine
from support.remote import BareRemote
from support.team import Team
from wire.cli import cli

MISTAKES: dict[str, tuple[list[str], str]] = {
    "a misspelt command": (["snd", "spark", "hi"], "Did you mean 'send'?"),
    "a misspelt one of a group": (["trust", "aprove", "spark"], "Did you mean 'approve'?"),
    "no time": (["send", "spark", "hi", "--expires", "yesterday"], "'yesterday' is not a time to come: 30m, 2h"),
    "too long a time": (["send", "spark", "hi", "--expires", "99999999d"], "is not a time to come"),
    "a digit of another kind": (["send", "spark", "hi", "--expires", "²h"], "is not a time to come"),
    "a time before time": (["tail", "--since", "99999999d"], "is not a time: 30m, 2h, 7d"),
    "a name in capitals": (["send", "SPARK", "hi"], "next: `wire agents` lists everybody, `wire group list`"),
    "a text that looks like an option": (["send", "spark", "-dash"], "a text that begins with a dash stands behind --"),
    "no id": (["send", "spark", "hi", "--thread", "foo"], "'foo' is not a message id; one is written mac/spark/42"),
    "a code for no time": (["invite", "lee", "--no-wait", "--ttl", "soon"], "'soon' is not a time to come"),
}
BESIDE_A_BATCH: dict[str, list[str]] = {
    "TO": ["spark"],
    "BODY, TO": ["spark", "hi"],
    "--type": ["--type", "message"],
    "--ack-required, --subject": ["--subject", "s", "--ack-required"],
    "--expires, --file, --idem, --needs, --priority, --re, --ref, --thread": [
        *("--expires", "2h", "--file", "f", "--idem", "k", "--needs", "human", "--priority", "low"),
        *("--re", "mac/spark/1", "--ref", "r", "--thread", "mac/spark/1"),
    ],
}


def helps(command: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Return the paths of all groups of commands."""
    if not hasattr(command, "list_commands"):
        return []
    below = [(name, command.get_command(None, name)) for name in command.list_commands(None)]
    return [path, *(found for name, one in below for found in helps(one, (*path, name)))]


def test_help_says_whole_sentences_of_every_command(team: Team) -> None:
    groups = helps(cli)
    assert len(groups) > 8
    for path in groups:
        group: Any = cli
        for name in path:
            group = group.get_command(None, name)
        text = team.mac.wire(*path, "--help").stdout
        rows = " ".join(text.partition("\n\n")[2].split())
        for name in group.list_commands(None):
            sentence = group.get_command(None, name).get_short_help_str(1000)
            assert sentence.endswith("."), (path, name)
            assert f" {name} {' '.join(sentence.split())}" in rows, (path, name)


def test_a_mistake_is_answered_with_what_would_be_right(team: Team) -> None:
    for what, (args, said) in MISTAKES.items():
        told = team.mac.wire(*args, check=False)
        assert (told.status, said in told.stderr) == (2, True), (what, str(told))
    for args in (["trust", "revoke", "mac", "--reason", "lost"], ["trust", "policy", "--encrypt", "required"]):
        told = team.spark.wire(*args, check=False)
        assert (told.status, "needs a root key" in told.stderr) == (5, True), str(told)
        assert "it?" not in told.stderr, "nobody is asked before that"
    for names, args in BESIDE_A_BATCH.items():
        told = team.mac.wire("send", "--batch", *args, check=False, input='{"to": "spark", "body": "b"}\n')
        assert (told.status, f"what {names} would" in told.stderr) == (2, True), str(told)
        assert 'one object a line: {"to": "NAME"' in told.stderr
    assert team.mac.wire("sent", "--json").out == b"", "nothing was sent"
    # What says something of all of them is taken.
    sent = team.mac.wire("send", "--batch", "--wait", "stored", "--no-seal", input='{"to": "spark", "body": "b"}\n')
    assert sent.stdout.startswith("mac/spark/1 stored\n")
    assert "no daemon is running here, so that nothing goes out by itself: `wire sync`" in sent.stderr
    past = team.mac.wire("send", "spark", "late", "--expires", "2020-01-01T00:00:00Z")
    assert "is in the past" in past.stderr


def test_a_repository_that_is_not_there(team: Team) -> None:
    lee, away = team.new_machine("lee"), team.folder / "not here.git"
    begun = lee.wire("init", str(away), "--as", "lee", check=False)
    assert begun.status == 6
    assert f"next: make an empty repository there: git init --bare '{away}'" in begun.stderr
    BareRemote(away)  # which is what that command does
    made = lee.wire("init", str(away), "--as", "lee").stdout
    assert "wire daemon run" in made
    assert "several wires" not in made
    away.rename(team.folder / "moved.git")
    checkpoint = re.search(r"checkpoint (\S+)", made)
    assert checkpoint is not None
    joined = team.new_machine("kim").wire("join", str(away), "--as", "kim", "--trust", checkpoint[1], check=False)
    assert joined.status == 6
    assert "next: `wire status` on a machine of the wire names its remote" in joined.stderr
    # Each command that needs the remote goes on to one that says more.
    for args, step in ((["sync"], "wire incidents show i-"), (["invite", "zoe", "--no-wait"], "wire doctor")):
        told = lee.wire(*args, check=False)
        assert (told.status, f"next: {step}" in told.stderr) == (6, True), str(told)
        assert "received" not in told.stdout
    assert f"git ls-remote {away}" in lee.wire("doctor", check=False).stdout
    status = lee.wire("status", check=False).stdout
    assert status.count(" ! ") == 2, "the daemon that is missing, and the look that failed"
    assert re.search(r"\(wire incidents show i-\w+\)", status)
    assert "tier" not in status
    other = lee.wire("init", str(BareRemote(team.folder / "other.git").path), "--as", "lee").stdout
    assert "on several wires now; commands want to know which:  --wire other " in other


def test_what_is_empty_is_said(team: Team) -> None:
    told = {
        "nothing of mac/nobody is among these; `wire status` lists": ["log", "--channel", "mac/nobody"],
        "there is no message here yet": ["log"],
        "nothing was sent to nobody\n": ["sent", "nobody"],
        "everything that was sent to spark is proved to be read\n": ["sent", "spark", "--unread"],
        "nobody asks to join\n": ["trust", "requests"],
    }
    for said, args in told.items():
        found = team.mac.wire(*args)
        assert said in found.stdout + found.stderr, (args, str(found))
    kim, checkpoint = team.new_machine("kim"), team.mac.json("trust", "show")["checkpoint"]
    kim.wire("join", team.remote.url, "--as", "kim", "--trust", checkpoint)
    assert team.mac.wire("trust", "requests").stdout.endswith("  wire trust approve NAME SHA256:… or WORDS\n")


def test_the_lists_say_what_they_mean(team: Team) -> None:
    def line(machine: Machine, name: str) -> str:
        (found,) = [one for one in machine.wire("agents").stdout.splitlines() if one.startswith(name)]
        return found

    # Of whom nothing was heard, and where no daemon ran yet, nothing is made up.
    lee = team.join("lee")
    assert line(team.mac, "lee").endswith("state unknown; never heard of; unread there: not known, here: 0")
    assert line(lee, "lee").endswith("idle; this agent")
    team.mac.wire("state", "busy", "the parser")
    assert "busy (the parser); this agent" in line(team.mac, "mac"), "its own word needs no daemon"
    sent = team.mac.send("spark", "hello")
    team.mac.send("lee", "and to you")
    told = team.mac.wire("sent").stdout
    assert (", spark was last heard of " in told, ", lee was never heard of\n" in told) == (True, True), told
    team.settle()
    assert line(team.spark, "mac").endswith("; unread there: 0, here: 1")
    assert "message, 0 s ago, 5 characters\n" in re.sub(r"\d+ s ago", "0 s ago", team.spark.wire("inbox").stdout)
    (listed,) = team.spark.json("inbox")["messages"]
    assert listed["bytes"] == team.spark.json("show", sent)["bytes"]
    shown = team.spark.wire("show", sent).stdout
    assert shown.startswith(f"message {sent}, ")
    assert "  incidents: none\n" in shown
    assert "there is no group; `wire group set NAME MEMBERS`" in team.mac.wire("group", "list").stdout
    team.mac.wire("group", "set", "review", "mac", "spark")
    assert team.mac.wire("group", "list").stdout == "review: mac, spark\n"
    assert team.mac.jsonl("group", "list") == [{"group": "review", "members": ["mac", "spark"]}]
    assert "encrypt: optional (who sends decides: `wire send --seal`" in team.mac.wire("trust", "policy").stdout


def test_a_structured_body_is_told_in_words_and_kept_to_the_byte(team: Team) -> None:
    when = "2026-11-29T11:20:00.123Z"
    seen = {"code": "PREFIX", "scope": "mac/spark", "evidence": {"seq": 3}, "count": 1, "last": when}
    team.mac.wire("send", "spark", json.dumps(seen), "--type", "incident", "--json")
    team.mac.wire("send", "spark", '{"build": "green", "tests": 412}', "--json")
    team.settle()
    told = team.spark.wire("tail", "--peek").stdout.splitlines()
    assert told[0].endswith(
        f"): PREFIX in mac/spark: the remote lacks or changed lines that were accepted; seen at {when}"
    )
    assert told[1].endswith("): build: green; tests: 412")
    assert "  | build: green\n  | tests: 412\n" in team.spark.wire("read", "mac/spark/2", "--peek").stdout
    assert [one["line"]["body"] for one in team.spark.jsonl("tail")] == [seen, {"build": "green", "tests": 412}]
