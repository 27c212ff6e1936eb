"""trust policy: what senders are asked for."""

import click

from wire.cli.common import for_a_wire, wire_of
from wire.cli.console import say, say_json
from wire.cli.proposing import agreed, decided

_MEANS = {
    ("encrypt", "optional"): "who sends decides: `wire send --seal` lets only the recipients read a message",
    ("encrypt", "required"): "every message is sealed by itself, so that only its recipients can read it",
}


@click.command("policy")
@click.option("--encrypt", type=click.Choice(("required", "optional")), help="Whether every message is sealed.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@for_a_wire
def policy(ctx: click.Context, encrypt: str | None, yes: bool, as_json: bool) -> None:
    """Show what the wire asks of everybody who sends, or change it: a new trust version, or a proposal of one.

    With `--encrypt required` everybody's messages are sealed by themselves: only their recipients can read them. With
    `optional` who sends decides, by `wire send --seal`. It asks honest senders; an open message stays valid all the
    same.
    """
    from wire.governing import Trust

    trust = Trust(wire_of(ctx).here)
    if encrypt is not None:
        decided(trust.set_encrypt(encrypt, confirm=agreed(yes=yes, as_json=as_json)), as_json=as_json)
        return
    found = trust.policy()
    if as_json:
        say_json(dict(found))
        return
    for name, value in found.items():
        say(f"{name}: {value}" + (f" ({said})" if (said := _MEANS.get((name, value))) else ""))
