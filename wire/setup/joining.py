"""`wire join`: pin an existing wire by a checkpoint, and ask to be enrolled."""

from dataclasses import dataclass

from wire.daemon import cycle
from wire.daemon.accepted import BLOB_MAX
from wire.daemon.asking import ask
from wire.daemon.shape import Kind, Shape, classify
from wire.daemon.site import FETCH_MAX_BYTES, INCOMING_REF, Site
from wire.daemon.stamp import stamp
from wire.daemon.truststeps import GROUP, TRUST_KINDS
from wire.errors import TrustError, UsageError
from wire.gitio import Git, redact_url, told_url
from wire.keys import invitations, requests
from wire.keys.answered import is_free
from wire.keys.invitations import Invitation
from wire.keys.trust import Chain
from wire.protocol.encoding import Signer, check_checkpoint, format_checkpoint
from wire.protocol.names import check_name
from wire.setup.common import (
    EMPTY_BRANCH,
    OWN_BRANCH,
    absolute_remote,
    carries_wire,
    configured,
    default_branch,
    key_held,
    local_name,
    making,
    new_clone,
    own_key,
    signer_print,
    write_down,
)
from wire.store import config as configs
from wire.store.config import WireConfig
from wire.store.files import utc_now
from wire.store.paths import Settings, WirePlaces


@dataclass(frozen=True, slots=True)
class Joined:
    """A wire that this machine now follows. `approved` is false until a root enrolled the key."""

    name: str
    wire: str
    branch: str
    agent: str
    fingerprint: str
    approved: bool
    accepted: int


def join(
    settings: Settings,
    remote: str,
    *,
    agent: str,
    checkpoint: str,
    name: str | None = None,
    role: str = "agent",
    branch: str | None = None,
    invitation: Invitation | None = None,
) -> Joined:
    """Follow an existing wire: pin it by a checkpoint that a person gave, make a key, and ask to be enrolled.

    Args:
        invitation: that names all of this; the request proves it, and the remote must have what the inviter saw.

    Raises:
        TrustError: the remote's trust does not pass through the checkpoint (`checkpoint`), or does not hold; the
            remote lacks the commit that the inviter had verified (`tip-missing`).
        UsageError: the name is taken on the wire (`name-taken`), no wire is found there (`no-wire-there`).
        RemoteError, GitFailed: the remote cannot be reached, or refused the request.
    """
    check_name(agent, "agent")
    version, digest = check_checkpoint(checkpoint)
    remote = absolute_remote(remote)
    name = name or local_name(remote)
    config = configured(settings, name, remote)
    if config is None:
        config = _pin_wire(settings, remote, (version, digest), agent=agent, name=name, branch=branch)
    site = Site.open(settings, config)
    chain = site.trust(site.pin())
    if chain.newest.version < version:
        # Who gave the checkpoint knows of more than this machine did when it last looked.
        _look(site)
        chain = site.trust(site.pin())
    if not chain.passes(version, digest):
        raise not_the_checkpoint(chain, version, checkpoint)
    _check_free(settings, chain, agent, remote, checkpoint)
    if agent not in config.agents:
        config = config._replace(agents=(*config.agents, agent))
        configs.update_wire(settings, config)
        site = Site.open(settings, config)
    signer = own_key(settings, chain.wire, agent)
    if chain.owner(signer.key_id) is None:
        _ask(site, chain, signer, agent, role, invitation)
    _look(site)
    if invitation is not None:
        _check_tip(site, invitation)
    chain = site.trust(site.pin())
    accepted = sum(end.seq for end in site.pin().accepted.values())
    approved = chain.owner(signer.key_id) is not None
    return Joined(name, chain.wire, config.branch, agent, signer_print(signer), approved, accepted)


_UNSEEN = (
    "`wire status` on a machine of the wire names its remote; it must be an address at which this machine finds the"
    " same repository, and which this user may read"
)


def _look(site: Site) -> None:
    report = cycle.run(site)
    stamp(site.places, report)
    if report.failure is not None:
        raise report.failure


def _pin_wire(
    settings: Settings, remote: str, checkpoint: tuple[int, bytes], *, agent: str, name: str, branch: str | None
) -> WireConfig:
    places = WirePlaces(settings.state_dir, name, settings.default_clone(name))
    with making(settings, places):
        git, heads = new_clone(settings, places, remote, absent=_UNSEEN)
        branch = branch or find_branch(settings, git, remote, heads)
        git.fetch(remote, [f"+refs/heads/{branch}:{INCOMING_REF}"], max_bytes=FETCH_MAX_BYTES)
        chain = chain_at(git, INCOMING_REF)
        version, digest = checkpoint
        shown = format_checkpoint(version, digest)
        if not chain.passes(version, digest):
            raise not_the_checkpoint(chain, version, shown)
        # Before anything is written: a machine that thinks it is somebody else would see its own lines in theirs.
        _check_free(settings, chain, agent, remote, shown)
        return write_down(settings, places, remote, branch, agent, chain, shown)


