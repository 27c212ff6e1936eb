"""How the service stands: what systemd says of it, beside what locks and stamps prove.

    for trouble in look(settings).troubles: print(trouble)

The manager knows whether a process runs. Whether the daemon works is told by its lock and its stamp alone, so both are
asked, and where they disagree that is said.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from wire.daemon import status
from wire.errors import WireError
from wire.store import config as configs
from wire.store.config import WireConfig
from wire.store.paths import Settings, WirePlaces
from wire.systemd import unit, unitfile
from wire.systemd.manager import Lingering, Manager
from wire.systemd.unit import NAME, Origin
from wire.verbs import watching
from wire.verbs.here import Here

PROPERTIES = (
    "LoadState", "ActiveState", "SubState", "MainPID", "NRestarts", "Result", "UnitFileState", "FragmentPath",
    "NeedDaemonReload",
)  # fmt: skip
"""What is asked of systemd."""


@dataclass(frozen=True, slots=True)
class Proof:
    """What locks and stamps prove of one wire: `running`, `stuck`, `stopped` or, where its pin fails, `unknown`."""

    name: str
    daemon: str
    pid: int | None
    fetch_age: float | None
    why: str = ""


@dataclass(frozen=True, slots=True)
class State:
    """How the service stands.

    Attributes:
        path: the unit's file; None where no manager could say where it belongs.
        manager: why systemd could not be asked, or None.
        properties: systemd's own words.
        proofs: one per configured wire.
        service_troubles: what is wrong with the service itself.
        troubles: every reason not to be content; empty means that all is well.
    """

    path: str | None
    origin: Origin
    lingering: Lingering
    manager: WireError | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    proofs: tuple[Proof, ...] = ()
    service_troubles: tuple[str, ...] = ()
    troubles: tuple[str, ...] = ()


def look(settings: Settings) -> State:
    """Return how the service stands; a missing manager is a part of the answer and not an error."""
    manager = Manager(settings.environ)
    lingering = manager.lingering()
    proofs = prove(settings)
    try:
        path = unitfile.path_of(manager.environment())
        properties = manager.show(NAME, *PROPERTIES)
        origin = unit.origin(unitfile.read(path))
    except WireError as error:
        state = State(None, Origin.MISSING, lingering, error, {}, proofs)
        return replace(state, troubles=(error.message, *_unproved(proofs)))
    state = State(path, origin, lingering, None, properties, proofs)
    troubles = tuple(_service_troubles(state))
    return replace(state, service_troubles=troubles, troubles=(*troubles, *_unproved(proofs)))


def prove(settings: Settings) -> tuple[Proof, ...]:
    """Return what is proved of each configured wire; raises Corrupt for a configuration that cannot be read."""
    return tuple(_proof(settings, wire) for wire in configs.load(settings).wires)


def _proof(settings: Settings, wire: WireConfig) -> Proof:
    here = Here(settings, wire, WirePlaces(settings.state_dir, wire.name, wire.clone))
    try:
        seen = watching.look(here)
    except WireError as error:
        return Proof(wire.name, "unknown", None, None, error.message)
    return Proof(wire.name, seen.daemon, seen.snapshot.holder, seen.fetch_age)


def _service_troubles(state: State) -> list[str]:
    if state.origin is Origin.MISSING:
        return ["the service is not installed: wire service install"]
    troubles = []
    active, sub = state.properties.get("ActiveState", ""), state.properties.get("SubState", "")
    if active != "active":
        result = state.properties.get("Result", "success")
        troubles.append(f"systemd says {active} ({sub}{'' if result == 'success' else f', {result}'})")
    if state.properties.get("NeedDaemonReload") == "yes":
        troubles.append("the unit changed after systemd read it: systemctl --user daemon-reload")
    if state.properties.get("UnitFileState") not in ("enabled", "enabled-runtime"):
        troubles.append(f"it does not start by itself: systemctl --user enable {NAME}")
    main = int(state.properties.get("MainPID") or 0)
    troubles += [
        f"{proof.name}: process {proof.pid} holds the daemon's lock, and is not this service's ({main})"
        for proof in state.proofs
        if proof.daemon != status.STOPPED and proof.pid not in (None, main)
    ]
    return troubles


def _unproved(proofs: Sequence[Proof]) -> list[str]:
    return [
        f"{proof.name}: the daemon is {proof.daemon}" + (f" ({proof.why})" if proof.why else "")
        for proof in proofs
        if proof.daemon != status.RUNNING
    ]
