"""The verdict on proposals of trust versions that a commit would change (PROTOCOL.md, section "Proposals").

One may stand there if it is well-formed and a root offers it. One may go once it is worth nothing, or with the trust
version that is made of it. Whoever may push could take an honest one out all the same: its root offers it again.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from wire.errors import TrustError
from wire.gitio import Change
from wire.hooks.ground import Ground
from wire.hooks.problems import Problem
from wire.keys import proposals
from wire.keys.proposals import State
from wire.keys.trust import Chain
from wire.store.files import utc_now

if TYPE_CHECKING:
    from wire.hooks.judge import Staging

_CODE = "REQUEST"


def judge_proposals(staging: "Staging", ground: Ground, chain: Chain, changes: Iterable[Change]) -> Iterable[Problem]:
    """Yield what is wrong with changed proposals.

    Args:
        chain: the trust that the changes make.
    """
    for change in changes:
        name = change.path.rpartition(b"/")[2].decode("ascii")
        if not change.new_oid.strip("0"):
            if ground.own is not None and _is_open(staging.old(change), name, chain):
                yield Problem("NOT_YOURS", change.path, "the proposal waits for signatures; it stays until it is over")
            continue
        raw = staging.new(change)
        try:
            found = proposals.parse(raw, wire=chain.wire, file_name=name)
            found.check_offered(_roots(chain, found))
        except TrustError as error:
            yield Problem(_CODE, change.path, error.message, 1, 0, raw[:40])


def _roots(chain: Chain, found: proposals.Proposal) -> list[bytes]:
    """Return the roots that may offer a proposal: those in force, and those of the version that it follows."""
    base = next((one for one in chain.documents if (one.version, one.hash) == found.base), chain.newest)
    return [*chain.newest.roots, *base.roots]


def _is_open(raw: bytes, name: str, chain: Chain) -> bool:
    try:
        found = proposals.parse(raw, wire=chain.wire, file_name=name)
    except TrustError:
        return False
    offered = found.offered_by(chain.newest.roots)
    return offered and proposals.weigh(chain, found, utc_now()).state is State.OPEN
