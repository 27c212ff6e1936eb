"""The clone as a person finds it: branch, HEAD, index and the files that are not channels.

Nothing in a cycle needs the work tree, the index or HEAD, so whatever a person does there cannot harm the wire. This
puts them in order afterwards, and never throws work of a person away: commits that only they have get a rescue ref and
an incident first, and a half-done rebase or merge is set aside with what it names.

The new index is built beside the old one and takes its place by a rename, under git's own lock file; while somebody
else holds that lock, tidying waits for the next time. A lock of nobody is set aside after `STALE_LOCK_SECONDS`.
"""

import os
import re
import time
from dataclasses import dataclass, field

from wire.daemon.findings import WIRE, Finding, raise_all
from wire.daemon.shown import show_files, show_index
from wire.daemon.site import Site
from wire.errors import StoreError
from wire.gitio import GitFailed
from wire.gitio import Kind as Failure
from wire.store import incidents
from wire.store.files import private_folder, utc_now
from wire.store.incidents import Incident
from wire.store.pin import Pin, replace

WAITS = "waits"
"""The subject of the incident that tells of somebody who keeps tidying from its work."""
STALE_LOCK_SECONDS = 600.0
GRACE_SECONDS = 60.0
_HALF_DONE = (
    "rebase-merge",
    "rebase-apply",
    "sequencer",
    "MERGE_HEAD",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "BISECT_LOG",
)
_BESIDE = ("MERGE_MSG", "MERGE_MODE", "AUTO_MERGE", "BISECT_START", "BISECT_EXPECTED_REV", "BISECT_NAMES")
"""What such a state leaves beside itself, for the next commit of a person to trip over."""
_NAMING = ("orig-head", "autostash", "head")
_OBJECT_ID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


@dataclass(slots=True)
class Tidied:
    """What tidying did: the commit that HEAD stands at, or None where it had to wait."""

    commit: str | None
    findings: list[Finding] = field(default_factory=list)


def tidy_up(site: Site, *, lock_timeout: float) -> list[Incident]:
    """Tidy the clone as a cycle does at its end, and return what was raised.

    Raises:
        WireError: as `cycle.run`.
    """
    with site.cycle_lock(lock_timeout):
        pin = site.pin()
        return tidied(site, pin, pin.verified)[1] if pin.verified is not None and pin.frozen is None else []


def tidied(site: Site, pin: Pin, tip: str) -> tuple[Pin, list[Incident]]:
    """Tidy the clone where that is needed; return the pin, which names the commit then, and what was raised."""
    done = tidy_where_needed(site, pin.branch, tip, pin.tidied)
    raised = raise_all(site.places, done.findings, utc_now()) if done.findings else []
    if done.commit is not None and done.commit != pin.tidied:
        pin = site.save(replace(pin, tidied=done.commit))
    return pin, raised


def tidy_where_needed(site: Site, branch: str, tip: str, before: str | None) -> Tidied:
    """Tidy unless nothing has changed since the last time, see `tidy`; what keeps us from it is a finding."""
    if tip == before and not site.signatures.changed(site.places.git_dir, tip):
        return Tidied(None)
    try:
        done = tidy(site, branch, tip, before)
    except (GitFailed, StoreError) as error:
        if isinstance(error, GitFailed) and error.kind is Failure.CANCELLED:
            return Tidied(None)
        return Tidied(None, [Finding("CLONE_STATE", WIRE, f"the clone could not be tidied: {error}", subject="tidy")])
    if done.commit is not None:
        for over in (WAITS, "tidy"):
            incidents.end(site.places.incidents_dir, "CLONE_STATE", WIRE, over)
        # Tidying changes the folder itself: without `ours`, looks in quick succession would tidy for ever.
        site.signatures.remember(site.places.git_dir, tip, ours=True)
    return done


def tidy(site: Site, branch: str, tip: str, before: str | None) -> Tidied:
    """Make branch, HEAD, index and the loose files show `tip`.

    Args:
        branch: the local branch, named as the remote's.
        before: the commit that the last tidying left; anything else on the branch is a person's.
    """
    done = Tidied(None)
    git_dir = site.places.git_dir
    if _locked(site, git_dir, done.findings) or _half_done(site, git_dir, done.findings):
        return done
    git = site.git
    ref = f"refs/heads/{branch}"
    head_ref = git.symbolic_ref("HEAD")
    for name, commit in (("HEAD", git.resolve("HEAD") if head_ref != ref else None), (ref, git.resolve(ref))):
        if commit is not None and commit not in (tip, before) and not _is_ancestor(site, commit, tip):
            _rescue(site, name, commit, done.findings)
    if git.resolve(ref) != tip:
        git.update_ref(ref, tip)
    if head_ref != ref:
        git.symbolic_ref("HEAD", ref)
    show_files(site, tip)
    if not show_index(site, tip):
        return done
    done.commit = tip
    return done


