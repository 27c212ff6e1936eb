"""trust, keys, group."""

from typing import TYPE_CHECKING, Any

import click

from wire.cli.common import for_a_wire, wire_of
from wire.cli.console import flush, leave, safe, say, say_json, warn
from wire.cli.forking import follow, fork_json, say_fork
from wire.cli.groups import Group
from wire.cli.passphrasing import passphrase
from wire.cli.policy import policy
from wire.cli.proposing import pending, propose, say_proposed, sign, with_proposal
from wire.cli.rekeying import reissue, revoke, rotate
from wire.cli.rooting import key_root, root
from wire.errors import UsageError
from wire.keys.fingerprints import words
from wire.protocol.encoding import fingerprint as print_of
from wire.protocol.encoding import key_id

if TYPE_CHECKING:
    from wire.keys.model import Document


@click.group(cls=Group)
def trust() -> None:
    """Who may sign what on this wire."""


@trust.command("show")
@for_a_wire
def show(ctx: click.Context, as_json: bool) -> None:
    """Show the trust in force: the checkpoint to give to others, agents, keys and groups."""
    from wire.governing import Trust
    from wire.keys.roots import names as root_names

    wire = wire_of(ctx)
    newest, forks = wire.trust().newest, Trust(wire.here).forks()
    agents: dict[str, Any] = {
        agent.name: {
            "role": agent.role,
            "status": agent.status,
            "keys": [{"id": key.id, "status": key.status, **_named(print_of(key.public))} for key in agent.keys],
        }
        for agent in newest.agents.values()
    }
    groups = _groups(newest)
    roots = [print_of(root) for root in newest.roots]
    names = {print_of(root): name for root in newest.roots if (name := root_names(newest).get(key_id(root)))}
    if as_json:
        say_json(
            {
                "checkpoint": newest.checkpoint,
                "version": newest.version,
                "threshold": newest.threshold,
                "roots": roots,
                "root_names": names,
                "agents": agents,
                "groups": groups,
                "forks": [fork_json(one) for one in forks],
            }
        )
        return
    say(f"checkpoint {newest.checkpoint}")
    say(f"roots ({newest.threshold} of {len(roots)} must sign):")
    for one in roots:
        say(f"  {one} {names.get(one, '(without a name)')}")
    for name, about in agents.items():
        say(f"{name} ({about['role']}, {about['status']})")
        for key in about["keys"]:
            say(f"  {key['fingerprint']} {key['status']}")
            if key["status"] == "active":
                say(f"    {key['words']}")
    for name, members in groups.items():
        say(f"group {name}: {', '.join(members)}")
    for two in forks:
        say_fork(two)


@trust.command("requests")
@for_a_wire
def requests(ctx: click.Context, as_json: bool) -> None:
    """List who asks to join, and which agents ask for another key."""
    found = wire_of(ctx).requests()
    for one in found.requests:
        replaces = getattr(one, "replaces", None)
        if as_json:
            shown: dict[str, Any] = {
                "name": one.name,
                "role": one.role,
                **_named(one.fingerprint),
                "created": one.created,
            }
            shown |= {"alike": list(found.alike[one.name])} if one.name in found.alike else {}
            say_json(shown if replaces is None else {**shown, "replaces": replaces})
        else:
            what = "asked" if replaces is None else f"asks to replace key {replaces}, since"
            say(f"{one.name} ({one.role}) {one.fingerprint} {what} {one.created}")
            say(f"  {words(one.fingerprint)}")
            for known in found.alike.get(one.name, ()):
                warn(f"the name {one.name!r} looks like {known!r}, which is on this wire")
    if found.more and as_json:
        say_json({"more": found.more})
    elif found.more:
        say(
            f"{found.more} further request(s) are not looked at; whoever told you a name and a fingerprint is approved "
            "all the same: wire trust approve NAME SHA256:…"
        )
    if found.failure is not None:
        warn(f"this is what was known before: {safe(found.failure.message)}")
        flush()
        leave(found.failure.exit_status)
    if not found.requests and not found.more and not as_json:
        say("nobody asks to join")
    elif found.requests and not as_json:
        say("when its owner has read out the same fingerprint or ten words, by another way than the wire:")
        say("  wire trust approve NAME SHA256:… or WORDS")


@trust.command("approve")
@click.argument("name")
@click.argument("fingerprint", nargs=-1, metavar="[SHA256:…|WORDS…]")
@click.option("--fingerprint", "option", metavar="SHA256:…", help="The same as behind the name.")
@click.option("--beside", is_flag=True, help="Also while another proposal is open, of which one will be in vain.")
@for_a_wire
def approve(
    ctx: click.Context, name: str, fingerprint: tuple[str, ...], option: str | None, beside: bool, as_json: bool
) -> None:
    """Enroll a newcomer, or an agent's next key, by its whole fingerprint or the ten words that stand for it.

    Its owner reads them out, by another way than the wire: `wire keys show` prints them there.
    """
    from wire.keys.alike import alike
    from wire.keys.requests import Request
    from wire.keys.rotations import Rotation

    def confirm(request: Request | Rotation) -> bool:
        if as_json:
            raise UsageError("a program approves by a fingerprint", reason="usage")
        warn(f"{request.name} ({request.role}) has the key {request.fingerprint}")
        return click.confirm(f"{words(request.fingerprint)}. Approve it?", err=True)

    if fingerprint and option is not None:
        raise UsageError("the fingerprint was given twice", reason="usage")
    given = " ".join(fingerprint) or option
    wire = wire_of(ctx)
    newest = wire.trust().newest
    for known in alike(name, (*newest.agents, *newest.groups)):
        warn(f"the name {name!r} looks like {known!r}, which is on this wire")
    done = wire.approve(name, fingerprint=given, beside=beside, confirm=confirm)
    if as_json:
        shown = {"name": done.name, "fingerprint": done.fingerprint, "checkpoint": done.checkpoint}
        say_json(with_proposal(shown, done.proposal))
    elif done.proposal is not None:
        say_proposed(done.proposal)
    else:
        say(f"{done.name} is enrolled with {done.fingerprint}; checkpoint {done.checkpoint}")


