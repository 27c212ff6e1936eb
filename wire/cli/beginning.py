"""init, invite, join."""

import sys
import time
from typing import TYPE_CHECKING

import click

from wire.cli.common import for_a_wire, json_option, settings_of, wire_of
from wire.cli.console import flush, safe, say, say_json, warn
from wire.errors import UsageError, WireError
from wire.store.files import utc_text
from wire.store.paths import Settings

if TYPE_CHECKING:
    from wire.keys.invitations import Invitation
    from wire.verbs.operating import Approval

_TTL_MOST = 31 * 86_400.0


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
    say("to let another machine in, which prints the one line to run there:")
    say("  wire invite NAME")
    say("or, without a code, with a name of its own, on the other machine:")
    say(f"  {line}")
    say("and then, here:  wire trust requests   and   wire trust approve NAME")
    _say_what_is_next(settings_of(ctx), made.name)


@click.command()
@click.argument("name")
@click.option(
    "--ttl", default="24h", show_default=True, metavar="TIME", help="How long the code is good: 30m, 24h, 3d."
)
@click.option("--role", type=click.Choice(["agent", "human"]), default="agent", show_default=True)
@click.option("--no-wait", is_flag=True, help="Print the code and end; the same command later goes on.")
@for_a_wire
def invite(ctx: click.Context, name: str, ttl: str, role: str, no_wait: bool, as_json: bool) -> None:
    """Print a code with which one machine joins as NAME, and enroll it when it comes.

    Whoever has the code can become NAME: give it to one person, by another way than the wire. Ctrl-C is safe: the same
    command prints the same code again and goes on waiting.
    """
    from wire.verbs import inviting
    from wire.verbs.order import seconds_of, until_text

    wire, now = wire_of(ctx), time.time()
    left = seconds_of(until_text(ttl, now)) - now
    if not 0 < left < _TTL_MOST:
        raise UsageError(f"--ttl {ttl!r} is no time to come within a month; 30m, 24h and 3d are", reason="usage")
    # Who asks again may find that the newcomer has come meanwhile.
    done = wire.admit(name) if wire.invited(name) else None
    if done is not None:
        _enrolled(done, as_json=as_json)
        return
    invited = wire.invite(name, role=role, ttl=left)
    if as_json:
        shown = {"name": name, "code": invited.code, "expires": utc_text(invited.expires), "again": invited.again}
        say_json(shown | ({"replaced": True} if invited.replaced else {}))
    else:
        for known in invited.alike:
            warn(f"the name {name!r} looks like {known!r}, which is on this wire")
        if invited.replaced:
            warn(f"the code that was given out for {name!r} before is worthless now; this one takes its place")
        say(f"on the machine of {name}, before {utc_text(invited.expires)}:")
        say(f"  wire join {invited.code}")
    flush()
    if no_wait:
        return
    if not as_json:
        warn(f"waiting for {name}; Ctrl-C is safe, `wire invite {name}` goes on")
    _enrolled(inviting.wait(wire.here, invited), as_json=as_json)


def _enrolled(done: "Approval", *, as_json: bool) -> None:
    from wire.cli.proposing import say_proposed, with_proposal

    if as_json:
        shown = {"name": done.name, "fingerprint": done.fingerprint, "checkpoint": done.checkpoint}
        say_json(with_proposal(shown, done.proposal))
    elif done.proposal is not None:
        say(f"{done.name} came with the code; its key is {done.fingerprint}")
        say_proposed(done.proposal)
    else:
        say(f"{done.name} is enrolled with {done.fingerprint}; checkpoint {done.checkpoint}")


