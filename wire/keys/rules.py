"""What a trust version must keep of the one before it (PROTOCOL.md, section "Trust").

Nothing that was ever trusted may disappear, because old lines are judged by it: names, keys and positions stay listed,
and a status moves only from active to retired to revoked, or from active to removed. The rules know nothing of
signatures; `chain` counts those. The builders obey the same rules.
"""

from wire.errors import TrustError
from wire.keys.model import KEY_STATUSES, REMOVED, Agent, Document, Key
from wire.keys.reasons import Reason, refused
from wire.keys.signatures import check_proof


def check_place(old: Document, new: Document, wire: str) -> None:
    """Refuse a document that is not the very next of `old` on this wire.

    Raises:
        TrustError: `not-next`, `wrong-wire`, `wrong-prev`.
    """
    if new.version != old.version + 1:
        raise refused(Reason.NOT_NEXT, f"trust version {new.version} where {old.version + 1} is next")
    if new.wire != wire:
        raise refused(Reason.WRONG_WIRE, f"trust version {new.version} is for wire {new.wire}, not {wire}")
    if new.prev != old.hash:
        raise refused(
            Reason.WRONG_PREV,
            f"trust version {new.version} follows {new.prev}; version {old.version} here is {old.hash}",
        )


def check_kept(old: Document, new: Document, wire: str) -> None:
    """Refuse a document that lost or turned back anything of its predecessor, or lists a key without its proof.

    Raises:
        TrustError: see `reasons.Reason`, from `name-vanished` to `proof-invalid`.
    """
    for name, agent in old.agents.items():
        kept = new.agents.get(name)
        if kept is None:
            raise _gone(new, name, "an agent", reused=name in new.groups)
        _agent_kept(agent, kept)
    for name, group in old.groups.items():
        listed = new.groups.get(name)
        if listed is None:
            raise _gone(new, name, "a group", reused=name in new.agents)
        if group.status == REMOVED != listed.status:
            raise refused(Reason.NAME_REVIVED, f"group {name!r} was removed and is {listed.status} again")
    for agent in new.agents.values():
        before = old.agents.get(agent.name)
        for key in agent.keys:
            if before is None or before.key(key.id) is None:
                check_proof(key.proof, wire=wire, name=agent.name, role=agent.role, public=key.public)


def _gone(new: Document, name: str, what: str, *, reused: bool) -> TrustError:
    if reused:
        return refused(Reason.NAME_REUSED, f"{name!r} was {what} and is something else in version {new.version}")
    return refused(Reason.NAME_VANISHED, f"{name!r} was {what} and is absent from version {new.version}")


def _agent_kept(old: Agent, new: Agent) -> None:
    if new.role != old.role:
        raise refused(Reason.ROLE_CHANGED, f"{old.name!r} was {old.role} and is {new.role}")
    if old.status == REMOVED != new.status:
        raise refused(Reason.NAME_REVIVED, f"agent {old.name!r} was removed and is {new.status} again")
    for key in old.keys:
        kept = new.key(key.id)
        if kept is None:
            raise refused(Reason.KEY_VANISHED, f"key {key.id} of {old.name!r} is no longer listed")
        _key_kept(old.name, key, kept)


def _key_kept(owner: str, old: Key, new: Key) -> None:
    if new.proof != old.proof:
        raise refused(Reason.PROOF_CHANGED, f"key {old.id} of {owner!r} carries another proof than before")
    if KEY_STATUSES.index(new.status) < KEY_STATUSES.index(old.status):
        raise refused(Reason.KEY_REVIVED, f"key {old.id} of {owner!r} was {old.status} and is {new.status}")
    for channel in old.positions:
        if channel not in new.positions:
            raise refused(
                Reason.POSITION_VANISHED, f"key {old.id} of {owner!r} no longer names a position in {channel}"
            )
