"""J11: `wire status` is right in both directions, whatever the daemon does."""

import json
import os
import signal
import time

from support.daemons import set_cadence
from support.sizes import size
from support.team import pin, state
from support.waiting import eventually
from wire.store.progress import ALIVE_SECONDS

STANDS_STILL = size(0, 1, "whether a daemon that stands still is waited for in real time")
EVERY_SECOND = {"t0": 1, "t1": 1, "t2": 1, "t3": 1, "hot": "[1]"}


def look(machine):
    """Return what status says: the daemon's state, the exit status, and what it says so with."""
    result = machine.wire("status", "--json", check=False)
    told = result.json()
    assert told["exit_status"] == result.status
    assert told["healthy"] == (result.status == 0)
    shown = machine.wire("status", check=False)
    assert shown.status == result.status
    assert f"daemon {told['daemon']}" in shown.stdout
    return told["daemon"], result.status, told


def becomes(machine, daemon, status):
    """Wait until status says this, and return all of it."""
    eventually(lambda: look(machine)[:2] == (daemon, status), what=lambda: f"{daemon}, {status}: {look(machine)}")
    return look(machine)[2]


def age_beat(machine):
    """Let a daemon that stands still have done so for longer than one may."""
    if STANDS_STILL:
        time.sleep(ALIVE_SECONDS + 1)
        return
    file = state(machine) / "progress.json"
    told = json.loads(file.read_bytes())
    file.write_text(json.dumps({**told, "beat": told["beat"] - ALIVE_SECONDS - 1}))


def test_j11_the_daemons_life(team):
    """Never started, alive, standing still, going on, killed, started again, stopped."""
    mac = team.mac
    assert look(mac)[:2] == ("stopped", 1)
    set_cadence(mac, **EVERY_SECOND)
    daemon = mac.start_daemon()
    assert becomes(mac, "running", 0)["pid"] == daemon.pid
    os.kill(daemon.pid, signal.SIGSTOP)
    assert look(mac)[0] == "running", "for a moment nobody can tell"
    age_beat(mac)
    found = look(mac)
    # Who waits in real time finds as well that nobody has looked for three of the promised intervals.
    assert found[:2] == ("stuck", 6 if STANDS_STILL else 1)
    assert any(f"pid {daemon.pid}" in trouble and "no life" in trouble for trouble in found[2]["troubles"])
    os.kill(daemon.pid, signal.SIGCONT)
    becomes(mac, "running", 0)
    mac.kill_daemon()
    assert look(mac)[:2] == ("stopped", 1), "a lock and a young beat prove nothing"
    mac.start_daemon()
    becomes(mac, "running", 0)
    mac.stop_daemon()
    assert look(mac)[:2] == ("stopped", 1)


def test_j11_alive_and_cannot_push(team):
    mac = team.mac
    set_cadence(mac, **EVERY_SECOND)
    mac.start_daemon()
    becomes(mac, "running", 0)
    team.remote.reject_pushes("GH006: protected branch")
    mac.send("spark", "one")
    found = becomes(mac, "running", 6)
    assert found["unpushed"] == 1
    assert "GH006" in found["failure_text"]
    assert found["fetch_age_s"] < found["push_age_s"] or found["push_age_s"] > 0
    assert "1 message(s) are not on the remote yet" in mac.wire("status", check=False).stdout
    team.remote.remove_pre_receive()
    assert becomes(mac, "running", 0)["unpushed"] == 0
    mac.stop_daemon()
    team.sync_and_check()


def test_j11_alive_and_cannot_look(team):
    mac = team.mac
    set_cadence(mac, **EVERY_SECOND)
    mac.start_daemon()
    becomes(mac, "running", 0)
    away = team.remote.path.with_name("away.git")
    team.remote.path.rename(away)
    found = becomes(mac, "running", 6)
    assert found["failure"] == "git-not-found"
    assert mac.wire("tail", "--json", check=False).status in (0, 6)
    away.rename(team.remote.path)
    becomes(mac, "running", 0)
    mac.stop_daemon()


def test_j11_alive_and_its_watcher_is_not(team):
    """Lines go out all the same, at the rescan; and status says what is watched by what."""
    mac = team.mac
    mac.start_daemon(env={"WIRE_WATCH": "off"})
    assert becomes(mac, "running", 0)["watching"] == "polling"
    mac.send("spark", "found by looking")
    eventually(lambda: pin(mac).remote_seq.get("mac/spark") == 1, what="the line at the remote")
    assert "watched by polling" in mac.wire("status").stdout
    assert look(mac)[2]["rescan_age_s"] < 30
    mac.stop_daemon()
    team.sync_and_check()
