"""R31: which wire is meant is pinned: another remote, another wire under its name, or no pin is refused."""

import re
import shlex

import pytest

from support import gitcmd
from support.daemons import set_cadence
from support.remote import BareRemote
from support.team import begin, incidents, pin, read, state
from support.waiting import eventually


def point_at(machine, old, new):
    config = machine.wire_home / "config.toml"
    text = config.read_text("utf-8")
    assert old in text
    config.write_text(text.replace(old, new), "utf-8")


def command_in(text):
    """Return the arguments of the first command that a text names as the next step."""
    found = re.search(r"wire (trust repin --checkpoint \S+?);", text)
    assert found, text
    return shlex.split(found[1])


def test_r31_a_remote_that_moved_is_taken_over_by_the_command_that_the_refusal_names(team):
    team.mac.send("spark", "before")
    team.settle()
    moved = team.remote.path.with_name("moved.git")
    team.remote.path.rename(moved)
    for machine in team.machines:
        point_at(machine, team.remote.url, str(moved))
    before = pin(team.mac)
    team.mac.send("spark", "after")  # sending is never refused
    refused = team.mac.json("sync", check=False)
    assert (refused["reason"], team.mac.wire("sync", check=False).status) == ("remote-changed", 5)
    assert str(moved) in refused["error"]
    assert team.remote.url in refused["error"]
    assert pin(team.mac) == before
    (incident,) = incidents(team.mac, "MOVED")
    assert incident["next_step"] == refused["next_step"]
    assert "MOVED" in team.mac.wire("status", check=False).stdout
    for machine in team.machines:
        told = machine.json("sync", check=False)["next_step"]
        assert machine.wire(*command_in(told)).status == 0
    team.remote.path, team.remote.url = moved, str(moved)
    team.sync_and_check()
    assert read(team.spark) == ["before", "after"]
    assert incidents(team.mac) == []
    assert pin(team.mac).remote == str(moved)


def test_r31_a_daemon_asks_nobody_but_the_pinned_remote(team, tmp_path):
    """The configuration changes under it: it says so, touches neither place, and goes on when it is put back."""
    other = BareRemote(tmp_path / "other.git")
    set_cadence(team.mac, t0=1)
    team.mac.start_daemon()
    team.mac.send("spark", "one")
    eventually(lambda: pin(team.mac).remote_seq.get("mac/spark") == 1, what="the first line at the remote")
    point_at(team.mac, team.remote.url, other.url)
    (incident,) = eventually(lambda: incidents(team.mac, "MOVED"), what="the incident")
    assert other.url in incident["message"]
    assert team.remote.url in incident["message"]
    team.mac.send("spark", "two")
    tip = team.remote.tip()
    assert gitcmd.line(other.path, "for-each-ref") == ""
    point_at(team.mac, other.url, team.remote.url)
    eventually(lambda: pin(team.mac).remote_seq.get("mac/spark") == 2, what="the second line at the remote")
    eventually(lambda: not incidents(team.mac, "MOVED"), what="the incident to be over")
    assert team.remote.tip() != tip
    team.mac.stop_daemon()
    team.sync_and_check()


def test_r31_another_wire_under_the_same_name(team, tmp_path, machines):
    """By the configuration, by joining, and by state that was copied: each is refused, and nothing is changed."""
    (tmp_path / "elsewhere").mkdir()
    other = BareRemote(tmp_path / "elsewhere" / "hub.git")
    checkpoint = begin(machines("ada"), other)
    team.mac.send("spark", "before")
    team.settle()
    before = pin(team.mac)
    # Joining: the local name would be the same.
    refused = team.mac.json("join", other.url, "--as", "mac", "--trust", checkpoint, check=False)
    assert (refused["reason"], "--wire NAME" in refused["next_step"]) == ("wire-exists", True)
    assert team.remote.url in refused["error"]
    assert other.url in refused["error"]
    # The configuration: what the new place shows is not what is pinned, and the command says so with both values.
    point_at(team.mac, team.remote.url, other.url)
    assert team.mac.json("sync", check=False)["reason"] == "remote-changed"
    for given in (before.checkpoint, checkpoint):
        refused = team.mac.wire("trust", "repin", "--checkpoint", given, "--json", check=False)
        assert (refused.status, refused.json()["reason"]) == (5, "checkpoint")
        assert refused.json()["error"].count("SHA256:") == 2, "expected and found"
    assert pin(team.mac) == before
    point_at(team.mac, other.url, team.remote.url)
    # The state of another wire in the place of this one's.
    file = state(team.mac) / "pin.json"
    kept = file.read_bytes()
    file.write_bytes(state_of_ada(tmp_path).read_bytes())
    refused = team.mac.wire("sync", "--json", check=False)
    assert refused.status == 5
    assert refused.json()["reason"] in ("remote-changed", "trust-corrupt")
    file.write_bytes(kept)
    team.sync_and_check()
    assert incidents(team.mac) == []


def state_of_ada(folder):
    (found,) = folder.rglob("machine-ada/wire/state/hub/pin.json")
    return found


@pytest.mark.parametrize("lost", ["pin.json", "trust"])
def test_r31_a_machine_that_lost_its_pin_does_not_trust_anew(team, lost):
    """A daemon says what is missing and stays; joining again is no way around it; the command that is named is."""
    team.mac.send("spark", "before")
    team.settle()
    set_cadence(team.spark, t0=1)
    checkpoint = team.mac.json("trust", "show")["checkpoint"]
    gone = state(team.spark) / lost
    gone.rename(gone.with_name("kept"))
    team.spark.start_daemon()
    (incident,) = eventually(lambda: incidents(team.spark, "CORRUPT"), what="an incident")
    assert "wire trust repin --checkpoint" in incident["next_step"]
    again = team.spark.wire("join", team.remote.url, "--as", "spark", "--trust", checkpoint, "--json", check=False)
    assert again.status == 5
    assert "wire trust repin --checkpoint" in again.json()["next_step"]
    team.spark.wire("trust", "repin", "--checkpoint", checkpoint)
    eventually(lambda: not incidents(team.spark, "CORRUPT"), what="the daemon goes on by itself")
    team.spark.stop_daemon()
    team.sync_and_check()


def test_r31_what_git_calls_a_remote_in_the_clone_means_nothing(team, tmp_path):
    other = BareRemote(tmp_path / "other.git")
    clone = team.mac.clone()
    gitcmd.git(clone, "remote", "add", "origin", other.url)
    gitcmd.git(clone, "config", "remote.pushDefault", "origin")
    team.mac.send("spark", "to the pinned one")
    team.sync_and_check()
    assert read(team.spark) == ["to the pinned one"]
    assert gitcmd.line(other.path, "for-each-ref") == ""
