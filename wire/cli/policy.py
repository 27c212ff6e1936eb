"""trust policy: what senders are asked for."""

import click

from wire.cli.common import choosing, json_option, wire_of
from wire.cli.console import say, say_json
from wire.cli.proposing import agreed, decided


@click.command("policy")
@click.option("--encrypt", type=click.Choice(("required", "optional")), help="Whether letters are to be closed.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
@choosing
@click.pass_context
def policy(ctx: click.Context, encrypt: str | None, yes: bool, as_json: bool) -> None:
    """Show what senders are asked for, or change it: a new trust version, or a proposal of one.

    With `--encrypt required` everybody's messages are sealed by themselves, for their recipients alone. It binds those
    who keep to it and decides about no line's validity.
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
        say(f"{name}: {value}")
