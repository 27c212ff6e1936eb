"""What each incident code means, and the next step (PROTOCOL.md, section "Incidents").

A table and nothing else. `next_step` may name `{id}`, `{scope}` and `{subject}`; every command in it is one that
exists and helps in that state. Whoever raises an incident and knows more (which host, which file) gives a better one.
"""

from types import MappingProxyType
from typing import NamedTuple


class CodeInfo(NamedTuple):
    """One code, in plain words.

    Attributes:
        title: what happened, as a headline.
        next_step: a template, see the module's text.
    """

    title: str
    next_step: str


_SHOW = "`wire incidents show {id}` has the evidence"
_PROVE = "`wire evidence {id} -o FILE` writes what proves it, for others"
_AGAIN = "then `wire sync`"

_INTEGRITY = {
    "FORCED": CodeInfo(
        "the remote's history was replaced by another one",
        "ask the others whether somebody pushed by force, then `wire heal` puts back what is missing; `wire remote"
        " check` says how the host keeps it from happening again",
    ),
    "SHAPE": CodeInfo(
        "the remote carries files that belong to no channel",
        f"nothing has to be done, they are never read; {_SHOW}",
    ),
    "TRUST": CodeInfo(
        "a trust document at the remote does not count",
        "compare `wire trust show` with the person who manages the wire; the trust held stays in force",
    ),
    "TRUST_FORK": CodeInfo(
        "two trust documents with one number, both validly signed",
        "`wire trust show` has both and what each changes; change nothing until the wire's people have agreed on one,"
        f" by another way than the wire, then `wire trust follow CHECKPOINT` on every machine; {_PROVE}",
    ),
    "PREFIX": CodeInfo(
        "the remote lacks or changed lines that were accepted",
        "it ends when their owner syncs; if the owner is away, `wire heal` puts them back",
    ),
    "SIGNATURE": CodeInfo(
        "a line that nobody trusted has signed",
        f"it is never shown and goes away when its channel's owner sends again; {_SHOW}",
    ),
    "KEY_UNKNOWN": CodeInfo(
        "a line signed by a key that the trust does not list",
        "look for its sender in `wire trust requests`",
    ),
    "KEY_RETIRED": CodeInfo(
        "a line signed by a key after the position where it was retired or revoked",
        f"if the key was stolen, this is the thief; what of them was yours comes back by `wire keys reissue`; {_PROVE}",
    ),
    "MISPLACED": CodeInfo(
        "a genuine line in a place that it was not signed for",
        f"it is never shown there; {_SHOW}",
    ),
    "REPLAY": CodeInfo(
        "a genuine line once more",
        f"it is shown once only and goes away when its channel's owner sends again; {_SHOW}",
    ),
    "GAP": CodeInfo(
        "lines are missing at the remote that others have, or that come before one which is there",
        "it ends when their owner syncs; if the owner is away, somebody who has them runs `wire heal`",
    ),
    "FORK": CodeInfo(
        "two valid lines for one position: the sender's key is on two machines, or stolen",
        "ask the sender, by another way than this wire, which line is the right one; `wire evidence {id} -o FILE`"
        " has both. {scope} stands still until who holds a root key ends it there: `wire trust revoke NAME"
        " --reason stolen --at ID`",
    ),
    "SCHEMA": CodeInfo(
        "a signed line with a content that cannot be read",
        f"its sender may run a newer version: compare `wire --version`; {_SHOW}",
    ),
    "SIZE": CodeInfo(
        "a signed line with a member beyond its limit",
        f"its sender should send it again, shorter; {_SHOW}",
    ),
    "SPLIT_VIEW": CodeInfo(
        "somebody was shown another history of a channel than this machine",
        "compare `wire status` with that person, by another way than this wire; the host may show two histories; "
        f"{_PROVE}",
    ),
    "PRESENCE": CodeInfo(
        "a presence at the remote that does not count, or an old one again",
        f"nothing has to be done, what was heard before stays; {_SHOW}",
    ),
    "STATE_LOST": CodeInfo(
        "lines of an agent of this machine came back that this machine had forgotten",
        "they were taken back; if a backup was restored, acknowledge it with `wire incidents ack {id}`",
    ),
    "CLONED": CodeInfo(
        "another machine sends with the key of an agent of this machine",
        "stop the daemon on one of the two (`wire service stop`); {scope} publishes nothing until then",
    ),
    "TRUST_WITHHELD": CodeInfo(
        "a line names a newer trust version than the remote shows",
        "`wire sync`; if it stays, the host may withhold it: compare `wire trust show` with the sender",
    ),
}

