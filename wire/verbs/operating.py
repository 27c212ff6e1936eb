"""Looking now, healing, and changing who may sign what."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from wire import setup
from wire.daemon import asked, beating, cycle, rotating, rounds, trusting
from wire.daemon import repair as repairing
from wire.daemon.accounting import Accounting
from wire.daemon.proposing import TERMS
from wire.daemon.repair import Repaired
from wire.daemon.report import Report
from wire.daemon.shape import request_path
from wire.daemon.site import Site
from wire.daemon.stamp import stamp
from wire.errors import UsageError, WireError
from wire.keys import fingerprints, keychange, keyfile
from wire.keys.alike import alike
from wire.keys.build import enroll, give_key, set_group
from wire.keys.fingerprints import Meant
from wire.keys.requests import Request, file_name
from wire.keys.rotations import Rotation
from wire.keys.trust import ACTIVE, Chain
from wire.store.files import utc_now
from wire.store.pin import Pin
from wire.verbs.here import Here
from wire.verbs.proposing import Pending, waits

CYCLE_LOCK_SECONDS = 60.0


class Asking(NamedTuple):
    """Who asks to join, or for another key.

    Attributes:
        requests: those that were looked at.
        more: how many more files stand there; whoever is named by `approve` is found among them all the same.
        alike: names of the wire that one that is asked for looks like.
        failure: why this is not of just now, None if it is.
    """

    requests: tuple[Request | Rotation, ...]
    more: int
    alike: Mapping[str, tuple[str, ...]]
    failure: WireError | None


@dataclass(frozen=True, slots=True)
class Approval:
    """Who was enrolled, and the trust that says so; or the proposal that waits for others to say it."""

    name: str
    fingerprint: str
    checkpoint: str
    proposal: Pending | None = None


class Grouped(NamedTuple):
    """The trust in force, and the proposal of a group that waits for others, if one does."""

    chain: Chain
    proposal: Pending | None = None


def sync(here: Here) -> Report:
    """Run one round now, beside a daemon or without one, and write down what came of it.

    Raises:
        Busy: another cycle is running for longer than a minute.
        WireError: this machine's state cannot be used.
    """
    site = _site(here)
    report = rounds.run(site, lock_timeout=CYCLE_LOCK_SECONDS, promise=beating.by_hand(here.places))
    stamp(here.places, report)
    # Whoever shows receipts brings them up to date as well, and tells of trouble with them.
    Accounting(site).bring_up()
    return report


def heal(here: Here) -> Report:
    """Put back every accepted line that the remote lacks, as one commit that only lengthens."""
    report = cycle.heal(_site(here))
    stamp(here.places, report)
    return report


def repair(here: Here) -> Repaired:
    """Make the clone's repository anew from every copy of the accepted lines; raises where one is nowhere."""
    return repairing.repair(_site(here))


def repin(here: Here, checkpoint: str) -> Pin:
    """Rebuild a pin that was lost or damaged, as `setup.repin`."""
    return setup.repin(here.settings, here.config, checkpoint)


def trust(here: Here) -> Chain:
    """Return the trust that is held here."""
    return _site(here).trust(here.pin())


def waiting(here: Here) -> Asking:
    """Return who asks to join or for another key, by the last verified tip."""
    site = _site(here)
    report = cycle.run(site, lock_timeout=CYCLE_LOCK_SECONDS)
    stamp(here.places, report)
    chain = site.trust(site.pin())
    newcomers = asked.listed(site, chain)
    names = (*chain.newest.agents, *chain.newest.groups)
    similar = {one.name: found for one in newcomers.requests if (found := alike(one.name, names))}
    return Asking((*newcomers.requests, *rotating.waiting(site, chain)), newcomers.more, similar, report.failure)


