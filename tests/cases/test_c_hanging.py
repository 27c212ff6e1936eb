"""C4, C5: a transport that hangs: local work goes on, and it is ended with all that it started."""

import time

from support import procs
from support.clones import script
from support.team import bodies, incidents, pin, state
from support.waiting import eventually

FAR = "ssh://git@host.invalid/hub.git"
SECONDS = "3"
"""What git may take here, instead of two minutes."""


def hang(team, machine):
    """Give a machine an ssh that answers git's probe and then sleeps, and a remote that needs it; return its notes."""
    notes = machine.root / "hung"
    script(
        machine.root / "bin" / "ssh",
        f'case "$1" in -G) exit 0;; esac\necho $$ >>{notes}\n(trap "" TERM; sleep 600) &\nsleep 600',
    )
    machine.env["PATH"] = f"{machine.root}/bin:{machine.env['PATH']}"
    machine.env["WIRE_GIT_TIMEOUT"] = SECONDS
    move(machine, team.remote.url, FAR)
    return notes


def move(machine, old, new):
    """Let a machine reach the remote by another URL."""
    for file in (machine.wire_home / "config.toml", state(machine) / "pin.json"):
        text = file.read_text("utf-8")
        assert text.count(old) == 1
        file.write_text(text.replace(old, new), "utf-8")


def test_c5_a_hanging_fetch_blocks_no_local_work(team):
    team.spark.send("mac", "before")
    team.settle()
    notes = hang(team, team.mac)
    team.mac.env["WIRE_GIT_TIMEOUT"] = "60"
    team.mac.start_daemon()
    eventually(notes.exists, what="a fetch that hangs")
    assert bodies(team.mac.wire("tail", "--json", check=False)) == ["before"]
    took = []
    for n in range(5):
        result = team.mac.wire("send", "spark", f"line {n}")
        team.mac.remember(result)
        took.append(result.seconds)
        assert bodies(team.mac.wire("tail", "--json", check=False)) == []
    assert sorted(took)[2] < 1.0, took
    assert team.mac.json("status", check=False)["daemon"] == "running", "who waits for git is not stuck"
    assert team.mac.stop_daemon() == 0


def test_c4_it_is_ended_at_its_time_and_the_next_round_is_normal(team):
    notes = hang(team, team.mac)
    team.mac.start_daemon()
    team.mac.send("spark", "hello")
    eventually(notes.exists, what="a fetch that hangs")
    began = time.monotonic()
    eventually(lambda: incidents(team.mac, "NETWORK"), what="an incident about it")
    assert time.monotonic() - began < 20
    first = int(notes.read_text().split()[0])
    assert first not in [one.pid for one in procs.processes()]
    hanging = [one.command for one in procs.marked(f"TEST_MACHINE={team.mac.root}") if "sleep" in one.command]
    assert len(hanging) <= 2, "of the try that is under way, at most"
    team.mac.stop_daemon()
    assert not procs.marked(f"TEST_MACHINE={team.mac.root}")
    move(team.mac, FAR, team.remote.url)
    team.mac.start_daemon()
    eventually(lambda: pin(team.mac).remote_seq.get("mac/spark") == 1, what="the line at the remote")
    eventually(lambda: not incidents(team.mac), what="the incident to be over")
    team.mac.stop_daemon()
    team.sync_and_check()
