"""`wire init`: the first commit of a wire, and the root key on this machine."""

import os
import secrets
import shlex
from dataclasses import dataclass

from wire.daemon import cycle
from wire.daemon.shape import ATTRIBUTES, ATTRIBUTES_PATH, NEWEST_TRUST_PATH, trust_path
from wire.daemon.site import FETCH_MAX_BYTES, INCOMING_REF, OUTGOING_REF, Site
from wire.daemon.stamp import stamp
from wire.errors import RemoteError, UsageError
from wire.gitio import Git, GitFailed, Put, redact_url, told_url
from wire.keys import keyfile, roots
from wire.keys.build import enroll, found
from wire.keys.trust import Chain, prove, sign_document
from wire.protocol.encoding import Signer, format_checkpoint, new_seed
from wire.protocol.names import check_name
from wire.setup.common import (
    EMPTY_BRANCH,
    OWN_BRANCH,
    absolute_remote,
    carries_wire,
    configured,
    default_branch,
    local_name,
    making,
    new_clone,
    own_key,
    signer_print,
    take_back,
    write_down,
)
from wire.store import config as configs
from wire.store.config import WireConfig
from wire.store.files import utc_now
from wire.store.paths import Settings, WirePlaces
from wire.store.pin import Pin


@dataclass(frozen=True, slots=True)
class Made:
    """A wire that now exists, as its founder tells it to others."""

    name: str
    wire: str
    remote: str
    branch: str
    agent: str
    checkpoint: str
    fingerprint: str


def init(
    settings: Settings,
    remote: str,
    *,
    agent: str,
    name: str | None = None,
    role: str = "agent",
    branch: str | None = None,
    object_format: str | None = None,
) -> Made:
    """Begin a wire on a remote: the whole repository when it is empty, else a branch of the wire's own.

    Args:
        remote: anything that git can push to.
        agent: the founder, who also holds the root key.
        name: the wire's local name; from the remote's when omitted.
        branch: instead of `main` (the default branch of an empty remote) or `wire`.
        object_format: `sha1` or `sha256`, for an empty remote that is not on a local path; any other tells it.

    Raises:
        UsageError: the branch already carries a wire (`already-a-wire`) or other content (`branch-taken`), this
            machine already has a wire of that name, or the remote has another object format (`object-format`).
        RemoteError, GitFailed: the remote cannot be reached or refused; nothing was left behind.
    """
    check_name(agent, "agent")
    remote = absolute_remote(remote)
    name = name or local_name(remote)
    config = configured(settings, name, remote)
    if config is None:
        config = _found_wire(settings, remote, agent, name, role, branch, object_format)
    site = Site.open(settings, config)
    pin = site.pin()
    if pin.verified is not None:
        raise UsageError(
            f"this machine already has the wire {name!r} at {redact_url(remote)}",
            reason="already-a-wire",
            next_step="wire status",
        )
    chain = site.trust(pin)
    _seed(site, pin, chain)
    report = cycle.run(site)
    stamp(site.places, report)
    if report.failure is not None:
        raise report.failure
    agent = config.agents[0]
    signer = site.signer(agent, chain.wire)
    return Made(name, chain.wire, remote, config.branch, agent, chain.documents[0].checkpoint, signer_print(signer))


def _found_wire(
    settings: Settings, remote: str, agent: str, name: str, role: str, branch: str | None, object_format: str | None
) -> WireConfig:
    """Make keys, trust, pin, clone and configuration of a new wire; nothing is pushed yet."""
    places = WirePlaces(settings.state_dir, name, settings.default_clone(name))
    with making(settings, places):
        git, heads = new_clone(settings, places, remote, absent=_make(remote), wanted=object_format)
        branch = _free_branch(settings, git, remote, heads, branch)
        seed = new_seed()
        root = Signer(seed)
        now = utc_now()
        # The first root goes by the name of who begins the wire, so that people see whose it is.
        policy = {roots.POLICY: {root.key_id: agent}}
        first = found(roots=[root.public], nonce=secrets.token_hex(16), created=now, policy=policy)
        chain = Chain.genesis(first, sign_document(first, root))
        keyfile.create(
            keyfile.key_path(settings.keys_dir, wire=chain.wire, kind="root", name="root"),
            name="root",
            kind="root",
            wire=chain.wire,
            seed=seed,
            allow_loose=settings.allow_loose_keys,
        )
        signer = own_key(settings, chain.wire, agent)
        second = enroll(
            chain.newest,
            chain.wire,
            name=agent,
            role=role,
            public=signer.public,
            proof=prove(signer, wire=chain.wire, name=agent, role=role),
            created=now,
        )
        chain = chain.extend(second, sign_document(second, root))
        checkpoint = format_checkpoint(1, bytes.fromhex(chain.documents[0].hash))
        return write_down(settings, places, remote, branch, agent, chain, checkpoint)


