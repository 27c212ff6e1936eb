"""Rounds, what they tell the others, the claim on a wire, and what is cleared away: in this process, on a real wire."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.team import path, pin
from support.waiting import eventually
from wire.daemon import rounds, upkeep
from wire.daemon.announce import announce
from wire.daemon.claim import Claim, sole
from wire.daemon.site import Site
from wire.daemon.tidy import git_processes
from wire.errors import Busy, Corrupt, DiskFull
from wire.protocol.line import content, parse
from wire.store import config as configs
from wire.store import incidents, journal
from wire.store.paths import Settings

MONDAY, LATER, TUESDAY = "2026-11-30T10:00:00.000Z", "2026-11-30T23:00:00.000Z", "2026-12-01T00:00:00.000Z"


def site_of(machine, **environ):
    """Return a machine's wire, opened in this process."""
    settings = Settings.from_environ({**machine.env, **environ}, str(machine.home))
    return Site.open(settings, configs.load(settings).wires[0])


@pytest.fixture
def site(team):
    return site_of(team.mac)


def trouble(site, code="SIGNATURE", scope="spark/mac", now=MONDAY, **rest):
    return incidents.raise_(site.places.incidents_dir, code=code, scope=scope, message="odd", now=now, **rest)


def told(site, channel="mac/all"):
    """Return the bodies of the incident lines in a channel's journal."""
    raws = [
        raw
        for number in journal.segments(site.places, channel)
        for raw in journal.read_segment(site.places, channel, number).split(b"\n")[:-1]
    ]
    lines = [parse(raw) for raw in raws]
    assert {line.type for line in lines} <= {"incident"}
    return [content(line)["body"] for line in lines]


# Telling


def test_an_incident_is_told_once(site):
    trouble(site, evidence={"count": 2, "sha256": "ab" * 32, "begins": b"evil", "why": "words"})
    assert announce(site, MONDAY) == ["mac/all/1"]
    assert announce(site, LATER) == announce(site, TUESDAY) == []
    (body,) = told(site)
    assert body == {
        "code": "SIGNATURE",
        "scope": "spark/mac",
        "evidence": {"count": 2, "sha256": "ab" * 32, "begins": body["evidence"]["begins"]},
        "first": MONDAY,
        "last": MONDAY,
        "count": 1,
    }
    assert body["evidence"]["begins"].keys() == {"sha256", "bytes"}
    assert incidents.list_(site.places.incidents_dir)[0].published == MONDAY


def test_one_line_per_code_and_channel_and_day(site):
    trouble(site, subject="a")
    trouble(site, subject="b")
    trouble(site, subject="b", now=LATER)
    trouble(site, code="REPLAY")
    trouble(site, scope="wire")
    assert len(announce(site, LATER)) == 3
    first = told(site)[0]
    assert (first["count"], first["first"], first["last"]) == (3, MONDAY, LATER)
    trouble(site, subject="c", now=LATER)
    assert announce(site, LATER) == [], "another one of the day, which waits"
    assert announce(site, TUESDAY) == ["mac/all/4"]
    assert told(site)[3]["count"] == 1


def test_breakdowns_paths_and_what_is_resolved_are_not_told(site):
    trouble(site, code="NETWORK", scope="wire")
    trouble(site, code="SHAPE", scope="/home/me/secret")
    done = trouble(site)
    incidents.resolve(site.places.incidents_dir, done.id, now=MONDAY)
    assert announce(site, MONDAY) == []


def test_nothing_is_told_about_incident_lines(site):
    trouble(site, code="SCHEMA", scope="spark/all", subject="content", evidence={"types": ["incident"]})
    assert announce(site, MONDAY) == []
    trouble(site, code="SIZE", scope="spark/all", subject="content", evidence={"types": ["incident", "message"]})
    assert len(announce(site, MONDAY)) == 1


def test_lost_incident_lines_are_not_told_and_others_are(team, site):
    team.spark.wire("send", "all", "a message")
    spark = site_of(team.spark)
    trouble(spark, scope="mac/spark")
    assert announce(spark, MONDAY) == ["spark/all/2"]
    team.settle()
    trouble(site, code="PREFIX", scope="spark/all", evidence={"first": 2, "last": 2})
    assert announce(site, MONDAY) == []
    trouble(site, code="PREFIX", scope="spark/all", subject="more", evidence={"first": 1, "last": 2})
    assert announce(site, MONDAY) == ["mac/all/1"]


def test_a_kill_between_storing_and_noting_tells_nothing_twice(site, monkeypatch):
    trouble(site)
    monkeypatch.setattr(incidents, "mark_published", exit_now)
    with pytest.raises(SystemExit):
        announce(site, MONDAY)
    monkeypatch.undo()
    assert len(told(site)) == 1
    assert announce(site, MONDAY) == []
    assert len(told(site)) == 1
    assert incidents.list_(site.places.incidents_dir)[0].published == MONDAY


def exit_now(*_, **__):
    raise SystemExit


def test_an_agent_that_is_not_approved_tells_nothing(team):
    late = team.new_machine("late")
    checkpoint = team.mac.json("trust", "show")["checkpoint"]
    late.wire("join", team.remote.url, "--as", "late", "--trust", checkpoint)
    site = site_of(late)
    trouble(site)
    assert announce(site, MONDAY) == []
    assert incidents.list_(site.places.incidents_dir)[0].published is None


def test_a_round_takes_what_it_tells_out_at_once(team, site):
    vera = team.vandal()
    team.spark.send("mac", "before")
    team.spark.wire("sync")
    vera.sync()
    vera.append(path("spark/mac"), b"junk\n")
    vera.commit()
    vera.push()
    report = rounds.run(site)
    assert report.failure is None
    assert report.accepted == {"spark/mac": 1}
    assert report.pushed == 1
    assert [one.code for one in report.raised] == ["SIGNATURE"]
    assert b'"type":"incident"' in team.remote.show(path("mac/all"))
    assert rounds.run(site).pushed == 0


