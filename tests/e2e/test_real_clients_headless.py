"""Messages reach the models of real agent runtimes through what `wire hooks install` wrote, each once.

Each client runs as its users run it, headless, in a network where a stand-in for its model service is the only host:
nothing here knows how `wire` and a client talk to each other. What the model would have read is what the stand-in was
asked.
"""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from support import team as teams
from support.clients import CLIENTS, Client, Desk, first, reaches
from support.machine import Machine
from support.model_service import Asked, Reply, Shell, Text
from support.team import Team
from support.waiting import eventually
from wire.hooks import sessions

MARK = "text by another agent"
POST = "import urllib.request as r, sys; r.urlopen(r.Request(sys.argv[1], b'{}'), timeout=60)"


def outcome(machine: Machine, runtime: str, event: str) -> str | None:
    """Return how a hook last ended, as it is recorded for `wire doctor`."""
    found = sessions.runs(str(machine.wire_home / "state"), runtime)
    return next((run.outcome for run in found if run.event == event), None)


def doctor(machine: Machine, check: str) -> str:
    """Return what `wire doctor` found at one of its checks."""
    lines = machine.wire("doctor", check=False).stdout.split("\n")
    return next(line for line in lines if check in line)


# Runtimes with hooks for a session's start, a prompt and a turn's end

HOOKS: dict[str, tuple[str, str, str, dict[str, Any]]] = {
    "claude-code": (".claude/settings.json", "SessionStart", "user-prompt-submit", {}),
    "codex": (".codex/hooks.json", "SessionStart", "user-prompt-submit", {}),
    "gemini": (".gemini/settings.json", "SessionStart", "before-agent", {}),
}
"""Where a project's hooks stand, the event that begins a session, and what `wire` calls the one of a prompt."""


def add_own_hook(client: Client, url: str) -> dict[str, Any]:
    """Put a hook into the project that is none of wire's, run as a session begins; return the settings."""
    path, event, _, rest = HOOKS[client.name]
    settings = {
        "hooks": {event: [{"hooks": [{"type": "command", "command": f'{sys.executable} -c "{POST}" {url}'}]}]},
        **rest,
    }
    client.write(client.desk.project / path, settings)
    return settings


@pytest.mark.parametrize("name", HOOKS)
def test_each_message_reaches_the_model_once_and_the_answer_comes_back(team: Team, tmp_path: Path, name: str) -> None:
    """One session: a message that waited, one that comes before the prompt, one that comes while the model thinks."""
    reaches(team, "alpha was there before")
    with Desk(team.spark, tmp_path / "project") as desk:
        client = CLIENTS[name](desk)
        settings = add_own_hook(client, f"{desk.service.url}/begun")
        team.spark.wire("hooks", "install", name, "--project", desk.project)
        merged = json.loads((desk.project / HOOKS[name][0]).read_text())
        event = HOOKS[name][1]
        assert settings["hooks"][event][0] in merged["hooks"][event]

        def begun() -> None:
            eventually(lambda: outcome(team.spark, name, "session-start") == "shown", what="the hook at the start")
            reaches(team, "bravo came before the prompt")

        def thinking(asked: Asked) -> Reply:
            identity = reaches(team, "charlie asks for an answer", "--ack-required")
            desk.service.script(Shell(f"wire reply {identity} 'delta answers'"), Text("that was all"))
            return Text("hello")

        desk.service.on("/begun", begun)
        desk.service.script(thinking)
        client.run("say hello")
        turns = desk.service.turns
        assert len(turns) == 3, desk.service.told()
        assert first(turns, "alpha was there before") == 0
        assert first(turns, "bravo came before the prompt") == 0
        assert first(turns, "charlie asks for an answer") == 1
        assert turns[0].count("say hello") >= 1
        assert turns[1].count(MARK) >= 3
        assert outcome(team.spark, name, HOOKS[name][2]) is not None

        # Later the same session goes on, and nothing is told again.
        reaches(team, "echo came while nobody was there")
        desk.service.on("/begun", lambda: None)
        client.run("go on", resume=True)
        turns = desk.service.turns[3:]
        assert first(turns, "echo came while nobody was there") == 0
        for words in ("alpha was there", "bravo came", "charlie asks"):
            first(turns, words)

    team.settle()
    assert "delta answers" in teams.read(team.mac)
    team.check()


def test_codex_skips_hooks_that_nobody_trusts_and_doctor_says_so(team: Team, tmp_path: Path) -> None:
    """Without a word Codex runs no hook until its user has trusted it; a session goes on as if there were none."""
    reaches(team, "alpha was there before")
    with Desk(team.spark, tmp_path / "project") as desk:
        client = CLIENTS["codex"](desk)
        team.spark.wire("hooks", "install", "codex", "--user")
        client.ends([one for one in client.command("say hello", resume=False) if "hook-trust" not in one])
        (turn,) = desk.service.turns
        assert turn.count("say hello") >= 1
        assert turn.count("alpha was there before") == 0
        assert doctor(team.spark, "hooks of codex").endswith(" and never fired")
        client.run("say hello")
        assert desk.service.turns[1].count("alpha was there before") == 1
        assert " ran " in doctor(team.spark, "hooks of codex")
