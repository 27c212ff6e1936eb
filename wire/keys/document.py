"""One trust document: its model, its strict parser, its writer (PROTOCOL.md, section "Trust").

A document says who may sign what from one version on. Its exact bytes are signed and nothing is canonicalised; what we
write is JSON with one space of indent. This module judges a document by itself; what it must keep of its predecessor
is in `rules`, and whether it is signed in `chain`.

    document = parse(raw)
    document.agents["mac"].active_key, document.reference, document.checkpoint

Rules of one document, beyond its form:
- agents and groups share one namespace, and reserved words are no names;
- a public key is a point of the prime-order group and stands once in the whole document, roots included, so that an
  id belongs to one key and a key to one name;
- an agent has at most one active key (one key is one writer), and none once it is removed;
- a retired or revoked key names, per channel, the last line that counts; an active key names none;
- version 1 has no `wire`, no `prev`, no agents and no groups, and alone has a `nonce`.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, TypeGuard

from wire.keys.model import (
    ACTIVE,
    KEY_STATUSES,
    NAME_STATUSES,
    REMOVED,
    ROLES,
    VERSION_MAX,
    Agent,
    Document,
    Group,
    Key,
)
from wire.keys.reasons import Reason, refused
from wire.protocol import strictjson
from wire.protocol.encoding import PUBLIC_BYTES, SIGNATURE_BYTES, b64, key_id, unb64, valid_public
from wire.protocol.line import genesis
from wire.protocol.names import valid_channel, valid_name

DOCUMENT_MAX = 1_048_576
ROOTS_MAX = 64
AGENTS_MAX = 4_096
GROUPS_MAX = 4_096
KEYS_MAX = 64
POSITIONS_MAX = 8_192

_MEMBERS = (
    "v", "version", "wire", "prev", "nonce", "created", "threshold", "roots", "agents", "groups", "policy",
)  # fmt: skip
_AGENT_MEMBERS = ("role", "status", "keys")
_KEY_MEMBERS = ("public", "status", "proof", "positions")
_GROUP_MEMBERS = ("status", "members")

_HEX32 = re.compile(r"[0-9a-f]{32}", re.ASCII)
_HEX64 = re.compile(r"[0-9a-f]{64}", re.ASCII)
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z", re.ASCII)


def parse(raw: bytes, *, known: Document | None = None) -> Document:
    """Read one trust document strictly. Its signatures and its place in a chain are not checked here.

    Args:
        raw: the exact bytes.
        known: a document that was parsed before; the points of its keys are not checked a second time.

    Raises:
        TrustError: the reasons of form, and those of one document, in `reasons.Reason`.
    """
    if len(raw) > DOCUMENT_MAX:
        raise refused(Reason.TOO_LARGE, f"a trust document of {len(raw)} bytes; the limit is {DOCUMENT_MAX}")
    try:
        top = strictjson.loads(raw, floats_below=None)
    except strictjson.StrictError as error:
        raise refused(Reason.MALFORMED, f"the trust document is not strict JSON: {error}") from error
    _members(top, _MEMBERS, "the trust document")
    if not _is_integer(top["v"]) or top["v"] != 1:
        raise refused(Reason.MALFORMED, f"'v' is {_short(top['v'])}; this version of wire reads 1")
    version = _integer(top["version"], 1, VERSION_MAX, "'version'")
    wire = _only_when(version > 1, top["wire"], _HEX32, "'wire'", "32 hex digits")
    prev = _only_when(version > 1, top["prev"], _HEX64, "'prev'", "64 hex digits")
    nonce = _only_when(version == 1, top["nonce"], _HEX32, "'nonce'", "32 hex digits")
    created = _text(top["created"], _TIME, "'created'", "a time such as 2026-11-29T11:20:00.123Z")
    roots = tuple(
        _public(root, known, f"root {number}")
        for number, root in enumerate(_list(top["roots"], ROOTS_MAX, "'roots'"), 1)
    )
    threshold = _threshold(top["threshold"], len(roots))
    agents = {
        name: _agent(name, value, wire or "", known)
        for name, value in _table(top["agents"], AGENTS_MAX, "'agents'").items()
    }
    groups = {name: _group(name, value) for name, value in _table(top["groups"], GROUPS_MAX, "'groups'").items()}
    policy = _object(top["policy"], "'policy'")
    if version == 1 and (agents or groups):
        raise refused(Reason.FIRST_NOT_EMPTY, "version 1 lists agents or groups; they begin with version 2")
    _names_differ(agents, groups)
    _keys_differ(roots, agents)
    return Document(version, wire, prev, nonce, created, threshold, roots, agents, groups, policy, raw)


def encode(
    *,
    version: int,
    wire: str | None,
    prev: str | None,
    nonce: str | None,
    created: str,
    threshold: int,
    roots: tuple[bytes, ...],
    agents: Mapping[str, Agent],
    groups: Mapping[str, Group],
    policy: Mapping[str, Any],
) -> bytes:
    """Return a document as the bytes that we write: the members in order, one space of indent, a final newline.

    Nothing is checked here but that it can be written; `parse` is the check.

    Raises:
        TrustError: `trust-malformed`, when the policy holds what JSON cannot.
    """
    top = {
        "v": 1, "version": version, "wire": wire, "prev": prev, "nonce": nonce, "created": created,
        "threshold": threshold, "roots": [b64(root) for root in roots],
        "agents": {name: _agent_members(agents[name]) for name in agents},
        "groups": {name: {"status": groups[name].status, "members": list(groups[name].members)} for name in groups},
        "policy": dict(policy),
    }  # fmt: skip
    try:
        return json.dumps(top, indent=1, ensure_ascii=False, allow_nan=False).encode("utf-8") + b"\n"
    except (TypeError, ValueError) as error:
        raise refused(Reason.MALFORMED, f"the policy cannot be written as strict JSON: {error}") from error


def _agent_members(agent: Agent) -> dict[str, Any]:
    keys = [
        {
            "public": b64(key.public),
            "status": key.status,
            "proof": b64(key.proof),
            "positions": {channel: list(last) for channel, last in key.positions.items()},
        }
        for key in agent.keys
    ]
    return {"role": agent.role, "status": agent.status, "keys": keys}


def _agent(name: str, value: object, wire: str, known: Document | None) -> Agent:
    where = _name(name, "agent")
    members = _members(value, _AGENT_MEMBERS, where)
    role = _choice(members["role"], ROLES, f"the role of {where}")
    status = _choice(members["status"], NAME_STATUSES, f"the status of {where}")
    keys = tuple(
        _key(name, key, wire, known, f"key {number} of {where}")
        for number, key in enumerate(_list(members["keys"], KEYS_MAX, f"the keys of {where}"), 1)
    )
    if not keys:
        raise refused(Reason.MALFORMED, f"{where} has no key")
    active = sum(key.status == ACTIVE for key in keys)
    if active > 1:
        raise refused(Reason.TWO_ACTIVE_KEYS, f"{where} has {active} active keys; one key is one writer")
    if active and status == REMOVED:
        raise refused(Reason.REMOVED_WITH_ACTIVE_KEY, f"{where} is removed and still has an active key")
    return Agent(name, role, status, keys)


def _key(owner: str, value: object, wire: str, known: Document | None, where: str) -> Key:
    members = _members(value, _KEY_MEMBERS, where)
    status = _choice(members["status"], KEY_STATUSES, f"the status of {where}")
    positions = _object(members["positions"], f"the positions of {where}")
    if len(positions) > POSITIONS_MAX:
        raise refused(Reason.MALFORMED, f"{where} has {len(positions)} positions; the limit is {POSITIONS_MAX}")
    if positions and status == ACTIVE:
        raise refused(Reason.POSITION_INVALID, f"{where} is active and has positions")
    return Key(
        _public(members["public"], known, where),
        status,
        _bytes(members["proof"], SIGNATURE_BYTES, f"the proof of {where}"),
        {channel: _position(owner, channel, last, wire, where) for channel, last in positions.items()},
    )


def _position(owner: str, channel: str, value: object, wire: str, where: str) -> tuple[int, str]:
    sender, _, recipient = channel.partition("/")
    if sender != owner or not valid_channel(sender, recipient):
        raise refused(Reason.POSITION_INVALID, f"{where} has a position in {channel[:80]!r}, no channel of {owner!r}")
    seq, head = value if isinstance(value, list) and len(value) == 2 else (None, None)
    if not _is_integer(seq) or seq < 0 or not isinstance(head, str) or _HEX64.fullmatch(head) is None:
        raise refused(Reason.POSITION_INVALID, f"the position of {where} in {channel!r} is not [seq, 64 hex digits]")
    if seq == 0 and head != genesis(wire, channel):
        raise refused(Reason.POSITION_INVALID, f"position 0 of {where} in {channel!r} is not the channel's beginning")
    return seq, head


def _group(name: str, value: object) -> Group:
    where = _name(name, "group")
    members = _members(value, _GROUP_MEMBERS, where)
    status = _choice(members["status"], NAME_STATUSES, f"the status of {where}")
    listed = _list(members["members"], AGENTS_MAX, f"the members of {where}")
    if not all(isinstance(member, str) for member in listed) or len(set(listed)) != len(listed):
        raise refused(Reason.MALFORMED, f"the members of {where} are not distinct names")
    return Group(name, status, tuple(listed))


def _names_differ(agents: Mapping[str, Agent], groups: Mapping[str, Group]) -> None:
    """Refuse one name for an agent and a group, and groups of anything but agents."""
    for group in groups.values():
        if group.name in agents:
            raise refused(Reason.NAME_CLASH, f"{group.name!r} is an agent and a group")
        for member in group.members:
            if member not in agents:
                raise refused(Reason.MEMBER_UNKNOWN, f"group {group.name!r} has the member {member[:64]!r}, no agent")


def _keys_differ(roots: tuple[bytes, ...], agents: Mapping[str, Agent]) -> None:
    """Refuse a key in two places; by id, so that an id never means two keys either."""
    places: dict[str, str] = {}
    listed = [(key_id(root), f"root {number}") for number, root in enumerate(roots, 1)]
    listed.extend((key.id, f"agent {agent.name!r}") for agent in agents.values() for key in agent.keys)
    for identifier, place in listed:
        if identifier in places:
            raise refused(Reason.KEY_SHARED, f"key {identifier} stands at {places[identifier]} and at {place}")
        places[identifier] = place


def _threshold(value: object, roots: int) -> int:
    if not _is_integer(value):
        raise refused(Reason.MALFORMED, f"'threshold' is {_short(value)}, not an integer")
    if not 1 <= value <= roots:
        raise refused(Reason.THRESHOLD_INVALID, f"a threshold of {value} with {roots} roots; 1 to {roots} can be met")
    return value


def _public(value: object, known: Document | None, where: str) -> bytes:
    public = _bytes(value, PUBLIC_BYTES, f"the public key of {where}")
    if not (known is not None and known.holds_key(public)) and not valid_public(public):
        raise refused(Reason.KEY_INVALID, f"the public key of {where} is not a point of the prime-order group")
    return public


def _bytes(value: object, length: int, where: str) -> bytes:
    try:
        return unb64(value if isinstance(value, str) else "", length)
    except ValueError:
        raise refused(Reason.MALFORMED, f"{where} is not the canonical base64 of {length} bytes") from None


def _name(name: str, kind: str) -> str:
    if not valid_name(name):
        raise refused(Reason.NAME_INVALID, f"{kind} {name[:64]!r} has a name that is malformed or reserved")
    return f"{kind} {name!r}"


def _members(value: object, names: tuple[str, ...], where: str) -> dict[str, Any]:
    members = _object(value, where)
    for name in members:
        if name not in names:
            raise refused(Reason.MALFORMED, f"{where} has the unknown member {name[:64]!r}")
    for name in names:
        if name not in members:
            raise refused(Reason.MALFORMED, f"{where} lacks the member {name!r}")
    return members


def _object(value: object, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise refused(Reason.MALFORMED, f"{where} is not an object")
    return value


def _table(value: object, most: int, where: str) -> dict[str, Any]:
    table = _object(value, where)
    if len(table) > most:
        raise refused(Reason.MALFORMED, f"{where} has {len(table)} entries; the limit is {most}")
    return table


def _list(value: object, most: int, where: str) -> list[Any]:
    if not isinstance(value, list) or len(value) > most:
        raise refused(Reason.MALFORMED, f"{where} is not a list of at most {most}")
    return value


def _choice(value: object, choices: tuple[str, ...], where: str) -> str:
    if not isinstance(value, str) or value not in choices:
        raise refused(Reason.MALFORMED, f"{where} is {_short(value)}, not one of {', '.join(choices)}")
    return value


def _text(value: object, form: re.Pattern[str], where: str, expected: str) -> str:
    if not isinstance(value, str) or form.fullmatch(value) is None:
        raise refused(Reason.MALFORMED, f"{where} is {_short(value)}, not {expected}")
    return value


def _only_when(present: bool, value: object, form: re.Pattern[str], where: str, expected: str) -> str | None:
    if present:
        return _text(value, form, where, expected)
    if value is not None:
        raise refused(Reason.MALFORMED, f"{where} is {_short(value)}, not null as this version asks")
    return None


def _integer(value: object, least: int, most: int, where: str) -> int:
    if not _is_integer(value) or not least <= value <= most:
        raise refused(Reason.MALFORMED, f"{where} is {_short(value)}, not an integer from {least} to {most}")
    return value


def _is_integer(value: object) -> TypeGuard[int]:
    return type(value) is int


def _short(value: object) -> str:
    return repr(value)[:64]
