"""What one trust document changes in another, in plain words, for people who are to sign it or to choose.

    for change in differences(held, draft): print(change.text)

Names in documents are of a strict form; what a policy holds is cut short and shown in ASCII.
"""

from collections.abc import Iterator
from typing import NamedTuple

from wire.keys import roots
from wire.keys.model import ACTIVE, REMOVED, RETIRED, Agent, Document, Group, Key
from wire.protocol import strictjson
from wire.protocol.encoding import fingerprint

_SHOWN = 120


class Difference(NamedTuple):
    """One change.

    Attributes:
        kind: a stable word for programs: `agent-added`, `key-revoked`, `threshold`, …
        name: of the agent, group or policy member that it is about, or the fingerprint of a root.
    """

    kind: str
    name: str
    text: str


def differences(old: Document, new: Document) -> list[Difference]:
    """Return what `new` changes in `old`, what concerns the roots first."""
    return [*_roots(old, new), *_agents(old, new), *_groups(old, new), *_policy(old, new)]


def _roots(old: Document, new: Document) -> Iterator[Difference]:
    if new.threshold != old.threshold:
        text = (
            f"signatures needed: from {old.threshold} of {len(old.roots)} to {new.threshold} of {len(new.roots)} roots"
        )
        yield Difference("threshold", str(new.threshold), text)
    for one in new.roots:
        if one not in old.roots:
            yield Difference("root-added", fingerprint(one), f"adds the root {roots.called(new, one)}")
    for one in old.roots:
        if one not in new.roots:
            yield Difference("root-removed", fingerprint(one), f"removes the root {roots.called(old, one)}")
        elif roots.called(old, one) != roots.called(new, one):
            text = f"calls the root {roots.called(old, one)} now {roots.called(new, one)}"
            yield Difference("root-named", fingerprint(one), text)


def _agents(old: Document, new: Document) -> Iterator[Difference]:
    for name, after in new.agents.items():
        before = old.agents.get(name)
        if before is None:
            keys = ", ".join(fingerprint(key.public) for key in after.keys)
            yield Difference("agent-added", name, f"adds {name} ({after.role}) with the key {keys}")
        else:
            yield from _agent(before, after)
    for name in old.agents.keys() - new.agents.keys():
        yield Difference("agent-absent", name, f"no longer lists {name}")


def _agent(before: Agent, after: Agent) -> Iterator[Difference]:
    name = after.name
    if after.role != before.role:
        yield Difference("role", name, f"makes {name} {after.role}, who is {before.role}")
    if after.status != before.status:
        what = "takes {} off the wire, for good" if after.status == REMOVED else "brings {} back"
        yield Difference("agent-removed" if after.status == REMOVED else "agent-revived", name, what.format(name))
    for key in after.keys:
        known = before.key(key.id)
        shown = fingerprint(key.public)
        if known is None:
            what = "gives" if key.status == ACTIVE else f"lists, {key.status}, for"
            yield Difference("key-added", name, f"{what} {name} the key {shown}")
        elif known.status != key.status:
            how = "retires" if key.status == RETIRED else "revokes" if key.status != ACTIVE else "revives"
            kind = "key-revived" if key.status == ACTIVE else f"key-{key.status}"
            yield Difference(kind, name, f"{how} the key {shown} of {name}; it counts up to {_positions(key)}")
        elif known.positions != key.positions:
            yield Difference("positions", name, f"moves where the key {shown} of {name} ends, to {_positions(key)}")
    for key in before.keys:
        if after.key(key.id) is None:
            yield Difference("key-absent", name, f"no longer lists the key {fingerprint(key.public)} of {name}")


def _positions(key: Key) -> str:
    return ", ".join(f"{channel}/{at[0]}" for channel, at in key.positions.items()) or "no line at all"


def _groups(old: Document, new: Document) -> Iterator[Difference]:
    for name, after in new.groups.items():
        before = old.groups.get(name, Group(name, ACTIVE, ()))
        if name not in old.groups:
            yield Difference("group-added", name, f"adds the group {name}: {', '.join(after.members) or 'nobody'}")
            continue
        if after.status != before.status:
            what = "removes the group {}, for good" if after.status == REMOVED else "brings the group {} back"
            yield Difference(f"group-{after.status}", name, what.format(name))
        come = [one for one in after.members if one not in before.members]
        gone = [one for one in before.members if one not in after.members]
        if come or gone:
            parts = [f"adds {', '.join(come)}"] * bool(come) + [f"takes out {', '.join(gone)}"] * bool(gone)
            yield Difference("group-changed", name, f"in the group {name}: {'; '.join(parts)}")
    for name in old.groups.keys() - new.groups.keys():
        yield Difference("group-absent", name, f"no longer lists the group {name}")


def _policy(old: Document, new: Document) -> Iterator[Difference]:
    for member in sorted(old.policy.keys() | new.policy.keys()):
        before, after = (_short(one.policy, member) for one in (old, new))
        if before != after and member != roots.POLICY:
            yield Difference(
                "policy", ascii(member)[1:-1][:64], f"policy {ascii(member)[:64]}: {before} becomes {after}"
            )


def _short(policy: object, member: str) -> str:
    if not isinstance(policy, dict) or member not in policy:
        return "nothing"
    return ascii(strictjson.dumps({"": policy[member]}).decode("utf-8")[4:-1])[1:-1][:_SHOWN]
