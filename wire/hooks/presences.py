"""Presences that are pushed to a host: one signed object in a commit of its own (PROTOCOL.md, section "Presence")."""

from collections.abc import Mapping

from wire.daemon.accepted import Blobs
from wire.gitio import Git
from wire.keys.trust import ACTIVE, Agent, Chain
from wire.protocol.encoding import PRESENCE_TYPE, verify
from wire.protocol.line import LineError
from wire.protocol.presence import Presence, opened, parse

FILE = b"presence.json"


def judge_presence(git: Git, blobs: Blobs, chains: Mapping[str, Chain], old: str, new: str, agent: str) -> str:
    """Return why the presence of an agent may not be replaced by another one; empty where it may.

    Args:
        chains: the trust of every wire in the repository, by its id.
        old, new: commits; zeros for none.
        agent: whose ref it is.
    """
    if not new.strip("0"):
        active = any(_active(chain, agent) is not None for chain in chains.values())
        return f"the presence of {agent!r} is replaced and not deleted" if active else ""
    found = _read(git, blobs, new)
    if isinstance(found, str):
        return found
    chain = chains.get(found.wire)
    if chain is None:
        return f"no branch here carries the wire {found.wire}, for which it was signed"
    known = _active(chain, agent)
    if known is None or found.agent != agent:
        return f"it was signed for {found.agent!r}" if known else f"the trust knows no active agent {agent[:40]!r}"
    key = known.active_key
    form = opened(found.raw)
    if key is None or form.key != key.id:
        return f"it is not signed by the active key of {agent!r}"
    if not verify(key.public, form.signature, PRESENCE_TYPE, form.body_bytes):
        return f"its signature is not that of {agent!r}"
    before = _read(git, blobs, old) if old.strip("0") else ""
    if not isinstance(before, Presence) or before.agent != agent or before.wire not in chains:
        return ""  # what stood there is nobody's
    if before.wire != found.wire:
        return f"the name is taken by an agent of the wire {before.wire}"
    if found.counter <= before.counter:
        return f"its counter {found.counter} is not above {before.counter}: it is an older one"
    return ""


def _active(chain: Chain, name: str) -> Agent | None:
    agent = chain.newest.agents.get(name)
    return agent if agent is not None and agent.status == ACTIVE else None


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
