"""hooks: verification before a commit."""

import os

import click

from wire.cli.common import choosing, here_of, json_option, settings_of
from wire.cli.console import flush, leave, safe, say, say_json, warn
from wire.errors import FAILED, IntegrityError, WireError
from wire.hooks.githook import Report

SHOWN = 20
_KIND = click.Choice(["git"])


@click.group()
def hooks() -> None:
    """Hooks that verify before something is committed."""


@hooks.command()
@click.argument("kind", type=_KIND)
@click.option("--check", is_flag=True, help="Change nothing; only say how it stands.")
@json_option
@choosing
@click.pass_context
def install(ctx: click.Context, kind: str, check: bool, as_json: bool) -> None:
    """Put the pre-commit hook into the wire's clone; exit 1 where git does not run it."""
    from wire.hooks import githook

    here = here_of(ctx)
    report = (githook.look if check else githook.install)(here.settings, here.config)
    _tell(report, as_json)


@hooks.command()
@click.argument("kind", type=_KIND)
@choosing
@click.pass_context
def uninstall(ctx: click.Context, kind: str) -> None:
    """Remove the pre-commit hook from the wire's clone."""
    from wire.hooks import githook

    here = here_of(ctx)
    path = githook.uninstall(here.settings, here.config)
    say("there is no hook" if path is None else f"removed {path}")


@hooks.command()
@json_option
@choosing
@click.pass_context
def status(ctx: click.Context, as_json: bool) -> None:
    """Say whether git runs wire's hook in the clone; exit 1 where it does not."""
    from wire.hooks import githook

    here = here_of(ctx)
    _tell(githook.look(here.settings, here.config), as_json)


@hooks.command()
@click.argument("hook", type=click.Choice(["pre-commit"]))
@click.option("--joined", is_flag=True, help="Refuse to judge anywhere but in the clone of a wire of this machine.")
@json_option
@click.pass_context
def run(ctx: click.Context, hook: str, joined: bool, as_json: bool) -> None:
    """Judge what is staged in the work tree of the current folder; for git, and for the pre-commit framework."""
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


def _tell(report: Report, as_json: bool) -> None:
    if as_json:
        say_json(
            {
                "path": report.path,
                "owner": report.owner,
                "active": report.active,
                "why": report.why,
                "next_step": report.next_step,
            }
        )
        flush()
        leave(0 if report.active else FAILED)
    if not report.active:
        raise WireError(f"hook inactive because {report.why}", reason="hook-inactive", next_step=report.next_step)
    say(f"hook active: {report.path}")
