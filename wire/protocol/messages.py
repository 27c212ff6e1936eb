"""What a line may say: its optional members, the types and their bodies (PROTOCOL.md, section "Messages").

Content never decides about the chain. A line whose content is unlawful keeps its place and is shown as a placeholder;
a type that a reader does not know is kept and shown, so that older peers survive newer ones.
"""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from wire.protocol.codes import Code
from wire.protocol.names import valid_id

PRIORITIES = ("low", "normal", "high", "urgent")
NEEDS = ("none", "agent", "human")
SUBJECT_MAX = 200
REFS_MAX = 64
REF_MAX = 1_024
IDEM_MAX = 200

SEALED = ("subject", "body", "refs")
"""What a closed letter closes; beside `enc` none of them stands open."""
SEALED_BY = "x25519-xchacha20poly1305"
"""How: the `alg` of `enc` that this version knows."""

_TYPE = re.compile(r"[a-z][a-z0-9_-]{0,31}", re.ASCII)
_HEAD = re.compile(r"[0-9a-f]{64}", re.ASCII)
FIXED = ("v", "wire", "from", "to", "seq", "prev", "ts", "trust", "type")
TRAILING = ("key", "sig")


def valid_type(text: str) -> bool:
    """Tell whether a text can be a message's type; one that nobody knows is none the less."""
    return _TYPE.fullmatch(text) is not None


class Body(NamedTuple):
    """What a type asks of its line: members that must stand beside the body, and what an object body must hold."""

    needs_members: tuple[str, ...]
    needs_fields: tuple[str, ...]
    meaning: str


TYPES: dict[str, Body] = {
    "message": Body((), (), "free text or an object"),
    "request": Body((), (), "work or an answer that is asked for"),
    "reply": Body(("re",), (), "the answer to `re`"),
    "ack": Body(("re",), (), "`re` was read and understood; a note may stand in the body"),
    "warning": Body((), (), "something the recipient should know before going on"),
    "feedback": Body((), (), "an opinion on earlier work, named by `re` or `refs`"),
    "correction": Body(("re",), (), "the author's own `re` was wrong; the body says what is right"),
    "ship": Body((), (), "work that was delivered, named by `refs`"),
    "receipt": Body(("re",), (), "a shipped piece of work arrived"),
    "proposal": Body((), (), "something to agree on"),
    "counter": Body(("re",), (), "another proposal in the place of `re`"),
    "accept": Body(("re",), (), "the proposal `re` is accepted as it stands"),
    "reject": Body(("re",), (), "the proposal `re` is refused"),
    "decision": Body((), (), "what was decided"),
    "claim": Body((), (), "the author works on this: paths or a task"),
    "release": Body(("re",), (), "the claim `re` is given up"),
    "task": Body((), (), "a piece of work with a state"),
    "heartbeat": Body((), (), "the author is alive; an object with `state`"),
    "incident": Body((), ("code", "scope", "evidence"), "the author saw a violation"),
    "shutdown": Body((), (), "the author stops"),
    "wakeup": Body((), (), "the recipient is asked to look"),
}  # fmt: skip


def _is_time(value: Any) -> bool:
    # Few lines expire: the form is compiled when the first one does.
    form = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z"
    return isinstance(value, str) and re.fullmatch(form, value) is not None


def _is_ack(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 2
        and isinstance(value[0], int)
        and not isinstance(value[0], bool)
        and value[0] >= 1
        and isinstance(value[1], str)
        and _HEAD.fullmatch(value[1]) is not None
    )


def _is_refs(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) <= REFS_MAX
        and all(isinstance(ref, str) and len(ref) <= REF_MAX for ref in value)
    )


def _is_enc(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("alg"), str):
        return False
    if value["alg"] != SEALED_BY:
        return True  # of a later version: it keeps its place, and is shown as closed
    from wire.protocol import sealed  # few lines are closed

    return sealed.is_form(value)


OPTIONAL: dict[str, tuple[Callable[[Any], bool], str]] = {
    "thread": (valid_id, "a message id"),
    "re": (valid_id, "a message id"),
    "subject": (lambda v: isinstance(v, str) and len(v) <= SUBJECT_MAX, f"a string of up to {SUBJECT_MAX} characters"),
    "body": (lambda v: isinstance(v, (str, dict)), "a string or an object"),
    "refs": (_is_refs, f"a list of at most {REFS_MAX} strings of at most {REF_MAX} characters"),
    "priority": (lambda v: v in PRIORITIES, "one of " + ", ".join(PRIORITIES)),
    "needs": (lambda v: v in NEEDS, "one of " + ", ".join(NEEDS)),
    "ack_required": (lambda v: isinstance(v, bool), "true or false"),
    "expires": (_is_time, "a time like 2026-11-29T11:20:00.123Z"),
    "idem": (lambda v: isinstance(v, str) and 0 < len(v) <= IDEM_MAX, f"a string of 1 to {IDEM_MAX} characters"),
    "ack": (_is_ack, "[seq, head]"),
    "enc": (_is_enc, "a closed subject, body and refs"),
}  # fmt: skip
"""The optional members in the order in which they stand in a line, each with its check and what it expects."""

_RANK = {name: (rank, OPTIONAL.get(name)) for rank, name in enumerate((*FIXED, *OPTIONAL, *TRAILING))}
_UNKNOWN = (-1, None)
_LAST_FIXED = len(FIXED) - 1


def check_content(recipient: str, type: str, members: dict[str, Any]) -> tuple[Code, str] | None:
    """Return the code and the reason why a line is unreadable, or None when it is lawful.

    Writers and readers use this one function, so that no writer can produce what a reader refuses.

    Args:
        recipient: the line's `to`.
        type: the line's `type`.
        members: what stands between the fixed members and the trailer, in the order of the line.
    """
    last = _LAST_FIXED
    for name, value in members.items():
        rank, check = _RANK.get(name, _UNKNOWN)
        if rank <= last:
            why = f"unknown member {name[:64]!r}" if rank < 0 else f"member {name!r} stands out of order"
            return Code.SCHEMA, why
        last = rank
        if check is not None and not check[0](value):
            return (Code.SIZE if _too_long(name, value) else Code.SCHEMA), f"{name!r} is not {check[1]}"
    if recipient == "all" and "ack" in members:
        return Code.SCHEMA, "'ack' stands in a line with more than one recipient"
    if "enc" in members and (open_ := next((name for name in SEALED if name in members), None)) is not None:
        return Code.SCHEMA, f"{open_!r} stands open beside 'enc'"
    body = TYPES.get(type)
    if body is None:
        return None
    for name in body.needs_members:
        if name not in members:
            return Code.SCHEMA, f"a line of type {type!r} names a message in {name!r}"
    said = members.get("body")
    for field in body.needs_fields:
        if not isinstance(said, dict) or field not in said:
            return Code.SCHEMA, f"the body of type {type!r} is an object with {field!r}"
    return None


def _too_long(name: str, value: Any) -> bool:
    if name in ("subject", "idem"):
        return isinstance(value, str) and value != ""
    return name == "refs" and isinstance(value, list) and all(isinstance(ref, str) for ref in value)
