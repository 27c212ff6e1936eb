"""The hook of a host: installed, and run by git when somebody pushes."""

import os
import sys
from typing import NoReturn

from wire.cli.console import flush, leave, say, say_json, warn
from wire.errors import FAILED, IntegrityError, UsageError, WireError


def pre_receive(
    repo: str | None,
    branch: str | None,
    trust: str | None,
    *,
    script: bool,
    check: bool,
    remove: bool,
    as_json: bool,
) -> None:
    """Install, look at, remove or print the hook."""
    from wire.hooks import prereceive, serverhook
    from wire.hooks.prereceive import Rules

    rules = Rules(branch, trust)
    if script:
        if repo or check or remove:
            raise UsageError("--script prints the hook, and goes with --branch and --trust alone")
        text = serverhook.script(rules)
        if as_json:
            say_json({"script": text})
        else:
            say(text.rstrip("\n"))
        return
    if repo is None:
        raise UsageError("which repository? name its folder with --repo", next_step="wire hooks install --help")
    if remove:
        path = serverhook.uninstall(os.environ, repo)
        if as_json:
            say_json({"path": path, "changed": path is not None})
        else:
            say("there is no hook" if path is None else f"removed {path}")
        return
    report = (serverhook.look if check else serverhook.install)(os.environ, repo, rules)
    notes = prereceive.prime(os.environ, serverhook.folder(os.environ, repo), rules) if report.active else []
    switches = serverhook.switches(os.environ, repo)
    if as_json:
        say_json({**report._asdict(), "notes": notes, "settings": switches})
        flush()
        leave(0 if report.active else FAILED)
    if not report.active:
        raise WireError(f"hook inactive because {report.why}", reason="hook-inactive", next_step=report.next_step)
    say(f"hook active: {report.path}")
    for note in notes:
        warn(note)
    for command in switches:
        say(f"git's own rules are off there; switch on: {command}")


def judge(branch: str | None, trust: str | None, *, as_json: bool) -> NoReturn:
    """Judge the push on standard input and leave."""
    from wire.hooks import prereceive

    rules = prereceive.Rules(branch, trust)
    if not as_json:
        status, said = prereceive.answer(os.environ, os.getcwd(), sys.stdin.buffer.read(), rules)
        os.write(2, said.encode("utf-8", "backslashreplace"))
        leave(status)
    try:
        refused = prereceive.run(os.environ, prereceive.folder(os.environ, os.getcwd()), sys.stdin.buffer.read(), rules)
    except ValueError as error:
        raise UsageError(f"standard input is not what git tells a pre-receive hook: {error}") from error
    say_json(
        {
            "accepted": not refused,
            "problems": [{"ref": one.ref, "commit": one.commit, **one.problem.as_json()} for one in refused],
        }
    )
    flush()
    leave(IntegrityError.exit_status if refused else 0)