def _check_free(settings: Settings, chain: Chain, agent: str, remote: str, checkpoint: str) -> None:
    """Raise UsageError (`name-taken`) where a name is somebody else's on the wire, an agent's or a group's."""
    newest = chain.newest
    held = key_held(settings, chain.wire, agent)
    if held is not None and chain.owner(held.key_id) is not None:
        return
    if not is_free(chain, agent):
        whose = "belongs to another key" if agent in newest.agents else "is a group's"
        raise UsageError(
            f"the name {agent!r} {whose} on this wire",
            reason="name-taken",
            next_step=f"wire join {told_url(remote)} --as ANOTHER-NAME --trust {checkpoint}",
        )


def find_branch(settings: Settings, git: Git, remote: str, heads: list[str]) -> str:
    """Return the branch of a remote that carries a wire; raises UsageError (`no-wire-there`)."""
    candidates = [OWN_BRANCH, EMPTY_BRANCH, default_branch(git, remote) or ""]
    for branch in dict.fromkeys(one for one in candidates if one in heads):
        if carries_wire(settings, git, remote, branch):
            return branch
    raise UsageError(
        f"no wire is found at {redact_url(remote)}; its branches are {', '.join(sorted(heads)[:8]) or 'none'}",
        reason="no-wire-there",
        next_step="say which branch carries it with --branch, or begin one: wire init REMOTE --as NAME",
    )


def chain_at(git: Git, ref: str) -> Chain:
    """Return the trust chain that a tip carries, as far as it holds.

    Raises:
        UsageError: it carries none (`no-wire-there`).
        TrustError: its version 1 does not hold.
    """
    there = {classify(entry.path, entry.mode): entry.oid for entry in git.entries(ref, "_coordination/trust")}
    chain: Chain | None = None
    read: dict[str, bytes | None] = {}
    version = 1
    while (oid := there.get(Shape(Kind.TRUST, number=version))) is not None:
        signed = there.get(Shape(Kind.TRUST_SIGNATURES, number=version), "")
        if oid not in read:
            # Some at a time: what follows the last one that holds can be anything, in any size.
            wanted = [Shape(kind, number=n) for kind in TRUST_KINDS[:2] for n in range(version, version + GROUP)]
            read = git.blobs([there[shape] for shape in wanted if shape in there], max_size=BLOB_MAX)
        raw, signatures = read[oid] or b"", read.get(signed) or b""
        try:
            chain = Chain.genesis(raw, signatures) if chain is None else chain.extend(raw, signatures)
        except TrustError:
            if chain is None:
                raise
            break
        version += 1
    if chain is None:
        raise UsageError("the branch carries no trust chain", reason="no-wire-there")
    return chain


def _check_tip(site: Site, invitation: Invitation) -> None:
    verified = site.pin().verified
    there = site.git.resolve(f"{invitation.tip}^{{commit}}") is not None
    if verified is None or not there or not site.git.is_ancestor(invitation.tip, verified):
        raise TrustError(
            f"the remote does not have the commit {invitation.tip[:12]} that the inviter had verified: it shows an "
            "older state, or another history. The request was sent; what is shown here is not complete",
            reason="tip-missing",
            next_step="compare `wire status` with the inviter, by another way than this wire",
        )


def _ask(site: Site, chain: Chain, signer: Signer, agent: str, role: str, invitation: Invitation | None) -> None:
    """Push a request to join, unless it is there already."""
    name = requests.file_name(agent, signer.key_id)
    proof = invitations.mac(invitation, signer.public) if invitation is not None else None
    known = chain.newest.agents.get(agent)
    role = known.role if known is not None else role
    raw = requests.make(signer, wire=chain.wire, name=agent, role=role, created=utc_now(), mac=proof)

    def is_there(held: bytes) -> bool:
        try:
            found = requests.parse(held, wire=chain.wire, file_name=name)
        except TrustError:
            return False
        return proof is None or found.mac == proof

    ask(site, name, raw, f"{agent}: asks to join", is_there, what="the request to join")


def not_the_checkpoint(chain: Chain, version: int, checkpoint: str) -> TrustError:
    """Return the error for a chain that does not pass through the checkpoint, with both values."""
    held = chain.at(version)
    found_there = held.checkpoint if held is not None else f"only {chain.newest.version} version(s)"
    return TrustError(
        f"the remote's trust does not pass through the checkpoint: expected {checkpoint}, found {found_there}. "
        "It is another wire, an older copy, or somebody's forgery; nothing was joined",
        reason="checkpoint",
        next_step="compare with the output of `wire trust show` on a machine of the wire",
    )
