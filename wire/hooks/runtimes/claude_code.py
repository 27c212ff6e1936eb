"""Claude Code: `settings.json` with command hooks, and a waiter that wakes an idle session.

The contract that it keeps: plain text reaches the model at few events and JSON at all of them, so everything is JSON;
a member that an event does not know fails the hook; a text has at most 10,000 characters; exit status 2 blocks, and is
used by nothing but the waiter, which is meant to (`asyncRewake`). A reason for going on at the end of a turn is put in
front of the model twice, and context at the same place, which keeps the turn going as well, once. A session that is not
interactive waits for its hooks, the waiter among them, before it goes on: there the waiter ends at once.
"""

import os
from collections.abc import Mapping
from typing import Any

from wire.hooks.runtimes import (
    Event,
    Place,
    Runtime,
    Shows,
    command,
    context,
    rewake,
    silent,
)

NAME = "claude-code"
WAIT_SECONDS = 86_400
"""What the runtime gives the waiter. When it is over, the end of the next turn starts another."""

EVENTS = (
    Event("session-start", "SessionStart", Shows.BEGIN, context),
    Event("user-prompt-submit", "UserPromptSubmit", Shows.NEW, context),
    Event("post-tool-batch", "PostToolBatch", Shows.NEW, context),
    Event("stop", "Stop", Shows.OWED, context),
    Event("wait", "Stop", Shows.WAIT, rewake),
    Event("session-end", "SessionEnd", Shows.END, silent),
)
_SECONDS = {"session-start": 30, "user-prompt-submit": 20, "post-tool-batch": 20, "stop": 20, "session-end": 10}
_WAITS_FROM = ("SessionStart", "Stop")
_ENTRYPOINT = "CLAUDE_CODE_ENTRYPOINT"
_INTERACTIVE = "cli"


def entries(*, waiter: bool = True) -> dict[str, list[dict[str, Any]]]:
    """Return the groups of hooks, by event; without the waiter for where something else wakes the session."""
    found: dict[str, list[dict[str, Any]]] = {}
    for event in EVENTS:
        if event.shows is Shows.WAIT:
            continue
        hooks: list[dict[str, Any]] = [
            {"type": "command", "command": command(NAME, event.name), "timeout": _SECONDS[event.name]}
        ]
        if waiter and event.native in _WAITS_FROM:
            waits = {"type": "command", "command": command(NAME, "wait"), "timeout": WAIT_SECONDS, "asyncRewake": True}
            hooks.append(waits)
        found[event.native] = [{"hooks": hooks}]
    return found


def _idles(environ: Mapping[str, str]) -> bool:
    return environ.get(_ENTRYPOINT, _INTERACTIVE) == _INTERACTIVE


def _user(environ: Mapping[str, str], home: str) -> Place:
    return _place(environ.get("CLAUDE_CONFIG_DIR") or os.path.join(home, ".claude"))


def _project(folder: str) -> Place:
    return _place(os.path.join(folder, ".claude"))


def _place(folder: str) -> Place:
    return Place(os.path.join(folder, "settings.json"), entries())


RUNTIME = Runtime(
    name=NAME,
    title="Claude Code",
    events=EVENTS,
    limit=9_000,
    user=_user,
    project=_project,
    silent="a session that was open before does not know them: start a new one, and see its /hooks",
    idles=_idles,
)