def _locked(site: Site, git_dir: str, findings: list[Finding]) -> bool:
    """Return whether a lock keeps us out; set those aside that are old and that no git process holds."""
    busy = False
    for path in _locks(git_dir):
        age = _age(path)
        if age is None:
            continue
        if _somebodys(site, path, age, STALE_LOCK_SECONDS, findings):
            busy = True
            continue
        aside = _set_aside(site, path)
        findings.append(
            Finding(
                "CLONE_STATE",
                path,
                f"{path} was {age:.0f} s old and no git process was at work in the clone; it was set aside",
                {"aside": aside, "age_s": round(age)},
            )
        )
    return busy


def _locks(git_dir: str) -> list[str]:
    """Return the lock files of a repository, without those of objects, which packing looks after."""
    found = []
    for folder, below, names in os.walk(git_dir):
        if folder == git_dir:
            below[:] = [name for name in below if name not in ("objects", "hooks")]
        found += [os.path.join(folder, name) for name in names if name.endswith(".lock")]
    return found


def _age(path: str) -> float | None:
    """Return how many seconds ago a file or folder changed, or None when there is none."""
    try:
        return time.time() - os.lstat(path).st_mtime
    except FileNotFoundError:
        return None


def _somebodys(site: Site, path: str, age: float, patience: float, findings: list[Finding]) -> bool:
    """Return whether something may be of a person at work, and say so when that has been for long."""
    at_work = git_processes(site.places.clone)
    if at_work and age >= STALE_LOCK_SECONDS:
        findings.append(
            Finding(
                "CLONE_STATE",
                WIRE,
                f"git has been at work in the clone for {age:.0f} s ({path}; process {at_work[0]}); until it ends, "
                "branch and index do not show what was accepted. Sending, reading and syncing go on",
                {"path": path, "processes": at_work[:5]},
                subject=WAITS,
            )
        )
    return bool(at_work) or age < patience


def git_processes(clone: str) -> list[int]:
    """Return the processes named git that work in a folder, as far as this user may see them."""
    inside = os.path.realpath(clone)
    found = []
    for entry in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/comm", "rb") as file:
                name = file.read().strip()
            folder = os.readlink(f"/proc/{entry}/cwd")
        except OSError:
            continue
        if name.startswith(b"git") and (folder == inside or folder.startswith(inside + "/")):
            found.append(int(entry))
    return found


def _half_done(site: Site, git_dir: str, findings: list[Finding]) -> bool:
    """Return whether somebody is in the middle of a rebase or merge; set aside what was left half done."""
    for name in _HALF_DONE:
        path = os.path.join(git_dir, name)
        age = _age(path)
        if age is None:
            continue
        if _somebodys(site, path, age, GRACE_SECONDS, findings):
            return True
        for kept in (path, *(os.path.join(path, one) for one in _NAMING)):
            _keep_named(site, name, kept)
        aside = _set_aside(site, path)
        for beside in _BESIDE:
            if os.path.lexists(os.path.join(git_dir, beside)):
                _set_aside(site, os.path.join(git_dir, beside))
        findings.append(
            Finding(
                "CLONE_STATE",
                path,
                f"{path} had been left half done for {age:.0f} s; it was set aside, and what it names has a rescue ref",
                {"aside": aside},
            )
        )
    return False


def _keep_named(site: Site, what: str, path: str) -> None:
    """Give the commits that a file of a half-done state names a rescue ref each."""
    try:
        with open(path, "rb") as file:
            named = file.read(4096).decode("ascii", "replace").split()
    except OSError:
        return
    for oid in named:
        if _OBJECT_ID.fullmatch(oid) and site.git.resolve(f"{oid}^{{commit}}") is not None:
            site.git.update_ref(f"refs/wire/rescue/{what}-{oid[:12]}", oid)


def _set_aside(site: Site, path: str) -> str:
    private_folder(site.places.aside_dir)
    aside = os.path.join(site.places.aside_dir, f"{os.path.basename(path)}-{utc_now().replace(':', '')}")
    os.rename(path, aside)
    return aside


def _is_ancestor(site: Site, commit: str, tip: str) -> bool:
    try:
        return site.git.is_ancestor(commit, tip)
    except GitFailed:
        return False


def _rescue(site: Site, name: str, commit: str, findings: list[Finding]) -> None:
    ref = f"refs/wire/rescue/{commit[:16]}"
    site.git.update_ref(ref, commit)
    findings.append(
        Finding(
            "RESCUED",
            WIRE,
            f"{name} of the clone stood at {commit[:12]}, a commit that no tip of the wire has; it is kept as {ref}. "
            "The clone is the daemon's: what is to be sent goes through wire send",
            {"commit": commit, "ref": ref},
            subject=commit,
        )
    )
