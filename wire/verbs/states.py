"""How far a message of ours is known to have come.

    stored      on this machine's disk
    committed   accepted here
    pushed      carried by the verified tip of the remote: the host's word
    delivered   a recipient named the line's head, or that of a later one, in something that it signed
    read        the recipient says that it was put in front of the agent
    acked       the recipient answered it

The first three are a matter of the pin, the others of each recipient: see `receipts`.
"""

from wire.store.pin import Pin

STORED, COMMITTED, PUSHED = "stored", "committed", "pushed"
DELIVERED, READ, ACKED = "delivered", "read", "acked"
SENT_STATES = (STORED, COMMITTED, PUSHED)
STATES = (*SENT_STATES, DELIVERED, READ, ACKED)
"""In the order in which a message comes by them."""


def state_of(pin: Pin, channel: str, seq: int) -> str:
    """Return how far a line of a local agent has come, as far as the pin proves it."""
    if pin.remote_seq.get(channel, 0) >= seq:
        return PUSHED
    end = pin.accepted.get(channel)
    return COMMITTED if end is not None and end.seq >= seq else STORED


def least(states: list[str]) -> str:
    """Return the state that comes first: what all of them have reached."""
    return STATES[min(map(STATES.index, states))]
