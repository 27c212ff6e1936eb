"""Changing the key of an agent of this machine, step by step, each of which can be done twice.

    begin(site, chain, "mac")                   a fresh key in the old one's place: from now on it signs what is sent
    request(site, chain, "mac")                 where the old key ends, signed by both, for who holds a root key
    publish(site, chain, "mac")                 puts that where they find it

Until the trust names the fresh key, what it signed waits here as a newcomer's lines do; what the old one signed goes
out. Both follow from the keys on the disk and the trust, so that nothing has to be remembered in between: the key at
hand is not in the trust, and one that it followed is.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from wire.daemon.asking import ask, stands
from wire.daemon.shape import Kind, classify, request_path
from wire.daemon.site import Site
from wire.errors import IdentityError, TrustError, UsageError
from wire.keys import keychange, keyfile, requests, rotations
from wire.keys.answered import ROTATION_MARK
from wire.keys.rotations import Rotation
from wire.keys.trust import ACTIVE, Chain, retire
from wire.protocol.chain import SEGMENT_MAX, Position, lines_of
from wire.protocol.encoding import Signer
from wire.protocol.line import parse
from wire.store import journal
from wire.store.files import locked, utc_now
from wire.store.segments import numbers, read_part

_LOCK_SECONDS = 60.0
_TOGETHER = 64


class Change(NamedTuple):
    """A change of keys that is under way.

    Attributes:
        new: the key at hand.
        old: the one that it replaces, or None where none is active any more.
    """

    new: Signer
    old: Signer | None


def under_way(site: Site, chain: Chain, agent: str) -> Change | None:
    """Return the change of an agent's key that the trust does not know of yet, or None.

    Raises:
        IdentityError: the key cannot be used.
    """
    known = chain.newest.agents.get(agent)
    signer = site.signer(agent, chain.wire)
    if known is None or known.status != ACTIVE or known.key(signer.key_id) is not None:
        return None
    former = site.former(agent, chain.wire)
    if not any(known.key(one) for one in former):
        return None
    return Change(signer, former.get(known.active_key.id) if known.active_key is not None else None)


def begin(site: Site, chain: Chain, agent: str) -> Change:
    """Let a fresh key take the place of an agent's, unless that is under way; return both.

    Raises:
        IdentityError: the key cannot be used, or the name is another key's (`name-taken`).
        UsageError: the agent is not approved (`not-approved`), or was removed (`removed`).
    """
    known = chain.newest.agents.get(agent)
    if known is None:
        raise UsageError(
            f"{agent!r} is not approved yet: nobody trusts the key that would be changed", reason="not-approved"
        )
    if known.status != ACTIVE:
        raise UsageError(f"{agent!r} was removed from this wire; a name is never used again", reason="removed")
    found = under_way(site, chain, agent)
    if found is not None:
        return found
    signer = site.signer(agent, chain.wire)
    key = known.key(signer.key_id)
    if key is None or (known.active_key is not None and key.status != ACTIVE):
        active = known.active_key
        raise IdentityError(
            f"the key of {agent!r} on this machine is not the one that the trust names"
            f" ({active.id if active is not None else 'none'}); only who has that one can change it",
            reason="name-taken",
            next_step="wire trust show",
        )
    path = keyfile.key_path(site.settings.keys_dir, wire=chain.wire, kind="agent", name=agent)
    loose, environ = site.settings.allow_loose_keys, site.settings.environ
    with locked(site.places.lock("keys"), what="the key files of this wire", timeout=_LOCK_SECONDS):
        new = keychange.change(path, name=agent, wire=chain.wire, allow_loose=loose, environ=environ)
    return Change(new, signer if key.status == ACTIVE else None)


def request(site: Site, chain: Chain, agent: str, change: Change) -> tuple[str, bytes]:
    """Return the file's name and bytes by which the fresh key asks to take the old one's place.

    Where no key is active any more it asks as a newcomer would, for the name that it had.
    """
    role = chain.newest.agents[agent].role
    if change.old is None:
        raw = requests.make(change.new, wire=chain.wire, name=agent, role=role, created=utc_now())
    else:
        raw = rotations.make(
            change.old,
            change.new,
            wire=chain.wire,
            name=agent,
            role=role,
            positions=closing(site, chain.wire, agent, change.old.key_id),
            created=utc_now(),
        )
    return requests.file_name(agent, change.new.key_id), raw


def closing(site: Site, wire: str, agent: str, key: str) -> dict[str, tuple[int, str]]:
    """Return number and head of the last line that a key of this machine signed, per channel.

    Each channel's lock is waited for: who began to send before the key was changed has stored the line by then, and
    who begins later signs with the next key.

    Raises:
        StoreError: a journal lost lines; the next cycle rebuilds it.
    """
    accepted = site.pin().accepted
    found = {}
    for channel in _channels(site, agent, accepted):
        with journal.hold(site.places, wire, channel, timeout=_LOCK_SECONDS) as held:
            journal.settle(held, floor=accepted.get(channel))
            for number in reversed(numbers(held.folder)):
                lines = lines_of(read_part(held.folder, number, 0, SEGMENT_MAX) or b"")
                last = next((line for line in map(parse, reversed(lines)) if line.key_id == key), None)
                if last is not None:
                    found[channel] = (last.seq, last.head)
                    break
    return found


def publish(site: Site, chain: Chain, agent: str, change: Change) -> bool:
    """Put the request where it is looked for, unless it says what it must there; return whether it was put there now.

    Raises:
        RemoteError, GitFailed: the remote cannot be reached, or refused it.
    """
    name, raw = request(site, chain, agent, change)

    def is_there(there: bytes) -> bool:
        return _same(chain.wire, name, raw, there)

    tip = site.pin().verified
    if tip is not None and stands(site, tip, request_path(name), is_there):
        return False
    return ask(site, name, raw, f"{agent}: asks for another key", is_there)


def publish_due(site: Site) -> list[str]:
    """Publish the requests of this machine that the verified tip lacks; return the agents whose they are.

    Raises:
        RemoteError, GitFailed: as `publish`.
        WireError: the state of this machine cannot be used.
    """
    pin = site.pin()
    due = []
    for agent in site.config.agents:
        try:
            if agent not in pin.names.agents or site.signer(agent, pin.wire).key_id in pin.names.keys.get(agent, ()):
                continue
            chain = site.trust(pin)
            change = under_way(site, chain, agent)
            if change is not None and publish(site, chain, agent, change):
                due.append(agent)
        except IdentityError:
            continue  # the cycle has told of it
    return due


def waiting(site: Site, chain: Chain) -> list[Rotation]:
    """Return the rotations at the verified tip whose old key is the active one of its agent, oldest first."""
    tip = site.pin().verified
    if tip is None:
        return []
    entries = [
        e for e in site.git.entries(tip, "_coordination/requests") if classify(e.path, e.mode).kind is Kind.REQUEST
    ]
    names = {entry.path.rpartition(b"/")[2].decode("ascii"): entry.oid for entry in entries}
    may = [
        name for name in names if name.split(".")[0] in chain.newest.agents and chain.owner(name.split(".")[1]) is None
    ]
    found = []
    for name, raw in _read(site, names, may):
        if raw is None or ROTATION_MARK not in raw:
            continue
        try:
            one = rotations.parse(raw, wire=chain.wire, file_name=name)
        except TrustError:
            continue
        if _may_follow(chain, one):
            found.append(one)
    return sorted(found, key=lambda one: (one.created, one.key_id))


def _read(site: Site, oids: Mapping[str, str], names: Sequence[str]) -> Iterator[tuple[str, bytes | None]]:
    """Yield names and contents, so many at a time that memory stays bounded."""
    for start in range(0, len(names), _TOGETHER):
        part = names[start : start + _TOGETHER]
        blobs = site.git.blobs({oids[name] for name in part}, max_size=rotations.ROTATION_MAX)
        yield from ((name, blobs[oids[name]]) for name in part)


def build(site: Site, chain: Chain, one: Rotation) -> bytes | None:
    """Return the trust version that a rotation asks for; None when it is in force.

    Raises:
        TrustError: it does not follow the key that is active (`closing-invalid`), or lines that were accepted here
            would be cut (`rotation-behind`).
    """
    if chain.key(one.name, one.key_id) is not None:
        return None
    if not _may_follow(chain, one):
        raise TrustError(
            f"the rotation of {one.name!r} is not signed by the key that is active now", reason="closing-invalid"
        )
    check_keeps(site, one.name, one.replaces, one.positions)
    return retire(
        chain.newest,
        chain.wire,
        name=one.name,
        key_id=one.replaces,
        status="retired",
        positions=one.positions,
        created=utc_now(),
        replacement=(one.public, one.proof),
    )


def check_keeps(site: Site, name: str, key: str, positions: Mapping[str, tuple[int, str]]) -> None:
    """Refuse to retire a key where a line of it would be cut that was accepted here.

    Args:
        name: whose key it is, by its id.
        positions: at which it is to end.

    Raises:
        TrustError: reason `rotation-behind`.
    """
    pin = site.pin()
    accepted = site.accepted(pin)
    for channel, end in pin.accepted.items():
        if channel.partition("/")[0] != name or not end.seq:
            continue
        at = positions.get(channel, (0, ""))
        last = _last_by(accepted.segment, channel, end, key)
        if last is not None and (last[0] > at[0] or (last[0] == at[0] and last != at)):
            raise TrustError(
                f"the rotation of {name!r} closes {channel} at line {at[0]}, and line {last[0]} of the old key was"
                " accepted: it would be cut",
                reason="rotation-behind",
                next_step=f"let the owner of {name} look at it and run `wire keys rotate` there again; if the line"
                f" is not the owner's, the key was stolen: wire trust revoke {name} --reason stolen",
            )


def _last_by(segment: Callable[[str, int], bytes], channel: str, end: Position, key: str) -> tuple[int, str] | None:
    for number in range(end.segment, 0, -1):
        for raw in reversed(lines_of(segment(channel, number))):
            line = parse(raw)
            if line.key_id == key:
                return line.seq, line.head
    return None


def _may_follow(chain: Chain, one: Rotation) -> bool:
    agent = chain.newest.agents.get(one.name)
    active = agent.active_key if agent is not None else None
    return (
        agent is not None
        and active is not None
        and agent.role == one.role
        and chain.owner(one.key_id) is None
        and one.closed_by(active.public)
    )


def _same(wire: str, name: str, mine: bytes, there: bytes) -> bool:
    """Return whether what stands there asks for the same, whenever that was written."""
    try:
        ours, theirs = (rotations.parse(raw, wire=wire, file_name=name) for raw in (mine, there))
        return (ours.replaces, ours.positions) == (theirs.replaces, theirs.positions)
    except TrustError:
        pass
    try:
        requests.parse(mine, wire=wire, file_name=name)
        requests.parse(there, wire=wire, file_name=name)
    except TrustError:
        return False
    return True


def _channels(site: Site, agent: str, accepted: Iterable[str]) -> list[str]:
    """Return the channels that an agent sent in, those in which it is about to send its first line among them."""
    try:
        locks = os.listdir(site.places.locks_dir)
    except OSError:
        locks = []
    begun = {name.replace(".", "/") for name in locks if name.startswith(f"{agent}.")}
    return sorted(begun | {one for one in [*journal.channels(site.places), *accepted] if one.startswith(f"{agent}/")})
