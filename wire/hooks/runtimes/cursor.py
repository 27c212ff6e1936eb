"""Cursor: `hooks.json`, where a session's beginning takes context and a turn's end a further message.

The contract that it keeps: `beforeSubmitPrompt` can stop a prompt and add nothing to it, and so is not used; a turn
goes on by `followup_message`, as often as `loop_limit` allows. It is written down from documentation, and was not run
against the client.
"""

import os
from collections.abc import Mapping
from typing import Any

from wire.hooks.runtimes import Event, Place, Runtime, Shows, command, member, silent

NAME = "cursor"
NEUTRAL = "{}\n"
LOOP_LIMIT = 5

EVENTS = (
    Event("session-start", "sessionStart", Shows.BEGIN, member("additional_context"), NEUTRAL),
    Event("stop", "stop", Shows.OWED, member("followup_message"), NEUTRAL),
    Event("session-end", "sessionEnd", Shows.END, silent, NEUTRAL),
)


def _user(environ: Mapping[str, str], home: str) -> Place:
    return _place(home)


def _project(folder: str) -> Place:
    return _place(folder)


def _place(folder: str) -> Place:
    entries: dict[str, list[dict[str, Any]]] = {}
    for event in EVENTS:
        entry: dict[str, Any] = {"command": command(NAME, event.name)}
        if event.shows is Shows.OWED:
            entry["loop_limit"] = LOOP_LIMIT
        entries[event.native] = [entry]
    return Place(os.path.join(folder, ".cursor", "hooks.json"), entries, head={"version": 1})


def _stopping(told: Mapping[str, Any]) -> bool:
    count = told.get("loop_count")
    return isinstance(count, int) and count > 0


RUNTIME = Runtime(
    name=NAME,
    title="Cursor",
    events=EVENTS,
    limit=9_000,
    user=_user,
    project=_project,
    silent="Cursor reads hooks when it starts: restart it, and see Hooks in its settings",
    stopping=_stopping,
)
