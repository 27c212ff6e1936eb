"""remote."""

import click

from wire.cli.common import for_a_wire, wire_of
from wire.cli.console import flush, leave, safe, say, say_json, warn
from wire.cli.groups import Group

_KINDS = ("bare", "github", "gitlab", "gitea", "other")


@click.group(cls=Group)
def remote() -> None:
    """The repository that carries the wire."""


@remote.command()
@click.option("--kind", type=click.Choice(_KINDS), help="What host it is on, where its name does not tell.")
@for_a_wire
def check(ctx: click.Context, kind: str | None, as_json: bool) -> None:
    """Say what the remote is known to enforce, and how the rest is switched on; nothing is tried or changed.

    No machine relies on it: each verifies what it fetches. Exit status 6 where the remote could not be reached.
    """
    from wire.verbs.hosting import REFUSES, TITLES

    found = wire_of(ctx).check_remote(kind)
    status = found.failure.exit_status if found.failure is not None else 0
    if as_json:
        say_json(
            {
                "remote": found.remote,
                "kind": found.kind,
                "rules": [one._asdict() for one in found.rules],
                "failure": found.failure and found.failure.as_json(),
            }
        )
        flush()
        leave(status)
    say(safe(f"{found.remote}: {TITLES[found.kind]}"))
    for one in found.rules:
        say(safe(f"{one.enforced:8}{REFUSES[one.name]}: {one.how}"))
        if one.switch is not None:
            say(safe(f"        switch on: {one.switch}"))
    if found.failure is not None:
        warn(safe(f"it could not be reached: {found.failure.message}"))
        flush()
        leave(status)
