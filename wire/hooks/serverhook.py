"""The pre-receive hook in a bare repository: installed, removed, and whether it is the one that git runs.

    report = install(environ, "/srv/git/wire.git", Rules(branch="main"))
    print(script(Rules()))                      for a host that wants its hooks somewhere else

A hook of somebody else's is never written over. Where the host has one that calls those in a folder beside it, as Gitea
and Forgejo do (`hooks/pre-receive.d`), or a folder for its owner's hooks, as GitLab does (`custom_hooks`), ours goes
there.
"""

import os
import shlex
import sys
from collections.abc import Mapping

from wire.errors import UsageError
from wire.gitio import discover_bare
from wire.hooks.githook import Owner, Report, owner_of, put, remove
from wire.hooks.prereceive import Rules
from wire.protocol.encoding import check_checkpoint
from wire.setup.hosthook import SWITCHES, VERB, is_on, place, text_of

_FIRST = "# Written by `wire hooks install pre-receive`, and written anew by it: changes of your own would be lost."


def look(environ: Mapping[str, str], repository: str, rules: Rules | None = None) -> Report:
    """Return how the hook stands.

    Args:
        repository: the bare repository's folder.
        rules: those that it is to have; None for any.

    Raises:
        GitFailed: there is no repository.
    """
    path = place(discover_bare(environ, repository))
    text = text_of(path)
    owner = owner_of(path, text, _FIRST, VERB)
    again = f"wire hooks install pre-receive --repo {shlex.quote(repository)}"
    if owner is Owner.MISSING:
        return Report(path, owner, False, f"there is no {path}", again)
    if owner is Owner.FOREIGN:
        return Report(path, owner, False, f"{path} is somebody else's and does not call wire", _calling(rules))
    if not os.access(path, os.X_OK):
        return Report(path, owner, False, f"{path} is not executable", f"chmod +x {shlex.quote(path)}")
    if owner is Owner.OURS and rules is not None and text != script(rules).encode():
        return Report(path, owner, False, f"{path} is not as this version and these rules want it", again)
    return Report(path, owner, True)


def install(environ: Mapping[str, str], repository: str, rules: Rules) -> Report:
    """Put the hook into the repository, or bring it up to date, and return how it stands then.

    Raises:
        UsageError: somebody else's hook is there (`foreign-hook`), or the rules cannot be (`bad-checkpoint`); nothing
            was changed.
        GitFailed, StoreError: the repository cannot be used.
    """
    text = script(rules).encode()
    report = look(environ, repository, rules)
    if report.owner is Owner.FOREIGN:
        raise _foreign(report.path, rules)
    if report.owner is not Owner.CALLING and not report.active:
        put(report.path, text)
    return look(environ, repository, rules)


def uninstall(environ: Mapping[str, str], repository: str) -> str | None:
    """Remove the hook and return its path, None where there was none.

    Raises:
        UsageError: the hook there is somebody else's (`foreign-hook`).
    """
    report = look(environ, repository)
    return remove(report, _foreign(report.path, Rules()))


def script(rules: Rules) -> str:
    """Return the hook's text.

    Raises:
        UsageError: the checkpoint is none (`bad-checkpoint`).
    """
    call = _words(rules)
    python = shlex.quote(sys.executable)
    lines = [
        "#!/bin/sh",
        _FIRST,
        "# It judges a push as every peer would, and refuses what none of them would accept.",
        f"if [ -x {python} ]; then",
        f"    exec {python} -E -P -m wire {call}",
        "fi",
        "if command -v git-wire >/dev/null 2>&1; then",
        f"    exec git-wire {call}",
        "fi",
        f"echo 'wire: neither' {python} 'nor git-wire on PATH can judge this push; it is refused' >&2",
        "exit 1",
    ]
    return "".join(f"{line}\n" for line in lines)


def folder(environ: Mapping[str, str], repository: str) -> str:
    """Return the git folder of a repository; raises GitFailed."""
    return discover_bare(environ, repository).git_dir


def switches(environ: Mapping[str, str], repository: str) -> list[str]:
    """Return the commands that switch on what git itself enforces there and does not yet; raises GitFailed."""
    found = discover_bare(environ, repository)
    return [
        f"git -C {shlex.quote(found.git_dir)} config {name} true"
        for name in SWITCHES
        if not is_on(found.settings, name)
    ]


def _words(rules: Rules) -> str:
    words = VERB.split()
    if rules.branch is not None:
        words += ["--branch", rules.branch]
    if rules.trust is not None:
        check_checkpoint(rules.trust)
        words += ["--trust", rules.trust]
    return shlex.join(words)


def _calling(rules: Rules | None) -> str:
    call = _words(rules or Rules())
    return f"have it hand its standard input to wire: {shlex.quote(sys.executable)} -E -P -m wire {call} || exit 1"


def _foreign(path: str, rules: Rules) -> UsageError:
    return UsageError(
        f"{path} is somebody else's hook; it was left as it is", reason="foreign-hook", next_step=_calling(rules)
    )
