"""The Python API: one wire on this machine, and the verbs. The command line is written on it.

    from wire import Wire
    mac = Wire.open(as_="mac")
    mac.send("spark", "the build is green", refs=["a1b2c3"])
    for item in mac.messages():
        print(item.id, item.members)

Every verb lives once, in `wire.verbs`. What one needs is imported when it is called, since sending must not pay for
what reading needs. All methods raise `WireError` and nothing else.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from wire.store.paths import Settings
from wire.verbs.here import Here

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from wire.daemon.repair import Repaired
    from wire.daemon.report import Report
    from wire.daemon.status import Status
    from wire.keys.requests import Request
    from wire.keys.rotations import Rotation
    from wire.keys.trust import Chain
    from wire.protocol.chain import Position
    from wire.store.incidents import Incident
    from wire.store.pin import Pin
    from wire.store.presences import Declared
    from wire.verbs.agents import AgentView, Peer
    from wire.verbs.hosting import Checked
    from wire.verbs.inbox import Inbox, Picked
    from wire.verbs.inviting import Invited
    from wire.verbs.look import Item
    from wire.verbs.operating import Approval, Asking, Grouped, LocalKey
    from wire.verbs.owed import Overdue, Owed
    from wire.verbs.reading import Filters, Held, Reading
    from wire.verbs.receipts import Traced
    from wire.verbs.reissuing import Cut, Reissued
    from wire.verbs.revoking import Revoked, Survey
    from wire.verbs.rotating import Rotated
    from wire.verbs.searching import Searched
    from wire.verbs.sending import Draft, Outcome, Sent
    from wire.verbs.summing import Summary
    from wire.verbs.waiting import Notice, Waited
    from wire.verbs.watching import Verified


class Wire:
    """A configured wire, and the agent that is meant on it."""

    def __init__(self, here: Here) -> None:
        self.here = here

    @classmethod
    def open(
        cls, *, as_: str | None = None, wire: str | None = None, environ: Mapping[str, str] | None = None
    ) -> "Wire":
        """Return the wire that is meant: named, chosen by the environment or the project, or the only one.

        Args:
            as_: the local agent; needed where there are several.
            wire: the wire's local name; needed where there are several.
            environ: instead of the process's environment.
        """
        settings = Settings.from_environ(os.environ if environ is None else environ, os.getcwd())
        return cls(Here.find(settings.choosing(wire=wire, agent=as_)))

    # Sending

    def send(
        self,
        to: str,
        body: str | dict[str, Any] | None = None,
        *,
        type: str = "message",
        subject: str | None = None,
        thread: str | None = None,
        re: str | None = None,
        refs: Sequence[str] | None = None,
        priority: str | None = None,
        needs: str | None = None,
        ack_required: bool | None = None,
        expires: str | None = None,
        idem: str | None = None,
        seal: bool | None = None,
        allow_secret: str | None = None,
    ) -> "Sent":
        """Send one message and return its id and state; it is durable when this returns."""
        from wire.verbs.sending import Draft

        more = (thread, re, refs, priority, needs, ack_required, expires, idem, seal, allow_secret)
        return self.send_all([Draft(to, type, body, subject, *more)]).sent[0]

    def send_all(self, drafts: "Sequence[Draft]") -> "Outcome":
        """Send many messages, all or none, with one fsync per segment."""
        from wire.verbs import sending

        return sending.send(self.here, drafts)

    def reply(self, message_id: str, body: str | dict[str, Any] | None = None, **members: Any) -> "Sent":
        """Answer a message; its author, `re` and `thread` are filled in. `members` are those of `Draft`."""
        from wire.verbs.sending import Draft

        draft = Draft("", type=members.pop("type", "reply"), body=body, **members)
        return self.send_all([self.answer(message_id, draft)]).sent[0]

    def answer(self, message_id: str, draft: "Draft") -> "Draft":
        """Return a draft that is addressed as the answer to a message."""
        from wire.verbs import answering

        return answering.reply(self.here, message_id, draft)

    def ack(self, message_id: str, note: str | None = None) -> "Sent":
        """Acknowledge a message, with a note or without; a second ack without a note is the first one again."""
        return self.send_all([self.acknowledgement(message_id, note)]).sent[0]

    def acknowledgement(self, message_id: str, note: str | None = None) -> "Draft":
        """Return the draft of an ack; raises UsageError for a message of the agent's own."""
        from wire.verbs import answering

        return answering.acknowledgement(self.here, message_id, note)

    def wait(self, ids: Sequence[str], state: str = "pushed", timeout: float = 30.0) -> "list[Sent]":
        """Wait until all messages reached a state, from `delivered` on at every recipient.

        Raises NotReached after `timeout` seconds; it names who is missing.
        """
        from wire.verbs import sending

        return sending.wait(self.here, ids, state, timeout)

    # What became of it, and what is still to be done

    def sent(
        self, *, unread: bool = False, unacked: bool = False, count: int = 20, to: str | None = None
    ) -> "list[Traced]":
        """Return the agent's last messages, oldest first, with how far each came to each recipient."""
        from wire.verbs import receipts

        return receipts.sent(self.here, unread=unread, unacked=unacked, count=count, to=to)

    def trace(self, message_id: str) -> "Traced":
        """Return how far one message of this machine came to each recipient."""
        from wire.verbs import receipts

        return receipts.trace(self.here, message_id)

    def owed(self) -> "list[Owed]":
        """Return what the agent owes an answer to, oldest first."""
        from wire.verbs import owed

        return owed.owed(self.here)

    def overdue(self) -> "list[Overdue]":
        """Return what others should have answered or read by now, oldest first."""
        from wire.verbs import owed

        return owed.overdue(self.here)

    def agents(self) -> "list[AgentView]":
        """Return everybody on the wire: role, what it says of itself, and what lies between it and the agent."""
        from wire.verbs import agents

        return agents.agents(self.here)

    def peers(self) -> "list[Peer]":
        """Return how far the agents of other machines have come with everything that was sent from here."""
        from wire.verbs import agents

        return agents.peers(self.here)

    def state(self, state: str | None = None, *, note: str = "", eta: str | None = None) -> "Declared":
        """Set what the agent says of itself (`idle`, `busy`, `blocked`, `paused`), or only return it."""
        from wire.verbs import agents

        return agents.declared(self.here) if state is None else agents.declare(self.here, state, note=note, eta=eta)

    # Reading

    def messages(self, filters: "Filters | None" = None, **how: Any) -> "Iterator[Item]":
        """Yield the new messages, oldest first, and move the cursor behind each when the next one is asked for.

        So a message counts as read when its handling is over, and is shown again when that never came to an end.

        Args:
            how: `count`, `everything`, `peek`, `reader`, as of `wire.verbs.reading.tail`.
        """
        found = self.tail(filters, **how)
        for item in found.items:
            yield item
            found.save()
        found.save()

    def follow(self, filters: "Filters | None" = None, **how: Any) -> "Iterator[Item]":
        """Yield messages as `messages`, and go on with what arrives, for ever."""
        passed: dict[str, Position] = {}
        for _ in self.changes():
            found = self.tail(filters, **how, after=passed or None)
            for item in found.items:
                yield item
                found.save()
            found.save()
            if not found.moves:
                # The place stays where it is, so that what was yielded is known here alone.
                passed.update(found.passed)
                how |= {"count": None, "everything": False}

    def tail(self, filters: "Filters | None" = None, **how: Any) -> "Reading":
        """Return new messages with how far they can be trusted; call its `save()` after they were handed over."""
        from wire.verbs import reading

        return reading.tail(self.here, filters or reading.Filters(), **how)

    def inbox(self, filters: "Filters | None" = None, **how: Any) -> "Inbox":
        """Return what is unread, message by message; call its `save(shown)` after they were handed over.

        Args:
            how: `reader`, `limit`, as of `wire.verbs.inbox.unread`.
        """
        from wire.verbs import inbox

        return inbox.unread(self.here, filters, **how)

    def read(self, ids: Sequence[str], *, reader: str | None = None) -> "Picked":
        """Return messages by their ids; call its `save()` after they were handed over."""
        from wire.verbs import inbox

        return inbox.read(self.here, ids, reader=reader)

    def claim(self, what: str, *, reader: str | None = None) -> "AbstractContextManager[Held]":
        """Say for a time that this reader is alive; the result's `warning` names another one at the same place.

        Args:
            what: the program or surface that reads.
        """
        from wire.verbs import reading

        return reading.claim(self.here, reader=reader, what=what)

    def wait_for_message(self, filters: "Filters | None" = None, *, timeout: float, **how: Any) -> "Waited":
        """Wait for an unread message that is wanted; call `inbox.save()` of the result after it was handed over.

        Args:
            timeout: seconds; 0 looks once.
            how: `reader`, `limit`, `pause`, as of `wire.verbs.waiting.wait`.
        """
        from wire.verbs import waiting

        return waiting.wait(self.here, filters, timeout=timeout, **how)

    def monitor(self, filters: "Filters | None" = None, **how: Any) -> "Iterator[Notice]":
        """Yield how many messages are unread, then a notice for each that arrives, for ever; it reads none.

        Args:
            how: `reader`, `pause`, as of `wire.verbs.waiting.monitor`.
        """
        from wire.verbs import waiting

        return waiting.monitor(self.here, filters, **how)

    def changes(self, pause: Callable[[float], object] | None = None, *, every: float | None = None) -> Iterator[None]:
        """Yield once, and then whenever something was accepted; see `wire.verbs.following.changes`."""
        from wire.verbs import following

        return following.changes(self.here, pause or time.sleep, every=every)

    def show(self, message_id: str) -> "Item":
        """Return one message with everything known of it."""
        from wire.verbs import reading

        return reading.find(self.here, message_id)

    def log(self, count: int = 50, *, channels: Sequence[str] = (), by_commit: bool = False) -> "list[Item]":
        """Return the last messages of the whole wire in causal order, or in the order of first sight."""
        from wire.verbs import reading

        return reading.log(self.here, count=count, channels=channels, by_commit=by_commit)

    def thread(self, message_id: str) -> "list[Item]":
        """Return one conversation."""
        from wire.verbs import reading

        return reading.thread(self.here, message_id)

    def search(self, *texts: str, filters: "Filters | None" = None, count: int = 20) -> "Searched":
        """Return the newest messages of the whole wire in which all texts stand, each of them proved."""
        from wire.verbs import searching

        return searching.search(self.here, texts, filters, count=count)

    def summary(self, since: str, *, count: int = 40, reader: str | None = None) -> "Summary":
        """Return what happened since a time (UTC text), by conversation; it reads nothing."""
        from wire.verbs import summing

        return summing.summary(self.here, since, count=count, reader=reader)

    # How things stand

    def status(self) -> "Status":
        """Return how the wire stands on this machine."""
        from wire.verbs import watching

        return watching.look(self.here)

    def incidents(self, *, everything: bool = False) -> "list[Incident]":
        """Return the incidents that are not resolved, or all, oldest first."""
        from wire.verbs import watching

        return watching.list_incidents(self.here, everything=everything)

    def verify(
        self, *, full: bool = False, jobs: int | None = None, progress: Callable[[int, int], None] | None = None
    ) -> "Verified":
        """Check what is accepted again, from the checkpoint; with `full` every signature, on all cores."""
        from wire.verbs import watching

        return watching.verify(self.here, full=full, jobs=jobs, progress=progress)

    def evidence(self, incident: str) -> bytes:
        """Return an incident as a file that a third person can check with the tool and a checkpoint alone."""
        from wire.verbs import evidencing

        return evidencing.evidence(self.here, incident)

    # Looking, healing, trust

    def sync(self) -> "Report":
        """Fetch, verify and push once, now."""
        from wire.verbs import operating

        return operating.sync(self.here)

    def heal(self) -> "Report":
        """Put back every accepted line that the remote lacks."""
        from wire.verbs import operating

        return operating.heal(self.here)

    def check_remote(self, kind: str | None = None) -> "Checked":
        """Return what the remote is known to enforce; nothing is tried. `kind` is one of `wire.verbs.hosting.KINDS`."""
        from wire.verbs import hosting

        return hosting.check(self.here, kind)

    def repair(self) -> "Repaired":
        """Make the clone's repository anew; no accepted line is given up."""
        from wire.verbs import operating

        return operating.repair(self.here)

    def trust(self) -> "Chain":
        """Return the trust chain that is held here."""
        from wire.verbs import operating

        return operating.trust(self.here)

    def repin(self, checkpoint: str) -> "Pin":
        """Rebuild a pin or a trust folder that was lost, from a checkpoint that a person gives."""
        from wire.verbs import operating

        return operating.repin(self.here, checkpoint)

    def requests(self) -> "Asking":
        """Return who asks to join or for another key, and why the remote could not be asked just now, if so."""
        from wire.verbs import operating

        return operating.waiting(self.here)

    def approve(
        self,
        name: str,
        *,
        fingerprint: str | None = None,
        beside: bool = False,
        confirm: "Callable[[Request | Rotation], bool] | None" = None,
    ) -> "Approval":
        """Enroll a newcomer or an agent's next key, known by its fingerprint or confirmed by a call."""
        from wire.verbs import operating

        sure = confirm or (lambda _: False)
        return operating.approve(self.here, name, fingerprint=fingerprint, beside=beside, confirm=sure)

    def invite(self, name: str, *, role: str = "agent", ttl: float = 86_400.0) -> "Invited":
        """Return a code by which one machine may join under a name, for `ttl` seconds."""
        from wire.verbs import inviting

        return inviting.invite(self.here, name, role=role, ttl=ttl)

    def invited(self, name: str) -> bool:
        """Return whether an invitation for a name is good and was not used; asks nobody."""
        from wire.verbs import inviting

        return inviting.is_open(self.here, name)

    def admit(self, name: str) -> "Approval | None":
        """Look once for who came with the code for a name, and enroll it; None while nobody has."""
        from wire.verbs import inviting

        return inviting.admit(self.here, name)

    def set_group(self, name: str, members: Sequence[str]) -> "Grouped":
        """Set who belongs to a group."""
        from wire.verbs import operating

        return operating.define_group(self.here, name, members)

    def local_keys(self) -> "list[LocalKey]":
        """Return this machine's keys; their private parts stay where they are."""
        from wire.verbs import operating

        return operating.local_keys(self.here)

    def rotate_key(self) -> "Rotated":
        """Give the agent a fresh key: it signs from now on, and counts once the trust names it; sending goes on."""
        from wire.verbs import rotating

        return rotating.rotate(self.here)

    def revoke_key(
        self,
        name: str,
        key: str | None = None,
        *,
        reason: str,
        at: Sequence[str] = (),
        beside: bool = False,
        confirm: "Callable[[Survey], bool] | None" = None,
    ) -> "Revoked":
        """Let a key count no further than its last good line in each channel; `confirm` is shown where that is."""
        from wire.verbs import revoking

        sure = confirm or (lambda _: True)
        return revoking.revoke(self.here, name, key, reason=reason, at=at, beside=beside, confirm=sure)

    def cut_lines(self) -> "list[Cut]":
        """Return lines of the agent that count no longer, since its key was revoked, and were not sent again."""
        from wire.verbs import reissuing

        return reissuing.cut_lines(self.here)

    def reissue(self, ids: Sequence[str]) -> "list[Reissued]":
        """Send lines again, word for word, that lost their place with a revoked key."""
        from wire.verbs import reissuing

        return reissuing.reissue(self.here, ids)
