"""What one trust document changes in another, in plain words, for people who are to sign it or to choose.

    for change in differences(held, draft): print(change.text)

Two documents that decide anything differently never look the same: what is not the usual case is said, a place in a
channel is told with the line that must stand there, and of a long value how much is not shown, and its hash. Names in
documents are of a strict form; what a policy holds is shown in ASCII.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from wire.keys import roots
from wire.keys.model import ACTIVE, REMOVED, RETIRED, Agent, Document, Key
from wire.protocol import strictjson
from wire.protocol.encoding import fingerprint, sha256_hex

_SHOWN = 120
_HEAD = 16


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
            keys = ", ".join(f"{fingerprint(key.public)}{_unusual(key)}" for key in after.keys)
            burnt = ", and takes that name off the wire, for good" if after.status == REMOVED else ""
            yield Difference("agent-added", name, f"adds {name} ({after.role}) with the key {keys}{burnt}")
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
            ends = "" if key.status == ACTIVE else f"; it counts up to {_positions(key)}"
            yield Difference("key-added", name, f"{what} {name} the key {shown}{ends}")
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
    places = [f"{channel}/{seq} ({head[:_HEAD]})" for channel, (seq, head) in key.positions.items()]
    return ", ".join(places) or "no line at all"


def _unusual(key: Key) -> str:
    return "" if key.status == ACTIVE else f" ({key.status}; it counts up to {_positions(key)})"


def _groups(old: Document, new: Document) -> Iterator[Difference]:
    for name, after in new.groups.items():
        before = old.groups.get(name)
        if before is None:
            burnt = "; that name is taken off the wire, for good" if after.status == REMOVED else ""
            members = ", ".join(after.members) or "nobody"
            yield Difference("group-added", name, f"adds the group {name}: {members}{burnt}")
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
    for member in sorted((old.policy.keys() | new.policy.keys()) - {roots.POLICY}):
        before, after = (_written(one.policy, member) for one in (old, new))
        if before != after:
            shown, name = f"{_short(before)} becomes {_short(after)}", _short(member)
            yield Difference("policy", name, f"policy '{name}': {shown}")


def _written(policy: Mapping[str, Any], member: str) -> str:
    return strictjson.dumps({"": policy[member]}).decode("utf-8")[4:-1] if member in policy else "nothing"


def _short(text: str) -> str:
    """Return a text in ASCII, cut short; two that differ never look the same."""
    shown = ascii(text)[1:-1]
    if len(shown) <= _SHOWN:
        return shown
    return f"{shown[:_SHOWN]}... ({len(shown) - _SHOWN} more characters, SHA-256 {sha256_hex(text.encode())[:_HEAD]})"
