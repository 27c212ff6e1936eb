"""daemon."""

import os
import sys

import click

from wire.cli.common import settings_of
from wire.cli.console import leave
from wire.cli.groups import Group


@click.group(cls=Group)
def daemon() -> None:
    """The process that fetches, verifies and pushes by itself."""


@daemon.command("run")
@click.option(
    "--log-level",
    type=click.Choice(("debug", "info", "warning", "error")),
    default="info",
    show_default=True,
    help="What is written to standard error; `debug` has every look.",
)
@click.pass_context
def run(ctx: click.Context, log_level: str) -> None:
    """Serve every wire of this machine until SIGTERM; SIGUSR1 looks now, SIGHUP reads the configuration again."""
    from wire.daemon import service
    from wire.daemon.logs import Log
    from wire.surfacing import beside

    log = Log(sys.stderr.fileno(), level=log_level, journald=_is_journald())
    leave(service.run(settings_of(ctx), log, beside.begin))


def _is_journald() -> bool:
    """Return whether standard error goes to the journal, by what the journal says of itself."""
    device, _, inode = os.environ.get("JOURNAL_STREAM", "").partition(":")
    try:
        status = os.fstat(sys.stderr.fileno())
    except OSError:
        return False
    return (device, inode) == (str(status.st_dev), str(status.st_ino))
