"""The pre-commit hook: judge what is staged in a work tree, and refuse it with reasons.

    outcome = run(settings, os.getcwd(), joined=True)
    for problem in outcome.problems: print(problem.text)

In the clone of a wire that this machine joined, the pin and the accepted bytes decide. In any other repository (the
pre-commit framework runs this in all) the trust chain in HEAD does, and the outcome says that there is no pin. It fails
closed: whatever keeps it from judging is an error, never a pass. The index is only read.
"""

import os
from dataclasses import dataclass

from wire.daemon.accepted import Blobs
from wire.daemon.shape import ROOT, trust_path
from wire.errors import IdentityError, TrustError
from wire.gitio import Entry, Git, Repository, discover
from wire.hooks.ground import unpinned
from wire.hooks.judge import Staging, judge, judge_keys
from wire.hooks.pinned import pinned
from wire.hooks.problems import Problem, shown
from wire.store import config as configs
from wire.store.config import WireConfig
from wire.store.paths import Settings


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the staged changes turned out to be; without problems the commit may be made.

    Attributes:
        changes: how many paths were judged.
        problems: everything that is wrong.
        notes: how far the verdict reaches, where that is not as far as it could be.
    """

    changes: int
    problems: tuple[Problem, ...]
    notes: tuple[str, ...]


def run(settings: Settings, folder: str, *, joined: bool) -> Outcome:
    """Judge what is staged.

    Args:
        folder: where git started the hook.
        joined: this must be the clone of a wire of this machine; without its pin nothing is judged.

    Raises:
        WireError: it cannot be judged; the commit must not be made.
    """
    found = discover(settings.environ, folder)
    config = _wire_of(settings, found)
    if joined and config is None:
        raise IdentityError(
            f"{found.top} is not the clone of a wire in {settings.config_file}, and this hook was installed in one; "
            "nothing was verified",
            reason="hook-no-wire",
            next_step="wire hooks install git",
        )
    git = Git(found.git_dir, environ=settings.environ)
    base = git.resolve("HEAD")
    changes = git.staged(found.index_file, base)
    entries = {entry.path: entry for entry in git.entries(base, ROOT)} if base is not None else {}
    staging = Staging(changes, entries, Blobs(git))
    problems, passed_over = judge_keys(staging, strict=config is not None)
    notes = [f"{shown(path)} is too large to be looked through for private keys" for path in passed_over]
    if config is not None:
        problems += judge(staging, pinned(settings, config, git, staging.blobs)).problems
    else:
        problems += _without_pin(staging, entries, notes)
    return Outcome(len(changes), tuple(problems), tuple(notes))


def _without_pin(staging: Staging, entries: dict[bytes, Entry], notes: list[str]) -> list[Problem]:
    if trust_path(1).encode() not in entries:
        below = [change for change in staging.changes if change.path.startswith(f"{ROOT}/".encode())]
        if below:
            raise TrustError(
                f"{len(below)} staged path(s) below {ROOT}/, and HEAD has no trust chain to verify them with",
                reason="no-trust",
                next_step="wire init REMOTE --as NAME begins a wire",
            )
        notes.append("no wire in HEAD: only private keys were looked for")
        return []
    held = unpinned(staging.blobs, entries)
    notes.append(
        f"this machine joined no wire with this clone, so there is no pin: verified with the trust chain in HEAD "
        f"({held.chain.newest.checkpoint}), and whose folder is whose could not be told"
    )
    return judge(staging, held).problems


def _wire_of(settings: Settings, found: Repository) -> WireConfig | None:
    """Return the wire whose clone this is; a linked work tree of the clone counts as the clone."""
    for wire in configs.load(settings).wires:
        if os.path.realpath(os.path.join(wire.clone, ".git")) == os.path.realpath(found.common_dir):
            return wire
    return None
