"""Sending at most once: what was sent before with the same `idem`, looked up in this machine's journal.

    earlier = find(here, "mac/spark", end, "build-7")           number and bytes of the line, or None
    same_content(here, pin, draft, earlier, sealed=False)       raises where it said something else

Only who sends with an `idem` comes here.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from wire.errors import UsageError
from wire.protocol import strictjson
from wire.protocol.chain import Position, lines_of
from wire.protocol.line import LineError, content, parse
from wire.protocol.messages import FIXED, TRAILING
from wire.store import journal
from wire.store.pin import Pin
from wire.verbs.here import Here

if TYPE_CHECKING:
    from wire.verbs.sending import Draft


def find(here: Here, channel: str, end: Position, idem: str) -> tuple[int, bytes] | None:
    """Return number and bytes of the line of this channel that carries `idem`; the newest segments first."""
    needle = b'"idem":' + strictjson.dumps(idem)
    for number in range(end.segment, 0, -1):
        data = journal.read_segment(here.places, channel, number)
        if needle not in data:
            continue
        for raw in lines_of(data):
            if needle in raw:
                line = parse(raw)
                try:
                    if content(line).get("idem") == idem:
                        return line.seq, raw
                except LineError:
                    continue
    return None


def same_content(here: Here, pin: Pin, draft: "Draft", raw: bytes, *, sealed: bool) -> None:
    """Raise UsageError (`idem-conflict`) where a line does not say what a draft does.

    Args:
        raw: the line that was sent before.
        sealed: the draft is to be closed; what went out open is not the same then.
    """
    line = parse(raw)
    members: Mapping[str, Any] = content(line)
    what = "says something else"
    if "enc" in members:
        from wire.verbs.opening import Opener

        known, members = Opener(here, pin).open(line, members)
        what = what if known.opened else "is closed and cannot be opened here, so that nobody can compare them"
    elif sealed:
        what = "went out open"
    said = {name: value for name, value in members.items() if name not in (*FIXED, *TRAILING, "ack")}
    said["type"] = line.type
    wanted = draft.members()
    wanted["type"] = draft.type
    if "refs" in wanted:
        wanted["refs"] = list(wanted["refs"])
    if said != wanted or what == "went out open":
        raise UsageError(
            f"--idem {draft.idem!r} was used for {line.id}, which {what}; nothing was sent",
            reason="idem-conflict",
            next_step=f"wire show {line.id}",
        )
