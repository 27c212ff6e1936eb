"""hooks: verification before a commit, and the ears of agent runtimes."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from wire.cli.common import for_a_wire, here_of, json_option, settings_of
from wire.cli.console import flush, leave, safe, say, say_json, warn
from wire.cli.groups import Group
from wire.errors import FAILED, IntegrityError, UsageError, WireError
from wire.hooks.runtimes import NAMES, find

if TYPE_CHECKING:
    from wire.hooks.githook import Report
    from wire.hooks.installer import Report as Installed
    from wire.hooks.installer import Scope, State
    from wire.hooks.runtimes import Runtime

SHOWN = 20
_KIND = click.Choice(["git", "pre-receive", *NAMES])


@click.group(cls=Group)
def hooks() -> None:
    """Hooks that verify before something is committed, and hooks that put messages in front of an agent."""


def _scoped(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option("--user", is_flag=True, help="A runtime's hooks for all projects of this user: the default."),
        click.option("--project", metavar="DIR", help="A runtime's hooks for one project."),
        click.option("--repo", metavar="DIR", help="pre-receive: the bare repository on its host."),
    ):
        command = option(command)
    return command


@hooks.command()
@click.argument("kind", type=_KIND)
@click.option("--check", is_flag=True, help="Change nothing; only say how it stands, and exit 1 where it should not.")
@click.option("--uninstall", "remove", is_flag=True, help="Take out what an install put in, and nothing else.")
@click.option("--plugin", metavar="DIR", help="claude-code: write a plugin folder instead of changing settings.")
@click.option("--mcp", is_flag=True, help="A runtime's list of tool servers, too: `wire mcp`.")
@click.option("--branch", metavar="NAME", help="pre-receive: the wire's branch; else whichever carries a trust chain.")
@click.option(
    "--trust", metavar="CHECKPOINT", help="pre-receive: take no other wire than the one with this checkpoint."
)
@click.option(
    "--script", is_flag=True, help="pre-receive: only print it, for a host that has a place of its own for it."
)
@_scoped
@for_a_wire
def install(
    ctx: click.Context,
    kind: str,
    check: bool,
    remove: bool,
    plugin: str | None,
    mcp: bool,
    branch: str | None,
    trust: str | None,
    script: bool,
    project: str | None,
    user: bool,
    repo: str | None,
    as_json: bool,
) -> None:
    """Put hooks in: git's into the wire's clone, the host's into its repository, a runtime's into its settings.

    Settings are merged: what is not ours stays, a copy of the file as it was is kept beside it, and a file that is not
    understood is refused.
    """
    if (check and remove) or (plugin and (check or remove or mcp or project or user)):
        raise UsageError("--check, --uninstall and --plugin exclude each other")
    if kind == "pre-receive":
        from wire.cli import hosting

        if plugin or mcp or project or user:
            raise UsageError("--plugin, --mcp, --project and --user are for the hooks of an agent runtime")
        hosting.pre_receive(repo, branch, trust, script=script, check=check, remove=remove, as_json=as_json)
        return
    if branch or trust or script or repo:
        raise UsageError("--repo, --branch, --trust and --script are for the pre-receive hook of a host")
    if kind == "git":
        _git(ctx, check=check, remove=remove, plain=not (plugin or mcp or project or user), as_json=as_json)
        return
    if plugin:
        _write_plugin(kind, plugin, as_json)
        return
    from wire.hooks import installer, registration

    runtime, scope = _runtime(kind), _scope(ctx, project, user)
    act = installer.look if check else installer.uninstall if remove else installer.install
    if mcp and not (check or remove):
        registration.free(kind, scope)  # what it refuses, it refuses before anything was changed
    report = act(runtime, scope)
    if remove:
        listed = _unlisted(kind, scope)
    else:
        listed = (registration.look if check else registration.install)(kind, scope) if mcp else None
    wanted = installer.State.MISSING if remove else installer.State.INSTALLED
    _tell_installed(runtime, report, as_json, wanted, listed)


@hooks.command()
@click.argument("kind", type=_KIND)
@_scoped
@for_a_wire
def uninstall(ctx: click.Context, kind: str, project: str | None, user: bool, repo: str | None, as_json: bool) -> None:
    """Take out what an install put in, and nothing else."""
    if kind == "pre-receive":
        from wire.cli import hosting

        if project or user:
            raise UsageError("--project and --user are for the hooks of an agent runtime")
        hosting.pre_receive(repo, None, None, script=False, check=False, remove=True, as_json=as_json)
        return
    if repo:
        raise UsageError("--repo is for the pre-receive hook of a host")
    if kind == "git":
        _git(ctx, check=False, remove=True, plain=not (project or user), as_json=as_json)
        return
    from wire.hooks import installer

    runtime, scope = _runtime(kind), _scope(ctx, project, user)
    report = installer.uninstall(runtime, scope)
    _tell_installed(runtime, report, as_json, installer.State.MISSING, _unlisted(kind, scope))


def _unlisted(kind: str, scope: "Scope") -> "Installed | None":
    """Take `wire mcp` out of a runtime's list of tool servers; None where the runtime has no such list."""
    from wire.hooks import registration

    return registration.uninstall(kind, scope) if kind in registration.RUNTIMES else None


def _git(ctx: click.Context, *, check: bool, remove: bool, plain: bool, as_json: bool) -> None:
    from wire.hooks import githook

    if not plain:
        raise UsageError("--project, --user and --plugin are for the hooks of an agent runtime, not for git's")
    here = here_of(ctx)
    if remove:
        path = githook.uninstall(here.settings, here.config)
        if as_json:
            say_json({"path": path, "changed": path is not None})
        else:
            say("there is no hook" if path is None else f"removed {path}")
        return
    _tell((githook.look if check else githook.install)(here.settings, here.config), as_json)


