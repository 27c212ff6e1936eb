"""Presences as a test wants them: signed by the agent that they are of, and put where accepted ones stand."""

import time
from typing import Any

from support.machine import Machine
from support.team import NAME, end, pin, signer, state
from wire.protocol.presence import parse, seal
from wire.store import presences
from wire.store.files import utc_now
from wire.store.paths import WirePlaces


def places(machine: Machine) -> WirePlaces:
    """Return where a machine keeps what it knows of the wire."""
    return WirePlaces(str(state(machine).parent), NAME, str(machine.clone(NAME)))


def hear(
    at: Machine,
    of: Machine,
    channels: dict[str, tuple[int, str, int]] | None = None,
    *,
    read: int | None = None,
    ago: float = 0.0,
    **rest: Any,
) -> None:
    """Let a machine have accepted a presence of another's agent.

    Args:
        channels: what it says of channels; by default that it accepted all that `at` has in `<at>/<of>`.
        read: up to which line of that channel it says to have read.
        ago: seconds since it was heard.
        rest: other members: `state`, `note`, `eta`, `interval`, `counter`.
    """
    held = pin(at)
    ours = end(at, f"{at.name}/{of.name}")
    if channels is None:
        place = (ours.seq, ours.head, ours.seq if read is None else read)
        channels = {f"{at.name}/{of.name}": place} if ours.seq else {}
    members: dict[str, Any] = {
        "wire": held.wire,
        "agent": of.name,
        "instance": "a" * 32,
        "counter": 1,
        "ts": utc_now(),
        "trust": f"{held.trust_version}:{held.trust_hash[:16]}",
        "state": "idle",
        "tier": "T0",
        "interval": 30.0,
        "channels": channels,
        **rest,
    }
    presences.keep(places(at), parse(seal(signer(of), **members)[:-1]), time.time() - ago)
