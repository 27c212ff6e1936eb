"""The machine that the tests stand on: isolation, results, a daemon's life, and nothing left behind.

A small program stands in for `wire`, so that each way in which a daemon can misbehave is at hand.
"""

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support import procs, warm
from support.machine import CommandFailed, Machine
from support.team import bodies
from support.waiting import eventually

STAND_IN = f"""#!{sys.executable}
import json, os, signal, socket, subprocess, sys, time

def notify(text):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.sendto(text.encode(), "\\0" + os.environ["NOTIFY_SOCKET"][1:])

match sys.argv[1:]:
    case ["environ", *_]:
        print(json.dumps(dict(os.environ)))
    case ["echo", *_]:
        sys.stdout.buffer.write(sys.stdin.buffer.read())
    case ["lines", *_]:
        print('{{"a":1}}\\n{{"a":2}}')
    case ["send", to, *_]:
        print(f"mac/{{to}}/42 stored")
    case ["fail", *_]:
        sys.exit("no such agent")
    case ["sleep", *_]:
        time.sleep(60)
    case ["daemon", "run", *how]:
        if "refuse" in how:
            sys.exit("another daemon is running")
        if "polite" in how:
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        if "deaf" in how:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if "helper" in how:
            helper = subprocess.Popen(["sleep", "60"], start_new_session=True)
            print("helper", helper.pid, flush=True)
        print("serving", flush=True)
        notify("READY=1\\nSTATUS=serving")
        for _ in range(20):
            notify("WATCHDOG=1")
        time.sleep(60)
"""


@pytest.fixture
def machine(machines, tmp_path):
    program = tmp_path / "bin" / "wire"
    program.parent.mkdir()
    program.write_text(STAND_IN)
    program.chmod(0o755)
    return machines("mac", program=program)


# Commands


def test_nothing_of_the_developers_environment_is_seen(machine, monkeypatch):
    for name in ("GIT_DIR", "WIRE_AGENT", "SSH_AUTH_SOCK", "PYTHONPATH", "NO_COLOR"):
        monkeypatch.setenv(name, "leaked")
    seen = machine.json("environ")
    assert "leaked" not in seen.values()
    assert all(seen[name].startswith(str(machine.root)) for name in ("HOME", "WIRE_HOME", "XDG_CONFIG_HOME"))


def test_environment_can_be_changed_for_one_command(machine):
    seen = machine.json("environ", env={"WIRE_AGENT": "mac", "XDG_DATA_HOME": None})
    assert seen["WIRE_AGENT"] == "mac"
    assert "XDG_DATA_HOME" not in seen
    assert "WIRE_AGENT" not in machine.json("environ")


def test_bytes_pass_unchanged(machine):
    data = bytes(range(256))
    assert machine.wire("echo", input=data).out == data


def test_json_lines(machine):
    assert machine.jsonl("lines") == [{"a": 1}, {"a": 2}]


def test_failure_shows_everything(machine):
    with pytest.raises(CommandFailed, match="no such agent") as caught:
        machine.wire("fail")
    assert caught.value.result.status == 1
    assert machine.wire("fail", check=False).stderr == "no such agent\n"


def test_a_command_that_hangs_is_killed(machine):
    with pytest.raises(subprocess.TimeoutExpired):
        machine.wire("sleep", timeout=0.5)


def test_sent_ids_are_remembered(machine):
    assert machine.send("spark", "hello") == "mac/spark/42"
    assert machine.sent == ["mac/spark/42"]


def test_segments_stand_in_the_only_clone(machine):
    machine.clone("home").mkdir(parents=True)
    expected = machine.wire_home / "clones/home/_coordination/mac/spark/000001.jsonl"
    assert machine.segment("mac/spark") == expected


# Commands that are forked (support.warm)


def test_a_forked_command_is_like_a_started_one(team):
    team.mac.send("spark", "hello")
    team.settle()
    for args in (
        ("--version",),
        ("tail", "-n", "5", "--json", "--as", "spark"),
        ("send", "nobody", "x", "--wire", "none"),
        ("thread", "--bad"),
        ("send", "spark", "--json"),
        ("verify", "--json"),
    ):
        forked = team.spark.wire(*args, input='{"body": 7}', check=False)
        team.spark.forks = False
        started = team.spark.wire(*args, input='{"body": 7}', check=False)
        team.spark.forks = True
        assert (forked.status, forked.err) == (started.status, started.err)
        assert _without_times(forked) == _without_times(started)