def _runtime(name: str) -> "Runtime":
    runtime = find(name)
    assert runtime is not None  # noqa: S101  # click has checked the name
    return runtime


def _scope(ctx: click.Context, project: str | None, user: bool) -> "Scope":
    from wire.hooks.installer import Scope

    if project and user:
        raise UsageError("--project and --user exclude each other")
    return Scope(settings_of(ctx), project)


def _write_plugin(kind: str, folder: str, as_json: bool) -> None:
    from wire.hooks import plugin

    if kind != "claude-code":
        raise UsageError(f"there is no plugin folder for {kind}", next_step=f"wire hooks install {kind}")
    written = plugin.write(folder)
    if as_json:
        say_json({"runtime": kind, "written": written})
        return
    for path in written:
        say(path)
    say(f"use it with: claude --plugin-dir {folder}")


def _tell_installed(
    runtime: "Runtime", report: "Installed", as_json: bool, wanted: "State", listed: "Installed | None"
) -> None:
    good = report.state is wanted
    # What somebody else put into the list under our name is none of ours to take out.
    listed_well = listed is None or listed.state == wanted or (wanted == "missing" and listed.state == "foreign")
    next_step = None if good and listed_well else report.again + ("" if listed_well else " --mcp")
    if as_json:
        told = {**report._asdict(), "state": str(report.state), "next_step": next_step}
        if listed is not None:
            told["mcp"] = {"path": listed.path, "state": str(listed.state), "changed": listed.changed}
        say_json(told)
        flush()
        leave(0 if good and listed_well else FAILED)
    if not good:
        why = f": {report.why}" if report.why else ""
        raise WireError(
            f"hooks of {runtime.title} {report.state} in {report.path}{why}",
            reason=f"hooks-{report.state}",
            next_step=next_step,
        )
    did = "" if report.changed else ", nothing to change"
    stands = "taken out of" if report.changed and wanted == "missing" else f"{report.state} in"
    say(f"hooks of {runtime.title} {stands} {report.path}{did}")
    if report.changed and report.backup:
        say(f"as it was before: {report.backup}")
    if report.changed and report.state == "installed":
        say(f"if they do not fire: {runtime.silent}")
        import shutil  # not at the top: a look-up of hooks needs nothing of it

        if shutil.which("wire") is None:
            warn("there is no `wire` on PATH here; the runtime has to find one, or its hooks fail")
    if listed is not None and not listed_well:
        why = f": {listed.why}" if listed.why else ""
        raise WireError(
            f"`wire mcp` is {listed.state} in {listed.path}{why}", reason=f"mcp-{listed.state}", next_step=next_step
        )
    if listed is not None and (wanted == "installed" or listed.changed):
        say(f"`wire mcp` {listed.state} in {listed.path}" + ("" if listed.changed else ", nothing to change"))


@hooks.command()
@for_a_wire
def status(ctx: click.Context, as_json: bool) -> None:
    """Say whether git runs wire's hook in the clone; exit 1 where it does not."""
    from wire.hooks import githook

    here = here_of(ctx)
    _tell(githook.look(here.settings, here.config), as_json)


@hooks.command()
@click.argument("hook", type=click.Choice(["pre-commit", "pre-receive"]))
@click.option("--branch", metavar="NAME", help="pre-receive: the wire's branch.")
@click.option("--trust", metavar="CHECKPOINT", help="pre-receive: the only wire that is taken.")
@click.option("--joined", is_flag=True, help="Refuse to judge anywhere but in the clone of a wire of this machine.")
@json_option
@click.pass_context
def run(ctx: click.Context, hook: str, branch: str | None, trust: str | None, joined: bool, as_json: bool) -> None:
    """Judge what is staged in the work tree of the current folder, or (pre-receive) the push that git hands over.

    For git, and for the pre-commit framework.
    """
    if hook == "pre-receive":
        from wire.cli import hosting

        if joined:
            raise UsageError("--joined is for the pre-commit hook")
        hosting.judge(branch, trust, as_json=as_json)
    if branch or trust:
        raise UsageError("--branch and --trust are for the pre-receive hook")
    from wire.hooks import precommit

    outcome = precommit.run(settings_of(ctx), os.getcwd(), joined=joined)
    if as_json:
        say_json(
            {
                "accepted": not outcome.problems,
                "changes": outcome.changes,
                "problems": [one.as_json() for one in outcome.problems],
                "notes": outcome.notes,
            }
        )
        leave(IntegrityError.exit_status if outcome.problems else 0)
    for note in outcome.notes:
        warn(safe(note))
    for problem in outcome.problems[:SHOWN]:
        warn(safe(problem.text))
    if outcome.problems:
        more = len(outcome.problems) - SHOWN
        raise IntegrityError(
            f"refused: {len(outcome.problems)} problem(s) in what is staged"
            + (f", {more} of them not shown" if more > 0 else ""),
            reason="staged-refused",
            next_step="git restore --staged FILE takes a file out of the commit; messages are sent with wire send",
        )


def _tell(report: "Report", as_json: bool) -> None:
    if as_json:
        say_json(report._asdict())
        flush()
        leave(0 if report.active else FAILED)
    if not report.active:
        raise WireError(f"hook inactive because {report.why}", reason="hook-inactive", next_step=report.next_step)
    say(f"hook active: {report.path}")
