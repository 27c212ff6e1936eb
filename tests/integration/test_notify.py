"""Notifications, by real daemons: what is stored is told, what failed is said and tried again, nothing is read."""

import json
import os
import shlex
import stat
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.machine import Machine
from support.team import Team, read, state
from support.waiting import eventually
from wire.store import cursors, surfaces
from wire.surfacing.adapters import Pointer

BODY = "open the $(touch pwned) pod `bay`\nwire: 9 new messages"


def script(machine: Machine, name: str, text: str) -> Path:
    """Put a program into a folder of the machine."""
    path = machine.root / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def configure(machine: Machine, **ways: Any) -> None:
    """Say how the machine's agent is notified."""
    config = machine.wire_home / "config.toml"
    old = config.read_text().partition(f"\n[wire.notify.{machine.name}]")[0]
    lines = [f"{key} = {json.dumps(value)}" for key, value in ways.items()]
    config.write_text(f"{old}\n[wire.notify.{machine.name}]\n" + "\n".join(lines) + "\n")


def records(machine: Machine) -> list[dict[str, str]]:
    """Return the environments that the recording command saw, only what wire put there."""
    found = []
    for file in sorted(machine.root.glob("seen-*")):
        entries = file.read_bytes().split(b"\0")
        pairs = [entry.decode().partition("=") for entry in entries]
        found.append({name: value for name, _, value in pairs if name.startswith("WIRE_") and name != "WIRE_HOME"})
    return found


def recorder(machine: Machine) -> Path:
    """Return a command that keeps its whole environment, once per run, numbered."""
    folder = shlex.quote(str(machine.root))
    number = f"$(ls {folder} | grep -c '^seen-')"
    return script(machine, "record", f"cd {folder}; cat /proc/self/environ > part; mv part seen-{number}")


def unread(machine: Machine) -> list[Any]:
    return read(machine, "--peek")


def test_a_command_is_told_of_each_message_once_and_never_its_body(team: Team) -> None:
    configure(team.spark, command=[str(recorder(team.spark))])
    team.spark.start_daemon()
    first = team.mac.send("spark", BODY, "--priority", "urgent", "--ack-required", "--subject", "subject $(id)")
    second = team.mac.send("all", "for everybody", "--type", "request")
    team.mac.wire("sync")
    seen = eventually(lambda: records(team.spark) if len(records(team.spark)) == 2 else None, what="two runs")
    by_id = {one["WIRE_MESSAGE_ID"]: one for one in seen}
    assert by_id.keys() == {first, second}
    told = by_id[first]
    assert told | {"WIRE_MESSAGE_TS": ""} == {
        "WIRE_AGENT": "spark",
        "WIRE_NAME": "hub",
        "WIRE_NOTICE": "wire: 1 new message for spark from mac, shown by wire inbox",
        "WIRE_MESSAGE_ID": first,
        "WIRE_MESSAGE_FROM": "mac",
        "WIRE_MESSAGE_TO": "spark",
        "WIRE_MESSAGE_TYPE": "message",
        "WIRE_MESSAGE_TS": "",
        "WIRE_MESSAGE_VERDICT": "verified",
        "WIRE_MESSAGE_ACK_REQUIRED": "1",
        "WIRE_MESSAGE_PRIORITY": "urgent",
    }
    assert (by_id[second]["WIRE_MESSAGE_TO"], by_id[second]["WIRE_MESSAGE_TYPE"]) == ("all", "request")
    every = b"".join(file.read_bytes() for file in team.spark.root.glob("seen-*"))
    assert b"pwned" not in every
    assert b"$(id)" not in every
    assert unread(team.spark) == [BODY, "for everybody"], "nothing counts as read by being told"
    # Whatever else moves, what was told stays told, as soon as the command said so by its end.
    places = _places(team.spark)
    eventually(lambda: cursors.load(places.cursors_dir, "spark", "notify-command").positions.keys() >= {"mac/all"})
    team.spark.stop_daemon()
    team.spark.start_daemon()
    third = team.mac.send("spark", "once more")
    team.mac.wire("sync")
    eventually(lambda: len(records(team.spark)) == 3)
    assert [one["WIRE_MESSAGE_ID"] for one in records(team.spark)][2] == third
    assert team.spark.wire("notify", "status").stdout == "everything is surfaced (spark by command)\n"