def approve(
    here: Here,
    name: str,
    *,
    fingerprint: str | None,
    beside: bool = False,
    confirm: Callable[[Request | Rotation], bool],
) -> Approval:
    """Enroll a newcomer, or an agent's next key: a new trust version, pushed at once, or a proposal of one.

    Args:
        fingerprint: the newcomer's, or its ten words, as its owner reads it out; tells several requests for one name
            apart.
        beside: also while another proposal is open.
        confirm: asked with the request where no fingerprint was given.

    Raises:
        UsageError: no such request (`no-request`), several (`several-requests`), another fingerprint
            (`fingerprint`), one that is none (see `fingerprints.parse`), or not confirmed (`not-confirmed`).
        TrustError, RemoteError: see `trusting.change`.
    """
    meant = fingerprints.parse(fingerprint) if fingerprint is not None else None
    site = _site(here)
    trusting.fetched(site)
    requests = _for_name(site, site.trust(site.pin()), name, meant)
    chosen = _choose(requests, name, meant)
    trusting.root_here(site, site.trust(site.pin()))
    if meant is None and not confirm(chosen):
        raise UsageError(f"{name!r} was not approved; nothing was changed", reason="not-confirmed")

    def build(chain: Chain) -> bytes | None:
        if chain.key(name, chosen.key_id) is not None:
            return None
        if isinstance(chosen, Rotation):
            return rotating.build(site, chain, chosen)
        known = chain.newest.agents.get(name)
        if known is not None and not known.waits_for_key:
            raise UsageError(f"the name {name!r} was given to a key meanwhile", reason="name-taken")
        if known is not None:
            return give_key(
                chain.newest,
                chain.wire,
                name=name,
                public=chosen.public,
                proof=chosen.proof,
                created=utc_now(),
            )
        return enroll(
            chain.newest,
            chain.wire,
            name=chosen.name,
            role=chosen.role,
            public=chosen.public,
            proof=chosen.proof,
            created=utc_now(),
        )

    drop = [request_path(file_name(chosen.name, chosen.key_id))]
    what = "another key for" if name in site.trust(site.pin()).newest.agents else "enroll"
    done = trusting.change(site, build, f"trust: {what} {name}", drop=drop, terms=TERMS._replace(beside=beside))
    return Approval(name, chosen.fingerprint, done.chain.newest.checkpoint, waits(site, done))


def define_group(here: Here, name: str, members: Sequence[str]) -> Grouped:
    """Set who belongs to a group: a new trust version, pushed at once, or a proposal of one; raises as `approve`."""

    def build(chain: Chain) -> bytes | None:
        held = chain.newest.groups.get(name)
        if held is not None and held.status == ACTIVE and set(held.members) == set(members):
            return None
        return set_group(chain.newest, chain.wire, name=name, members=members, created=utc_now())

    site = _site(here)
    done = trusting.change(site, build, f"trust: group {name}")
    return Grouped(done.chain, waits(site, done))


class LocalKey(NamedTuple):
    """A key of this machine: `agent`, `root`, or `former` for a replaced one; and whether it has a passphrase."""

    kind: str
    name: str
    fingerprint: str
    path: str
    locked: bool


def local_keys(here: Here) -> list[LocalKey]:
    """Return the keys of this wire on this machine.

    Private parts stay where they are.
    """
    from wire.protocol.encoding import fingerprint

    pin, loose = here.pin(), here.settings.allow_loose_keys
    found = []
    for kind, names in (("agent", here.config.agents), ("root", ("root",))):
        for name in names:
            path = keyfile.key_path(here.settings.keys_dir, wire=pin.wire, kind=kind, name=name)
            if os.path.lexists(path):
                signer = keyfile.load_for(path, name=name, kind=kind, wire=pin.wire, allow_loose=loose)
                found.append(LocalKey(kind, name, fingerprint(signer.public), path, signer.locked))
            before = keychange.former(path, name=name, wire=pin.wire, allow_loose=loose) if kind == "agent" else {}
            for key_id, old in before.items():
                file = f"{path.removesuffix('.key')}.{key_id}.key"
                found.append(LocalKey("former", name, fingerprint(old.public), file, old.locked))
    return found


def _site(here: Here) -> Site:
    return Site.open(here.settings, here.config)


def _for_name(site: Site, chain: Chain, name: str, meant: Meant | None) -> list[Request | Rotation]:
    """Return who asks for a name; only the one that is meant, if that one does."""
    rotations = [one for one in rotating.waiting(site, chain) if one.name == name]
    exact = asked.of_name(site, chain, name, meant.fits) if meant is not None else []
    return [*exact, *rotations] if exact else [*asked.of_name(site, chain, name), *rotations]


def _choose(requests: Sequence[Request | Rotation], name: str, meant: Meant | None) -> Request | Rotation:
    listed = ", ".join(f"{one.fingerprint} (asked {one.created})" for one in requests[: asked.PER_NAME])
    if len(requests) > asked.PER_NAME:
        listed += f", and {len(requests) - asked.PER_NAME} more"
    if not requests:
        raise UsageError(f"nobody asks to join as {name!r}", reason="no-request", next_step="wire trust requests")
    if meant is not None:
        for one in requests:
            if meant.fits(one.fingerprint):
                return one
        raise UsageError(
            f"no request for {name!r} has the fingerprint {meant.text}; found: {listed}",
            reason="fingerprint",
            next_step="ask the newcomer for the fingerprint that `wire join` printed; "
            "if it differs, somebody else asked",
        )
    if len(requests) > 1:
        raise UsageError(
            f"{len(requests)} keys ask to join as {name!r}: {listed}",
            reason="several-requests",
            next_step=f"say which: wire trust approve {name} SHA256:…",
        )
    return requests[0]
