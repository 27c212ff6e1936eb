"""The policy of a wire, as far as these commands follow it: whether letters are to be closed (PROTOCOL.md, "Closed
letters").

    current(here)                               {"encrypt": "required"}
    set_encrypt(here, "required", confirm=ask)  a new trust version, or a proposal of one
"""

from collections.abc import Callable, Mapping
from typing import Any

from wire.keys.model import ENCRYPT, OPTIONAL, REQUIRED
from wire.keys.trust import Chain, successor
from wire.store import trustfiles
from wire.store.files import utc_now
from wire.verbs.here import Here
from wire.verbs.proposing import Decided, Draft, decide


def current(here: Here) -> Mapping[str, Any]:
    """Return what the trust held here says of the policies that are known: `encrypt`; raises TrustError."""
    asks = trustfiles.read(here.places.trust_dir).newest.asks_for_sealing
    return {ENCRYPT: REQUIRED if asks else OPTIONAL}


def set_encrypt(here: Here, value: str, *, confirm: Callable[[Draft], bool]) -> Decided:
    """Say whether senders are to close their letters: `required` or `optional`; all else of the policy stays.

    Raises:
        UsageError, TrustError: see `proposing.decide`.
    """

    def make(chain: Chain) -> bytes | None:
        held = chain.newest.policy
        if held.get(ENCRYPT, OPTIONAL) == value:
            return None
        return successor(chain.newest, chain.wire, utc_now(), policy={**held, ENCRYPT: value})

    return decide(here, make, f"trust: encrypt is {value}", confirm=confirm)
