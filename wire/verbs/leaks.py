"""Likely secrets in what is about to be sent: noticed before anything is written.

    found = look(drafts)                raises LikelySecret, which names the kind and the place and never the value
    found                               of each draft, what was found all the same where it says why it may go out

What was sent stays: in every clone, for ever, also when the letter is closed and when the message is answered by a
request to forget it. So the check stands in front of every way to send. It knows the forms of common keys and tokens;
it is a net and no proof. Nearly every message holds none of `LITERALS`; they are searched for in many at once, since
a search costs more to begin than to go on.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from wire.errors import UsageError
from wire.verbs.here import Here

if TYPE_CHECKING:
    from wire.verbs.sending import Draft

REASON_MOST = 500
"""Characters of a reason."""
_TOGETHER = 64
"""Drafts that are searched at once."""

LITERALS: tuple[str, ...] = (
    "AKIA", "ASIA", "ABIA", "ACCA", "aws_secret", "AWS_SECRET", "ecretAccessKey", "AIza", "ya29.", "GOCSPX-",
    "AccountKey=", "SharedAccessKey=", "Q~", "sig=", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_",
    "glpat-", "gldt-", "glrt-", "glptt-", "glcbt-", "glsoat-", "glagent-", "npm_", "pypi-AgE", "xox", "xapp-",
    "hooks.slack.com/", "T3BlbkFJ", "sk-proj-", "sk-svcacct-", "sk-admin-", "sk-ant-", "sk_live_", "rk_live_", "hf_",
    "eyJ", "PRIVATE KEY", "AGE-SECRET-KEY-1", "PuTTY-User-Key-File", "secret\"", "secret=", "sealed\":\"",
    "sealed=", "wire-join-1.",
)  # fmt: skip
"""What a text holds one of if any form of `wire.verbs.leakforms` fits it; a password in a URL has `://` and `@`."""


class Found(NamedTuple):
    """A likely secret: what it looks like, and where it stands."""

    kind: str
    where: str


class LikelySecret(UsageError):
    """A message holds what looks like a secret, and nobody said that it may go out; nothing was written."""

    reason = "likely-secret"


def look(drafts: "Sequence[Draft]") -> "list[Sequence[Found]]":
    """Return of each draft the likely secrets in it, where it says why they may go out; nothing of nearly every draft.

    Raises:
        LikelySecret: one holds some, and says nothing.
        UsageError: what one says is no reason (`bad-reason`).
    """
    found: list[Sequence[Found]] = []
    for start in range(0, len(drafts), _TOGETHER):
        group = drafts[start : start + _TOGETHER]
        odd = _looks("\n".join([text for draft in group for text in _said(draft)]))
        if odd or any(draft.allow_secret is not None for draft in group):
            found += [_judge(draft, _find(list(_texts(draft))) if odd else ()) for draft in group]
        else:
            found += [()] * len(group)
    return found


def _judge(draft: "Draft", found: Sequence[Found]) -> Sequence[Found]:
    reason: Any = draft.allow_secret  # a batch and a drop folder may hold anything
    if reason is not None and (not isinstance(reason, str) or not reason.strip() or len(reason) > REASON_MOST):
        raise UsageError(
            f"a reason to let a likely secret through is a text of 1 to {REASON_MOST} characters; nothing was sent",
            reason="bad-reason",
        )
    if not found or reason is not None:
        return found
    raise _refused(
        found,
        "the message",
        "Nothing was sent. What is sent stays in the history of every clone for ever, closed letters too",
        "take it out; or, where it is none or may be known for ever: --allow-secret REASON",
    )


def refuse(what: str, text: str) -> None:
    """Refuse a text that goes out beside messages, such as an agent's note, where it holds a likely secret.

    Raises:
        LikelySecret: it does.
    """
    found = _find([(what, text)])
    if found:
        raise _refused(found, what, "Nothing was changed. Whoever can read the repository could read it", "take it out")


def _find(texts: Sequence[tuple[str, str]]) -> list[Found]:
    whole = "\n".join([text for _, text in texts])
    if not _looks(whole):
        return []
    from wire.verbs import leakforms

    found = [Found(kind, where + place) for where, text in texts for kind, place in leakforms.find(text)]
    return list(dict.fromkeys(found))


def _looks(text: str) -> bool:
    return any(one in text for one in LITERALS) or ("://" in text and "@" in text)


def _refused(found: Sequence[Found], what: str, then: str, next_step: str) -> LikelySecret:
    told = "; ".join(f"{one.kind} in {one.where}" for one in found[:5])
    more = f" and {len(found) - 5} more" if len(found) > 5 else ""
    return LikelySecret(
        f"{what} looks as if it held a secret: {told}{more}. {then}",
        next_step=next_step,
        details={"found": [one._asdict() for one in found]},
    )


def note(here: Here, now: str, allowed: "Sequence[tuple[str, str, Draft, Sequence[Found]]]") -> None:
    """Write down why messages go out, by id and head; raises DiskFull or StoreError, and then they may not."""
    from wire.store.allowed import Allowed, note

    note(
        here.places,
        [
            Allowed(message_id, head, now, tuple((one.kind, one.where) for one in found), str(draft.allow_secret))
            for message_id, head, draft, found in allowed
        ],
    )


def told(here: Here, found: Sequence[Found]) -> str:
    """Return for people that something was let through, and where that is written down."""
    from wire.store.allowed import path_of

    what = "; ".join(f"{one.kind} in {one.where}" for one in found[:5])
    return f"it went out with {what}, for ever; the reason is kept on this machine, in {path_of(here.places)}"


def _said(draft: "Draft") -> Sequence[str]:
    """Return the texts of a draft without their places."""
    if isinstance(draft.body, str) and draft.subject is draft.idem is draft.refs is None:
        return (draft.body,)
    return [text for _, text in _texts(draft)]


def _texts(draft: "Draft") -> Iterator[tuple[str, str]]:
    """Yield every text of a draft with the place that it stands in."""
    if isinstance(draft.subject, str):
        yield "the subject", draft.subject
    if draft.body is not None:
        yield from _leaves("the body", "", draft.body)
    if isinstance(draft.idem, str):
        yield "the idem", draft.idem
    refs = draft.refs
    for number, ref in enumerate(refs if isinstance(refs, (list, tuple)) else (), 1):
        if isinstance(ref, str):
            yield f"ref {number}", ref


def _leaves(where: str, name: str, value: Any) -> Iterator[tuple[str, str]]:
    """Yield the texts of a body; one that has a name in an object comes behind it, as in `name=value`."""
    pending: list[tuple[str, str, Any]] = [(where, name, value)]
    while pending:
        where, name, value = pending.pop()
        if isinstance(value, str):
            yield where, f"{name}={value}" if name else value
        elif isinstance(value, dict):
            for key, one in value.items():
                if isinstance(key, str):
                    yield where, key
                    # A name that may itself be a secret is told of and not repeated.
                    pending.append((f"{where}.{'?' if _find([('', key)]) else key[:40]}", key, one))
        elif isinstance(value, (list, tuple)):
            pending += [(where, name, one) for one in value]
