"""What is kept for one session of a runtime, so that each message is put in front of it once.

    session = Session.of(settings.state_dir, "claude-code", "0d3c…")
    with session.held():
        kept = session.load()
        … print, and see it taken …
        session.save(kept._replace(asked=…))

Rules that it keeps: everything is keyed by the id that the runtime gives the session, never by a folder, so that two
sessions in one project do not silence each other; what is kept changes after a text was handed over, so that a crash
shows a message again and loses none; a damaged file means "shown nothing yet". How far a session has come is a cursor
of its own, beside those of other readers.
"""

import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from wire.hooks import quick
from wire.store.files import atomic_write, lock_holder, locked, private_folder, read_bytes

KEEP_SECONDS = 30 * 86400.0
"""A session that nobody asked for so long is gone; ends are not always told."""
WAITER = "waiter"
_STATE = "state.json"
_PATIENCE = 10.0
_MOST = 2000


class Kept(NamedTuple):
    """What a session was told, beside its cursor.

    Attributes:
        about: the wire and the agent; for another one nothing of this holds.
        asked: ids of messages for whose answer a turn was kept going, or a reminder given.
        unwell: whether it was told that nobody could look lately.
        begun: whether its cursor was set; one that was never set begins where the agent is.
    """

    about: str = ""
    asked: tuple[str, ...] = ()
    unwell: bool = False
    begun: bool = False


class Session(NamedTuple):
    """The folder of one session."""

    folder: str

    @classmethod
    def of(cls, state_dir: str, runtime: str, session: str) -> "Session":
        """Return the session that a runtime names."""
        return cls(quick.session_folder(state_dir, runtime, session))

    @property
    def reader(self) -> str:
        """The name of its cursor."""
        from hashlib import sha256

        return "hook-" + sha256(os.path.basename(self.folder).encode("utf-8", "surrogateescape")).hexdigest()[:16]

    @property
    def waiter(self) -> str:
        """The lock that its one waiter holds."""
        return os.path.join(self.folder, WAITER)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Let no other hook of the same session decide meanwhile; raises Busy after some seconds."""
        with locked(self.folder, what="the session", timeout=_PATIENCE):
            yield

    def load(self, about: str) -> Kept:
        """Return what is kept about a wire and an agent; nothing where it is damaged, or about another."""
        try:
            found = json.loads(read_bytes(os.path.join(self.folder, _STATE)) or b"null")
            kept = Kept(found["about"], tuple(found["asked"]), found["unwell"] is True, True)
        except (ValueError, KeyError, TypeError, RecursionError):
            return Kept(about)
        whole = all(isinstance(one, str) for one in kept.asked)
        return kept if kept.about == about and whole else Kept(about)

    def save(self, kept: Kept) -> None:
        """Write what is kept; not durably, since a power cut ends the session as well."""
        bounded = kept._replace(asked=kept.asked[-_MOST:])
        data = json.dumps(bounded._asdict()).encode("ascii")
        atomic_write(os.path.join(self.folder, _STATE), data, durable=False)

    def settle(self, event: str, neutral: str, about: "Ground") -> None:
        """Remember that nothing is to be told at an event while nothing changes, see `wire.hooks.quick`."""
        path = os.path.join(self.folder, quick.QUIET)
        found = {**about._asdict(), "quiet": {}}
        with suppress(ValueError, TypeError, RecursionError):
            before = json.loads(read_bytes(path) or b"null")
            if isinstance(before, dict) and before.get("files") == found["files"] and before["cwd"] == about.cwd:
                found["quiet"] = before["quiet"]
        found["quiet"][event] = neutral
        atomic_write(path, json.dumps(found).encode("ascii"), durable=False)

    def unsettle(self) -> None:
        """Forget that nothing was to be told."""
        with suppress(FileNotFoundError):
            os.unlink(os.path.join(self.folder, quick.QUIET))

    def end_waiter(self) -> int | None:
        """End the process that waits beside this session, and return its id."""
        import signal

        from wire.store.files import is_locked

        pid = lock_holder(self.waiter) if is_locked(self.waiter) else None
        if pid is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGTERM)
        return pid

    def forget(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.folder, ignore_errors=True)


class Ground(NamedTuple):
    """On what an answer rested: while all of it is the same, so is the answer.

    Attributes:
        cwd: the folder of the process.
        environ: the values of `quick.DEPENDS_ON`.
        files: paths with their signatures, from before they were read.
        since: when it was found out, seconds since the epoch; a clock behind that was set.
        until: when it has to be found out again.
    """

    cwd: str
    environ: list[str | None]
    files: list[tuple[str, list[int] | None]]
    since: float
    until: float


def sweep(state_dir: str) -> list[Session]:
    """Remove the folders of sessions that nobody asked for in a long time, and return them."""
    top = os.path.join(state_dir, quick.FOLDER, "sessions")
    limit = time.time() - KEEP_SECONDS
    gone = []
    with suppress(FileNotFoundError):
        for entry in os.scandir(top):
            if not entry.is_dir(follow_symlinks=False):
                continue
            newest = max((one.stat().st_mtime for one in os.scandir(entry.path)), default=entry.stat().st_mtime)
            if newest < limit:
                gone.append(Session(entry.path))
    for session in gone:
        session.forget()
    return gone


class Run(NamedTuple):
    """How a hook last ran.

    Attributes:
        event: the event's name.
        at: when, seconds since the epoch.
        outcome: `shown`, `quiet`, `failed`.
        problem: what went wrong, for people.
    """

    event: str
    at: float
    outcome: str
    problem: str = ""


def note_run(state_dir: str, runtime: str, event: str, outcome: str, problem: str = "") -> None:
    """Record that a hook ran, for `wire doctor`; what cannot be written is no reason to fail."""
    from wire.errors import WireError

    path = quick.run_file(state_dir, runtime, event)
    with suppress(OSError, WireError):
        private_folder(os.path.dirname(path))
        data = json.dumps({"outcome": outcome, "problem": problem[:2000]}).encode("ascii")
        atomic_write(path, data, durable=False)


def runs(state_dir: str, runtime: str) -> list[Run]:
    """Return how the hooks of a runtime last ran, newest first."""
    top = os.path.join(state_dir, quick.FOLDER, "runs")
    found = []
    with suppress(FileNotFoundError):
        for entry in os.scandir(top):
            name, _, event = entry.name.partition(".")
            if name != runtime or not event or entry.name.startswith("."):
                continue
            try:
                said = json.loads(read_bytes(entry.path) or b"null")
                run = Run(event, entry.stat().st_mtime, str(said["outcome"]), str(said["problem"]))
            except (ValueError, KeyError, TypeError, RecursionError, FileNotFoundError):
                run = Run(event, time.time(), "failed", f"{entry.path} is damaged")
            found.append(run)
    return sorted(found, key=lambda run: -run.at)
