"""The agent runtimes: per runtime one module with its contract as data, and nothing else.

A contract says which event is which of ours, what may be shown there, and in which shape the runtime takes it. All
texts are made by `wire.hooks.showing`, all decisions by `wire.hooks.runner`; here stands what a runtime demands.

    runtime = find("claude-code")
    event = runtime.event("stop")
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from importlib import import_module
from typing import Any, NamedTuple

NAMES = ("claude-code", "codex", "gemini", "opencode", "cursor", "pi")


class Shows(StrEnum):
    """What an event is good for."""

    BEGIN = "begin"
    """The session begins: who the agent is here, what is new, what waits for its answer."""
    NEW = "new"
    """What is new since this session was last shown something."""
    OWED = "owed"
    """The turn ends: what must be answered keeps it going, each message at most once."""
    WAIT = "wait"
    """A process beside the session that blocks until something is new."""
    END = "end"
    """The session is over: whatever is kept for it goes."""


class Said(NamedTuple):
    """What a hook hands over: the bytes for both streams, and the exit status."""

    out: str = ""
    err: str = ""
    status: int = 0


Shape = Callable[[str, str], Said]
"""Puts (the runtime's name of the event, a text) into the form that the runtime takes."""


class Event(NamedTuple):
    """One event of a runtime.

    Attributes:
        name: ours, as it stands in the command: `session-start`.
        native: the runtime's: `SessionStart`.
        shows: what it is good for.
        shape: how a text is handed over.
        neutral: what is printed when there is nothing to say.
    """

    name: str
    native: str
    shows: Shows
    shape: Shape
    neutral: str = ""


class Place(NamedTuple):
    """A file in which a runtime looks for hooks.

    Attributes:
        path: the file.
        entries: for a settings file, the entries that belong into it, by the runtime's name of the event.
        text: for a file of our own, all of it.
        head: for a settings file, members that must be there, put in where they are missing.
    """

    path: str
    entries: Mapping[str, list[dict[str, Any]]] | None = None
    text: str | None = None
    head: Mapping[str, Any] | None = None


def stop_hook_active(told: Mapping[str, Any]) -> bool:
    """Return whether a hook keeps this turn going already."""
    return bool(told.get("stop_hook_active"))


class Runtime(NamedTuple):
    """The contract of one runtime.

    Attributes:
        name: ours.
        title: its own.
        events: in the order of a session.
        limit: characters that a text may have.
        limit_bytes: bytes of UTF-8 that it may have: a runtime counts tokens, of which other scripts need more.
        user: the file for all projects of the user, from the environment and the home folder.
        project: the file for one project, from its folder.
        silent: why installed hooks may never fire, and what to do about it.
        stopping: whether this end of a turn is one that we caused, from what the runtime told.
        idles: whether a session with this environment can be idle, so that waiting beside it makes sense.
    """

    name: str
    title: str
    events: tuple[Event, ...]
    limit: int
    user: Callable[[Mapping[str, str], str], Place]
    project: Callable[[str], Place]
    silent: str
    stopping: Callable[[Mapping[str, Any]], bool] = stop_hook_active
    idles: Callable[[Mapping[str, str]], bool] = lambda environ: True
    limit_bytes: int = 30_000

    def event(self, name: str) -> Event | None:
        """Return the event of that name."""
        return next((event for event in self.events if event.name == name), None)


def find(name: str) -> Runtime | None:
    """Return the contract of a runtime."""
    if name not in NAMES:
        return None
    module = import_module(f"wire.hooks.runtimes.{name.replace('-', '_')}")
    runtime: Runtime = module.RUNTIME
    return runtime


def command(runtime: str, event: str) -> str:
    """Return the command of a hook.

    It never changes, since runtimes keep the user's consent by its content, and names no folder of a machine.
    """
    return f"wire hook {runtime} {event}"


def owns(command: object, runtime: str) -> bool:
    """Return whether a command in a settings file is one of ours."""
    return isinstance(command, str) and command.split()[:3] == ["wire", "hook", runtime]


# Shapes that several runtimes share.


def _json(value: Mapping[str, Any]) -> Said:
    import json

    return Said(json.dumps(value, ensure_ascii=True) + "\n")


def context(native: str, text: str) -> Said:
    """Add to what the model reads."""
    return _json({"hookSpecificOutput": {"hookEventName": native, "additionalContext": text}})


def block(native: str, text: str) -> Said:
    """Keep the turn going, with a reason."""
    return _json({"decision": "block", "reason": text})


def deny(native: str, text: str) -> Said:
    """Refuse the answer, with a reason that becomes the next prompt."""
    return _json({"decision": "deny", "reason": text})


def rewake(native: str, text: str) -> Said:
    """Wake the session: standard error becomes a reminder, because of exit status 2."""
    return Said(err=text + "\n", status=2)


def member(name: str) -> Shape:
    """Return a shape with the text as one member of an object."""
    return lambda native, text: _json({name: text})


def silent(native: str, text: str) -> Said:
    """Say nothing: the event shows nothing."""
    return Said()
