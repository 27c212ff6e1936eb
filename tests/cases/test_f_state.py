"""F8: every file of a machine's state, emptied, filled with NUL, or cut in half."""

import json

import pytest

from support.sizes import FULL
from support.team import incidents, read, state

HARMS = {
    "NUL": lambda data: bytes(max(len(data), 1)),
    "empty": lambda data: b"",
    "half": lambda data: data[: len(data) // 2],
}

REBUILT = (
    "progress.json",
    "pending.json",
    "text.sqlite*",
    "receipts.sqlite",
    "seen.jsonl",
    "outlook",
    "outlook/*",
    "cursors/*.json",
    "invitations/*.json",
    "presences/*",
    "incidents/*.json",
    "locks/*/sent",
    "journal/*/*/*.jsonl",
    "signed/*",
    "presences/*",
    "receipts.sqlite",
    "outlook",
    "requests.json",
    "bounds.json",
)
"""What is made anew, or does without: nothing that was accepted depends on it."""

CLOSED = ("pin.json", "trust/*")
"""What nobody may guess: security state fails closed."""

NO_STATE = (".holder", ".reserve", "*.lock", "aside/*", "*.corrupt-*", "error-*")
"""Notes of who holds a lock, a reserve of space, and what was set aside; their content means nothing."""


def files(machine, *patterns):
    return sorted({file for pattern in patterns for file in state(machine).glob(pattern) if file.is_file()})


@pytest.fixture
def lived(team):
    """Both have sent, read, and seen an incident, so that every kind of state file is there."""
    team.mac.send("spark", "one")
    team.spark.send("mac", "two")
    team.settle()
    assert read(team.mac) == ["two"]
    vera = team.vandal()
    vera.append("_coordination/spark/mac/000001.jsonl", b"junk\n")
    vera.commit()
    vera.push()
    team.mac.wire("sync", check=False)
    team.spark.wire("sync", check=False)
    team.mac.wire("invite", "lee", "--no-wait")
    team.mac.wire("state", "busy", "with a test")
    for args in (("search", "two"), ("sent",), ("inbox",)):
        team.mac.wire(*args, check=False)
    return team


def test_f8_every_file_of_the_state_has_a_verdict(lived):
    known = set(files(lived.mac, *REBUILT, *CLOSED))
    for file in state(lived.mac).rglob("*"):
        if file.is_file() and file not in known:
            assert any(file.match(pattern) for pattern in NO_STATE), f"what if {file} is damaged?"


@pytest.mark.parametrize("harm", HARMS)
def test_f8_what_can_be_made_anew_is(lived, harm):
    mac = lived.mac
    sent = ["one"]
    for file in files(mac, *REBUILT):
        if not file.exists():
            continue  # an earlier repair had no use for it
        file.write_bytes(HARMS[harm](file.read_bytes()))
        name = file.relative_to(state(mac))
        for args in (("sync",), ("status",), ("tail", "--json")):
            done = mac.wire(*args, check=False)
            assert "Traceback" not in done.stderr, f"{name}: {done}"
            assert "an error inside wire" not in done.stderr + done.stdout, f"{name}: {done}"
            assert done.status in ((0, 1, 4, 6) if args != ("sync",) else (0, 4)), f"{name}: {done}"
        sent.append(f"after {name}")
        mac.send("spark", sent[-1])
        # What was damaged is told once, not at each look.
        quiet = mac.wire("sync", check=False)
        assert "damaged" not in quiet.stderr, f"{name}: {quiet}"
    lived.spark.wire("sync", check=False)
    assert read(lived.spark, status=None) == sent
    lived.settle()
    lived.check(attacked=True)
    assert mac.json("verify", "--full")["problems"] == []


def test_f8_a_damaged_cursor_is_moved_aside_and_told(lived):
    (cursor,) = files(lived.mac, "cursors/*.json")
    for number, harm in enumerate(HARMS.values(), 1):
        cursor.write_bytes(harm(cursor.read_bytes()))
        told = lived.mac.wire("tail", "--json", check=False)
        assert told.status == 4
        assert "lost" in told.stderr
        assert len(list(cursor.parent.glob("*.corrupt-*"))) == number
        assert "lost" not in lived.mac.wire("tail", "--json", check=False).stderr, "told once"


@pytest.mark.parametrize("pattern", CLOSED)
def test_f8_security_state_fails_closed(lived, pattern):
    """Nothing is read, accepted or published by guess, and the way out is told and works."""
    mac = lived.mac
    checkpoint = lived.spark.json("trust", "show")["checkpoint"]
    lived.mac.send("spark", "waits")
    tip = lived.remote.tip()
    held = files(mac, pattern)
    for file in held if FULL else {held[0], held[-1]}:
        whole = file.read_bytes()
        for harm in HARMS.values():
            file.write_bytes(harm(whole))
            commands = [("sync",), ("status",), ("verify",)]
            for args in commands + ([("send", "spark", "x"), ("tail",)] if pattern == "pin.json" else []):
                refused = mac.wire(*args, check=False)
                assert refused.status != 0, f"{file.name}: {refused}"
                assert "Traceback" not in refused.stderr
                assert "an error inside" not in refused.stderr
                if args != ("status",):
                    assert str(file.parent if pattern == "trust/*" else file) in refused.stderr, str(refused)
            assert file.read_bytes() == harm(whole), "left as it is, for a person to look at"
        file.write_bytes(whole)
    assert lived.remote.tip() == tip
    held[-1].write_bytes(bytes(100))
    mac.wire("trust", "repin", "--checkpoint", checkpoint)
    mac.wire("sync", check=False)
    lived.spark.wire("sync", check=False)
    assert read(lived.spark, status=None) == ["one", "waits"]
    lived.check(attacked=True)


def test_f8_a_damaged_configuration_is_named_and_nothing_is_done(lived):
    config = lived.mac.wire_home / "config.toml"
    whole = config.read_bytes()
    for harm in HARMS.values():
        config.write_bytes(harm(whole))
        for args in (("sync",), ("send", "spark", "x"), ("tail",), ("status",)):
            refused = lived.mac.wire(*args, check=False)
            assert refused.status != 0
            assert "Traceback" not in refused.stderr
            if harm(whole):  # an empty one is a configuration without wires
                assert str(config) in refused.stderr, str(refused)
        assert config.read_bytes() == harm(whole)
    config.write_bytes(whole)
    lived.mac.wire("sync", check=False)
    lived.mac.wire("tail", check=False)


def test_f8_a_damaged_incident_is_an_incident(lived):
    (file, *_) = files(lived.mac, "incidents/*.json")
    file.write_bytes(bytes(100))
    assert [one["code"] for one in incidents(lived.mac, "CORRUPT")] == ["CORRUPT"]
    assert list(file.parent.glob("*.corrupt-*"))
    assert json.loads(lived.mac.wire("incidents", "--json", "--all").stdout.split("\n")[0])


def test_f8_a_state_that_is_gone_is_not_a_first_contact(lived):
    """All of it, with the configuration left: the keys, the clone and the others have everything."""
    mac = lived.mac
    mac.send("spark", "sent and never synced is gone with its folder")
    mac.sent.pop()
    parked = state(mac).with_name("parked")
    state(mac).rename(parked)
    refused = mac.wire("sync", check=False)
    assert refused.status == 5
    assert "wire trust repin" in refused.stderr
    checkpoint = lived.spark.json("trust", "show")["checkpoint"]
    mac.wire("trust", "repin", "--checkpoint", checkpoint)
    mac.wire("sync", check=False)
    mac.send("spark", "after")
    mac.wire("sync", check=False)
    lived.spark.wire("sync", check=False)
    assert read(lived.spark, status=None)[-1] == "after"
    lived.check(attacked=True)
