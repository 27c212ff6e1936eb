"""C4, C5, C10, C11, C13, C15: a remote that hangs, is away, or fails in one of the ways that networks have."""

import re
import time

import pytest

from support import gitcmd, procs
from support.clones import failing_ssh
from support.daemons import set_cadence
from support.http_git import Fault
from support.remote import BareRemote
from support.team import bodies, incidents, pin, read
from support.waiting import eventually

SHORT = {"WIRE_GIT_TIMEOUT": "2"}
"""Seconds that a git command may take here; two minutes unless somebody says otherwise."""


def left(machine):
    """Return what still runs on a machine."""
    return [process.command for process in procs.marked(f"TEST_MACHINE={machine.root}")]


# C4

HANGS = {
    "sleeps": "exec sleep 9999",
    "is deaf to signals": "trap '' TERM INT HUP\nwhile :; do sleep 1; done",
    "has children": "sleep 9999 & setsid sleep 9999 & wait",
}


@pytest.mark.parametrize("then", HANGS.values(), ids=HANGS)
def test_c4_a_hanging_ssh_is_ended_with_all_it_started(team, tmp_path, then):
    before = dict(team.mac.env)
    there = team.remote.url
    team.mac.send("spark", "it waits")
    team.reach_by("ssh://git@hub.example.invalid/team.git")
    team.mac.env = {**failing_ssh(tmp_path, team.mac.env, then), **SHORT}
    failed = team.mac.wire("sync", check=False, timeout=30)
    assert failed.status == 6
    assert "did not end in the time it had" in failed.stderr
    assert (tmp_path / "pids").exists(), "the script ran"
    if "setsid" not in then:
        assert left(team.mac) == []
    else:
        # A session of its own: nobody can find it again, and a real ssh never does that.
        procs.kill_marked(f"TEST_MACHINE={team.mac.root}")
    (incident,) = incidents(team.mac)
    assert incident["code"] == "NETWORK"
    team.mac.env = before
    team.reach_by(there)
    team.sync_and_check()
    assert incidents(team.mac) == []


def test_c4_a_host_that_accepts_and_never_answers(team, host):
    team.reach_by(host.url("hub.git"))
    team.mac.send("spark", "it waits")
    host.fault = "silent"
    began = time.monotonic()
    failed = team.mac.wire("sync", check=False, timeout=30, env=SHORT)
    assert time.monotonic() - began < 15
    assert failed.status == 6
    assert left(team.mac) == []
    (incident,) = incidents(team.mac)
    assert incident["code"] == "NETWORK"
    host.fault = None
    team.sync_and_check()
    assert incidents(team.mac) == []


# C5


def test_c5_a_hung_transfer_blocks_no_local_work(team, tmp_path):
    team.spark.send("mac", "fetched before")
    team.settle()
    there = team.remote.url
    before = dict(team.mac.env)
    team.reach_by("ssh://git@hub.example.invalid/team.git")
    team.mac.env = failing_ssh(tmp_path, team.mac.env, "exec sleep 9999")
    hanging = team.mac.spawn("sync")
    eventually((tmp_path / "pids").exists, what="a fetch that hangs")
    seconds = []
    for n in range(5):
        began = time.monotonic()
        team.mac.send("spark", f"local {n}")
        seconds.append(time.monotonic() - began)
    # The fastest of them: what else runs on this machine is not what hangs.
    assert min(seconds) < 1.0
    began = time.monotonic()
    assert read(team.mac) == ["fetched before"]
    shown = team.mac.wire("log", "--json").jsonl()
    assert [one["id"] for one in shown if "mac/spark" in one["id"]] == [], "the log shows what is accepted"
    assert [one["state"] for one in team.mac.wire("show", "mac/spark/5", "--json", check=False).jsonl()] == ["stored"]
    assert hanging.poll() is None, "it still hangs"
    hanging.terminate()
    hanging.wait(20)
    team.mac.env = before
    team.reach_by(there)
    team.sync_and_check()
    assert read(team.spark) == [f"local {n}" for n in range(5)]


# C10


def test_c10_a_remote_that_is_away_costs_nothing_but_time(team):
    elsewhere = team.remote.path.with_name("away.git")
    team.remote.path.rename(elsewhere)
    for n in range(3):
        team.mac.send("spark", f"line {n}")
        failed = team.mac.wire("sync", check=False)
        assert failed.status == 6
        assert "not found" in failed.stderr
        assert "does not appear to be a git repository" in failed.stderr
    (incident,) = incidents(team.mac)
    assert (incident["code"], incident["count"]) == ("NOT_FOUND", 3)
    seen = team.mac.json("status", check=False)
    assert (seen["exit_status"], seen["unpushed"]) == (6, 3)
    assert seen["oldest_unpushed_age_s"] > 0
    elsewhere.rename(team.remote.path)
    team.sync_and_check()
    assert read(team.spark) == [f"line {n}" for n in range(3)]
    assert incidents(team.mac) == []


def test_c10_a_remote_that_moved_is_followed_where_a_person_says_so(team):
    """Its new place stands in the configuration and is taken over by a command, which looks what is found there."""
    team.mac.send("spark", "before")
    team.settle()
    moved = team.remote.path.with_name("moved.git")
    team.remote.path.rename(moved)
    for machine in team.machines:
        config = machine.wire_home / "config.toml"
        config.write_text(config.read_text("utf-8").replace(team.remote.url, str(moved)), "utf-8")
        machine.wire("trust", "repin", "--checkpoint", pin(machine).checkpoint)
    team.remote.path, team.remote.url = moved, str(moved)
    team.mac.send("spark", "after")
    team.sync_and_check()
    assert read(team.spark) == ["before", "after"]
    assert pin(team.mac).remote == team.mac.json("status", check=False)["remote"] == str(moved)
    assert incidents(team.mac) == []