# What keeps a cycle from running


def test_local_trouble_becomes_an_incident_and_ends(site):
    file = Path(site.places.pin_file)
    held = file.read_bytes()
    file.write_bytes(bytes(64))
    for _ in range(2):
        with pytest.raises(Corrupt):
            rounds.run(site)
    (incident,) = incidents.list_(site.places.incidents_dir)
    assert (incident.code, incident.state, incident.count) == ("CORRUPT", "open", 2)
    assert "wire trust repin" in incident.next_step
    file.write_bytes(held)
    rounds.run(site)
    assert incidents.list_(site.places.incidents_dir)[0].state == "resolved"


def test_a_full_disk_is_told_as_such(site, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device", site.places.pin_file)

    monkeypatch.setattr("wire.daemon.cycle.run", full)
    with pytest.raises(DiskFull):
        rounds.run(site)
    assert incidents.list_(site.places.incidents_dir)[0].code == "DISK_FULL"


# The claim


def test_a_claim_is_held_once_and_knows_of_a_crash(team, site):
    with Claim.take(site.places) as claim:
        assert not claim.crashed
        with pytest.raises(Busy) as caught:
            Claim.take(site.places)
        assert caught.value.reason == "daemon-running"
    program = (
        "import os, sys; from wire.daemon.claim import Claim; from wire.store.paths import WirePlaces\n"
        f"claim = Claim.take(WirePlaces(*{tuple(site.places)!r})); print(claim.crashed); os._exit(9)\n"
    )
    crashed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30)
    assert (crashed.returncode, crashed.stdout) == (9, "False\n")
    with Claim.take(site.places) as claim:
        assert claim.crashed
    with Claim.take(site.places) as claim:
        assert not claim.crashed


def test_a_clone_made_anew_is_claimed_anew(team, site):
    with Claim.take(site.places) as claim:
        os.rename(site.places.git_dir, f"{site.places.clone}/old")
        claim.renew()
        team.remote.git("init", "-q", site.places.git_dir)
        claim.renew()
        program = f"import fcntl, os; fcntl.flock(os.open({site.places.git_dir!r}, 0), fcntl.LOCK_EX | fcntl.LOCK_NB)"
        assert b"BlockingIOError" in subprocess.run([sys.executable, "-c", program], capture_output=True).stderr
    assert subprocess.run([sys.executable, "-c", program], capture_output=True).returncode == 0


def test_one_daemon_for_all_wires_of_a_machine(tmp_path):
    with sole(str(tmp_path)), pytest.raises(Busy) as caught:
        sole(str(tmp_path))
    assert caught.value.reason == "daemon-running"
    sole(str(tmp_path)).close()


# Clearing


def locks(site):
    """Leave locks as a kill does, and return their paths."""
    paths = [f"{site.places.git_dir}/{name}.lock" for name in ("index", "HEAD", "packed-refs", "refs/heads/main")]
    for one in paths:
        os.makedirs(os.path.dirname(one), exist_ok=True)
        with open(one, "wb"):
            pass
        os.utime(one, (time.time() - 5, time.time() - 5))
    return paths


def test_after_a_crash_old_locks_go_and_each_is_told(site):
    left = locks(site)
    told = upkeep.clear(site, crashed=True)
    assert [one for one in left if os.path.exists(one)] == []
    assert sorted(line.split()[1].rstrip(",") for line in told) == sorted(left)
    assert all("no git process held it" in line for line in told)


def test_after_an_orderly_end_locks_are_somebodys(site):
    left = locks(site)
    assert upkeep.clear(site, crashed=False) == []
    assert all(os.path.exists(one) for one in left)


def test_locks_are_left_while_git_is_at_work(site, monkeypatch):
    monkeypatch.setattr(upkeep, "_ORPHANS_SECONDS", 0.3)
    left = locks(site)
    working = subprocess.Popen(["git", "cat-file", "--batch"], cwd=site.places.clone, stdin=subprocess.PIPE)
    try:
        eventually(lambda: git_processes(site.places.clone))  # its name is the new one a moment after it was started
        (line,) = upkeep.clear(site, crashed=True)
        assert "left alone" in line
        assert all(os.path.exists(one) for one in left)
    finally:
        working.communicate()


def test_unfinished_writes_are_swept(site):
    left = f"{site.places.root}/.pin.json.0123456789ab.tmp"
    with open(left, "wb"):
        pass
    assert upkeep.clear(site, crashed=False) == [], "it may be under way"
    os.utime(left, (1, 1))
    (line,) = upkeep.clear(site, crashed=False)
    assert left in line
    assert not os.path.exists(left)


def test_a_git_that_may_take_no_time_is_refused(team):
    with pytest.raises(Exception, match="WIRE_GIT_TIMEOUT is '0'"):
        site_of(team.mac, WIRE_GIT_TIMEOUT="0")
    with pytest.raises(Exception, match="expected seconds"):
        site_of(team.mac, WIRE_GIT_TIMEOUT="soon")


def test_the_report_of_two_cycles_is_one(team, site):
    trouble(site)
    team.mac.send("spark", "hello")
    report = rounds.run(site)
    assert report.collected == {"mac/spark": 1, "mac/all": 1}
    assert report.pushed == 2
    assert pin(team.mac).remote_seq == {"mac/spark": 1, "mac/all": 1}
    assert json.loads(team.mac.wire("status", "--json", check=False).out)["unpushed"] == 0
