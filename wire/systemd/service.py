"""The service: installed, removed, started, stopped and read, through `systemctl --user`.

    done = install(settings)         # idempotent: the same machine gives the same unit

Rules that it keeps: what the unit names was run once, in the unit's own surroundings, before it is written; nothing is
written where there is no user manager to read it; nobody's edits are lost.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from wire.daemon import transport
from wire.errors import Busy, WireError
from wire.store import config as configs
from wire.store.files import private_folder, store_error
from wire.store.paths import Settings
from wire.systemd import locks, surroundings, unit, unitfile
from wire.systemd.manager import Lingering, Manager, has_journal, user_name
from wire.systemd.state import PROPERTIES, prove
from wire.systemd.unit import NAME, Origin, Unit

DAEMON = ("daemon", "run")
LOG_MAX = 8 << 20
"""Bytes beyond which a start sets the log of a system without a journal aside."""


@dataclass(frozen=True, slots=True)
class Installed:
    """What `install` did.

    Attributes:
        action: `installed`, `updated` or `unchanged`.
        path: the unit's file.
        running: whether the service runs now.
        kept: where a foreign or edited unit was moved to, if one was replaced.
        notes: what the user should know or do, each with its command.
    """

    action: str
    path: str
    running: bool
    kept: str | None
    lingering: Lingering
    notes: tuple[str, ...]


def install(
    settings: Settings, *, start: bool = True, force: bool = False, passphrase_file: str | None = None
) -> Installed:
    """Write the unit, enable it and start it.

    Args:
        start: whether it runs at once; it starts with the user manager in any case.
        force: replace a unit that somebody edited or wrote; it is kept beside the new one.
        passphrase_file: whose first line opens the agents' keys, handed over as a credential; where None the one that
            WIRE_PASSPHRASE_FILE names, or the unit did before. An empty text is none.

    Raises:
        WireError: there is no user manager (`no-user-manager`), somebody edited the unit (`unit-edited`), or the entry
            point does not run in the service's surroundings (`entry-point`, `git-missing`): nothing was changed.
            Systemd refused (`systemctl`), or a daemon runs by hand (`daemon-running`): installed, and not started.
    """
    from wire import __version__

    manager = Manager(settings.environ)
    known = manager.environment()
    variables, withheld = surroundings.environment(settings, known)
    command = surroundings.entry_point()
    surroundings.probe(command, variables)
    if surroundings.missing_programs(variables["PATH"], ["git"]):
        raise WireError(
            f"git not found in PATH={variables['PATH']}", reason="git-missing", next_step="install git 2.39 or newer"
        )
    log_file = None if has_journal() else os.path.join(settings.state_dir, "daemon.log")
    shared = any(surroundings.is_shared(wire.remote) for wire in configs.load(settings).wires)
    path = unitfile.path_of(known)
    before = unitfile.read(path)
    passphrase = locks.file_for(settings, passphrase_file, before)
    wanted = Unit([*command, *DAEMON], variables, surroundings.unset(settings), log_file, passphrase, shared)
    text = unit.render(wanted, __version__)
    kept = None
    if unit.origin(before) not in (Origin.MISSING, Origin.OURS):
        if not force:
            raise unitfile.edited(path, before, "wire service install --force")
        kept = unitfile.set_aside(path)
    if before != text:
        unitfile.write(path, text)
    if log_file is not None:
        private_folder(settings.state_dir)
    running = _load(settings, manager, path, start=start, anew=before != text)
    lingering = manager.lingering()
    notes = [*_notes(settings, known, variables, withheld, lingering), *locks.notes(settings, passphrase)]
    action = "unchanged" if before == text else "installed" if before is None else "updated"
    return Installed(action, path, running, kept, lingering, tuple(notes))


def uninstall(settings: Settings, *, force: bool = False) -> str | None:
    """Stop and disable the service and remove its unit; return the unit's path, None where there was none.

    Drop-ins are the user's and stay. Messages, keys and the configuration are not touched.

    Raises:
        WireError: as `install`.
    """
    manager = Manager(settings.environ)
    path = unitfile.path_of(manager.environment())
    before = unitfile.read(path)
    if before is None:
        return None
    if unit.origin(before) is not Origin.OURS and not force:
        raise unitfile.edited(path, before, "wire service uninstall --force")
    manager.run("disable", "--now", NAME)
    unitfile.remove(path)
    manager.run("daemon-reload")
    # A unit that had failed would stay listed; for one that had not, this is an error.
    manager.run("reset-failed", NAME, ok=(0, 1))
    return path


def start(settings: Settings) -> None:
    """Start the service and return when it says that it is ready; raises WireError."""
    _on_unit(settings, "start")


def stop(settings: Settings) -> None:
    """Stop the service and return when it ended; raises WireError."""
    _on_unit(settings, "stop")


def restart(settings: Settings) -> None:
    """Stop and start the service, and return when it says that it is ready; raises WireError."""
    _on_unit(settings, "restart")


def logs(settings: Settings, *, count: int, follow: bool) -> tuple[Sequence[str], str | None]:
    """Return the command that shows the service's output, and what to say about it first, if anything.

    Raises:
        WireError: the service is not installed (`not-installed`), or its output cannot be read here (`no-journal`).
    """
    manager = Manager(settings.environ)
    log_file = unit.log_file(_installed(manager)[1])
    if log_file is not None:
        if not os.path.exists(log_file):
            raise WireError(f"the service has printed nothing yet: there is no {log_file}", reason="no-journal")
        command = ["tail", *(["-F"] if follow else []), "-n", str(count), "--", log_file]
        return command, f"without a journal the service prints to {log_file}"
    if manager.tool("journalctl", "--version") is None:
        raise WireError(
            "there is no journalctl on PATH to read the service's output with",
            reason="no-journal",
            next_step=f"systemctl --user status {NAME}",
        )
    how = ["--no-pager", "-n", str(count), *(["-f"] if follow else [])]
    own = ["journalctl", "--user", "--unit", NAME]
    if _has_entries(manager, own):
        return [*own, *how], None
    # Where the journal is not kept per user, or not on disk, the service's lines are in the system's.
    whole = ["journalctl", f"--identifier={unit.IDENTIFIER}", f"_UID={os.geteuid()}"]
    if _has_entries(manager, whole):
        return [*whole, *how], "the user's journal has nothing of it; this is from the system's"
    return [*own, *how], "the journal has nothing of it that this user may read"


def _has_entries(manager: Manager, command: Sequence[str]) -> bool:
    last = manager.tool(*command, "--quiet", "-n", "1", "--output=cat")
    return last is not None and bool(last.out.strip())


def show_logs(settings: Settings, command: Sequence[str]) -> int:
    """Run the command that `logs` returned on our own output; return its exit status."""
    return Manager(settings.environ).follow(*command)


def unit_text(settings: Settings) -> tuple[str, bytes | None]:
    """Return the unit's path and text, None where it is not installed; raises WireError without a manager."""
    path = unitfile.path_of(Manager(settings.environ).environment())
    return path, unitfile.read(path)


