"""Answers: a draft that is addressed by the message that it answers.

    draft = reply(here, "mac/spark/42", Draft("", type="reply", body="done"))
    draft.to, draft.re, draft.thread            "mac", "mac/spark/42", "mac/spark/42"

What answers a closed letter is closed as well, unless its author says otherwise: it may quote what was closed.
"""

from wire.errors import UsageError
from wire.protocol.messages import SEALED
from wire.verbs.here import Here
from wire.verbs.reading import find
from wire.verbs.sending import Draft


def reply(here: Here, message_id: str, draft: Draft) -> Draft:
    """Return `draft` addressed as the answer to an accepted message: recipient, `re` and `thread` filled in.

    Raises:
        UsageError: there is no such message here, or it is the agent's own.
    """
    found = find(here, message_id)
    agent = here.agent()
    to = found.line.sender if found.line.sender != agent else found.line.recipient
    thread = (found.members or {}).get("thread") or message_id
    seal = draft.seal
    if seal is None and found.sealed is not None and any(getattr(draft, name) is not None for name in SEALED):
        seal = True
    return draft._replace(to=to, re=message_id, thread=thread, seal=seal)


def acknowledgement(here: Here, message_id: str, note: str | None) -> Draft:
    """Return the `ack` of an accepted message; without a note a second one is the first one again.

    Raises:
        UsageError: there is no such message here (`no-message`), or it is the agent's own (`own-message`).
    """
    if message_id.startswith(f"{here.agent()}/"):
        raise UsageError(
            f"{message_id} is a message of {here.agent()!r} itself: an ack is for what others sent",
            reason="own-message",
            next_step=f"wire show {message_id}",
        )
    idem = f"ack:{message_id}" if note is None else None
    return reply(here, message_id, Draft("", type="ack", body=note, idem=idem))
