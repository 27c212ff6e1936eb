"""The one form of small signed files: one line of compact JSON, with exactly the members of its kind in their order.

    read(raw, ("v", "wire", "name"), most=4_096, what="request")

What the members hold, and who signed them, is for each kind to judge.
"""

import re
from collections.abc import Iterable
from typing import Any

from wire.keys.reasons import Reason, refused
from wire.protocol import strictjson

TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z", re.ASCII)
KEY_ID = re.compile(r"[0-9a-f]{32}", re.ASCII)
HASH = re.compile(r"[0-9a-f]{64}", re.ASCII)


def read(raw: bytes, *forms: tuple[str, ...], most: int, what: str, others: Iterable[str] = ()) -> dict[str, Any]:
    """Return the members of a file.

    Args:
        forms: the members that it may have, `v` first, which is 1.
        most: bytes of it.
        what: it is, for people.
        others: members that are no strings, beside `v`.

    Raises:
        TrustError: `request-malformed`.
    """
    if len(raw) > most:
        raise refused(Reason.REQUEST_MALFORMED, f"a {what} of {len(raw)} bytes; the limit is {most}")
    try:
        members = strictjson.loads(raw, floats_below=None)
    except strictjson.StrictError as error:
        raise refused(Reason.REQUEST_MALFORMED, f"the {what} is not strict JSON: {error}") from error
    known = tuple(members) in forms and type(members["v"]) is int and members["v"] == 1
    if not known or strictjson.dumps(members) + b"\n" != raw:
        raise refused(
            Reason.REQUEST_MALFORMED,
            f"a {what} of version 1 is compact JSON with exactly the members {', '.join(forms[0])}, and a newline",
        )
    if not all(isinstance(value, str) for name, value in members.items() if name not in ("v", *others)):
        raise refused(Reason.REQUEST_MALFORMED, f"a member of the {what} is not a string")
    return members


def check_place(what: str, owner: str, *, said: str, wire: str, file_name: str, expected: str) -> None:
    """Refuse a file of another wire, or with another name than what it says asks for.

    Args:
        what, owner: it is, and whose, for people.
        said: the wire that it names.
        expected: what its file must be called.

    Raises:
        TrustError: `wrong-wire`, `request-misplaced`.
    """
    if said != wire:
        raise refused(Reason.WRONG_WIRE, f"the {what} is for wire {said[:64]!r}, not {wire}")
    if file_name != expected:
        raise refused(Reason.REQUEST_MISPLACED, f"the {what} of {owner} stands in {file_name[:128]!r}")
