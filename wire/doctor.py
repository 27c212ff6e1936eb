"""What keeps wire from working on this machine, looked at one by one, each with the next step.

    for check in examine(settings): print(check.verdict, check.name, check.found)

Every check tries the thing itself: keys are loaded, the remote is asked three times, the program that the service's
unit names is run. Nothing is changed. How the wires stand (ages, incidents, messages that wait) is for `wire status`.
"""

import os
import shutil
import sys
import sysconfig
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from wire.daemon.site import Site
from wire.daemon.status import LOCKED, RUNNING
from wire.errors import WireError
from wire.gitio import OLDEST_GIT, Git, GitFailed, redact_url
from wire.hooks import githook, installer, sessions
from wire.hooks.githook import Owner
from wire.store import config as configs
from wire.store import surfaces
from wire.store.config import WireConfig
from wire.store.paths import Settings
from wire.store.progress import Progress
from wire.systemd import service, surroundings, unit
from wire.systemd.state import look, prove
from wire.systemd.unit import Origin
from wire.verbs.render import age

PROBES = 3
PROBE_SECONDS = 15.0
PROBE_PAUSE = 0.3
LEAST_FREE = 32 << 20
"""Bytes of disk below which a machine is about to lose the ability to send."""
CLOCK_SLACK = 120.0
EARLIEST = 1767225600.0
"""2026-01-01: no clock that is right shows less."""

_UNLOCK = "wire service install --passphrase-file FILE"

Verdict = Literal["ok", "note", "wrong"]


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at: `wrong` needs mending, `note` is worth knowing."""

    name: str
    verdict: Verdict
    found: str
    next_step: str | None = None


def examine(settings: Settings) -> Iterator[Check]:
    """Yield the checks as they are made; a check that fails never hides the others."""
    yield _git(settings)
    yield _program(settings.environ)
    yield _clock(settings)
    yield from _disk(settings)
    try:
        wires = configs.load(settings).wires
    except WireError as error:
        yield _wrong("configuration", error)
        wires = ()
    else:
        listed = ", ".join(wire.name for wire in wires)
        if listed:
            yield Check("configuration", "ok", f"{settings.config_file}: {listed}")
        else:
            yield Check("configuration", "note", f"no wire in {settings.config_file}", "wire init, or wire join")
    for wire in wires:
        yield from _wire(settings, wire)
    yield from _runtimes(settings)
    yield from _service(settings, wires)


def _git(settings: Settings) -> Check:
    try:
        version = Git(os.devnull, environ=settings.environ).version()
    except GitFailed as error:
        return _wrong("git", error)
    said = ".".join(map(str, version))
    if version < OLDEST_GIT:
        oldest = ".".join(map(str, OLDEST_GIT))
        return Check("git", "wrong", f"git {said}, where {oldest} is the oldest that works", "upgrade git")
    return Check("git", "ok", f"git {said}")


def _program(environ: Mapping[str, str]) -> Check:
    """Tell what `wire` means to a shell, without running a stranger's program."""
    found = shutil.which("wire", path=environ.get("PATH", os.defpath))
    if found is None:
        here = os.path.join(sysconfig.get_path("scripts"), "wire")
        return Check("wire on PATH", "note", f"no `wire` on PATH; this one is {here}", "add its folder to PATH")
    if os.path.realpath(os.path.dirname(found)) == os.path.realpath(sysconfig.get_path("scripts")):
        return Check("wire on PATH", "ok", found)
    if _is_ours(found):
        return Check("wire on PATH", "note", f"{found} is another installation of it; this one runs {sys.executable}")
    return Check(
        "wire on PATH", "wrong", f"{found} is another program of that name", "use `git wire …`, or change PATH's order"
    )


def _is_ours(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return b"wire.cli" in file.read(4096)
    except OSError:
        return False


def _clock(settings: Settings) -> Check:
    now = time.time()
    newest = 0.0
    for folder in (settings.state_dir, *_folders(settings.state_dir)):
        try:
            newest = max([newest, *(entry.stat().st_mtime for entry in os.scandir(folder) if entry.is_file())])
        except OSError:
            continue
    shown = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now))
    if now < EARLIEST:
        return Check("clock", "wrong", f"the clock says {shown}", "set the clock: timedatectl set-ntp true")
    if newest > now + CLOCK_SLACK:
        behind = f"the clock says {shown}, {newest - now:.0f} s before this machine last wrote its own state"
        return Check("clock", "wrong", behind, "set the clock: timedatectl set-ntp true")
    return Check("clock", "ok", shown)


