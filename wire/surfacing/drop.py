"""A drop folder, for a harness that can only write and read files.

    <folder>/outbox/NAME.json       a message: the members of `wire send --batch`, or an answer, by `re` and no `to`
    <folder>/outbox/sent/           what was sent, each with the id beside it
    <folder>/outbox/refused/        what was not, each with the reason beside it
    <folder>/inbox/FROM_TO_SEQ.md   one file per verified message; no name holds a `_`, so that no two share a file
    <folder>/status.json            how the wire stands, and when that was written: at least once a minute

Rules that it keeps: a file is sent at most once, whatever is killed when (the same file gives the same `idem`); one
that is still being written is left alone; nothing is followed through a link, and nothing is read that is no plain file
or larger than a line; a folder that others may write into is not used, since they would sign as the agent. What a peer
wrote goes through the one renderer, below a head of ours. A message in `inbox/` is delivered: it counts as read when
the agent answers or acknowledges it, or reads it elsewhere. A closed letter stays closed in its file, since what was
opened is written nowhere; where a file called `open-sealed` stands in the folder, its owner wants it otherwise.
"""

import hashlib
import json
import os
import stat
from contextlib import suppress
from typing import NamedTuple

from wire.api import Wire
from wire.errors import DONE, StoreError, UsageError, WireError
from wire.protocol import strictjson
from wire.protocol.line import LINE_MAX
from wire.protocol.names import parse_id
from wire.store.files import atomic_write, private_folder, store_error, utc_text
from wire.verbs.look import SILENT, Item
from wire.verbs.reading import DEFAULT_READER, Filters
from wire.verbs.render import card, one_line
from wire.verbs.sending import Draft

STATUS = "status.json"
STATUS_SECONDS = 60.0
OPEN_SEALED = "open-sealed"
"""A file of this name in the folder, whatever is in it, has closed letters opened into the files of the inbox."""
READER = "drop"
"""Whose place says which messages have their file."""
SUFFIX = ".json"
WRITING_SECONDS = 2.0
"""How long a file that does not parse must have stood still before it counts as bad."""
NAME_MOST = 50
"""Characters of a name that are kept."""
_FILE_MOST = 2 * LINE_MAX
_MEMBERS = frozenset(Draft._fields) - {"allow_secret"}
"""Who can only write files is an agent; that a likely secret may go out a person says, by a command."""
_KEPT = ("refused", "sent")


