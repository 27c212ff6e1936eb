"""Whether a file below `requests/` has nothing left to ask (PROTOCOL.md, section "Requests"); pure."""

from wire.errors import TrustError
from wire.keys import requests, rotations
from wire.keys.chain import Chain

ROTATION_MARK = b'"replaces":'
"""By what a rotation is told from a request before it is read."""


def is_free(chain: Chain, name: str) -> bool:
    """Return whether a name can be asked for: one of nobody, or of an agent whose last key was revoked."""
    known = chain.newest.agents.get(name)
    return known.waits_for_key if known is not None else name not in chain.newest.groups


def over(chain: Chain, file_name: str, raw: bytes | None) -> bool:
    """Return whether a request was answered, can never be, or is none.

    Args:
        raw: the file's bytes, None for one that is too large to be one.
    """
    name, _, rest = file_name.partition(".")
    if raw is None or chain.owner(rest.partition(".")[0]) is not None:
        return True
    try:
        if ROTATION_MARK in raw:
            one = rotations.parse(raw, wire=chain.wire, file_name=file_name)
            agent = chain.newest.agents.get(name)
            active = agent.active_key if agent is not None else None
            return active is None or active.id != one.replaces
        requests.parse(raw, wire=chain.wire, file_name=file_name)
    except TrustError:
        return True
    return not is_free(chain, name)
