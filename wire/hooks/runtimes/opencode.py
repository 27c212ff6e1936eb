"""OpenCode: a plugin of our own, which asks `wire hook opencode …` and puts the answer where the model reads it.

The contract that it keeps: `experimental.chat.system.transform` adds to the system text of every call, so the plugin
keeps what it was told for the session and adds it again; an idle session is woken by a prompt of its own. The plugin
takes `{"text": …}`, and an empty answer where there is nothing to say.
"""

import os
from collections.abc import Mapping

from wire.hooks.runtimes import Event, Place, Runtime, Shows, member, silent
from wire.hooks.runtimes.assets import asset

NAME = "opencode"
PLUGIN = "wire.js"

EVENTS = (
    Event("session-start", "session.created", Shows.BEGIN, member("text")),
    Event("prompt", "chat.message", Shows.NEW, member("text")),
    Event("stop", "session.idle", Shows.OWED, member("text")),
    Event("wait", "session.idle", Shows.WAIT, member("text")),
    Event("session-end", "session.deleted", Shows.END, silent),
)


def _user(environ: Mapping[str, str], home: str) -> Place:
    own = environ.get("OPENCODE_CONFIG_DIR")
    given = environ.get("XDG_CONFIG_HOME", "")
    config = given if os.path.isabs(given) else os.path.join(home, ".config")
    return _place(own or os.path.join(config, "opencode"))


def _project(folder: str) -> Place:
    return _place(os.path.join(folder, ".opencode"))


def _place(folder: str) -> Place:
    return Place(os.path.join(folder, "plugins", PLUGIN), text=asset("opencode.js"))


RUNTIME = Runtime(
    name=NAME,
    title="OpenCode",
    events=EVENTS,
    limit=9_000,
    user=_user,
    project=_project,
    silent="OpenCode loads plugins when it starts: restart it",
)