def _without_times(result):
    return re.sub(r"\d+(\.\d+)?", "N", result.stdout)


def test_a_forked_command_sees_its_own_environment_folder_and_input(team, tmp_path):
    assert "nothing" in team.mac.wire("tail", env={"WIRE_NAME": "nothing"}, check=False).stderr
    assert team.mac.wire("tail", env={"WIRE_NAME": "hub"}).status == 0
    (tmp_path / "body.txt").write_text("from the folder")
    team.mac.send("spark", "--file", "body.txt", cwd=tmp_path)
    team.mac.send("spark", "-", input="from the input")
    team.settle()
    assert bodies(team.spark.wire("tail", "--json")) == ["from the folder", "from the input"]


@pytest.mark.parametrize("changes", [{"LC_ALL": "C"}, {"PYTHONUTF8": "0"}, {"LANG": None}])
def test_what_changes_how_an_interpreter_starts_is_started(team, changes):
    assert warm.serves(team.mac.environ())
    assert not warm.serves(team.mac.environ(changes))


def test_a_forked_command_that_hangs_is_killed(team):
    team.mac.wire("status", check=False)
    idle = _forked()
    with pytest.raises(subprocess.TimeoutExpired):
        team.mac.wire("tail", "-f", timeout=0.5)
    eventually(lambda: _forked() == idle)


def _forked():
    return len([one for one in procs.processes() if f"{warm.__file__} " in one.command and one.parent != 1])


# The daemon


def test_a_daemons_life(machine):
    daemon = machine.start_daemon("polite")
    assert procs.vitals(daemon.pid).threads == 1
    assert "STATUS=serving" in daemon.notices.messages
    assert machine.stop_daemon() == 0
    assert machine.log() == "serving\n"
    with pytest.raises(FileNotFoundError):
        procs.vitals(daemon.pid)


def test_a_daemon_may_start_again(machine):
    machine.start_daemon("polite")
    assert machine.stop_daemon(signal.SIGKILL) == -signal.SIGKILL
    machine.start_daemon("polite")


def test_a_daemon_that_refuses_shows_its_log(machine):
    with pytest.raises(AssertionError, match="another daemon is running"):
        machine.start_daemon("refuse")
    assert machine.daemon is None


def test_a_daemon_that_does_not_stop_is_killed_and_named(machine):
    machine.start_daemon("deaf")
    with pytest.raises(AssertionError, match=r"alive 0\.5 s after signal 15"):
        machine.stop_daemon(timeout=0.5)
    assert machine.daemon is None


def test_a_crash_takes_helpers_in_other_sessions_along(machine):
    machine.start_daemon("helper")
    beside = machine.spawn("sleep")
    machine.kill_daemon()
    assert [process.pid for process in procs.marked(f"TEST_MACHINE={machine.root}")] == [beside.pid]


# The end


def test_close_ends_what_was_spawned(machine):
    process = machine.spawn("sleep")
    machine.close()
    assert process.returncode == -signal.SIGKILL


def test_close_stops_a_stopped_daemon(machine):
    daemon = machine.start_daemon("polite")
    daemon.process.send_signal(signal.SIGSTOP)
    machine.close()
    assert daemon.process.returncode == 0


def test_a_helper_that_outlives_its_daemon_is_a_failure(machine):
    machine.start_daemon("helper")
    machine.stop_daemon(signal.SIGKILL)
    helper = int(machine.log().split()[1])
    with pytest.raises(AssertionError, match=rf"left processes behind:\n  {helper}: sleep 60"):
        machine.close()
    assert not Path(f"/proc/{helper}").exists() or helper not in {p.pid for p in procs.processes()}


def test_two_machines_share_nothing(machines):
    mac, spark = machines("mac"), machines("spark")
    assert {mac.env[name] for name in mac.env if name.endswith("HOME")}.isdisjoint(spark.env.values())
    assert isinstance(mac, Machine)
