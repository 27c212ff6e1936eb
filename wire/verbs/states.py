"""How far a message of ours is known to have come."""

from wire.store.pin import Pin

STORED, COMMITTED, PUSHED = "stored", "committed", "pushed"
STATES = (STORED, COMMITTED, PUSHED)
"""In this order: on this machine's disk, accepted here, carried by the verified tip of the remote."""


def state_of(pin: Pin, channel: str, seq: int) -> str:
    """Return how far a line of a local agent has come, as far as the pin proves it."""
    if pin.remote_seq.get(channel, 0) >= seq:
        return PUSHED
    end = pin.accepted.get(channel)
    return COMMITTED if end is not None and end.seq >= seq else STORED
