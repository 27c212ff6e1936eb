"""trust pending, sign, propose: changes of the trust that several people sign."""

import sys
from typing import TYPE_CHECKING, Any

import click

from wire.cli.common import asking, for_a_wire, wire_of
from wire.cli.console import flush, leave, safe, say, say_json, warn
from wire.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from wire.keys.differences import Difference
    from wire.verbs.proposing import Decided, Draft, Pending


def proposal_json(one: "Pending") -> dict[str, Any]:
    """Return a proposal as programs see it."""
    return {
        "id": one.id,
        "hash": one.hash,
        "version": one.version,
        "base": one.base,
        "by": one.by,
        "note": one.note,
        "created": one.created,
        "expires": one.expires,
        "state": one.state,
        "why": one.why,
        "signed": list(one.signed),
        "lacking": {"in_force": one.lacking[0], "new": one.lacking[1]},
        "mine": one.mine,
        "changes": changes_json(one.changes),
        "warnings": list(one.warnings),
    }


def changes_json(changes: "Sequence[Difference]") -> list[dict[str, str]]:
    """Return changes as programs see them."""
    return [{"change": one.kind, "name": one.name, "text": one.text} for one in changes]


def with_proposal(shown: dict[str, Any], proposal: "Pending | None") -> dict[str, Any]:
    """Return a command's answer for programs, with the proposal that it came to, if it did."""
    return shown if proposal is None else {**shown, "proposal": proposal_json(proposal)}


def say_proposed(one: "Pending") -> None:
    """Say that a change waits for other people."""
    say(f"proposed as {one.id}, until {one.expires}; signed by {len(one.signed)}, and {one.missing} more must sign:")
    say(f"  wire trust sign {one.id}")


@click.command("pending")
@for_a_wire
def pending(ctx: click.Context, as_json: bool) -> None:
    """List the changes of the trust that wait for signatures, and what each would do."""
    from wire.cli.forking import fork_json, say_fork
    from wire.governing import Trust

    trust = Trust(wire_of(ctx).here)
    listed = trust.pending()
    forks = [one for one in trust.forks() if not one.decided]
    for two in forks:
        if as_json:
            say_json({"fork": fork_json(two)})
        else:
            say_fork(two)
    for one in listed.proposals:
        if as_json:
            say_json(proposal_json(one))
        else:
            _show(one)
    if listed.signed and listed.signed not in [one.hash for one in listed.proposals]:
        told = f"this machine's root signed {listed.signed} for the next version, and the remote does not have it"
        warn(f"{told}; `wire trust propose --again` offers it once more")
    if listed.failure is not None:
        warn(f"this is what was known before: {safe(listed.failure.message)}")
        flush()
        leave(listed.failure.exit_status)
    if not listed.proposals and not forks and not as_json:
        say("nothing waits for signatures")


@click.command("sign")
@click.argument("proposal", required=False, metavar="[ID]")
@click.option("--yes", is_flag=True, help="Do not ask; the ID has to be named.")
@for_a_wire
def sign(ctx: click.Context, proposal: str | None, yes: bool, as_json: bool) -> None:
    """Sign a change of the trust with this machine's root key; who signs last puts it in force.

    For each version a root signs one document and never another: look at what it changes first.
    """
    from wire.governing import Trust

    if yes and proposal is None:
        raise UsageError("with --yes, say which one: nobody has looked at it", reason="usage")

    program = "a program signs with an ID and --yes"
    confirm = asking(_show, "Sign it?", yes=yes, as_json=as_json, program=program)
    decided(Trust(wire_of(ctx).here).sign(proposal, confirm=confirm), as_json=as_json)


@click.command("propose")
@click.argument("document", required=False, type=click.Path(dir_okay=False), metavar="[FILE]")
@click.option("--again", is_flag=True, help="Offer once more what this machine's root signed for the next version.")
@click.option("--note", default="", help="What it is for, for those who are to sign.")
@click.option("--ttl", default="14d", show_default=True, metavar="TIME", help="How long it is open: 24h, 14d.")
@click.option("--beside", is_flag=True, help="Also while another proposal is open, of which one will be in vain.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@for_a_wire
def propose(
    ctx: click.Context,
    document: str | None,
    again: bool,
    note: str,
    ttl: str,
    beside: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Propose an edited copy of the trust document as its next version: several changes at once, or the policy.

    FILE is a copy of _coordination/trust.json with changes, or - for standard input; its number and what it follows are
    filled in. Where one root is enough, it is in force at once. All other commands that change the trust propose by
    themselves where one is not.
    """
    from wire.governing import Trust

    trust, seconds = Trust(wire_of(ctx).here), _seconds(ttl)
    if again == (document is not None):
        raise UsageError("name either a FILE or --again", reason="usage")
    if document is None:
        decided(trust.propose_again(ttl=seconds), as_json=as_json)
        return

    confirm = agreed(yes=yes, as_json=as_json or document == "-")
    done = trust.propose(_read(document), note=note, ttl=seconds, beside=beside, confirm=confirm)
    decided(done, as_json=as_json)


def agreed(*, yes: bool, as_json: bool) -> "Callable[[Draft], bool]":
    """Return what shows a change of the trust to a person, and asks."""

    def show(draft: "Draft") -> None:
        _say_changes(draft.changes, draft.warnings)

    return asking(show, "Change it?", yes=yes, as_json=as_json, program="a program changes the trust with --yes")


def decided(done: "Decided", *, as_json: bool) -> None:
    """Print what signing or changing came to."""
    if as_json:
        shown = {"checkpoint": done.checkpoint, "changes": changes_json(done.changes)}
        say_json(with_proposal(shown, done.proposal))
    elif done.proposal is None:
        say(f"in force; checkpoint {done.checkpoint}")
    else:
        say_proposed(done.proposal)


def _show(one: "Pending") -> None:
    by, note = safe(one.by), f": {safe(one.note)}" if one.note else ""
    say(f"{one.id}  version {one.version}, offered by {by}{note}")
    if one.state != "open":
        say(f"  {one.state}{': ' + safe(one.why) if one.why else ''}")
    _say_changes(one.changes, one.warnings)
    for signer in one.signed:
        say(f"  signed by {safe(signer)}")
    if one.state == "open":
        mine = "; this machine's root signed it" if one.mine else ""
        say(f"  {one.missing} more must sign, until {one.expires}{mine}")


def _say_changes(changes: "Sequence[Difference]", warnings: "Sequence[str]") -> None:
    for change in changes:
        say(f"  - {safe(change.text)}")
    for warning in warnings:
        warn(safe(warning))


def _seconds(text: str) -> float:
    import time

    from wire.verbs.order import seconds_of, until_text

    now = time.time()
    return seconds_of(until_text(text, now)) - now


def _read(path: str) -> bytes:
    from wire.keys.trust import DOCUMENT_MAX

    try:
        if path == "-":
            return sys.stdin.buffer.read(DOCUMENT_MAX + 1)
        with open(path, "rb") as file:
            return file.read(DOCUMENT_MAX + 1)
    except OSError as error:
        raise UsageError(f"{path[:200]} cannot be read: {error.strerror}", reason="bad-document") from error
