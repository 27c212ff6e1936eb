"""Presences that are pushed to a host: one signed object in a commit of its own (PROTOCOL.md, section "Presence")."""

from wire.daemon.accepted import Blobs
from wire.gitio import Git
from wire.keys.trust import ACTIVE, Chain
from wire.protocol.encoding import PRESENCE_TYPE, verify
from wire.protocol.line import LineError
from wire.protocol.presence import Presence, opened, parse

FILE = b"presence.json"


def judge_presence(git: Git, blobs: Blobs, chain: Chain, old: str, new: str, agent: str) -> str:
    """Return why the presence of an agent may not be replaced by another one; empty where it may.

    Args:
        old, new: commits; zeros for none.
        agent: whose ref it is.
    """
    known = chain.newest.agents.get(agent)
    active = known is not None and known.status == ACTIVE
    if not new.strip("0"):
        return f"the presence of {agent!r} is replaced and not deleted" if active else ""
    if known is None or not active:
        return f"the trust knows no active agent {agent[:40]!r}"
    found = _read(git, blobs, new)
    if isinstance(found, str):
        return found
    key = known.active_key
    form = opened(found.raw)
    if key is None or form.key != key.id:
        return f"it is not signed by the active key of {agent!r}"
    if not verify(key.public, form.signature, PRESENCE_TYPE, form.body_bytes):
        return f"its signature is not that of {agent!r}"
    if found.agent != agent or found.wire != chain.wire:
        return f"it was signed for {found.agent!r} on wire {found.wire}"
    before = _read(git, blobs, old) if old.strip("0") else ""
    if isinstance(before, Presence) and before.agent == agent and found.counter <= before.counter:
        return f"its counter {found.counter} is not above {before.counter}: it is an older one"
    return ""


def _read(git: Git, blobs: Blobs, commit: str) -> Presence | str:
    """Return the presence in a commit, or why there is none."""
    history = git.history(None, commit, max_count=1)
    made = history.commits[-1] if history.commits else None
    if made is None or history.truncated or made.parents or [change.path for change in made.changes] != [FILE]:
        return f"a presence is a commit without parents, with the file {FILE.decode()} and nothing else"
    if made.changes[0].new_mode != "100644":
        return f"{FILE.decode()} is no plain file"
    data = blobs.get(made.changes[0].new_oid) or b""
    if not data.endswith(b"\n"):
        return "it is no line"
    try:
        return parse(data[:-1])
    except LineError as error:
        return error.why
