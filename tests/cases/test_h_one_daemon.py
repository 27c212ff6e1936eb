"""H4, H5, J11: one daemon for a wire, and a status that knows which of many states it is in."""

import json
import os
import shutil
import signal
import time

import pytest

from support.daemons import set_cadence
from support.sizes import size
from support.team import state
from support.waiting import eventually


def running(machine):
    """Return what status says, whatever its exit status."""
    return machine.json("status", check=False)


def test_h4_a_second_start_names_the_first_and_refuses(team):
    daemon = team.mac.start_daemon()
    second = team.mac.wire("daemon", "run", check=False, timeout=20)
    assert second.status == 1
    assert f"(process {daemon.pid})" in second.stderr
    assert "Traceback" not in second.stderr
    assert daemon.process.poll() is None


@pytest.mark.parametrize("removed", ["files", "folders", "everything of locks"])
def test_h4_deleted_lock_files_let_no_second_one_in(team, removed):
    daemon = team.mac.start_daemon()
    locks = [state(team.mac) / "locks", team.mac.wire_home / "state" / ".locks"]
    for folder in locks:
        if removed == "files":
            for file in [one for one in folder.rglob("*") if one.is_file()]:
                file.unlink()
        elif removed == "folders":
            shutil.rmtree(folder / "daemon")
        else:
            shutil.rmtree(folder)
    second = team.mac.wire("daemon", "run", check=False, timeout=20)
    assert second.status == 1, second
    assert "already" in second.stderr
    assert daemon.process.poll() is None
    team.mac.send("spark", "still served")
    eventually(lambda: team.mac.json("status", check=False)["unpushed"] == 0)
    third = team.mac.wire("daemon", "run", check=False, timeout=20)
    assert third.status == 1


@pytest.mark.timeout(1800)
def test_h5_many_starts_at_once_make_one_daemon(team):
    rounds = size(2, 50, "rounds of starts at once")
    starts = []

    def alive():
        return [one for one in starts if one.poll() is None]

    for _ in range(rounds):
        starts[:] = [team.mac.spawn("daemon", "run") for _ in range(size(10, 20, "daemons started at once"))]
        eventually(lambda: len(alive()) == 1, timeout=60, what=lambda: f"one daemon, there are {len(alive())}")
        (only,) = alive()
        assert all(one.returncode == 1 for one in starts if one is not only)
        eventually(lambda: running(team.mac)["daemon"] == "running", timeout=30)
        assert running(team.mac)["pid"] == only.pid
        only.send_signal(signal.SIGTERM)
        assert only.wait(20) == 0


def test_a_killed_daemon_leaves_the_way_free(team):
    team.mac.start_daemon()
    team.mac.kill_daemon()
    assert running(team.mac)["daemon"] == "stopped"
    team.mac.start_daemon()
    assert team.mac.stop_daemon() == 0


def test_j11_status_of_every_state(team):
    """Never started, alive, alive without events, alive and cut off, stopped, killed: each is told from the others."""
    set_cadence(team.mac, t0=2, t1=2, t2=2, t3=2)
    never = team.mac.json("status", check=False)
    assert (never["daemon"], never["exit_status"]) == ("stopped", 1)

    daemon = team.mac.start_daemon()
    eventually(lambda: running(team.mac)["healthy"], what=lambda: str(running(team.mac)))

    os.kill(daemon.pid, signal.SIGSTOP)
    file = state(team.mac) / "progress.json"
    text = file.read_text("utf-8")
    beat = running(team.mac)
    assert beat["daemon"] == "running", "its beat is young"
    if size(0, 1, "whether to wait for a stopped daemon's beat to grow old"):
        time.sleep(50)
    else:
        # What fifty seconds later would be: the same stamp, fifty seconds older.
        stamp = json.loads(text)
        stamp["beat"] -= 50
        file.write_text(json.dumps(stamp), "utf-8")
    stuck = running(team.mac)
    assert (stuck["daemon"], stuck["healthy"]) == ("stuck", False)
    assert stuck["exit_status"] != 0
    os.kill(daemon.pid, signal.SIGCONT)
    eventually(lambda: running(team.mac)["healthy"], what=lambda: str(running(team.mac)))

    team.remote.reject_pushes("not today")
    team.mac.send("spark", "hello")
    eventually(lambda: running(team.mac)["exit_status"] == 6, what=lambda: str(running(team.mac)))
    cut = running(team.mac)
    assert (cut["daemon"], cut["unpushed"]) == ("running", 1)
    team.remote.remove_pre_receive()
    eventually(lambda: running(team.mac)["healthy"], what=lambda: str(running(team.mac)))

    team.mac.kill_daemon()
    killed = running(team.mac)
    assert (killed["daemon"], killed["exit_status"]) == ("stopped", 1)

    team.mac.start_daemon(env={"WIRE_WATCH": "off"})
    eventually(lambda: running(team.mac)["healthy"], what=lambda: str(running(team.mac)))
    assert running(team.mac)["watching"] == "polling"
