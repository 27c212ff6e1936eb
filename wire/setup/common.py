"""What beginning and joining share: the clone, the pin, the key, and names."""

import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from wire.daemon import transport
from wire.daemon.shape import Kind, classify
from wire.daemon.site import FETCH_MAX_BYTES, INCOMING_REF, names_of
from wire.errors import UsageError
from wire.gitio import Git, GitFailed, redact_url, without_credentials
from wire.gitio import Kind as FailureKind
from wire.keys import keyfile
from wire.keys.trust import Chain
from wire.protocol.encoding import Signer, fingerprint
from wire.protocol.names import valid_name
from wire.store import config as configs
from wire.store import pin as pins
from wire.store import trustfiles
from wire.store.config import WireConfig
from wire.store.files import atomic_write, locked, private_folder
from wire.store.paths import Settings, WirePlaces
from wire.store.pin import Pin

OWN_BRANCH = "wire"
EMPTY_BRANCH = "main"


def default_branch(git: Git, remote: str) -> str | None:
    """Return the short name of the branch that the remote's HEAD names, or None."""
    full = git.default_branch(remote)
    return full.removeprefix("refs/heads/") if full is not None else None


def carries_wire(settings: Settings, git: Git, remote: str, branch: str) -> bool:
    """Return whether a branch of the remote carries a trust chain.

    It may be a project's own and large: its tip is looked at in a repository that is thrown away, and of which the
    clone keeps nothing.
    """
    folder = os.path.join(git.git_dir, "wire-probe")
    # Of objects that come with a filter git tolerates nothing, and history may hold such for ever; here names are read.
    unchecked = (("fetch.fsckObjects", "false"), ("transfer.fsckObjects", "false"))
    probe = Git(folder, environ=settings.environ, runtime_dir=settings.runtime_dir, extra_config=unchecked)
    try:
        probe.init(git.object_format())
        refspec = f"+refs/heads/{branch}:{INCOMING_REF}"
        probe.fetch(remote, [refspec], max_bytes=FETCH_MAX_BYTES, tips_only=True)
        found = probe.entries(INCOMING_REF, "_coordination/trust")
        return any(classify(entry.path, entry.mode).kind is Kind.TRUST for entry in found)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def object_format(git: Git, remote: str, refs: Mapping[str, str], wanted: str | None = None) -> str:
    """Return the object format that a clone of the remote must have: `sha1` or `sha256`.

    Ids tell it, and so does an empty repository on a local path; a host does not say it of an empty one.

    Args:
        refs: what `ls_remote` returned.
        wanted: what the caller asked for.

    Raises:
        UsageError: `wanted` is not what the remote has (`object-format`).
    """
    found = "sha256" if any(len(oid) == 64 for oid in refs.values()) else "sha1" if refs else None
    local = transport.of(remote).path
    if found is None and local is not None:
        found = git.object_format_of(local)
    if found is not None and wanted not in (None, found):
        raise UsageError(
            f"the repository at {redact_url(remote)} has {found} objects, not {wanted}", reason="object-format"
        )
    return found or wanted or "sha1"


@contextmanager
def making(settings: Settings, places: WirePlaces) -> Iterator[None]:
    """Make the folders of a wire that this machine does not know yet: all of them, or none.

    What fails is taken back, and what an earlier run left that was killed: a mark says that it was at work. Nothing can
    have been sent from there, since the configuration names the wire last.

    Raises:
        UsageError: something else is in the way (`clone-exists`, `state-exists`).
        Busy: another process is making them.
    """
    private_folder(settings.clones_dir)
    private_folder(settings.state_dir)
    folder = os.path.join(settings.state_dir, f".begun-{places.name}")
    mark = os.path.join(folder, "unfinished")
    with locked(folder, what=f"the folders of the wire {places.name!r}", timeout=0):
        if os.path.exists(mark) and not os.path.exists(places.journal_dir):
            take_back(places)
        try:
            _nothing_in_the_way(places)
            atomic_write(mark, b"")
            try:
                yield
            except BaseException:
                take_back(places)
                raise
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _nothing_in_the_way(places: WirePlaces) -> None:
    if os.path.exists(places.clone) and os.listdir(places.clone):
        raise UsageError(f"{places.clone} is in the way: the clone is to stand there", reason="clone-exists")
    if os.path.exists(places.root):
        raise UsageError(
            f"{places.root} holds the state of a wire that is not in the configuration",
            reason="state-exists",
            next_step="choose another local name with --wire, or move that folder away",
        )


