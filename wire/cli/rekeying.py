"""keys rotate, keys reissue, trust revoke: the commands that change keys."""

from typing import TYPE_CHECKING

import click

from wire.cli.common import asking, for_a_wire, wire_of
from wire.cli.console import flush, leave, safe, say, say_json, warn
from wire.cli.proposing import say_proposed, with_proposal
from wire.errors import UsageError

if TYPE_CHECKING:
    from wire.verbs.reissuing import Cut
    from wire.verbs.revoking import Survey

_SHOWN = 100


@click.command("rotate")
@for_a_wire
def rotate(ctx: click.Context, as_json: bool) -> None:
    """Give an agent of this machine a fresh key; sending goes on meanwhile, also offline.

    The old key is closed at the last line that it signed, and stays beside the new one. Where this machine holds the
    root key, all is done at once; elsewhere a request is published, and `wire trust approve` puts it into the trust.
    """
    from wire.keys.fingerprints import words

    done = wire_of(ctx).rotate_key()
    if as_json:
        named = {"fingerprint": done.fingerprint, "words": words(done.fingerprint)}
        shown = {"name": done.name, **named, "former": done.former, "state": done.state}
        told = {"failure": done.failure.reason} if done.failure is not None else {}
        say_json({**shown, "checkpoint": done.checkpoint, **told})
    elif done.state == "active":
        say(f"{done.name} signs with {done.fingerprint} from now on; checkpoint {done.checkpoint}")
    else:
        say(f"{done.name} signs with {done.fingerprint} from now on")
        say("what it sends waits here until the trust names that key; who holds a root key runs:")
        say(f"  wire trust approve {done.name} {done.fingerprint}")
        say(f"or with the words that stand for it: {words(done.fingerprint)}")
    if done.failure is not None:
        warn(f"nobody else knows of it yet, this goes on with the next look: {safe(done.failure.message)}")
        flush()
        leave(done.failure.exit_status)


@click.command("reissue")
@click.argument("ids", nargs=-1, metavar="[ID]…")
@click.option("--all", "everything", is_flag=True, help="All of them but those that came from the remote.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@for_a_wire
def reissue(ctx: click.Context, ids: tuple[str, ...], everything: bool, yes: bool, as_json: bool) -> None:
    """List what an agent had sent and lost with a revoked key, or send it again, word for word.

    Without an ID or --all it only lists. Look at each line: with a stolen key some may be the thief's.
    """
    wire = wire_of(ctx)
    cut = wire.cut_lines()
    wanted = list(ids) or [one.id for one in cut if everything and not one.foreign]
    if not wanted:
        for one in cut:
            if as_json:
                say_json({"id": one.id, "ts": one.line.ts, "type": one.line.type, "foreign": one.foreign})
            else:
                _list_cut(one)
        if not cut and not as_json:
            say("nothing was lost with a key, or all of it was sent again")
        return
    for one in cut if not as_json else ():
        if one.id in wanted:
            _list_cut(one)
    if not yes:
        if as_json:
            raise UsageError("a program sends again with --yes", reason="usage")
        if not click.confirm(f"Send {len(wanted)} message(s) again?", err=True):
            raise UsageError("nothing was sent", reason="not-confirmed")
    for done in wire.reissue(wanted):
        if as_json:
            say_json({"old": done.old, "id": done.id})
        else:
            say(f"{done.old} is now {done.id}")


@click.command("revoke")
@click.argument("name")
@click.argument("key", required=False)
@click.option("--reason", type=click.Choice(["lost", "stolen", "left"]), required=True, help="What happened.")
@click.option("--at", multiple=True, metavar="ID", help="The last line of a channel that counts, as mac/spark/42.")
@click.option("--beside", is_flag=True, help="Also while another proposal is open, of which one will be in vain.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@for_a_wire
def revoke(
    ctx: click.Context,
    name: str,
    key: str | None,
    reason: str,
    at: tuple[str, ...],
    beside: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Let a key of NAME count up to a line of each channel, and for nothing behind it, on every machine.

    The lines proposed are the last that this machine has. Run it again with --at to move one. With --reason left the
    agent is taken off the wire, for good.
    """
    program = "a program revokes with --yes"
    confirm = asking(_show_survey, "Revoke it?", yes=yes, as_json=as_json, program=program)
    done = wire_of(ctx).revoke_key(name, key, reason=reason, at=at, beside=beside, confirm=confirm)
    if as_json:
        rows = [
            {
                "channel": row.channel,
                "last": row.last,
                "acked": row.acked.seq if row.acked is not None else 0,
                "keep": row.keep,
                "head": row.head,
                "cut": row.cut,
                "warning": row.warning,
            }
            for row in done.survey.rows
        ]
        shown = {"name": name, "key": done.survey.key_id, "checkpoint": done.checkpoint, "channels": rows}
        say_json(with_proposal(shown, done.proposal))
        return
    if done.proposal is not None:
        say_proposed(done.proposal)
        return
    cut = sum(row.cut for row in done.survey.rows)
    say(f"the key {done.survey.fingerprint} of {name} is revoked; {cut} message(s) count no longer")
    say(f"checkpoint {done.checkpoint}")
    if not done.survey.removes:
        say(f"{name} gets another key by `wire keys rotate` on its machine, or by `wire join` on a new one")


def _list_cut(one: "Cut") -> None:
    from wire.protocol.line import LineError, content
    from wire.verbs.render import body_text, quoted

    try:
        members = content(one.line)
        text = "(sealed)" if "enc" in members else quoted(body_text(members, compact=True), _SHOWN)
    except LineError:
        text = "(cannot be read)"
    whose = ", came from the remote" if one.foreign else ""
    say(f"{one.id}  {one.line.ts}  {one.line.type}{whose}  {text}")


def _show_survey(seen: "Survey") -> None:
    say(f"the key {seen.fingerprint} of {seen.name} ({seen.status}) will count up to:")
    for row in seen.rows:
        acked = f"{row.acked.by} has {row.acked.seq}" if row.acked is not None else "nobody says what it has"
        cut = f"; {row.cut} message(s) are cut" if row.cut else ""
        say(f"  {row.channel}/{row.keep}  (here: {row.last}, {acked}{cut})")
    if not seen.rows:
        say("  nothing: it has sent no line")
    for warning in seen.warnings:
        warn(warning)