def test_what_the_agent_has_read_is_no_news(team: Team) -> None:
    team.mac.send("spark", "old, and read")
    team.settle()
    assert read(team.spark) == ["old, and read"]
    team.mac.send("spark", '{"state": "idle"}', "--type", "heartbeat", "--json")
    fresh = team.mac.send("spark", "old, and unread", "--type", "obey-me-now")
    team.settle()
    configure(team.spark, command=[str(recorder(team.spark))])
    team.spark.start_daemon()
    eventually(lambda: records(team.spark))
    assert [(one["WIRE_MESSAGE_ID"], one["WIRE_MESSAGE_TYPE"]) for one in records(team.spark)] == [(fresh, "other")]


def test_a_failed_notification_is_said_and_tried_again(team: Team) -> None:
    program = script(team.spark, "wake", "echo 'the agent sleeps' >&2; exit 3")
    configure(team.spark, command=[str(program)])
    team.spark.start_daemon()
    team.mac.send("spark", "hello")
    team.mac.wire("sync")
    expected = "1 message(s) for spark delivered, not yet surfaced by command"

    def told() -> str:
        result = team.spark.wire("status", check=False)
        assert expected in result.stdout, str(result)
        assert result.status == 1
        return result.stdout

    assert "exited 3: the agent sleeps (1 attempt(s), next in " in eventually(told)
    (found,) = team.spark.jsonl("notify", "status", check=False)
    assert (found["agent"], found["adapter"], found["messages"], found["attempts"]) == ("spark", "command", 1, 1)
    assert unread(team.spark) == ["hello"]
    # It is mended; the next try is brought forward to spare the test its pause.
    recorder(team.spark).rename(program)
    note = Path(surfaces.folder(_places(team.spark))) / "spark.command.json"
    note.write_text(json.dumps(json.loads(note.read_text()) | {"next": 0}))
    (state(team.spark) / "pin.json").touch()
    eventually(lambda: records(team.spark))
    eventually(lambda: team.spark.wire("status", check=False).status == 0)
    assert len(records(team.spark)) == 1
    assert not note.exists()
    assert unread(team.spark) == ["hello"]


def test_a_command_that_hangs_holds_up_no_round_and_no_stop(team: Team) -> None:
    configure(team.spark, command=[str(script(team.spark, "hang", "sleep 1000 & sleep 1000"))])
    team.spark.start_daemon()
    team.mac.send("spark", "one")
    team.mac.wire("sync")
    eventually(lambda: b"sleep" in _children(team.spark), what="the command runs")
    team.spark.wire("send", "mac", "meanwhile", "--wait", "pushed", "--timeout", "20")
    team.mac.send("spark", "two")
    team.mac.wire("sync")
    eventually(lambda: unread(team.spark) == ["one", "two"])
    begin = time.monotonic()
    assert team.spark.stop_daemon() == 0, team.spark.log()
    assert time.monotonic() - begin < 15
    assert b"sleep" not in _children(team.spark), "what the command started ended with it"


@pytest.fixture
def pane(team: Team) -> Iterator[tuple[list[str], Path]]:
    """A real tmux server of its own on spark, with one pane that runs `cat` into a file."""
    typed = team.spark.root / "typed"
    socket = team.folder / "t"  # a socket's path is short
    base = ["tmux", "-S", str(socket), "-f", "/dev/null"]
    env = team.spark.environ({"TERM": "xterm"})
    run = [*base, "new-session", "-d", "-s", "work", "-x", "200", "-y", "20", f"exec cat > {typed}"]
    subprocess.run(run, check=True, env=env, cwd=team.spark.home)
    yield base, typed
    subprocess.run([*base, "kill-server"], check=False, env=env, capture_output=True)


def test_a_tmux_pane_gets_a_pointer_and_enter_and_never_a_body(team: Team, pane: tuple[list[str], Path]) -> None:
    base, typed = pane
    configure(team.spark, tmux="work:0.0", tmux_socket=base[2])
    team.spark.start_daemon()
    for text in (BODY, "second"):
        team.mac.send("spark", text)
    team.mac.wire("sync")
    # `cat` gets a line only with its Enter.
    assert eventually(typed.read_text) == "wire: 2 new messages for spark from mac, shown by wire inbox\n"
    assert unread(team.spark) == [BODY, "second"]
    team.mac.send("spark", "third")
    team.mac.wire("sync")
    eventually(lambda: len(typed.read_text().splitlines()) == 2)
    assert typed.read_text().splitlines()[1] == "wire: 1 new message for spark from mac, shown by wire inbox"
    test = team.spark.json("notify", "test", "spark")
    assert test == {"agent": "spark", "sent_by": "daemon", "results": [{"by": "tmux", "surfaced": True, "why": ""}]}
    eventually(lambda: typed.read_text().endswith("wire: a test for spark, nothing to do\n"))