def new_clone(
    settings: Settings, places: WirePlaces, remote: str, *, absent: str, wanted: str | None = None
) -> tuple[Git, list[str]]:
    """Return the empty repository of a wire, and the remote's branches; see `making`.

    Args:
        absent: what helps where there is no repository at the remote's address.
        wanted: the object format, where the remote does not tell it.

    Raises:
        UsageError: see `object_format`.
        GitFailed: the remote cannot be reached.
    """
    git = Git(places.git_dir, environ=settings.environ, runtime_dir=settings.runtime_dir, work_tree=places.clone)
    try:
        refs = git.ls_remote(remote)
    except GitFailed as error:
        if error.kind is FailureKind.NOT_FOUND:
            error.next_step = error.next_step or absent
        raise
    git.init(object_format(git, remote, refs, wanted))
    heads = "refs/heads/"
    return git, [name.removeprefix(heads) for name in refs if name.startswith(heads)]


def write_down(
    settings: Settings, places: WirePlaces, remote: str, branch: str, agent: str, chain: Chain, checkpoint: str
) -> WireConfig:
    """Write trust, pin and, last, the configuration, which makes the wire known to this machine."""
    private_folder(places.root)
    trustfiles.write(places.trust_dir, chain)
    newest = chain.newest
    pins.save(
        places.pin_file,
        Pin(
            wire=chain.wire,
            wire_hash=chain.documents[0].hash,
            remote=remote,
            branch=branch,
            checkpoint=checkpoint,
            trust_version=newest.version,
            trust_hash=newest.hash,
            instance=secrets.token_hex(16),
            names=names_of(chain),
        ),
    )
    config = WireConfig(places.name, remote, branch, places.clone, (agent,))
    configs.add_wire(settings, config)
    return config


def configured(settings: Settings, name: str, remote: str) -> WireConfig | None:
    """Return the configured wire of this name, for a run that goes on after a crash or adds an agent.

    Raises:
        UsageError: reason `wire-exists`: the name is another remote's.
    """
    config = configs.load(settings).get(name)
    if config is not None and config.remote != remote:
        raise UsageError(
            f"this machine already has a wire {name!r}, at {redact_url(config.remote)}, and this is "
            f"{redact_url(remote)}",
            reason="wire-exists",
            next_step="give this one another local name: --wire NAME",
        )
    return config


def own_key(settings: Settings, wire: str, agent: str) -> Signer:
    """Return the agent's key, made now unless an earlier run made it."""
    path = keyfile.key_path(settings.keys_dir, wire=wire, kind="agent", name=agent)
    held, loose = key_held(settings, wire, agent), settings.allow_loose_keys
    return held or keyfile.create(path, name=agent, kind="agent", wire=wire, allow_loose=loose)


def key_held(settings: Settings, wire: str, agent: str) -> Signer | None:
    """Return the agent's key if this machine has one."""
    path = keyfile.key_path(settings.keys_dir, wire=wire, kind="agent", name=agent)
    if not os.path.lexists(path):
        return None
    loose, environ = settings.allow_loose_keys, settings.environ
    return keyfile.load_for(path, name=agent, kind="agent", wire=wire, allow_loose=loose, environ=environ)


def absolute_remote(remote: str) -> str:
    """Return a local path in its absolute form, which stays right in another folder; anything else as it is."""
    if "://" in remote or (":" in remote and not os.path.exists(remote)):
        return remote
    return os.path.abspath(os.path.expanduser(remote))


def local_name(remote: str) -> str:
    """Return a wire's local name, from the last part of its remote."""
    last = without_credentials(remote).rstrip("/").rpartition("/")[2].rpartition(":")[2].removesuffix(".git").lower()
    name = "".join(c if c.isascii() and c.isalnum() else "-" for c in last).strip("-")[:32].strip("-")
    # A repository may be called what no wire can be, `trust` or `all`.
    return name if valid_name(name) or name == "wire" else f"{name[:27]}-wire".lstrip("-")


def take_back(places: WirePlaces) -> None:
    """Remove what this run made; both folders were absent or empty before."""
    shutil.rmtree(places.clone, ignore_errors=True)
    shutil.rmtree(places.root, ignore_errors=True)


def signer_print(signer: Signer) -> str:
    """Return the fingerprint by which people recognise a key."""
    return fingerprint(signer.public)
