"""`wire trust repin`: a pin that was lost or damaged, or whose remote moved, is not a first contact.

A person gives a checkpoint again. What this machine still has sets the lower bounds: every line in its accepted commit
is verified anew from the beginning, so that a remote which was rolled back meanwhile is still found out.
"""

import os
import secrets
from dataclasses import dataclass

from wire.daemon.accepted import REF, Accepted, Blobs
from wire.daemon.reverify import Segment, check_segment
from wire.daemon.shape import Kind, classify
from wire.daemon.site import FETCH_MAX_BYTES, INCOMING_REF, VERIFIED_REF, Site, names_of
from wire.errors import Corrupt, IdentityError, TrustError, UsageError
from wire.gitio import Git, GitFailed, without_credentials
from wire.keys.trust import Chain
from wire.protocol.chain import Position
from wire.protocol.encoding import check_checkpoint
from wire.setup.common import object_format
from wire.setup.joining import chain_at, not_the_checkpoint
from wire.store import pin as pins
from wire.store import trustfiles
from wire.store.config import WireConfig
from wire.store.files import move_aside
from wire.store.paths import Settings
from wire.store.pin import Pin, replace


@dataclass(frozen=True, slots=True)
class _Held:
    """What the accepted commit proves when it is verified from the beginning."""

    commit: str | None
    ends: dict[str, Position]


def repin(settings: Settings, config: WireConfig, checkpoint: str) -> Pin:
    """Rebuild the pin and the trust folder of a configured wire, or let a pin that holds follow to another remote.

    Args:
        checkpoint: from a person; the trust chain must pass through it.

    Raises:
        UsageError: it is no checkpoint (`bad-checkpoint`), or the pin and the trust are fine (`pin-exists`).
        TrustError: no chain that this machine has or the remote shows passes through it.
        GitFailed: the remote cannot be reached and this machine has no trust chain of its own.
    """
    version, digest = check_checkpoint(checkpoint)
    site = Site.open(settings, config)
    with site.cycle_lock():
        pin = _good(site)
        if pin is not None:
            return _follow(site, pin, version, digest, checkpoint)
        if not os.path.isdir(site.places.git_dir):
            refs = site.git.ls_remote(config.remote)
            site.git.init(object_format(site.git, config.remote, refs), branch=config.branch)
        chain = _newest([*_local(site), *_remote(site.git, config)])
        if not chain.passes(version, digest):
            raise not_the_checkpoint(chain, version, checkpoint)
        held = _verify_again(site.git, chain)
        for path in (site.places.pin_file, site.places.trust_dir):
            if os.path.lexists(path):
                move_aside(path)
        trustfiles.write(site.places.trust_dir, chain)
        return site.save(
            Pin(
                wire=chain.wire,
                wire_hash=chain.documents[0].hash,
                remote=config.remote,
                branch=config.branch,
                checkpoint=checkpoint,
                trust_version=chain.newest.version,
                trust_hash=chain.newest.hash,
                instance=secrets.token_hex(16),
                names=names_of(chain),
                accepted=held.ends,
                verified=site.git.resolve(VERIFIED_REF),
                accepted_commit=held.commit,
            )
        )


def _good(site: Site) -> Pin | None:
    """Return the pin, unless it or the trust that it names is lost or damaged."""
    try:
        pin = pins.load(site.places.pin_file)
        site.trust(pin)
    except (IdentityError, TrustError, Corrupt):
        return None
    return pin


def _follow(site: Site, pin: Pin, version: int, digest: bytes, checkpoint: str) -> Pin:
    """Take over the place that the configuration names, if it shows the same trust; what was accepted stays pinned."""
    config = site.config
    if without_credentials(config.remote) == without_credentials(pin.remote) and config.branch == pin.branch:
        raise UsageError(
            f"the pin of {config.name!r} is there and holds; replacing it would give up what this machine knows",
            reason="pin-exists",
            next_step="wire status",
        )
    (there,) = _remote(site.git, config)
    own = site.trust(pin)
    common = own.documents[min(own.newest.version, there.newest.version) - 1]
    for chain, number, digits, shown in (
        (own, version, digest, checkpoint),
        (there, common.version, common.digest, common.checkpoint),
    ):
        if not chain.passes(number, digits):
            raise not_the_checkpoint(chain, number, shown)
    return site.save(replace(pin, remote=config.remote, branch=config.branch))


def _local(site: Site) -> list[Chain]:
    try:
        return [trustfiles.read(site.places.trust_dir)]
    except TrustError:
        pass
    try:
        return [chain_at(site.git, REF)]
    except (GitFailed, TrustError, UsageError):
        return []


def _remote(git: Git, config: WireConfig) -> list[Chain]:
    git.fetch(config.remote, [f"+refs/heads/{config.branch}:{INCOMING_REF}"], max_bytes=FETCH_MAX_BYTES)
    return [chain_at(git, INCOMING_REF)]


def _newest(chains: list[Chain]) -> Chain:
    """Return the longest chain; the first of equal ones is this machine's own."""
    return max(chains, key=lambda chain: chain.newest.version)


def _verify_again(git: Git, chain: Chain) -> _Held:
    commit = git.resolve(REF)
    if commit is None:
        return _Held(None, {})
    accepted = Accepted(git, Blobs(git), commit)
    ends: dict[str, Position] = {}
    numbers: dict[str, list[int]] = {}
    for path in accepted.oids():
        shape = classify(path.encode("ascii"), "100644")
        if shape.kind is Kind.SEGMENT:
            numbers.setdefault(shape.channel, []).append(shape.number)
    for channel, found in numbers.items():
        end = Position.start(chain.wire, channel)
        for number in sorted(found):
            checked = check_segment(Segment(channel, number, accepted.segment(channel, number)), chain)
            if checked.problems or (checked.begin.seq, checked.begin.head) != (end.seq, end.head):
                break
            end = checked.end
        ends[channel] = end
    return _Held(commit, ends)