_OPERATIONAL = {
    "AUTH": CodeInfo(
        "the remote did not accept this machine's credentials",
        f"mend the access (`git ls-remote` with the remote's URL must work), {_AGAIN}",
    ),
    "HOST_KEY": CodeInfo(
        "the host is unknown to ssh or shows another key than before",
        "compare `ssh-keyscan HOST | ssh-keygen -lf -` with the fingerprints that the host publishes; only if they are"
        f" equal, `ssh-keygen -R HOST` and `ssh-keyscan HOST >> ~/.ssh/known_hosts`, {_AGAIN}",
    ),
    "NETWORK": CodeInfo(
        "the remote cannot be reached",
        "nothing is lost, it is tried again by itself; `wire sync` tries now",
    ),
    "NOT_FOUND": CodeInfo(
        "the remote or its branch is not there",
        f"check the URL in `wire status`, and whether this machine may see the repository, {_AGAIN}",
    ),
    "REJECTED": CodeInfo(
        "the remote refuses what this machine pushes",
        f"the remote's own words are in `wire incidents show {{id}}`, and `wire remote check` says what it is known to"
        f" enforce; change its rules for the branch, {_AGAIN}",
    ),
    "RATE_LIMIT": CodeInfo(
        "the remote asked to be asked less often",
        "nothing has to be done; longer tiers or a smaller `hourly_budget` under [wire.cadence] prevent it",
    ),
    "DISK_FULL": CodeInfo(
        "no space left on this machine's disk",
        "free some space (`df -h` shows where); it goes on by itself",
    ),
    "TORN": CodeInfo(
        "an incomplete line at the end of a journal was set aside",
        f"the send that wrote it had failed: send it again; {_SHOW}",
    ),
    "ADOPT_REFUSED": CodeInfo(
        "something in the clone's own channel is not the next line and was set aside",
        f"send it with `wire send TO BODY` instead; {_SHOW}",
    ),
    "CLONE_STATE": CodeInfo(
        "the clone was not as it should be and was mended",
        "nothing has to be done, no line was lost; leave the clone to the daemon and read with `wire tail`",
    ),
    "RESCUED": CodeInfo(
        "commits of somebody else in the clone were kept under a ref of their own",
        f"they are never pushed; {_SHOW} and the ref",
    ),
    "CORRUPT": CodeInfo(
        "a file of this machine's state was damaged and moved aside",
        f"`wire verify` tells whether anything is missing; {_SHOW}",
    ),
    "TOO_LARGE": CodeInfo(
        "the remote sent more than is taken at once",
        f"look for large files on the wire's branch and have them removed, {_AGAIN}",
    ),
    "MOVED": CodeInfo(
        "the configuration names another remote than the one that this wire is pinned to",
        "where the wire moved, `wire trust repin --checkpoint CHECKPOINT` takes the new place over, if it shows the"
        " same trust; else put the old place back",
    ),
    "INVITED_TWICE": CodeInfo(
        "two keys came with one invitation: somebody else had the code",
        "ask the newcomer for the fingerprint that joining printed, by another way than this wire, and compare it"
        " with `wire trust show`; if the other one was enrolled, `wire trust revoke NAME --reason stolen`",
    ),
    "KEY": CodeInfo(
        "a key of this machine cannot be used, so nothing of its agent is published",
        "`wire doctor` and `wire keys list` name the file and what mends it",
    ),
    "UNKNOWN": CodeInfo(
        "git failed in a way that is not known here",
        "git's own words are in `wire incidents show {id}`; `wire sync` tries again",
    ),
}

CODES = MappingProxyType({**_INTEGRITY, **_OPERATIONAL})
"""Every code with its texts."""

INTEGRITY_CODES = frozenset(_INTEGRITY)
"""Codes of bytes that do not hold: open until a person acknowledges or resolves them."""

OPERATIONAL_CODES = frozenset(_OPERATIONAL)
"""Codes of breakdowns: resolved when the condition is over."""
