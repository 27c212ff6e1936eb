"""Gemini CLI: `settings.json` with hooks whose standard output must be JSON and nothing else.

The contract that it keeps: an object also where there is nothing to say, with `decision` at the end of a turn; a turn
goes on by `deny` with a reason, which becomes the next prompt.
"""

import os
from collections.abc import Mapping

from wire.hooks.runtimes import Event, Place, Runtime, Shows, command, context, deny, silent

NAME = "gemini"
NEUTRAL = "{}\n"
ALLOW = '{"decision": "allow"}\n'

EVENTS = (
    Event("session-start", "SessionStart", Shows.BEGIN, context, NEUTRAL),
    Event("before-agent", "BeforeAgent", Shows.NEW, context, NEUTRAL),
    Event("after-tool", "AfterTool", Shows.NEW, context, NEUTRAL),
    Event("after-agent", "AfterAgent", Shows.OWED, deny, ALLOW),
    Event("session-end", "SessionEnd", Shows.END, silent, NEUTRAL),
)
_MILLISECONDS = 30_000


def _user(environ: Mapping[str, str], home: str) -> Place:
    return _place(environ.get("GEMINI_CLI_HOME") or home)


def _project(folder: str) -> Place:
    return _place(folder)


def _place(folder: str) -> Place:
    groups = {
        event.native: [
            {
                "hooks": [
                    {
                        "type": "command",
                        "command": command(NAME, event.name),
                        "name": f"wire-{event.name}",
                        "timeout": _MILLISECONDS,
                    }
                ]
            }
        ]
        for event in EVENTS
    }
    return Place(os.path.join(folder, ".gemini", "settings.json"), groups)


RUNTIME = Runtime(
    name=NAME,
    title="Gemini CLI",
    events=EVENTS,
    limit=9_000,
    user=_user,
    project=_project,
    silent="they need version 0.26 or newer, with hooks enabled; a project's own need a trusted folder",
)
