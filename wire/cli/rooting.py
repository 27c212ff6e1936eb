"""trust root, keys root: the keys that sign the trust, and how many must."""

from typing import TYPE_CHECKING

import click

from wire.cli.common import for_a_wire, wire_of
from wire.cli.console import say, say_json, warn
from wire.cli.groups import Group
from wire.cli.proposing import agreed, decided

if TYPE_CHECKING:
    from wire.governing import Trust

_YES = click.option("--yes", is_flag=True, help="Do not ask.")


def _trust(ctx: click.Context) -> "Trust":
    from wire.governing import Trust

    return Trust(wire_of(ctx).here)


@click.group(cls=Group)
def root() -> None:
    """The root keys, which sign the trust, and how many must."""


@root.command("add")
@click.argument("name")
@click.argument("line", metavar="LINE")
@_YES
@for_a_wire
def add(ctx: click.Context, name: str, line: str, yes: bool, as_json: bool) -> None:
    """Add a root, whose key was made with `wire keys root new NAME` on its holder's machine; LINE is what that printed.

    Compare the fingerprint with its holder, by another way than the wire. For a key that is a root already it sets the
    name by which people call it.
    """
    done = _trust(ctx).add_root(name, line, confirm=agreed(yes=yes, as_json=as_json))
    decided(done, as_json=as_json)


@root.command("remove")
@click.argument("wanted", metavar="NAME|FINGERPRINT")
@click.option("--beside", is_flag=True, help="Also while another proposal is open, such as one of that root's.")
@_YES
@for_a_wire
def remove(ctx: click.Context, wanted: str, beside: bool, yes: bool, as_json: bool) -> None:
    """Take a root off; never below the number that must sign."""
    done = _trust(ctx).remove_root(wanted, beside=beside, confirm=agreed(yes=yes, as_json=as_json))
    decided(done, as_json=as_json)


@root.command("threshold")
@click.argument("count", type=click.IntRange(min=1))
@_YES
@for_a_wire
def threshold(ctx: click.Context, count: int, yes: bool, as_json: bool) -> None:
    """Set how many roots must sign a change of the trust."""
    decided(_trust(ctx).set_threshold(count, confirm=agreed(yes=yes, as_json=as_json)), as_json=as_json)


@click.group("root", cls=Group)
def key_root() -> None:
    """This machine's root key."""


@key_root.command("new")
@click.argument("name")
@for_a_wire
def new(ctx: click.Context, name: str, as_json: bool) -> None:
    """Make a root key on this machine, and print the line that somebody who is a root needs to add it.

    The private key never leaves this machine, so that nobody can lose or copy it on the way. Run again, it prints the
    line of the same key.
    """
    made = _trust(ctx).new_root_key(name)
    if as_json:
        say_json(made._asdict())
        return
    if made.again:
        warn(f"this machine has a root key already{', which counts' if made.counts else ''}; nothing new was made")
    say(f"root key {made.fingerprint}")
    say("on the machine of somebody who is a root:")
    say(f"  wire trust root add {name} {made.line}")
