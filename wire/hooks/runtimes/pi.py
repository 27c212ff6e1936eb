"""pi: an extension of our own, which asks `wire hook pi …` and hands the answer to the session.

The contract that it keeps: `before_agent_start` returns a message for the turn that begins; an idle session is woken by
`sendUserMessage`, and one that streams needs `deliverAs`; watchers start in `session_start` only. The extension takes
`{"text": …}`, and an empty answer where there is nothing to say.
"""

import os
from collections.abc import Mapping

from wire.hooks.runtimes import Event, Place, Runtime, Shows, member, silent
from wire.hooks.runtimes.assets import asset

NAME = "pi"
EXTENSION = "wire.ts"

EVENTS = (
    Event("session-start", "session_start", Shows.BEGIN, member("text")),
    Event("prompt", "before_agent_start", Shows.NEW, member("text")),
    Event("stop", "agent_end", Shows.OWED, member("text")),
    Event("wait", "agent_end", Shows.WAIT, member("text")),
    Event("session-end", "session_shutdown", Shows.END, silent),
)


def _user(environ: Mapping[str, str], home: str) -> Place:
    return _place(environ.get("PI_CODING_AGENT_DIR") or os.path.join(home, ".pi", "agent"))


def _project(folder: str) -> Place:
    return _place(os.path.join(folder, ".pi"))


def _place(folder: str) -> Place:
    return Place(os.path.join(folder, "extensions", EXTENSION), text=asset("pi.ts"))


RUNTIME = Runtime(
    name=NAME,
    title="pi",
    events=EVENTS,
    limit=9_000,
    user=_user,
    project=_project,
    silent="pi loads extensions when it starts: restart it, or type /reload",
)
