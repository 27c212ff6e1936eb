"""trust follow, and how two trust documents with one number are shown."""

from typing import TYPE_CHECKING, Any

import click

from wire.cli.common import asking, for_a_wire, wire_of
from wire.cli.console import safe, say, say_json, warn
from wire.cli.proposing import changes_json

if TYPE_CHECKING:
    from wire.verbs.forking import Fork


def fork_json(one: "Fork") -> dict[str, Any]:
    """Return a fork of the trust as programs see it."""
    return {
        "version": one.version,
        "held": {"checkpoint": one.held, "changes": changes_json(one.held_changes)},
        "other": {"checkpoint": one.other, "changes": changes_json(one.other_changes)},
        "apart": changes_json(one.apart),
        "decided": one.decided,
    }


def say_fork(one: "Fork") -> None:
    """Print two documents with one number."""
    say(f"two documents claim to be version {one.version} of the trust, both validly signed")
    for what, checkpoint, changes in (
        ("in force here", one.held, one.held_changes),
        ("the other", one.other, one.other_changes),
    ):
        say(f"  {what}: {checkpoint}")
        for change in changes:
            say(f"    - {safe(change.text)}")
    if one.decided:
        say("  it was decided to follow the one in force here")
    else:
        say("  when the wire's people have agreed on one, by another way than the wire: wire trust follow CHECKPOINT")


@click.command("follow")
@click.argument("checkpoint")
@click.option("--yes", is_flag=True, help="Do not ask.")
@for_a_wire
def follow(ctx: click.Context, checkpoint: str, yes: bool, as_json: bool) -> None:
    """Decide which of two trust documents with one number this machine follows, by its whole checkpoint.

    All machines of a wire have to follow the same one: agree on it by another way than the wire. Messages of agents
    that it does not know count no longer. Where the remote shows the other one, it is put right.
    """
    from wire.governing import Trust

    def show(one: "Fork") -> None:
        say_fork(one)
        for change in one.apart if checkpoint == one.other else ():
            warn(f"following the other one: {safe(change.text)}")

    program = "a program decides with --yes"
    confirm = asking(show, f"Follow {checkpoint}?", yes=yes, as_json=as_json, program=program)
    done = Trust(wire_of(ctx).here).follow(checkpoint, confirm=confirm)
    if as_json:
        shown = {"checkpoint": done.checkpoint, "switched": done.switched, "put_right": done.put_right}
        say_json({**shown, "cut": done.cut})
        return
    say(f"{'now' if done.switched else 'still'} in force: {done.checkpoint}")
    if done.cut:
        say(f"{done.cut} message(s) count no longer")
    if done.put_right:
        say("the remote showed the other one, and shows this one now; the others run the same command")
