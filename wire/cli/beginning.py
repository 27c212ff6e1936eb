"""init, join."""

import click

from wire.cli.common import json_option, settings_of
from wire.cli.console import say, say_json


@click.command()
@click.argument("remote")
@click.option("--as", "agent", required=True, metavar="NAME", help="The name of this machine's first agent.")
@click.option("--wire", "name", metavar="NAME", help="The wire's local name; from the remote's when omitted.")
@click.option("--branch", metavar="NAME", help="Instead of the default branch of an empty remote, or `wire`.")
@click.option("--role", type=click.Choice(["agent", "human"]), default="agent", show_default=True)
@click.option(
    "--object-format",
    type=click.Choice(["sha1", "sha256"]),
    help="Of an empty remote that was made for other than git's usual sha1; it is found by itself on a local path.",
)
@json_option
@click.pass_context
def init(
    ctx: click.Context,
    remote: str,
    agent: str,
    name: str | None,
    branch: str | None,
    role: str,
    object_format: str | None,
    as_json: bool,
) -> None:
    """Begin a wire on a git remote, and hold its root key here."""
    from wire import setup
    from wire.gitio import told_url

    made = setup.init(
        settings_of(ctx), remote, agent=agent, name=name, role=role, branch=branch, object_format=object_format
    )
    line = f"wire join {told_url(made.remote)} --as NAME --trust {made.checkpoint}"
    if as_json:
        say_json(
            {
                "wire": made.wire,
                "name": made.name,
                "branch": made.branch,
                "agent": made.agent,
                "checkpoint": made.checkpoint,
                "fingerprint": made.fingerprint,
                "join": line,
            }
        )
        return
    say(f"wire {made.name} ({made.wire}) on branch {made.branch}; this machine is {made.agent}")
    say(f"checkpoint {made.checkpoint}")
    say("on the other machine, with a name of its own:")
    say(f"  {line}")
    say("then, here:  wire trust requests   and   wire trust approve NAME")


@click.command()
@click.argument("remote")
@click.option("--as", "agent", required=True, metavar="NAME", help="The name that this machine's agent asks for.")
@click.option(
    "--trust", "checkpoint", required=True, metavar="CHECKPOINT", help="1:SHA256:…, from a person of the wire."
)
@click.option("--wire", "name", metavar="NAME", help="The wire's local name; from the remote's when omitted.")
@click.option("--branch", metavar="NAME", help="The wire's branch, where it is not found by itself.")
@click.option("--role", type=click.Choice(["agent", "human"]), default="agent", show_default=True)
@json_option
@click.pass_context
def join(
    ctx: click.Context,
    remote: str,
    agent: str,
    checkpoint: str,
    name: str | None,
    branch: str | None,
    role: str,
    as_json: bool,
) -> None:
    """Follow an existing wire, and ask to write on it."""
    from wire import setup

    joined = setup.join(
        settings_of(ctx), remote, agent=agent, checkpoint=checkpoint, name=name, role=role, branch=branch
    )
    if as_json:
        say_json(
            {
                "wire": joined.wire,
                "name": joined.name,
                "branch": joined.branch,
                "agent": joined.agent,
                "fingerprint": joined.fingerprint,
                "approved": joined.approved,
                "accepted": joined.accepted,
            }
        )
        return
    say(f"wire {joined.name} ({joined.wire}) on branch {joined.branch}; {joined.accepted} messages verified")
    say(f"this machine's agent {joined.agent} has the key {joined.fingerprint}")
    if not joined.approved:
        say("it may send already; its messages wait here until somebody with a root key runs:")
        say(f"  wire trust approve {joined.agent} --fingerprint {joined.fingerprint}")