# C11

LABELS: dict[Fault, tuple[str, str]] = {
    "401": ("AUTH", "authentication, http-401"),
    "403": ("AUTH", "authentication, http-403"),
    "404": ("NOT_FOUND", "not found, no-repository"),
    "429": ("RATE_LIMIT", "rate limit, http-429"),
    "500": ("NETWORK", "network, http-5xx"),
    "login": ("AUTH", "authentication, not-git"),
    "cut": ("NETWORK", "network, cut"),
}
URLS = {
    "http://127.0.0.1:9/hub.git": ("NETWORK", "network, refused"),
    "http://hub.example.invalid/hub.git": ("NETWORK", "network, dns"),
    "https://127.0.0.1:{port}/hub.git": ("NETWORK", "network, tls"),
}


def test_c11_and_j1_every_failure_has_its_own_name_and_gits_own_reason(team, host):
    """Also in what a program reads; and each is over as soon as the next try succeeds."""
    there = host.url("hub.git")
    team.reach_by(there)
    expected = [(fault, there, *told) for fault, told in LABELS.items()]
    expected += [(None, url.format(port=host.port), *told) for url, told in URLS.items()]
    for fault, url, code, label in expected:
        host.fault = fault
        team.reach_by(url)
        failed = team.mac.wire("sync", check=False)
        assert failed.status == 6, str(failed)
        assert f"git fetch failed ({label}): fatal: " in failed.stderr, str(failed)
        assert not re.search("Traceback|RetryError|error inside wire", failed.stderr)
        found = incidents(team.mac, code)
        assert [one["subject"] for one in found] == ["remote"], (fault, url)
        as_json = team.mac.wire("sync", "--json", check=False)
        assert as_json.status == 6
        assert as_json.json()["failure"]["reason"].startswith("git-")
        assert label in as_json.json()["failure"]["error"]
    host.fault = None
    team.reach_by(there)
    team.mac.wire("sync")
    assert incidents(team.mac) == []


# C13, C15


def test_c13_a_forced_history_that_lacks_lines_is_told_and_healed(team):
    """Somebody pushed by force from an old clone. Nothing is given up, nobody forces anything back by itself."""
    team.spark.send("mac", "old")
    team.settle()
    vera = team.vandal()
    team.mac.send("spark", "one")
    team.mac.send("spark", "two")
    team.settle()
    assert read(team.spark) == ["one", "two"]
    before = team.remote.tip()
    vera.commit("another history")
    forced = vera.push(force=True)
    team.spark.send("mac", "it waits")
    for machine in team.machines:
        for _ in range(2):
            assert machine.wire("sync", check=False).status == 4
        (incident,) = incidents(machine, "FORCED")
        assert (incident["evidence"]["old_tip"], incident["evidence"]["new_tip"]) == (before, forced)
        for word in ("2 line(s) of mac/spark", before[:12], forced[:12]):
            assert word in incident["message"]
        assert "`wire heal`" in incident["next_step"]
        kept = gitcmd.line(machine.clone(), "for-each-ref", "--format=%(refname)", "--contains", before, "refs/wire")
        assert "refs/wire/verified" in kept, "the old history stays here, whatever git throws away"
    assert team.remote.tip() == forced
    assert read(team.spark, status=None) == [], "what was shown is not shown again"
    assert bodies(team.spark.wire("tail", "-n", "2", "--json", check=False)) == ["one", "two"]
    team.mac.wire("heal", check=False)
    team.settle()
    team.check(attacked=True)
    assert [body for body in read(team.mac, status=4) if isinstance(body, str)] == ["old", "it waits"]
    assert [body for body in read(team.spark, status=4) if isinstance(body, str)] == []
    for machine in team.machines:
        assert all(one["ended"] for one in incidents(machine, "FORCED", "PREFIX")), "over, and still to be seen"


def test_c15_a_remote_that_was_made_anew_is_not_seeded_until_somebody_says_so(team):
    team.mac.send("spark", "one")
    team.settle()
    before = team.remote.tip()
    team.remote.path.rename(team.remote.path.with_name("deleted.git"))
    fresh = BareRemote(team.remote.path)
    team.mac.send("spark", "it waits")
    set_cadence(team.spark, t0=1, t1=1, t2=1, t3=1)
    team.spark.start_daemon()
    for _ in range(3):
        failed = team.mac.wire("sync", check=False)
        assert failed.status == 4, str(failed)
    for machine in team.machines:
        eventually(lambda machine=machine: incidents(machine, "FORCED"), what="an incident about it")
        (incident,) = incidents(machine, "FORCED")
        assert f"lost commit {before[:12]}" in incident["message"]
        assert "wire heal" in incident["next_step"]
        assert machine.wire("status", check=False).status == 4
    assert fresh.tip() is None, "nobody fills it by itself"
    team.mac.wire("heal", check=False)
    eventually(lambda: incidents(team.spark, "FORCED")[0]["ended"], what="the other machine to thaw by itself")
    team.spark.stop_daemon()
    team.sync_and_check()
    assert [body for body in read(team.spark, status=4) if isinstance(body, str)] == ["one", "it waits"]