def _folders(path: str) -> list[str]:
    try:
        return [entry.path for entry in os.scandir(path) if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def _disk(settings: Settings) -> Iterator[Check]:
    looked: set[int] = set()
    for folder in (settings.state_dir, settings.clones_dir, settings.keys_dir):
        while not os.path.isdir(folder) and folder != os.path.dirname(folder):
            folder = os.path.dirname(folder)
        device = os.stat(folder).st_dev
        if device in looked:
            continue
        looked.add(device)
        about = os.statvfs(folder)
        free = about.f_bavail * about.f_frsize
        no_files = about.f_files > 0 and about.f_favail == 0
        if free < LEAST_FREE or no_files:
            what = "no file can be made any more" if no_files else f"{free >> 20} MiB free"
            yield Check("disk", "wrong", f"{folder}: {what}", f"free some space on the disk of {folder}")
        elif not os.access(folder, os.W_OK):
            yield Check("disk", "wrong", f"{folder} cannot be written by this user")
        else:
            yield Check("disk", "ok", f"{folder}: {free >> 20} MiB free")


# One wire.


def _wire(settings: Settings, wire: WireConfig) -> Iterator[Check]:
    site = Site.open(settings, wire)
    try:
        pin = site.pin()
        chain = site.trust(pin)
    except WireError as error:
        yield _wrong(f"{wire.name}: pin and trust", error)
    else:
        yield Check(f"{wire.name}: pin and trust", "ok", f"wire {pin.wire}, trust {chain.newest.checkpoint}")
        for agent in wire.agents:
            try:
                signer = site.signer(agent, pin.wire)
            except WireError as error:
                yield _wrong(f"{wire.name}: key of {agent}", error)
                continue
            known = chain.key(agent, signer.key_id)
            if known is None:
                changed = agent in chain.newest.agents
                waits = f"{'a new key, ' if changed else ''}not approved yet; its messages wait here"
                yield Check(f"{wire.name}: key of {agent}", "note", waits, f"elsewhere: wire trust approve {agent}")
            elif known.status != "active":
                yield Check(f"{wire.name}: key of {agent}", "wrong", f"the trust has it as {known.status}")
            elif signer.locked and agent in Progress.load(site.places).locked.split():
                yield Check(f"{wire.name}: key of {agent}", "wrong", f"locked: {LOCKED}", _UNLOCK)
            else:
                guarded = ", with a passphrase" if signer.locked else ""
                yield Check(f"{wire.name}: key of {agent}", "ok", f"active, {signer.key_id}{guarded}")
    yield _remote(site, wire)
    yield _hook(settings, wire)
    if wire.notify or wire.drop:
        yield _surfaces(site, wire)


def _surfaces(site: Site, wire: WireConfig) -> Check:
    """Look whether agents are told of what came: what failed last, and whether anybody tries."""
    name = f"{wire.name}: notifications"
    troubles = surfaces.troubles(site.places, wire.notify, wire.drop)
    if troubles:
        return Check(name, "wrong", "; ".join(one.told(time.time()) for one in troubles), "wire notify test")
    ways = [f"{agent} by {', '.join(one.adapters) or 'nothing'}" for agent, one in wire.notify.items()]
    ways += [f"{agent} in {folder}" for agent, folder in wire.drop.items()]
    return Check(name, "ok", "; ".join(ways))


def _remote(site: Site, wire: WireConfig) -> Check:
    """Ask three times: one answer in three is trouble of another kind than none."""
    name, shown = f"{wire.name}: remote", redact_url(wire.remote)
    reached, there, failure = 0, False, None
    for attempt in range(PROBES):
        if attempt:
            time.sleep(PROBE_PAUSE)
        try:
            there = bool(site.git.ls_remote(wire.remote, f"refs/heads/{wire.branch}", timeout=PROBE_SECONDS)) or there
            reached += 1
        except GitFailed as error:
            failure = error
    site.git.close_connections()
    if failure is not None:
        how = "intermittent" if reached else "unreachable"
        step = failure.next_step or f"when this works, wire does: git ls-remote {shown}"
        return Check(name, "wrong", f"{how} {reached}/{PROBES}: {shown}: {failure.message}", step)
    if not there:
        return Check(name, "wrong", f"reachable {reached}/{PROBES}: {shown}, and it has no branch {wire.branch!r}")
    return Check(name, "ok", f"reachable {reached}/{PROBES}: {shown}")


def _hook(settings: Settings, wire: WireConfig) -> Check:
    name = f"{wire.name}: hook"
    try:
        report = githook.look(settings, wire)
    except WireError as error:
        return _wrong(name, error)
    if report.active:
        return Check(name, "ok", f"active: {report.path}")
    # Without the hook nobody is less safe: peers verify for themselves. One that is there and does not run misleads.
    verdict: Verdict = "note" if report.owner in (Owner.MISSING, Owner.FOREIGN) else "wrong"
    return Check(name, verdict, f"hook inactive because {report.why}", report.next_step)


# The hooks of agent runtimes.


def _runtimes(settings: Settings) -> Iterator[Check]:
    """Tell what was installed and never fired from what works: runtimes skip hooks without a word."""
    for there in installer.installed(settings):
        name = f"hooks of {there.runtime.name}"
        try:
            report = there.look()
        except WireError as error:
            yield _wrong(name, error)
            continue
        if report.state is not installer.State.INSTALLED:
            yield Check(
                name, "wrong", f"{report.state} in {there.path}: {report.why or 'taken out by somebody'}", report.again
            )
            continue
        runs = [run for run in sessions.runs(settings.state_dir, there.runtime.name) if run.at >= there.at]
        if not runs:
            yield Check(name, "note", f"installed in {there.path} and never fired", there.runtime.silent)
            continue
        last = runs[0]
        fired = f"{last.event} ran {age(max(0.0, time.time() - last.at))} ago"
        failed = next((run for run in runs if run.outcome == "failed"), None)
        noted = next((run for run in runs if run.problem), None)
        if failed is not None:
            yield Check(name, "wrong", f"{there.path}: {fired}; the last {failed.event} failed: {failed.problem}")
        elif noted is not None:
            yield Check(name, "note", f"{there.path}: {fired}; the last {noted.event}: {noted.problem}")
        else:
            yield Check(name, "ok", f"{there.path}: {fired}")


# The service.


def _service(settings: Settings, wires: tuple[WireConfig, ...]) -> Iterator[Check]:
    try:
        path, text = service.unit_text(settings)
    except WireError as error:
        proofs = prove(settings) if wires else ()
        if proofs and all(one.daemon == RUNNING for one in proofs):
            found = f"{error.message}; a daemon that was started by hand serves this machine (process {proofs[0].pid})"
            yield Check("service", "note", found)
        else:
            yield Check("service", "note", error.message, error.next_step)
        return
    if text is None:
        yield Check("service", "note", f"not installed: there is no {path}", "wire service install")
        return
    yield _entry_point(path, text)
    missing = surroundings.missing_programs(unit.environment(text).get("PATH", os.defpath), ["git"])
    if missing:
        found = f"git not found in PATH={unit.environment(text).get('PATH')}"
        yield Check("service: git", "wrong", found, "wire service install")
    if any(surroundings.is_shared(wire.remote) for wire in wires) and b"\nRestrictSUIDSGID=yes" in text:
        found = "the unit forbids the group bit that a shared repository on this machine needs"
        yield Check("service: sandbox", "wrong", found, "wire service install")
    if unit.origin(text) is not Origin.OURS:
        yield Check("service: unit", "note", f"{path} was changed by somebody; it is used as it is")
    state = look(settings)
    for trouble in state.service_troubles:
        yield Check("service", "wrong", trouble, "wire service status")
    if state.lingering.state == "off":
        found = "lingering is off: the service ends with the last session"
        yield Check("service: lingering", "note", found, service.linger_command())


def _entry_point(path: str, text: bytes) -> Check:
    """Run the very program that the unit names, in the unit's own environment."""
    name = "service: entry point"
    words = unit.command(text)
    if words[-2:] != list(service.DAEMON):
        return Check(name, "wrong", f"{path} does not run `wire daemon run`: {' '.join(words)}", "wire service install")
    try:
        said = surroundings.probe(words[:-2], unit.environment(text))
    except WireError as error:
        return Check(name, "wrong", error.message, "wire service install")
    from wire import __version__

    if said != f"wire {__version__}":
        return Check(name, "note", f"the service runs {said}, this is wire {__version__}", "wire service install")
    return Check(name, "ok", f"{' '.join(words[:-2])} runs: {said}")


def _wrong(name: str, error: WireError) -> Check:
    return Check(name, "wrong", error.message, error.next_step)
