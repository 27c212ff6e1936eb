"""Runtime hooks installed, removed, and compared with what they must be.

    report = install(find("claude-code"), scope)
    report = look(find("claude-code"), scope)         changes nothing: `wire hooks install claude-code --check`

Where they were installed is noted in the state folder, so that `wire doctor` can tell "installed but never fired".
"""

import json
import os
import shlex
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from enum import StrEnum
from typing import NamedTuple

from wire.errors import UsageError
from wire.hooks import quick, settingsfile
from wire.hooks.runtimes import Place, Runtime, find
from wire.store.files import atomic_write, locked, read_bytes, store_error
from wire.store.paths import Settings

_OURS = "// Written by `wire hooks install"


class State(StrEnum):
    """How the hooks of a runtime stand in one file."""

    INSTALLED = "installed"
    """As this version wants them."""
    MISSING = "missing"
    DRIFTED = "drifted"
    """There, and not as this version wants them."""
    FOREIGN = "foreign"
    """A file of somebody else's stands where ours belongs."""


class Report(NamedTuple):
    """How the hooks of a runtime stand.

    Attributes:
        runtime: its name.
        path: the file.
        state: how they stand there.
        changed: whether the file was written just now.
        why: what differs.
        backup: where the file is kept as it was before our first entry.
        project: the project that they are for, empty for all projects of the user.
    """

    runtime: str
    path: str
    state: State
    changed: bool = False
    why: str = ""
    backup: str | None = None
    project: str = ""

    @property
    def again(self) -> str:
        """The command that brings them up to date."""
        return f"wire hooks install {self.runtime}" + (
            f" --project {shlex.quote(self.project)}" if self.project else ""
        )


class Scope(NamedTuple):
    """For whom hooks are installed.

    Attributes:
        settings: what the environment says.
        project: a project's folder; None for all projects of the user.
    """

    settings: Settings
    project: str | None = None

    @property
    def folder(self) -> str:
        """The project's folder, empty for none."""
        return "" if self.project is None else os.path.abspath(self.project)

    def place(self, runtime: Runtime) -> Place:
        """Return the file that is meant, and what belongs into it; raises UsageError without a home."""
        if self.project is not None:
            if not os.path.isdir(self.project):
                raise UsageError(f"{self.project} is not a folder", reason="no-project")
            return runtime.project(self.folder)
        return runtime.user(self.settings.environ, _home(self.settings.environ))


def look(runtime: Runtime, scope: Scope) -> Report:
    """Return how the hooks stand; raises Corrupt where the file is malformed."""
    return compare(runtime, scope.place(runtime))._replace(project=scope.folder)


def compare(runtime: Runtime, place: Place) -> Report:
    """Return how the hooks stand in one file; raises as `look`."""
    if place.text is not None:
        return _look_at_own(runtime, place)
    found = list(settingsfile.ours(settingsfile.read(place.path), runtime.name))
    wanted = list(settingsfile.ours({"hooks": place.entries}, runtime.name))
    backup = _backup(place.path)
    if not found:
        return Report(runtime.name, place.path, State.MISSING, backup=backup)
    missing = sum(entry not in found for entry in wanted)
    odd = sum(entry not in wanted for entry in found) + max(0, len(found) - len(wanted))
    if missing or odd:
        why = f"{missing} of {len(wanted)} entries are missing or changed, {odd} are not of this version or stand twice"
        return Report(runtime.name, place.path, State.DRIFTED, why=why, backup=backup)
    return Report(runtime.name, place.path, State.INSTALLED, backup=backup)


def install(runtime: Runtime, scope: Scope) -> Report:
    """Put the hooks in, or bring them up to date; a second time changes nothing.

    Raises:
        Corrupt: reason `settings-malformed`, the file was left as it is.
        UsageError: reason `foreign-hook`, somebody else's file stands in the place of ours.
    """
    place = scope.place(runtime)
    if place.text is not None:
        changed = _write_own(runtime, place)
    else:
        with _locked(scope.settings):
            before = settingsfile.read(place.path)
            right = look(runtime, scope).state is State.INSTALLED
            after = before if right else settingsfile.merged(before, place, runtime.name)
            changed = settingsfile.write(place.path, before, after, runtime.name)
    _note(scope, runtime.name, place.path, there=True)
    return look(runtime, scope)._replace(changed=changed)


