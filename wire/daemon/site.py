"""One wire on this machine, with everything that a cycle needs: configuration, places, git, keys, trust.

    site = Site.open(settings, config)
    with site.cycle_lock():
        pin = site.pin()
        chain = site.trust(pin)

What it does not do: decide anything. It is made once per process and wire, and holds no state of the wire itself: every
cycle reads the pin anew, since a command may have changed it meanwhile. What it remembers between two cycles is named
by its hash, or is compared with the disk.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from wire.daemon.accepted import REF as ACCEPTED_REF
from wire.daemon.accepted import Accepted, Blobs, Listing
from wire.daemon.ledger import BEAT, HEARD, Ears
from wire.errors import IdentityError, TrustError, UsageError, WireError
from wire.gitio import Git, redact_url, without_credentials
from wire.keys import keyfile
from wire.keys.trust import ACTIVE, Chain
from wire.protocol.encoding import Signer, fingerprint, parse_checkpoint
from wire.store import pin as pins
from wire.store import trustfiles, trustforks
from wire.store.config import WireConfig
from wire.store.files import locked
from wire.store.mending import Signatures
from wire.store.paths import Settings, WirePlaces
from wire.store.pin import Names, Pin, replace

VERIFIED_REF = "refs/wire/verified"
INCOMING_REF = "refs/wire/incoming"
OUTGOING_REF = "refs/wire/outgoing"
FETCH_MAX_BYTES = 512 * 1024 * 1024
"""Bytes of a fetch of the branch."""
CYCLE_LOCK_SECONDS = 180.0
GIT_SECONDS = 120.0
"""How long one git child may take unless `cadence.timeout` or `WIRE_GIT_TIMEOUT` says otherwise."""


@dataclass(slots=True)
class Site:
    """One wire on this machine.

    Attributes:
        blobs, listing: what was read of the accepted commits; ids name it, so that it stays true.
        signatures: which files of the clone were as they must be when they were last looked at.
        ears: what this process remembers about the remote's presences.
        asked: object ids of requests that this process looked at.
    """

    settings: Settings
    config: WireConfig
    places: WirePlaces
    git: Git
    blobs: Blobs
    listing: Listing = field(default_factory=Listing)
    signatures: Signatures = field(default_factory=Signatures)
    ears: Ears = field(default_factory=Ears)
    asked: set[str] = field(default_factory=set)
    lasting: bool = False
    chain: Chain | None = None

    @classmethod
    def open(cls, settings: Settings, config: WireConfig, *, lasting: bool = False) -> "Site":
        """Return the site of a configured wire; touches nothing.

        Args:
            lasting: for a process that stays. Between cycles, too, a child of git may be there that reads little
                things, and the clone is tidied by whoever runs the cycles, a moment after them (`tidy.tidy_up`).
        """
        places = WirePlaces(settings.state_dir, config.name, config.clone)
        first = config.agents[0] if config.agents else "wire"
        identity = (config.identity_name or first, config.identity_email or f"{first}@wire.invalid")
        git = Git(
            places.git_dir,
            environ=settings.environ,
            runtime_dir=settings.runtime_dir,
            work_tree=places.clone,
            identity=identity,
            timeout=_timeout(settings, config),
        )
        return cls(settings, config, places, git, Blobs(git), lasting=lasting)

    @contextmanager
    def cycle_lock(self, timeout: float | None = CYCLE_LOCK_SECONDS) -> Iterator[None]:
        """Hold the lock under which the clone, the pin and the remote are worked on.

        Raises:
            Busy: another process has it for longer than `timeout` seconds.
        """
        with locked(self.places.lock("sync"), what=f"the wire {self.config.name!r}", timeout=timeout):
            self._clear_leftovers()
            self.git.linger(True)
            try:
                yield
            finally:
                if not self.lasting:
                    self.git.linger(False)

    def _clear_leftovers(self) -> None:
        """Clear our own refs of what a kill or a loss of power left: locks of nobody, and files without an id."""
        self.git.clear_locks()
        own = (ACCEPTED_REF, VERIFIED_REF, INCOMING_REF, OUTGOING_REF)
        beside = [folder + name for folder in (HEARD, BEAT) for name in self._names(folder)]
        if not self.git.clear_broken([*own, *beside, f"refs/heads/{self.config.branch}"]):
            return
        # The pin says what they were. Where that cannot be read either, the cycle itself finds out and says so.
        with suppress(WireError):
            pin = self.pin()
            for name, commit in ((ACCEPTED_REF, pin.accepted_commit), (VERIFIED_REF, pin.verified)):
                if commit is not None:
                    self.git.update_ref(name, commit)

    def _names(self, folder: str) -> list[str]:
        try:
            return os.listdir(os.path.join(self.places.git_dir, folder))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def pin(self) -> Pin:
        """Return the pin as it is on disk now; credentials in the remote's URL are those of the configuration.

        Raises:
            IdentityError, Corrupt: it is missing or damaged.
            TrustError: reason `remote-changed`: the configuration names another place than the one that was pinned.
        """
        pin = pins.load(self.places.pin_file)
        told, pinned = (without_credentials(one) for one in (self.config.remote, pin.remote))
        if told != pinned or self.config.branch != pin.branch:
            name = self.config.name
            raise TrustError(
                f"the configuration of the wire {name!r} names branch {self.config.branch!r} of {redact_url(told)}, and"
                f" it is pinned to branch {pin.branch!r} of {redact_url(pinned)}; nothing is fetched or pushed",
                reason="remote-changed",
                next_step="where the wire moved, take the new place over: wire trust repin --checkpoint"
                f" {pin.checkpoint}; where this is another wire, put the old place back and give the other one a name"
                " of its own: wire join URL --as NAME --trust CHECKPOINT --wire OTHER-NAME",
            )
        return replace(pin, remote=self.config.remote)

    def accepted(self, pin: Pin) -> Accepted:
        """Return the accepted bytes that the pin names."""
        return Accepted(self.git, self.blobs, pin.accepted_commit, self.listing)

    def save(self, pin: Pin) -> Pin:
        """Write the pin durably and return it."""
        pins.save(self.places.pin_file, pin)
        return pin

    def trust(self, pin: Pin) -> Chain:
        """Return the trust chain that is held here.

        Raises:
            TrustError: reason `trust-corrupt`: it does not hold, or is not the one that is pinned. Fail closed.
        """
        try:
            self.chain = chain = trustfiles.read(self.places.trust_dir, self.chain)
            if not chain.passes(pin.trust_version, bytes.fromhex(pin.trust_hash)):
                raise TrustError(
                    f"the trust in {self.places.trust_dir} ends at version {chain.newest.reference}, "
                    f"the pin says {pin.trust_version}:{pin.trust_hash[:16]}",
                    reason="trust-corrupt",
                    next_step=f"wire trust repin --checkpoint {pin.checkpoint}",
                )
        except TrustError:
            pinned = self._before_a_decision(pin)
            if pinned is None:
                raise
            return pinned
        # A kill between writing a version and the pin leaves one more than is pinned; it is accepted anew.
        return chain.until(pin.trust_version)

    def _before_a_decision(self, pin: Pin) -> Chain | None:
        """Return the pinned chain where a kill came while the files of another took its place, as a person decided.

        It is among the accepted bytes, and is the pinned one by its hash; None where no decision explains the files.
        """
        decided = trustforks.decided(self.places)
        files = self.accepted(pin).trust() if decided else []
        if len(files) < pin.trust_version:
            return None
        chain = Chain.replay(files[: pin.trust_version])
        if not chain.passes(pin.trust_version, bytes.fromhex(pin.trust_hash)):
            return None
        held = ((chain.at(version), one) for version, one in decided.items())
        return chain if any(ours is not None and ours.raw != one.raw for ours, one in held) else None

    def pin_trust(self, pin: Pin, chain: Chain) -> Pin:
        """Write the trust chain and return the pin that names it; the caller saves the pin."""
        if not chain.passes(*parse_checkpoint(pin.checkpoint)):
            raise TrustError(
                f"the trust chain does not pass through the checkpoint {pin.checkpoint}", reason="checkpoint"
            )
        trustfiles.write(self.places.trust_dir, chain)
        newest = chain.newest
        return replace(pin, trust_version=newest.version, trust_hash=newest.hash, names=names_of(chain))

    def signer(self, agent: str, wire: str) -> Signer:
        """Return a local agent's key.

        Raises:
            IdentityError: it is missing, readable by others, damaged, or another agent's. One that has a passphrase is
                returned all the same, and raises when it is to sign and none is at hand; see `able`.
        """
        path = keyfile.key_path(self.settings.keys_dir, wire=wire, kind="agent", name=agent)
        loose, environ = self.settings.allow_loose_keys, self.settings.environ
        return keyfile.load_for(path, name=agent, kind="agent", wire=wire, allow_loose=loose, environ=environ)

    def approved(self, chain: Chain) -> tuple[dict[str, Signer], dict[str, IdentityError]]:
        """Return the keys of those local agents that the trust vouches for, and why others cannot be used.

        A key that cannot be read, or whose name was given to somebody else's, stops its own agent's lines and nothing
        else.
        """
        signers: dict[str, Signer] = {}
        unusable: dict[str, IdentityError] = {}
        for agent in self.config.agents:
            try:
                signer = self.signer(agent, chain.wire)
            except IdentityError as error:
                unusable[agent] = error
                continue
            known = chain.newest.agents.get(agent)
            if known is None:
                continue
            if known.key(signer.key_id) is None:
                former = self.former(agent, chain.wire)
                if not any(known.key(one) for one in former):
                    if not known.waits_for_key:
                        unusable[agent] = name_taken(chain, agent, signer)
                    continue
                # The next key is not in the trust yet: up to where the old one was closed, that one still counts.
                signer = former.get(known.active_key.id if known.active_key is not None else "", signer)
            key = known.key(signer.key_id)
            if key is not None and key.status == ACTIVE and known.status == ACTIVE:
                signers[agent] = signer
        return signers, unusable

    def former(self, agent: str, wire: str) -> dict[str, Signer]:
        """Return the keys that a local agent had on this machine before its present one, by id."""
        from wire.keys import keychange  # only around a change of keys

        path = keyfile.key_path(self.settings.keys_dir, wire=wire, kind="agent", name=agent)
        loose = self.settings.allow_loose_keys
        return keychange.former(path, name=agent, wire=wire, allow_loose=loose, environ=self.settings.environ)

    def local(self, chain: Chain) -> frozenset[str]:
        """Return the agents whose folders this machine writes: not one whose name the trust gives to another key.

        Two newcomers may have asked for one name. Who was not chosen keeps what it had sent, and takes the lines of the
        other for what they are.
        """
        mine = set()
        for agent in self.config.agents:
            known = chain.newest.agents.get(agent)
            try:
                if known is None or known.key(self.signer(agent, chain.wire).key_id) is not None:
                    mine.add(agent)
                    continue
                mine |= {agent for one in self.former(agent, chain.wire) if known.key(one) is not None}
            except IdentityError:
                mine.add(agent)
        return frozenset(mine)


def able(signers: Mapping[str, Signer]) -> dict[str, Signer]:
    """Return those keys that can sign now: not one whose passphrase this process has no way to."""
    found = {}
    for agent, signer in signers.items():
        with suppress(IdentityError):
            signer.ready()
            found[agent] = signer
    return found


def name_taken(chain: Chain, agent: str, signer: Signer) -> IdentityError:
    """Return the error of an agent whose name the trust gives to another key."""
    active = chain.newest.agents[agent].active_key
    whose = f" ({fingerprint(active.public)})" if active is not None else ""
    return IdentityError(
        f"the name {agent!r} belongs to another key on this wire{whose}, not to this machine's "
        f"({fingerprint(signer.public)}); what was sent under it stays here",
        reason="name-taken",
        next_step="join under another name: wire join REMOTE --as ANOTHER-NAME --trust CHECKPOINT",
    )


def _timeout(settings: Settings, config: WireConfig) -> float:
    given = settings.environ.get("WIRE_GIT_TIMEOUT", "")
    if given:
        try:
            seconds = float(given)
        except ValueError:
            seconds = 0.0
        if not 0 < seconds <= 86_400:
            raise UsageError(f"WIRE_GIT_TIMEOUT is {given[:40]!r}; expected seconds, above 0 and at most 86400")
        return seconds
    return float(config.cadence.get("timeout", GIT_SECONDS))


def names_of(chain: Chain) -> Names:
    """Return who is who in the newest trust version, in the form that the pin carries."""
    document = chain.newest
    agents = {name: agent for name, agent in document.agents.items() if agent.status == ACTIVE}
    return Names(
        tuple(agents),
        {name: group.members for name, group in document.groups.items() if group.status == ACTIVE},
        {name: tuple(key.id for key in agent.keys if key.status == ACTIVE) for name, agent in agents.items()},
        document.asks_for_sealing,
    )