@click.command()
@click.argument("remote", metavar="CODE|REMOTE")
@click.option("--as", "agent", metavar="NAME", help="The name that this machine's agent asks for.")
@click.option("--trust", "checkpoint", metavar="CHECKPOINT", help="1:SHA256:…, from a person of the wire.")
@click.option("--wire", "name", metavar="NAME", help="The wire's local name; from the remote's when omitted.")
@click.option("--branch", metavar="NAME", help="The wire's branch, where it is not found by itself.")
@click.option("--role", type=click.Choice(["agent", "human"]), help="What the agent is.  [default: agent]")
@json_option
@click.pass_context
def join(
    ctx: click.Context,
    remote: str,
    agent: str | None,
    checkpoint: str | None,
    name: str | None,
    branch: str | None,
    role: str | None,
    as_json: bool,
) -> None:
    """Follow an existing wire, and ask to write on it.

    With a code of `wire invite` nothing else is needed; `-` reads it from standard input, which other users of this
    machine cannot see. With the URL of a remote, name and checkpoint have to be given.
    """
    from wire import setup
    from wire.keys import invitations
    from wire.keys.fingerprints import words

    code = sys.stdin.read(2 * invitations.CODE_MAX) if remote == "-" else remote
    invited = remote == "-" or invitations.is_code(remote)
    if invited and any((agent, checkpoint, role)):
        raise UsageError("a join code names agent, checkpoint and role itself", reason="usage")
    if not invited and not (agent and checkpoint):
        raise UsageError(
            "joining a remote needs --as NAME and --trust CHECKPOINT; a code of `wire invite` has both",
            reason="usage",
            next_step="wire join --help",
        )
    invitation = _invitation(code) if invited else None
    settings = settings_of(ctx)
    joined = setup.join(
        settings,
        invitation.remote if invitation else remote,
        agent=invitation.name if invitation else str(agent),
        checkpoint=invitation.checkpoint if invitation else str(checkpoint),
        name=name,
        role=invitation.role if invitation else role or "agent",
        branch=branch,
        invitation=invitation,
    )
    hook = _hook(settings, joined.name) if invitation else ""
    if as_json:
        say_json(
            {
                "wire": joined.wire,
                "name": joined.name,
                "branch": joined.branch,
                "agent": joined.agent,
                "fingerprint": joined.fingerprint,
                "words": words(joined.fingerprint),
                "approved": joined.approved,
                "accepted": joined.accepted,
            }
        )
        return
    say(f"wire {joined.name} ({joined.wire}) on branch {joined.branch}; {joined.accepted} messages verified")
    say(f"this machine's agent {joined.agent} has the key {joined.fingerprint}")
    if not invitation:
        say(f"in words: {words(joined.fingerprint)}")
    if hook:
        say(hook)
    if joined.approved:
        pass
    elif invitation:
        say("it may send already; its messages go out by themselves once the inviter's machine has enrolled it")
    else:
        say("it may send already; its messages wait here until somebody with a root key runs:")
        say(f"  wire trust approve {joined.agent} {joined.fingerprint}")
        say("where the fingerprint can as well be the ten words; read one of them to that person")
    _say_what_is_next(settings, joined.name)


def _say_what_is_next(settings: Settings, name: str) -> None:
    from wire.store import config as configs

    say("to keep it going on this machine:  wire service install   or, in a terminal:  wire daemon run")
    if len(configs.load(settings).wires) > 1:
        say(f"this machine is on several wires now; commands want to know which:  --wire {name}  or  WIRE_NAME={name}")


def _invitation(code: str) -> "Invitation":
    from wire.keys import invitations

    try:
        found = invitations.parse(code)
    except ValueError as error:
        raise UsageError(str(error), reason="bad-code", next_step="ask for the line of `wire invite` again") from error
    if found.expires <= time.time():
        raise UsageError(
            f"the join code was good until {utc_text(found.expires)}",
            reason="invitation-expired",
            next_step=f"on the inviter's machine: wire invite {found.name}",
        )
    return found


def _hook(settings: Settings, name: str) -> str:
    """Put the commit hook into the clone, and say what became of it: no reason for joining to fail."""
    from wire.hooks import githook
    from wire.store import config as configs

    try:
        config = configs.choose_wire(configs.load(settings), settings.choosing(wire=name, agent=None))
        report = githook.install(settings, config)
    except WireError as error:
        return f"the commit hook was not installed: {safe(error.message)}"
    return f"the commit hook {report.path} judges what anybody commits in the clone by hand"