def uninstall(runtime: Runtime, scope: Scope) -> Report:
    """Take our entries out and leave everything else; raises as `install`."""
    place = scope.place(runtime)
    changed = False
    if place.text is not None:
        if _look_at_own(runtime, place).state is State.FOREIGN:
            raise _foreign(place.path)
        with suppress(FileNotFoundError):
            os.unlink(place.path)
            changed = True
    else:
        with _locked(scope.settings):
            before = settingsfile.read(place.path)
            after = settingsfile.without(before, runtime.name)
            changed = before != after
            if changed and after in ({}, dict(place.head or {})) and _made_by_us(place.path):
                os.unlink(place.path)
            elif changed:
                settingsfile.write(place.path, before, after, runtime.name)
    _note(scope, runtime.name, place.path, there=False)
    return look(runtime, scope)._replace(changed=changed)


class Installed(NamedTuple):
    """A file into which hooks were put, what belongs there, when (seconds since the epoch), and for which project."""

    runtime: Runtime
    place: Place
    at: float
    project: str

    @property
    def path(self) -> str:
        """The file."""
        return self.place.path

    def look(self) -> Report:
        """Return how the hooks stand there; raises Corrupt where the file is malformed."""
        return compare(self.runtime, self.place)._replace(project=self.project)


def installed(settings: Settings) -> list[Installed]:
    """Return where hooks were installed from here; files that are gone with their folder are left out."""
    found = []
    for name, path, at, project in _noted(settings):
        runtime = find(name)
        if runtime is not None and os.path.isdir(os.path.dirname(path)):
            # What belongs into a file is the same wherever the file is.
            found.append(Installed(runtime, runtime.project(os.sep)._replace(path=path), at, project))
    return found


def _look_at_own(runtime: Runtime, place: Place) -> Report:
    data = read_bytes(place.path)
    if data is None:
        return Report(runtime.name, place.path, State.MISSING)
    if not data.startswith(_OURS.encode()):
        return Report(runtime.name, place.path, State.FOREIGN, why="it was not written by wire")
    if data != (place.text or "").encode():
        return Report(runtime.name, place.path, State.DRIFTED, why="it is not what this version writes")
    return Report(runtime.name, place.path, State.INSTALLED)


def _write_own(runtime: Runtime, place: Place) -> bool:
    state = _look_at_own(runtime, place).state
    if state is State.FOREIGN:
        raise _foreign(place.path)
    if state is State.INSTALLED:
        return False
    try:
        os.makedirs(os.path.dirname(place.path), exist_ok=True)
    except OSError as error:
        raise store_error(error, "write", place.path) from error
    atomic_write(place.path, (place.text or "").encode(), mode=0o644)
    return True


def _foreign(path: str) -> UsageError:
    return UsageError(
        f"{path} was not written by wire; it was left as it is",
        reason="foreign-hook",
        next_step="give that file another name, then install again",
    )


def _backup(path: str) -> str | None:
    beside = os.path.realpath(path) + settingsfile.BACKUP
    return beside if os.path.exists(beside) else None


def _made_by_us(path: str) -> bool:
    """Return whether there was no such file before the first install."""
    return _backup(path) is None and not os.path.islink(path)


def _home(environ: Mapping[str, str]) -> str:
    home = environ.get("HOME", "")
    if not os.path.isabs(home):
        raise UsageError(
            "no home folder: HOME is not set", reason="no-home", next_step="set HOME, or use --project DIR"
        )
    return home


def _locked(settings: Settings) -> AbstractContextManager[None]:
    return locked(os.path.join(settings.state_dir, quick.FOLDER), what="the installed hooks", timeout=10)


def _notes(settings: Settings) -> str:
    return os.path.join(settings.state_dir, quick.FOLDER, "installed.json")


def _noted(settings: Settings) -> list[tuple[str, str, float, str]]:
    """Return (runtime, path, time, project) of what was installed; nothing where the file is damaged."""
    with suppress(ValueError, TypeError, RecursionError):
        entries = json.loads(read_bytes(_notes(settings)) or b"[]")
        return [(str(name), str(path), float(at), str(project)) for name, path, at, project in entries]
    return []


def _note(scope: Scope, runtime: str, path: str, *, there: bool) -> None:
    with _locked(scope.settings):
        before = _noted(scope.settings)
        kept = [entry for entry in before if entry[:2] != (runtime, path)]
        if there:
            known = [entry for entry in before if entry[:2] == (runtime, path)]
            kept += known or [(runtime, path, time.time(), scope.folder)]
        if kept != before:
            atomic_write(_notes(scope.settings), json.dumps(kept).encode("ascii"), durable=False)
