"""Codex: `hooks.json`, whose content the user has to trust before anything in it runs.

The contract that it keeps: at the end of a turn standard output is empty or a decision, never context; members that
are not known fail the hook; context beyond 2,500 tokens is put into a file, so that texts stay below; what was trusted
is the very command, which therefore never changes.
"""

import os
from collections.abc import Mapping

from wire.hooks.runtimes import Event, Place, Runtime, Shows, block, command, context

NAME = "codex"

EVENTS = (
    Event("session-start", "SessionStart", Shows.BEGIN, context),
    Event("user-prompt-submit", "UserPromptSubmit", Shows.NEW, context),
    Event("post-tool-use", "PostToolUse", Shows.NEW, context),
    Event("stop", "Stop", Shows.OWED, block),
)
_SECONDS = 30


def _user(environ: Mapping[str, str], home: str) -> Place:
    return _place(environ.get("CODEX_HOME") or os.path.join(home, ".codex"))


def _project(folder: str) -> Place:
    return _place(os.path.join(folder, ".codex"))


def _place(folder: str) -> Place:
    groups = {
        event.native: [{"hooks": [{"type": "command", "command": command(NAME, event.name), "timeout": _SECONDS}]}]
        for event in EVENTS
    }
    return Place(os.path.join(folder, "hooks.json"), groups)


RUNTIME = Runtime(
    name=NAME,
    title="Codex",
    events=EVENTS,
    limit=5_000,
    limit_bytes=7_500,
    user=_user,
    project=_project,
    silent="hooks that nobody trusts are skipped without a word: type /hooks in Codex and trust them",
)
