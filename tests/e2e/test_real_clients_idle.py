"""An idle session of the real Claude Code is woken, in a terminal, by a message that came through two daemons."""

from pathlib import Path

import pytest

from support import procs
from support import team as teams
from support.clients import ClaudeCode, Desk, first
from support.daemons import Inbox, set_cadence
from support.machine import Machine
from support.model_service import Asked, Reply, Shell, Text
from support.team import Team
from support.waiting import eventually


@pytest.fixture
def daemons(team: Team) -> Team:
    """Let both machines look every second."""
    for machine in (team.mac, team.spark):
        set_cadence(machine, t0=1, hot=[1])
        machine.start_daemon()
    return team


def waits(machine: Machine) -> bool:
    """Return whether a waiter stands beside a session."""
    return any((machine.wire_home / "state" / ".hooks" / "sessions").glob("*/waiter/.holder"))


def monitors(machine: Machine) -> bool:
    """Return whether the plugin's monitor was started."""
    return any("wire monitor" in one.command for one in procs.marked(f"TEST_MACHINE={machine.root}"))


def test_an_idle_claude_code_is_woken_answers_and_is_woken_again(daemons: Team, tmp_path: Path) -> None:
    mac, spark = daemons.mac, daemons.spark
    with Desk(spark, tmp_path / "project") as desk:
        client = ClaudeCode(desk)
        spark.wire("hooks", "install", "claude-code", "--user")
        pane = client.terminal(client.interactive())

        def working(asked: Asked) -> Reply:
            identity = mac.send("spark", "india comes while you work")
            sender, _, seq = identity.rpartition("/")
            eventually(lambda: teams.end(spark, sender).seq == int(seq), what="the message on spark's machine")
            return Shell("wire --version")

        def told() -> str:
            return f"{pane.screen()}\n{desk.service.told()}"

        with pane:
            eventually(lambda: waits(spark), timeout=60, what=told)
            assert not desk.service.turns, "nobody has said anything yet"

            identity = mac.send("spark", "foxtrot wakes you")
            desk.service.script(Shell(f"wire reply {identity} 'golf is awake'"), Text("that was all"))
            eventually(lambda: len(desk.service.turns) == 2, timeout=60, what=told)
            Inbox(mac).gets(["golf is awake"])

            # The turn's end starts the next waiter.
            mac.send("spark", "hotel wakes you again")
            eventually(lambda: len(desk.service.turns) == 3, timeout=60, what=told)

            # A message that comes while the model works: the waiter and the hook behind the tool both see it.
            eventually(lambda: waits(spark), timeout=60, what=told)
            desk.service.script(working, Text("nothing special"))
            pane.type("what was that?")
            eventually(lambda: any(turn.count("india") for turn in desk.service.turns), timeout=60, what=told)
            eventually(lambda: waits(spark), timeout=60, what=told)
            pane.type("/exit")
            pane.ended()
        turns = desk.service.turns
        assert 5 <= len(turns) <= 6
        assert first(turns, "india comes while you work") in (4, 5)
        assert first(turns, "foxtrot wakes you") == 0
        assert first(turns, "hotel wakes you again") == 2
        assert turns[3].count("what was that?") >= 1
        assert turns[0].count("delivery (working as intended, not an error)") >= 1
    # The machine's end fails the test where a waiter outlives its session.
    for machine in (mac, spark):
        machine.stop_daemon()
    daemons.settle()
    daemons.check()
    assert teams.read(spark) == [], "what a hook showed has been read"


def test_the_plugins_monitor_wakes_an_idle_claude_code(daemons: Team, tmp_path: Path) -> None:
    """The monitor says that there is a message, and costs no turn before; the plugin's hooks bring the message."""
    mac, spark = daemons.mac, daemons.spark
    plugin = tmp_path / "plugin"
    spark.wire("hooks", "install", "claude-code", "--plugin", plugin)
    with Desk(spark, tmp_path / "project") as desk:
        client = ClaudeCode(desk)
        pane = client.terminal([*client.interactive(), "--plugin-dir", str(plugin)])

        def told() -> str:
            return f"{pane.screen()}\n{desk.service.told()}"

        with pane:
            eventually(lambda: monitors(spark), timeout=60, what=told)
            identity = mac.send("spark", "foxtrot wakes you")
            eventually(lambda: desk.service.turns, timeout=60, what=told)
            pane.type("/exit")
            pane.ended()
        (turn,) = desk.service.turns
        # It is the backlog where the monitor was still on its way.
        assert turn.count(f"new message {identity}, ") + turn.count("1 unread message for spark") == 1
        assert turn.count("foxtrot wakes you") == 1
