"""Messages reach the models of OpenCode and pi through the plugins that `wire hooks install` wrote, each once.

As in `test_real_clients_headless`, what the model would have read is what the stand-in for its service was asked.
"""

from pathlib import Path

from support import team as teams
from support.clients import Desk, OpenCode, Pi, first, reaches
from support.model_service import Asked, Reply, Shell, Text
from support.team import Team
from support.waiting import eventually

PORT = 4096
"""In a network of its own every port is free."""


def test_opencode_is_told_once_answers_and_is_woken(team: Team, tmp_path: Path) -> None:
    """Each call of the model brings what is new; a demand goes on at the turn's end; an idle session is woken."""
    reaches(team, "alpha was there before")
    with Desk(team.spark, tmp_path / "project") as desk:
        client = OpenCode(desk)
        team.spark.wire("hooks", "install", "opencode", "--project", desk.project)

        def working(asked: Asked) -> Reply:
            reaches(team, "bravo came while the model worked")
            return Shell("true")

        def ending(asked: Asked) -> Reply:
            identity = reaches(team, "charlie asks for an answer", "--ack-required")
            desk.service.script(Shell(f"wire reply {identity} 'delta answers'"), Text("that was all"))
            return Text("hello")

        desk.service.script(working, ending)
        with client.lives(client.serve(PORT)) as out:
            eventually(lambda: b"listening" in out.read_bytes(), timeout=60, what=lambda: out.read_text())
            client.ends(client.attached(PORT, "say hello"))
            eventually(lambda: len(desk.service.turns) == 4, timeout=60, what=desk.service.told)
            eventually(lambda: "delta answers" in _answers(team), timeout=30, what="the answer")
            reaches(team, "echo came while the session was idle")
            eventually(lambda: len(desk.service.turns) == 5, timeout=60, what=desk.service.told)
        turns = desk.service.turns
        assert first(turns, "alpha was there before") == 0
        assert first(turns, "bravo came while the model worked") == 1
        assert first(turns, "charlie asks for an answer") == 2
        assert first(turns, "echo came while the session was idle") == 4
    team.check()


def test_opencode_that_ends_with_its_turn_takes_nothing_at_the_end(team: Team, tmp_path: Path) -> None:
    """`opencode run` gives no turn for what must be answered: it stays unread, and the next run brings it."""
    reaches(team, "alpha was there before")
    with Desk(team.spark, tmp_path / "project") as desk:
        client = OpenCode(desk)
        team.spark.wire("hooks", "install", "opencode", "--user")

        def ending(asked: Asked) -> Reply:
            reaches(team, "charlie asks for an answer", "--ack-required")
            return Text("hello")

        desk.service.script(ending)
        client.run("say hello")
        assert len(desk.service.turns) == 1
        assert team.spark.json("inbox")["unread"] == 1
        client.run("go on", resume=True)
        turns = desk.service.turns
        assert first(turns, "alpha was there before") == 0
        assert first(turns, "charlie asks for an answer") == 1
        assert team.spark.json("inbox")["unread"] == 0


def test_pi_in_a_terminal_is_woken(team: Team, tmp_path: Path) -> None:
    """A session that was idle since its last answer takes a turn for a message."""
    with Desk(team.spark, tmp_path / "project") as desk:
        client = Pi(desk)
        team.spark.wire("hooks", "install", "pi", "--project", desk.project)
        pane = client.terminal(client.interactive())
        with pane:
            eventually(lambda: "wire.ts" in pane.screen(), timeout=60, what=pane.screen)
            pane.type("say hello")
            waiters = team.spark.wire_home / "state" / ".hooks" / "sessions"
            eventually(lambda: any(waiters.glob("*/waiter/.holder")), timeout=60, what=pane.screen)
            reaches(team, "foxtrot wakes you")
            eventually(lambda: len(desk.service.turns) == 2, timeout=60, what=pane.screen)
            pane.type("/quit")
            pane.ended()
        assert first(desk.service.turns, "foxtrot wakes you") == 1


def test_pi_is_told_once_and_answers(team: Team, tmp_path: Path) -> None:
    """A message that waited, one that must be answered before the turn ends, and one for the next prompt."""
    reaches(team, "alpha was there before")
    with Desk(team.spark, tmp_path / "project") as desk:
        client = Pi(desk)
        team.spark.wire("hooks", "install", "pi", "--user")

        def ending(asked: Asked) -> Reply:
            identity = reaches(team, "charlie asks for an answer", "--ack-required")
            desk.service.script(Shell(f"wire reply {identity} 'delta answers'"), later)
            return Text("hello")

        def later(asked: Asked) -> Reply:
            reaches(team, "bravo is for the next prompt")
            return Text("that was all")

        desk.service.script(ending)
        client.ends([*client.command("say hello", resume=False), "and now"])
        turns = desk.service.turns
        assert len(turns) == 4, desk.service.told()
        assert first(turns, "alpha was there before") == 0
        assert first(turns, "charlie asks for an answer") == 1
        assert first(turns, "bravo is for the next prompt") == 3

        # Later the same session goes on, and nothing is told again.
        reaches(team, "echo came while nobody was there")
        client.run("go on", resume=True)
        turns = desk.service.turns
        assert first(turns, "echo came while nobody was there") == 4
        for words in ("alpha was there", "bravo is for", "charlie asks"):
            first(turns, words)
    team.settle()
    assert "delta answers" in teams.read(team.mac)
    team.check()


def _answers(team: Team) -> list[object]:
    team.settle()
    return teams.read(team.mac, "-n", "20")