def linger_command() -> str:
    """Return the command that lets this user's services outlive the last session."""
    return f"loginctl enable-linger {user_name()}"


def _load(settings: Settings, manager: Manager, path: str, *, start: bool, anew: bool) -> bool:
    """Have systemd read the unit, and start it; return whether it runs."""
    manager.run("daemon-reload")
    seen = manager.show(NAME, *PROPERTIES)
    if seen.get("FragmentPath") != path:
        found = seen.get("FragmentPath") or "nowhere"
        raise WireError(f"systemd reads {NAME} from {found}, not from {path}", reason="unit-shadowed")
    manager.run("enable", NAME)
    running = seen.get("ActiveState") in ("active", "activating", "reloading")
    if start:
        _control(settings, manager, "restart" if running and anew else "start")
    return running or start


def _on_unit(settings: Settings, verb: str) -> None:
    manager = Manager(settings.environ)
    _installed(manager)
    _control(settings, manager, verb)


def _control(settings: Settings, manager: Manager, verb: str) -> None:
    if verb != "stop":
        _nobody_else(settings, manager)
        _keep_short(unit.log_file(_installed(manager)[1]))
        # Who starts it by hand has looked at why it failed; the count of failures begins anew.
        manager.run("reset-failed", NAME, ok=(0, 1))
    try:
        manager.run(verb, NAME)
    except WireError as error:
        if error.reason == "systemctl":
            error.next_step = "wire service logs"
        raise


def _nobody_else(settings: Settings, manager: Manager) -> None:
    """Refuse to start beside a daemon that was started by hand: systemd would try again and again."""
    main = int(manager.show(NAME, "MainPID").get("MainPID") or 0)
    for proof in prove(settings):
        if proof.pid not in (None, main):
            raise Busy(
                f"process {proof.pid} serves {proof.name} already, and is not the service; the service was not started",
                reason="daemon-running",
                next_step=f"end it (kill {proof.pid}), then: wire service start",
            )


def _keep_short(log_file: str | None) -> None:
    """Set a log aside that grew; a journal would do this by itself."""
    if log_file is None:
        return
    try:
        if os.path.getsize(log_file) > LOG_MAX:
            os.replace(log_file, f"{log_file}.1")
    except FileNotFoundError:
        return
    except OSError as error:
        raise store_error(error, "set aside", log_file) from error


def _installed(manager: Manager) -> tuple[str, bytes]:
    path = unitfile.path_of(manager.environment())
    text = unitfile.read(path)
    if text is None:
        raise WireError(
            f"the service is not installed: there is no {path}",
            reason="not-installed",
            next_step="wire service install",
        )
    return path, text


def _notes(
    settings: Settings,
    known: Mapping[str, str],
    variables: Mapping[str, str],
    withheld: Sequence[str],
    lingering: Lingering,
) -> list[str]:
    notes = []
    if lingering.state == "off":
        notes.append(
            "lingering is off: the service ends with your last session and does not start at boot. "
            f"Turn it on: {linger_command()}"
        )
    elif lingering.state == "unknown":
        notes.append(
            f"cannot tell whether the service outlives your session ({lingering.why}). To be sure: {linger_command()}"
        )
    remotes = [wire.remote for wire in configs.load(settings).wires]
    if not remotes:
        notes.append("no wire is configured yet: wire init, or wire join; the daemon notices by itself")
    if any(transport.of(remote).kind == "ssh" for remote in remotes):
        if surroundings.missing_programs(variables["PATH"], ["ssh"]):
            notes.append(f"ssh not found in PATH={variables['PATH']}")
        if settings.environ.get("SSH_AUTH_SOCK") and not known.get("SSH_AUTH_SOCK"):
            notes.append(
                "the user manager does not know your ssh agent; until it does, only keys without a passphrase work. "
                "For this session: systemctl --user import-environment SSH_AUTH_SOCK"
            )
    if withheld:
        notes.append(
            f"{', '.join(withheld)} not written into the unit, since a password is in it; "
            "set it for git instead: git config --global http.proxy URL"
        )
    return notes