for command in (revoke, pending, sign, propose, root, policy, follow):
    trust.add_command(command)


@trust.command("repin")
@click.option("--checkpoint", required=True, metavar="CHECKPOINT", help="From a person of the wire: 3:SHA256:…")
@for_a_wire
def repin(ctx: click.Context, checkpoint: str, as_json: bool) -> None:
    """Rebuild a pin or trust folder that was lost or damaged, from a checkpoint that a person gives.

    It also lets a pin that holds follow to another URL or branch, which the configuration names, where that shows the
    same trust.
    """
    pin = wire_of(ctx).repin(checkpoint)
    lines = sum(end.seq for end in pin.accepted.values())
    if as_json:
        say_json({"checkpoint": pin.checkpoint, "trust": pin.trust_version, "lines": lines})
    else:
        say(f"pinned again by {pin.checkpoint}; trust version {pin.trust_version}, {lines} message(s) verified again")
        say("now run:  wire sync")


@click.group(cls=Group)
def keys() -> None:
    """The keys of this wire on this machine."""


keys.add_command(key_root)
keys.add_command(rotate)
keys.add_command(reissue)
keys.add_command(passphrase)


@keys.command("list")
@for_a_wire
def list_keys(ctx: click.Context, as_json: bool) -> None:
    """List this machine's keys."""
    for kind, name, shown, path, locked in wire_of(ctx).local_keys():
        if as_json:
            say_json({"kind": kind, "name": name, "fingerprint": shown, "path": path, "passphrase": locked})
        else:
            say(f"{kind} {name} {shown} {path}" + (" (passphrase)" if locked else ""))


@keys.command("show")
@click.argument("name", required=False)
@for_a_wire
def show_key(ctx: click.Context, name: str | None, as_json: bool) -> None:
    """Show one of this machine's keys, and whether the wire trusts it."""
    wire = wire_of(ctx)
    wanted = name or wire.here.agent()
    found = [one for one in wire.local_keys() if one[1] == wanted]
    if not found:
        raise UsageError(f"this machine holds no key {wanted[:64]!r}", reason="key-unknown", next_step="wire keys list")
    chain = wire.trust()
    for kind, owner, shown, path, locked in found:
        if kind == "root":
            status = "root" if shown in [print_of(root) for root in chain.newest.roots] else "not a root"
        else:
            held = chain.newest.agents.get(owner)
            keys_held = held.keys if held is not None else ()
            status = next((key.status for key in keys_held if print_of(key.public) == shown), "not approved yet")
        if as_json:
            about = {"kind": kind, "name": owner, **_named(shown), "path": path, "status": status}
            say_json({**about, "passphrase": locked})
        else:
            guarded = ", with a passphrase" if locked else ""
            say(f"{kind} {owner}\n  {shown}\n  {words(shown)}\n  {status}{guarded}\n  {path}")


def _groups(document: "Document") -> dict[str, list[str]]:
    return {group.name: list(group.members) for group in document.groups.values() if group.status == "active"}


def _named(fingerprint: str) -> dict[str, str]:
    return {"fingerprint": fingerprint, "words": words(fingerprint)}


@click.group(cls=Group)
def group() -> None:
    """Named groups of agents."""


@group.command("list")
@for_a_wire
def list_groups(ctx: click.Context, as_json: bool) -> None:
    """List the groups and who belongs to them."""
    found = _groups(wire_of(ctx).trust().newest)
    for name, members in found.items():
        if as_json:
            say_json({"group": name, "members": members})
        else:
            say(f"{name}: {', '.join(members)}")
    if not found and not as_json:
        say("there is no group; `wire group set NAME MEMBERS` makes one, and `all` is everybody")


@group.command("set")
@click.argument("name")
@click.argument("members", nargs=-1, required=True)
@for_a_wire
def set_members(ctx: click.Context, name: str, members: tuple[str, ...], as_json: bool) -> None:
    """Set who belongs to a group; a message to it goes to those who belong when it is sent."""
    done = wire_of(ctx).set_group(name, members)
    newest = done.chain.newest
    there = newest.groups[name].members if name in newest.groups else ()
    if as_json:
        shown = {"group": name, "members": list(there), "checkpoint": newest.checkpoint}
        say_json(with_proposal(shown, done.proposal))
    elif done.proposal is not None:
        say_proposed(done.proposal)
    else:
        say(f"group {name}: {', '.join(there)}")
