"""E: clocks, sleep and late arrivals. Time is shown, order is by position, and no clock ever rejects anything."""

import os
import signal
from datetime import UTC, datetime, timedelta

import pytest

from support.daemons import Inbox
from support.sizes import size
from support.team import bodies, end, incidents, path, pin, state, write
from support.waiting import eventually


def at(**ahead):
    """Return a line's time that is so far from now."""
    time = datetime.now(UTC) + timedelta(**ahead)
    return time.strftime("%Y-%m-%dT%H:%M:%S.") + f"{time.microsecond // 1000:03}Z"


def put(machine, channel, *lines):
    """Append lines of the machine's own key to its clone, as an agent that signs by itself does."""
    with machine.segment(channel).open("ab") as file:
        file.writelines(lines)
    machine.sent += [f"{channel}/{end(machine, channel).seq + number}" for number in range(1, len(lines) + 1)]


@pytest.mark.parametrize(
    ("ahead", "flagged"),
    [
        ({"seconds": 3}, False),
        ({"minutes": 1}, False),
        ({"minutes": 4}, True),
        ({"hours": 2}, True),
        ({"days": 30}, True),
    ],
)
def test_e1_a_clock_that_is_ahead_is_told_and_never_called_a_bad_signature(team, ahead, flagged):
    team.mac.send("spark", "before")
    team.settle()
    put(team.mac, "mac/spark", *write(team.mac, "mac/spark", "from a fast clock", ts=at(**ahead)))
    team.settle()
    result = team.spark.wire("tail", "--json", check=False)
    items = {item["id"]: item for item in result.jsonl() if "id" in item}
    assert items["mac/spark/2"]["verdict"] == "verified"
    assert ("clock-ahead" in items["mac/spark/2"]["flags"]) is flagged
    assert items["mac/spark/2"]["age_s"] >= 0
    assert result.status == 0
    assert incidents(team.spark) == []
    assert ("ahead" in team.spark.wire("show", "mac/spark/2").stdout) is flagged
    team.check()


def test_e4_a_line_that_claims_to_be_older_is_judged_by_its_position_alone(team):
    """What a retired key signed later is refused whatever time it names: see the attacks on keys for every position."""
    team.mac.send("spark", "one")
    team.settle()
    held = end(team.spark, "mac/spark")
    # A second line for a place that is taken, dated back to before the first.
    (late,) = write(team.mac, "mac/spark", "dated back", after=held._replace(seq=held.seq - 1), ts=at(days=-30))
    vandal = team.vandal()
    vandal.append(path("mac/spark"), late)
    vandal.commit()
    vandal.push()
    for machine in team.machines:
        machine.wire("sync", check=False)
    assert bodies(team.spark.wire("tail", "--json", check=False)) == ["one"]
    assert end(team.spark, "mac/spark") == held
    assert [one["code"] for one in incidents(team.spark)] == ["FORK"]


def test_e5_a_daemon_that_slept_looks_at_once_and_once(team):
    team.mac.start_daemon()
    mac = Inbox(team.mac)
    eventually(lambda: team.mac.json("status", check=False)["fetch_age_s"] is not None)
    os.kill(team.mac.daemon.pid, signal.SIGSTOP)
    team.spark.send("mac", "while you slept")
    team.spark.wire("sync")
    begin = len(team.mac.log())
    os.kill(team.mac.daemon.pid, signal.SIGCONT)
    mac.gets(["while you slept"], timeout=10)
    assert team.mac.log(begin).count(" round wire=") <= 3


def test_e8_what_arrives_late_is_new_whatever_its_time(team):
    team.mac.send("spark", "first")
    team.settle()
    team.spark.send("mac", "newer")
    team.settle()
    assert bodies(team.spark.wire("tail", "--json")) == ["first"]
    put(team.mac, "mac/spark", *write(team.mac, "mac/spark", "two days ago", "and one", "and none", ts=at(days=-2)))
    team.settle()
    items = team.spark.jsonl("tail")
    assert bodies(items) == ["two days ago", "and one", "and none"]
    assert all(item["age_s"] > 86_400 for item in items if "id" in item)
    team.check()


def test_e9_a_sequence_never_goes_back(team):
    """Killed and started again and again, with sends at every moment: each number once, in order."""
    for number in range(size(5, 20, "restarts between sends")):
        team.mac.start_daemon()
        team.mac.send("spark", f"{number} beside a daemon")
        team.mac.kill_daemon()
        team.mac.send("spark", f"{number} without one")
    assert team.mac.sent == [f"mac/spark/{number}" for number in range(1, len(team.mac.sent) + 1)]
    team.settle()
    assert end(team.spark, "mac/spark").seq == len(team.mac.sent)
    assert pin(team.mac).remote_seq["mac/spark"] == len(team.mac.sent)
    assert (state(team.mac) / "journal" / "mac" / "spark").is_dir()
    assert incidents(team.mac) == incidents(team.spark) == []
    team.check()