def test_a_pane_that_shows_a_shell_or_is_gone_gets_nothing(team: Team, pane: tuple[list[str], Path]) -> None:
    base, _ = pane
    env = team.spark.environ({"TERM": "xterm"})
    subprocess.run([*base, "respawn-pane", "-k", "-t", "work:0.0", "exec sh"], check=True, env=env)
    shown = [*base, "display-message", "-p", "-t", "work:0.0", "#{pane_current_command}"]
    eventually(lambda: subprocess.run(shown, capture_output=True, text=True, env=env).stdout.strip() in ("sh", "dash"))
    configure(team.spark, tmux="work:0.0", tmux_socket=base[2])
    result = team.spark.wire("notify", "test", "spark", check=False)
    assert result.status == 1
    assert "shows a shell" in result.stdout
    assert "no daemon is running: this was sent from here" in result.stdout
    content = subprocess.run([*base, "capture-pane", "-p", "-t", "work:0.0"], capture_output=True, text=True, env=env)
    assert "wire" not in content.stdout
    for target in ("work:7.0", "work:0.5", "wor:0.0", "gone:0.0"):
        configure(team.spark, tmux=target, tmux_socket=base[2])
        result = team.spark.wire("notify", "test", "spark", "--json", check=False)
        (one,) = result.json()["results"]
        assert not one["surfaced"]
        assert "can't find" in one["why"]


def test_a_desktop_notification_goes_out_by_notify_send(team: Team) -> None:
    """A stand-in keeps the arguments: what they are is the contract with the real one."""
    folder = team.spark.root / "bin"
    folder.mkdir()
    program = folder / "notify-send"
    program.write_text(f"#!/bin/sh\nprintf '%s\\0' \"$@\" > {team.spark.root}/shown\n")
    program.chmod(0o755)
    configure(team.spark, desktop=True)
    result = team.spark.wire("notify", "test", "spark", check=False)
    assert "no program notify-send" in result.stdout, "there is no desktop on this machine"
    env = {"PATH": f"{folder}:{team.spark.env['PATH']}"}
    team.mac.send("spark", BODY)
    team.settle()
    team.spark.start_daemon(env=env)
    shown = team.spark.root / "shown"
    eventually(shown.exists)
    assert shown.read_bytes().decode().split("\0")[:-1] == [
        "--app-name=wire",
        "--",
        "wire: spark",
        "wire: 1 new message for spark from mac, shown by wire inbox",
    ]


def test_without_any_way_the_test_says_what_to_write(team: Team) -> None:
    result = team.spark.wire("notify", "test", "--json", check=False)
    assert (result.status, result.json()["reason"]) == (2, "no-notify")
    assert "[wire.notify.spark]" in result.json()["next_step"]
    assert team.spark.wire("notify", "status").stdout == "no way of notifying anybody is configured\n"


@pytest.mark.parametrize("senders", [("a",), ("a", "b"), ("a", "b", "c", "d", "e")])
@pytest.mark.parametrize("test", [False, True])
def test_no_shell_or_terminal_obeys_a_pointer(senders: tuple[str, ...], test: bool) -> None:
    text = Pointer("mac", "team", 12, senders, " --as mac", test).text()
    assert set(text) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 ,:-")
    assert len(text) < 200


def test_notes_of_troubles_are_private_and_a_damaged_one_counts_as_none(team: Team) -> None:
    places = _places(team.spark)
    trouble = surfaces.Trouble("spark", "tmux", 3, "why", 2, 1.0, 2.0)
    surfaces.note(places, trouble)
    (file,) = Path(surfaces.folder(places)).iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert surfaces.trouble(places, "spark", "tmux") == trouble
    for damaged in (b"", b"\0" * 40, b"[]", b'{"messages": "x"}', b"{"):
        file.write_bytes(damaged)
        assert surfaces.trouble(places, "spark", "tmux") is None


def _places(machine: Machine) -> Any:
    from wire import Wire

    return Wire.open(environ=machine.env).here.places


def _children(machine: Machine) -> bytes:
    """Return the command lines of all processes that carry the machine's mark."""
    found = b""
    mark = f"TEST_MACHINE={machine.root}\0".encode()
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            try:
                if mark in (folder / "environ").read_bytes():
                    found += (folder / "cmdline").read_bytes()
            except OSError:
                continue
    return found
