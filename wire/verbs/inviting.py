"""Inviting: one line for one person, and the enrolment of who comes with it.

    given = invite(here, "spark")           # given.code is for the person who sets up the other machine
    arrived = admit(here, "spark")          # None until the request is there; then it is enrolled

Whoever comes with the code is enrolled without a fingerprint to compare: the code went over another way than the
repository, and the request proves it. So the code is as good as the way it took, for one key, until it expires.
"""

import time
from collections.abc import Callable
from typing import NamedTuple

from wire.daemon import asked, trusting
from wire.daemon.site import Site
from wire.errors import NotReached, TrustError, UsageError
from wire.gitio import without_credentials
from wire.keys import invitations as codes
from wire.keys.alike import alike
from wire.keys.invitations import Invitation
from wire.protocol.encoding import fingerprint, parse_checkpoint
from wire.protocol.names import check_name
from wire.store import invitations as given_out
from wire.store.invitations import Given
from wire.verbs.here import Here
from wire.verbs.operating import Approval, approve

TTL_SECONDS = 86_400.0
PATIENCE_SECONDS = (2.0, 10.0)
"""Between two looks for the newcomer, at first and after a while."""


class Invited(NamedTuple):
    """An invitation that is good.

    Attributes:
        code: for one person; a secret until it is used.
        expires: seconds since the epoch.
        again: whether it had been given before, and not been used.
        alike: names of the wire that look like this one.
        replaced: whether it takes the place of one that was good until now, and is worthless from now on.
    """

    name: str
    code: str
    expires: int
    again: bool
    alike: tuple[str, ...]
    replaced: bool = False


def invite(here: Here, name: str, *, role: str = "agent", ttl: float = TTL_SECONDS) -> Invited:
    """Return a code by which one machine may join as `name`: a new one, unless an earlier one is still good.

    An earlier one stays good while the trust goes on. For another role a new one takes its place, which is told. A name
    whose last key was revoked may be invited again, for its next key; its role stays.

    Args:
        ttl: seconds for which a new code is good.

    Raises:
        UsageError: the name is taken (`name-taken`) or none.
        TrustError, IdentityError: this machine holds no root key of the wire.
        RemoteError: the remote could not be reached; nothing was given out.
    """
    check_name(name, "agent")
    site = Site.open(here.settings, here.config)
    chain = trusting.fetched(site)
    trusting.root_of(site, chain)
    newest = chain.newest
    known = newest.agents.get(name)
    if known is not None and known.waits_for_key:
        role = known.role
    elif known is not None or name in newest.groups:
        whose = "belongs to an agent" if name in newest.agents else "is a group's"
        raise UsageError(f"the name {name!r} {whose} on this wire", reason="name-taken", next_step="wire trust show")
    similar = alike(name, (*newest.agents, *newest.groups))
    pin = site.pin()
    held = _held(here, name)
    replaced = held is not None and not held[0].taken_by
    if held is not None and replaced and held[1].role == role and chain.passes(*parse_checkpoint(held[1].checkpoint)):
        return Invited(name, held[0].code, held[1].expires, True, similar)
    made = codes.make(
        without_credentials(pin.remote),
        chain.documents[0].hash,
        newest.checkpoint,
        pin.verified or "",
        name,
        role,
        expires=int(time.time() + ttl),
    )
    code = codes.encode(made)
    given_out.save(here.places.invitations_dir, name, Given(code))
    return Invited(name, code, made.expires, False, similar, replaced)


def admit(here: Here, name: str) -> Approval | None:
    """Look once, and enroll who came with the code for a name; None while nobody has.

    Where one root is not enough, the enrolment becomes a proposal; the code is used once that is in force.

    Raises:
        UsageError: there is no invitation for the name that is good (`no-invitation`).
        TrustError, RemoteError: see `operating.approve`.
    """
    held = _held(here, name)
    if held is None:
        raise UsageError(
            f"there is no invitation for {name!r} that is good", reason="no-invitation", next_step=f"wire invite {name}"
        )
    given, invitation = held
    site = Site.open(here.settings, here.config)
    chain = trusting.fetched(site)
    enrolled = chain.newest.agents.get(name)
    came = asked.invited(site, chain, invitation)
    if enrolled is not None and not enrolled.waits_for_key:
        key = enrolled.keys[-1]
        _taken(here, name, given, key.id)
        return Approval(name, fingerprint(key.public), chain.newest.checkpoint)
    if not came:
        return None
    if len(came) > 1:
        raise TrustError(
            f"{len(came)} keys came with the code for {name!r}: somebody else had it. Nobody was enrolled",
            reason="code-used-twice",
            next_step=f"ask the newcomer for its fingerprint: wire trust approve {name} SHA256:…",
        )
    done = approve(here, name, fingerprint=came[0].fingerprint, confirm=lambda _: False)
    if done.proposal is None:
        _taken(here, name, given, came[0].key_id)
    return done


def is_open(here: Here, name: str) -> bool:
    """Return whether an invitation for a name is good and was not used yet."""
    held = _held(here, name)
    return held is not None and not held[0].taken_by


def wait(here: Here, invited: Invited, *, pause: Callable[[float], object] = time.sleep) -> Approval:
    """Look again and again until somebody came with the code.

    Raises:
        NotReached: the code expired and nobody had come.
    """
    began = time.monotonic()
    while True:
        if (done := admit(here, invited.name)) is not None:
            return done
        if time.time() >= invited.expires:
            raise NotReached(
                f"nobody came with the code for {invited.name!r} before it expired; it is worthless now",
                reason="invitation-expired",
                next_step=f"wire invite {invited.name}",
            )
        pause(PATIENCE_SECONDS[time.monotonic() - began > 60.0])


def _held(here: Here, name: str) -> tuple[Given, Invitation] | None:
    given = given_out.load(here.places.invitations_dir, name)
    if given is None:
        return None
    try:
        invitation = codes.parse(given.code)
    except ValueError:
        return None
    return (given, invitation) if invitation.expires > time.time() else None


def _taken(here: Here, name: str, given: Given, key_id: str) -> None:
    if given.taken_by != key_id:
        given_out.save(here.places.invitations_dir, name, given._replace(taken_by=key_id))
