"""J4: the next step that an incident names is run to the letter, and things get better. J15: what a refusal shows."""

import re
import shlex

import pytest

from support.team import bodies, end, incidents, path, pin, state, write

HARMLESS = ("incidents show", "trust show", "status", "verify", "doctor", "keys list", "--version", "trust requests")
"""Commands that only look."""


def told(machine, code):
    """Return the commands that the open incident of a code names."""
    (incident,) = incidents(machine, code)
    assert incident["next_step"], incident
    return re.findall(r"`wire ([^`]+)`", incident["next_step"])


def follow(machine, code):
    """Run what the incident says, as it stands there."""
    commands = told(machine, code)
    assert commands, f"{code} names no command"
    for command in commands:
        result = machine.wire(*shlex.split(command), check=False)
        assert result.status != 2, f"`wire {command}` is no command that can be run\n{result}"
        assert "Traceback" not in result.stderr
        if command.startswith(HARMLESS):
            assert result.out, str(result)
    return commands


def vandalise(team, change):
    vandal = team.vandal()
    change(vandal)
    vandal.commit()
    vandal.push()
    for machine in team.machines[1:]:
        machine.wire("sync", check=False)


def junk(vandal):
    vandal.append(path("mac/spark"), b"not a line\n")


def rewrite(vandal):
    vandal.write(path("mac/spark"), vandal.read(path("mac/spark")).replace(b"one", b"two"))


def copy(vandal):
    vandal.append(path("mac/spark"), vandal.read(path("mac/spark")).split(b"\n")[0] + b"\n")


def elsewhere(vandal):
    vandal.write("_coordination/spark/mac/000001.jsonl", vandal.read(path("mac/spark")))


def trust(vandal):
    vandal.write("_coordination/trust/000009.json", b"{}")


@pytest.mark.parametrize(
    ("change", "code"),
    [(junk, "SIGNATURE"), (rewrite, "PREFIX"), (copy, "REPLAY"), (elsewhere, "MISPLACED"), (trust, "TRUST")],
)
def test_j4_of_bytes_that_do_not_hold(team, change, code):
    team.mac.send("spark", "one")
    team.settle()
    vandalise(team, change)
    follow(team.spark, code)
    # What the text promises beside the commands: it goes away when the owner syncs, or sends again.
    team.mac.send("spark", "again")
    team.mac.wire("sync", check=False)
    team.spark.wire("sync", check=False)
    assert end(team.spark, "mac/spark").seq == 2
    for incident in incidents(team.spark, code):
        team.spark.wire("incidents", "resolve", incident["id"])
    team.spark.wire("sync")
    assert incidents(team.spark, code) == []
    assert pin(team.spark).accepted == pin(team.mac).accepted
    assert bodies(team.spark.wire("tail", "--json", check=False)) == ["one", "again"]


def test_j4_of_a_forced_history(team):
    first = team.remote.tip()
    team.mac.send("spark", "one")
    team.settle()
    team.remote.git("update-ref", f"refs/heads/{team.remote.branch}", first)
    team.spark.wire("sync", check=False)
    assert pin(team.spark).frozen is not None
    assert "heal" in follow(team.spark, "FORCED")
    assert pin(team.spark).frozen is None
    assert bodies(team.spark.wire("tail", "--json", check=False)) == ["one"]
    team.mac.wire("sync", check=False)
    assert pin(team.mac).frozen is None
    team.check()


def test_j4_of_a_gap(team):
    """Lines two ahead of what is there: their owner's next sync brings the one between."""
    team.mac.send("spark", "one")
    team.settle()
    between, beyond = write(team.mac, "mac/spark", "two", "three")
    vandalise(team, lambda vandal: vandal.append(path("mac/spark"), beyond))
    follow(team.spark, "GAP")
    with team.mac.segment("mac/spark").open("ab") as file:
        file.writelines([between, beyond])
    team.mac.wire("sync", check=False)
    team.spark.wire("sync", check=False)
    assert end(team.spark, "mac/spark").seq == 3


@pytest.mark.parametrize("code", ["NOT_FOUND", "REJECTED"])
def test_j4_of_a_remote_that_does_not_take_it(team, code):
    team.mac.send("spark", "one")
    away = team.remote.path.with_name("away.git")
    if code == "REJECTED":
        team.remote.reject_pushes("not on a Sunday")
    else:
        team.remote.path.rename(away)
    team.mac.wire("sync", check=False)
    # The first part is a person's: the rules, or the way to the remote.
    if code == "REJECTED":
        assert "not on a Sunday" in team.mac.wire("incidents", "show", incidents(team.mac, code)[0]["id"]).stdout
        team.remote.remove_pre_receive()
    else:
        away.rename(team.remote.path)
    assert "sync" in follow(team.mac, code)
    assert incidents(team.mac, code) == []
    team.sync_and_check()


def test_j4_of_a_journal_that_was_damaged(team):
    team.mac.send("spark", "one")
    team.settle()
    journal = state(team.mac) / "journal" / "mac" / "spark" / "000001.jsonl"
    journal.write_bytes(b"\0" * journal.stat().st_size)
    refused = team.mac.wire("send", "spark", "two", check=False)
    assert "`wire sync`" in refused.stderr
    team.mac.wire("sync", check=False)
    team.mac.send("spark", "two")
    assert any(command.startswith("incidents ack ") for command in follow(team.mac, "STATE_LOST"))
    assert team.mac.wire("status", check=False).status == 1, "no daemon runs, and nothing else is wrong"
    assert team.mac.wire("verify").status == 0
    team.settle()
    assert bodies(team.spark.wire("tail", "--json", check=False)) == ["one", "two"]
    team.check()


TORN = {
    "a mark at its beginning": (b"\xef\xbb\xbf", b""),
    "a carriage return": (b"", b"\r"),
    "a NUL": (b"\0", b""),
    "an unknown version": (b'{"v":2,', b""),
}


@pytest.mark.parametrize("what", TORN)
def test_j15_a_refusal_says_where_and_shows_how_it_begins(team, what):
    team.mac.send("spark", "one")
    team.settle()
    before, after = TORN[what]
    (line,) = write(team.mac, "mac/spark", "two")
    length = len(team.mac.segment("mac/spark").read_bytes())
    vandalise(team, lambda vandal: vandal.append(path("mac/spark"), before + line[:-1] + after + b"\n"))
    (incident,) = incidents(team.spark, "SIGNATURE")
    shown = team.spark.wire("incidents", "show", incident["id"]).out
    assert path("mac/spark").encode() in shown
    assert str(length).encode() in shown, "the byte at which it begins"
    assert b"\0" not in shown
    assert b"\r" not in shown
    assert re.search(rb"begins\W+\S", shown), shown