class Done(NamedTuple):
    """What a pass did.

    Attributes:
        sent: ids.
        refused: names of files, each with the reason.
        shown: how many files appeared in the inbox.
        waits: whether a file is still being written.
        failure: why something could not be sent for now.
    """

    sent: tuple[str, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()
    shown: int = 0
    waits: bool = False
    failure: WireError | None = None


def prepare(folder: str) -> None:
    """Make the folders, private to this user, or see that they are.

    Raises:
        StoreError: reason `drop-open`: somebody else could write into it.
    """
    for path in (folder, *(os.path.join(folder, *parts) for parts in (("outbox",), ("inbox",)))):
        private_folder(path)
        _private(path)
    for name in _KEPT:
        private_folder(os.path.join(folder, "outbox", name))


def run(wire: Wire, folder: str, now: float) -> Done:
    """Do one pass over both sides; `now` is seconds since the epoch.

    Raises:
        WireError: something is wrong that no change of a file in the outbox would mend; what was not done waits, and
            everything else was done.
    """
    prepare(folder)
    done = send(wire, os.path.join(folder, "outbox"), now)
    opens = os.path.lexists(os.path.join(folder, OPEN_SEALED))
    done = done._replace(shown=show(wire, os.path.join(folder, "inbox"), opens=opens))
    _status(wire, folder, now)
    if done.failure is not None:
        raise done.failure
    return done


# ------------------------------------------------------------------------------------------ outbox


def send(wire: Wire, outbox: str, now: float) -> Done:
    """Send what lies in the outbox, in the order of the files' names; raises StoreError for what cannot be moved.

    What cannot be sent for now holds up what is for the same recipient, and nothing else.
    """
    sent: list[str] = []
    refused: list[tuple[str, str]] = []
    held: set[str] = set()
    waits, failure = False, None
    for name in waiting(outbox):
        path = os.path.join(outbox, name)
        to = ""
        try:
            data, status = _read(path)
            draft = _draft(wire, data, status)
            to = draft.to
            if to in held:
                continue
            one = wire.send_all([draft]).sent[0]
        except FileNotFoundError:
            continue
        except _Unfinished as error:
            if now - status.st_mtime < WRITING_SECONDS:
                waits = True
            else:
                refused.append((name, _refuse(outbox, name, error)))
        except UsageError as error:
            refused.append((name, _refuse(outbox, name, error)))
        except WireError as error:
            failure = failure or error
            held.add(to)
        else:
            sent.append(one.id)
            _answered(wire, draft)
            _keep(outbox, "sent", name, f"{one.id}\n")
    return Done(tuple(sent), tuple(refused), 0, waits, failure)


def waiting(outbox: str) -> list[str]:
    """Return the names of what lies in an outbox, in order; those that begin with a dot are somebody's own."""
    try:
        return sorted(name for name in os.listdir(outbox) if name.endswith(SUFFIX) and not name.startswith("."))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise store_error(error, "look into", outbox) from error


class _Bad(UsageError):
    """No file that could be sent."""

    reason = "bad-file"


class _Unfinished(UsageError):
    """No JSON object: not yet, or not at all."""

    reason = "bad-json"


def _read(path: str) -> tuple[bytes, os.stat_result]:
    """Return a plain file's bytes and status; raises _Bad for anything else, and for what is too large."""
    try:
        # A pipe that nobody writes to would block the opening, and a link could lead anywhere.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _Bad(f"it cannot be read: {error.strerror}") from error
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise _Bad("it is no plain file")
        if status.st_uid != os.geteuid():
            raise _Bad("it belongs to another user")
        if status.st_size > _FILE_MOST:
            raise _Bad(f"it has {status.st_size} bytes; a message has at most {LINE_MAX}")
        return os.read(descriptor, _FILE_MOST + 1), status
    except OSError as error:
        raise _Bad(f"it cannot be read: {error.strerror}") from error
    finally:
        os.close(descriptor)


def _draft(wire: Wire, data: bytes, status: os.stat_result) -> Draft:
    text = data.strip()
    try:
        members = strictjson.loads(text)
    except strictjson.StrictError as error:
        raise _Unfinished(f"no strict JSON object: {error}") from error
    unknown = members.keys() - _MEMBERS
    if unknown:
        raise UsageError(
            f"unknown member {min(unknown)[:64]!r}; known are {', '.join(sorted(_MEMBERS))}",
            reason="bad-batch",
        )
    if isinstance(members.get("body"), dict):
        members["body"] = strictjson.Verbatim(strictjson.text_of(text, "body") or b"")
    # The very same file is one message, however often it is met; another one that says the same is another message.
    own = f"{status.st_ino} {status.st_mtime_ns} {hashlib.sha256(data).hexdigest()}"
    members.setdefault("idem", f"drop-{hashlib.sha256(own.encode()).hexdigest()[:32]}")
    if "to" not in members:
        if not isinstance(members.get("re"), str):
            raise UsageError("neither 'to' (a recipient) nor 're' (the message that is answered)", reason="bad-batch")
        answered = members.pop("re")
        return wire.answer(answered, Draft("", **{"type": "reply", **members}))
    if not isinstance(members["to"], str):
        raise UsageError("'to' is no text", reason="bad-batch")
    return Draft(**members)


def _answered(wire: Wire, draft: Draft) -> None:
    """Take a message as read that the agent answers: it has seen it."""
    if draft.re is not None:
        with suppress(WireError):  # it need not be one of ours; and what stays unread is shown again
            wire.read([draft.re], reader=DEFAULT_READER).save()


def _refuse(outbox: str, name: str, error: WireError) -> str:
    _keep(outbox, "refused", name, json.dumps(error.as_json(), ensure_ascii=True, indent=1) + "\n")
    return error.message


def _keep(outbox: str, where: str, name: str, told: str) -> None:
    """Move a file out of the way, under a name that nothing has yet, and write beside it what became of it."""
    folder = os.path.join(outbox, where)
    # A name may be as long as the system allows, and then has no room for what comes beside it.
    stem = name.removesuffix(SUFFIX)[:NAME_MOST]
    kept, number = stem + SUFFIX, 1
    while os.path.lexists(os.path.join(folder, kept)):
        number += 1
        kept = f"{stem}-{number}{SUFFIX}"
    beside = os.path.join(folder, kept.removesuffix(SUFFIX) + (".reason" if where == "refused" else ".id"))
    try:
        # First what became of it: a file without that would be a riddle.
        atomic_write(beside, told.encode("utf-8", "backslashreplace"))
        os.rename(os.path.join(outbox, name), os.path.join(folder, kept))
    except FileNotFoundError:
        with suppress(OSError):
            os.unlink(beside)
    except OSError as error:
        raise store_error(error, "move aside", os.path.join(outbox, name)) from error


# ------------------------------------------------------------------------------------------- inbox


def show(wire: Wire, inbox: str, *, opens: bool = False) -> int:
    """Write a file for each message that has none yet, and return how many; a heartbeat asks for no reading.

    Args:
        opens: closed letters may stand opened in their files.
    """
    found = wire.tail(Filters(), reader=READER)
    count = 0
    for item in found.items:
        found.save()  # what came before this one is on disk
        if item.line.type in SILENT:
            continue
        # Durable before the place moves: the folder is all that this agent has.
        atomic_write(os.path.join(inbox, file_name(item.id)), _page(item, opens).encode("utf-8", "backslashreplace"))
        count += 1
    found.save()
    return count


def file_name(message_id: str) -> str:
    """Return the name of a message's file; raises UsageError for what is no id, before it could become a path."""
    channel, seq = parse_id(message_id)
    sender, _, recipient = channel.partition("/")
    return f"{sender}_{recipient}_{seq}.md"


def _page(item: Item, opens: bool) -> str:
    if item.sealed is not None and item.sealed.opened and not opens:
        why = f"what is opened is written to no file; `wire read {item.id}` shows it (or see `{OPEN_SEALED}`)"
        item = item._replace(sealed=item.sealed._replace(opened=False, why=why, text=b""))
    answer = json.dumps({"re": item.id, "body": "…"}, ensure_ascii=False)
    note = json.dumps({"re": item.id, "type": "ack"})
    return (
        f"# {item.id}\n\n{card(item, LINE_MAX)}\n\n---\n"
        f"answer: a file outbox/NAME.json with {answer}, or {note} to say that it was understood\n"
    )


def _status(wire: Wire, folder: str, now: float) -> None:
    """Write how the wire stands, with the time: who can only read files must be able to see that nobody looks."""
    found = wire.status()
    told = {
        "at": utc_text(now),
        "agent": wire.here.agent(),
        "wire": wire.here.config.name,
        "healthy": found.exit_status == DONE,
        "fetch_age_s": None if found.fetch_age is None else round(found.fetch_age, 1),
        "unpushed": found.unpushed,
        "troubles": [one_line(trouble, 300) for trouble in found.troubles[:20]],
    }
    data = json.dumps(told, ensure_ascii=False, indent=1).encode("utf-8", "backslashreplace") + b"\n"
    atomic_write(os.path.join(folder, STATUS), data, durable=False)


def _private(path: str) -> None:
    try:
        status = os.stat(path)
    except OSError as error:
        raise store_error(error, "look at", path) from error
    if status.st_uid != os.geteuid() or status.st_mode & 0o022:
        raise StoreError(
            f"{path} is a drop folder that others may write into (mode {status.st_mode & 0o777:04o}): whoever does"
            " would sign as the agent, so it is not used",
            reason="drop-open",
            next_step=f"chmod go-w {path}",
        )