def _make(remote: str) -> str:
    """Return how the empty repository is made that a wire begins in."""
    if os.path.isabs(remote):
        return f"make an empty repository there: git init --bare {shlex.quote(remote)}"
    url = told_url(remote)
    return f"make an empty private repository at that host; when this shows nothing, it is there: git ls-remote {url}"


def _free_branch(settings: Settings, git: Git, remote: str, heads: list[str], branch: str | None) -> str:
    """Return the branch that a new wire gets.

    Raises:
        UsageError: it already carries a wire, or something else.
    """
    default = default_branch(git, remote)
    for short in heads:
        if short in (OWN_BRANCH, EMPTY_BRANCH, branch, default) and carries_wire(settings, git, remote, short):
            raise UsageError(
                f"the branch {short!r} of {redact_url(remote)} already carries a wire",
                reason="already-a-wire",
                next_step=(f"ask for the checkpoint, then: wire join {told_url(remote)} --as NAME --trust 1:SHA256:…"),
            )
    chosen = branch or (OWN_BRANCH if heads else default or EMPTY_BRANCH)
    if chosen in heads:
        raise UsageError(
            f"the branch {chosen!r} of {redact_url(remote)} has other content; a wire has a branch of its own",
            reason="branch-taken",
            next_step="name a branch that does not exist yet: --branch wire-2",
        )
    return chosen


def _seed(site: Site, pin: Pin, chain: Chain) -> None:
    """Push the first commit. Whoever comes second at an empty remote is told how to join."""
    changes = [Put(ATTRIBUTES_PATH.encode(), data=ATTRIBUTES), Put(NEWEST_TRUST_PATH.encode(), data=chain.newest.raw)]
    for document, signatures in zip(chain.documents, chain.signatures, strict=True):
        path = trust_path(document.version)
        changes += [Put(path.encode(), data=document.raw), Put(f"{path}.sig".encode(), data=signatures)]
    commit = site.git.write_commit(OUTGOING_REF, base=None, parents=(), message="wire: the beginning", changes=changes)
    # Where this fails, nobody knows whether the remote has it: everything stays, and the same command goes on.
    present = site.git.ls_remote(pin.remote, f"refs/heads/{pin.branch}").get(f"refs/heads/{pin.branch}")
    if present is not None and _genesis_at(site, pin) == chain.documents[0].raw:
        return
    try:
        result = site.git.push(pin.remote, f"{commit}:refs/heads/{pin.branch}")
    except GitFailed as error:
        if error.label != "object-format":
            raise
        _forget(site)
        other = "sha1" if len(commit) == 64 else "sha256"
        raise UsageError(
            f"the repository at {redact_url(pin.remote)} is made for objects of another format; nothing was begun",
            reason="object-format",
            next_step=f"wire init {told_url(pin.remote)} --as {site.config.agents[0]} --object-format {other}",
        ) from error
    if result.status in ("ok", "up-to-date"):
        return
    _forget(site)
    if result.status == "race":
        raise UsageError(
            f"somebody else began a wire on the branch {pin.branch!r} of {redact_url(pin.remote)} just now",
            reason="already-a-wire",
            next_step=(
                f"ask them for the checkpoint, then: wire join {told_url(pin.remote)} --as NAME --trust 1:SHA256:…"
            ),
        )
    raise RemoteError(f"the remote refused the new branch {pin.branch!r}: {result.reason}", kind="rejected")


def _genesis_at(site: Site, pin: Pin) -> bytes | None:
    """Return version 1 of the trust at the remote's tip, to tell an earlier push of ours from somebody else's wire."""
    site.git.fetch(pin.remote, [f"+refs/heads/{pin.branch}:{INCOMING_REF}"], max_bytes=FETCH_MAX_BYTES)
    wanted = trust_path(1).encode()
    oids = [e.oid for e in site.git.entries(INCOMING_REF, "_coordination/trust") if e.path == wanted]
    return next(iter(site.git.blobs(oids, max_size=1 << 21).values()), None) if oids else None


def _forget(site: Site) -> None:
    """Take a wire that never came to be out of the configuration, and its folders with it."""
    configs.remove_wire(site.settings, site.config.name)
    take_back(site.places)
