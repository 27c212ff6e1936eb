"""Sending: one signed line, durably in this machine's journal, without git and without the daemon.

    sent = send(here, [Draft("spark", body="hello")])
    sent[0].id                                  "mac/spark/42"

When `send` returns, the line is fsync'd: state `stored`. Everything later is the daemon's, and is looked up, never
assumed (`state_of`). Nothing about the remote can make sending fail.
"""

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from wire.errors import IdentityError, NotReached, UsageError
from wire.keys import keyfile
from wire.protocol.chain import Position
from wire.protocol.encoding import Signer
from wire.protocol.line import head, seal
from wire.protocol.messages import TYPES, valid_type
from wire.protocol.names import EVERYONE, parse_id, valid_recipient
from wire.store import journal
from wire.store.files import read_bytes, utc_now
from wire.store.pin import Pin
from wire.verbs import leaks
from wire.verbs.here import Here
from wire.verbs.states import SENT_STATES, STATES, STORED, state_of

if TYPE_CHECKING:
    from wire.verbs.leaks import Found
    from wire.verbs.sealing import Closing

_POLL_SECONDS = 0.02


class Draft(NamedTuple):
    """A message before it has a place: the recipient, and members of a line by their names there."""

    to: str
    type: str = "message"
    body: str | dict[str, Any] | None = None
    subject: str | None = None
    thread: str | None = None
    re: str | None = None
    refs: Sequence[str] | None = None
    priority: str | None = None
    needs: str | None = None
    ack_required: bool | None = None
    expires: str | None = None
    idem: str | None = None
    seal: bool | None = None
    """Whether subject, body and refs are closed; None: where the policy of the wire asks for it."""
    allow_secret: str | None = None
    """Why what looks like a secret may go out; kept on this machine."""

    def members(self) -> dict[str, Any]:
        """Return the members of a line that it names."""
        return {name: value for name, value in zip(_MEMBERS, self[2:-2], strict=True) if value is not None}


_MEMBERS = Draft._fields[2:-2]


class Sent(NamedTuple):
    """A message that was sent. `again` means: the same `idem` had been sent before, and nothing was written now."""

    id: str
    state: str
    again: bool = False


class Outcome(NamedTuple):
    """What `send` did, and what its caller should tell."""

    sent: tuple[Sent, ...]
    warnings: tuple[str, ...]


def send(here: Here, drafts: Sequence[Draft]) -> Outcome:
    """Sign and store messages of the chosen agent, all of them or none, unless the disk fills up between two channels.

    Args:
        drafts: in the order in which they are to stand; several recipients are several channels.

    Raises:
        UsageError: a draft is not lawful, or looks as if it held a secret (`likely-secret`); nothing was written.
        TrustError: nobody has a key that a letter could be closed for (`no-key-to-seal-for`).
        IdentityError: the agent's key cannot be used, or its name was given to another (`name-taken`).
        DiskFull, StoreError: nothing of the channel was written; the text names what was stored in others before.
    """
    pin = here.pin()
    agent = here.agent()
    key = AgentKey(here, pin.wire, agent)
    if agent in pin.names.agents and key.signer.key_id not in pin.names.keys.get(agent, ()):
        refuse_a_taken_name(here, agent, key.signer)
    channels: dict[str, list[_Wanted]] = {}
    for draft, found in zip(drafts, leaks.look(drafts), strict=True):
        if not valid_recipient(draft.to) or draft.to == agent:
            raise UsageError(
                f"{draft.to[:64]!r} is not a recipient for {agent!r}: another agent, a group, or all",
                reason="bad-recipient",
                next_step="`wire agents` lists everybody, `wire group list` the groups",
            )
        if not valid_type(draft.type):
            raise UsageError(
                f"{draft.type[:40]!r} is no message type: a to z, 0 to 9, - and _, a letter first, at most 32",
                reason="bad-type",
            )
        channels.setdefault(f"{agent}/{draft.to}", []).append(_Wanted(draft, found, _is_sealed(here, pin, draft)))
    builders = {channel: _Builder(here, pin, key, channel, mine) for channel, mine in channels.items()}
    ends = journal.append_all(
        here.places,
        pin.wire,
        {channel: (builder.build, pin.accepted.get(channel)) for channel, builder in builders.items()},
        copy_to=here.places.coordination,
        on_incident=lambda found: _raise(here, found),
    )
    results = {channel: builder.sent(ends[channel]) for channel, builder in builders.items()}
    sent = tuple(next(results[f"{agent}/{draft.to}"]) for draft in drafts)
    warnings = list(_warnings(here, pin, agent, key.signer, {draft.to for draft in drafts}))
    warnings += [_odd_type(name) for name in sorted({draft.type for draft in drafts} - TYPES.keys())]
    for builder in builders.values():
        warnings += builder.warnings()
    urgent = {channel for channel, mine in channels.items() if any(one.draft.priority == "urgent" for one in mine)}
    return Outcome(sent, (*warnings, *_forecast(here, pin, list(channels), frozenset(urgent))))


class _Wanted(NamedTuple):
    """A draft, what in it looks like a secret and may go out, and whether it is to be closed."""

    draft: Draft
    leaks: "Sequence[Found]"
    sealed: bool


def _is_sealed(here: Here, pin: Pin, draft: Draft) -> bool:
    required = pin.names.sealed
    if draft.seal is None and required is False:
        return False
    from wire.verbs import sealing

    if draft.seal is not None and not isinstance(draft.seal, bool):
        raise UsageError("'seal' is true or false; nothing was sent", reason="bad-content")
    if required is None:
        required = sealing.asked_for_by_policy(here)
    return sealing.is_wanted(draft.type, draft.members(), seal=draft.seal, required=required)


def wait(here: Here, ids: Sequence[str], state: str, timeout: float) -> list[Sent]:
    """Wait until all messages have reached a state: from `delivered` on, at every recipient.

    Raises:
        NotReached: they had not, after `timeout` seconds; they are stored, and on their way. It names who is missing.
        UsageError: no such state.
    """
    if state not in STATES:
        raise UsageError(f"there is no state {state!r} to wait for; known are {', '.join(STATES)}", reason="bad-state")
    if state not in SENT_STATES:
        from wire.verbs import receipts  # what recipients are proved to have is more to look up

        return [Sent(one.id, one.state) for one in receipts.wait(here, ids, state, timeout)]
    deadline = time.monotonic() + timeout
    while True:
        pin = here.pin()
        states = [state_of(pin, *parse_id(one)) for one in ids]
        if all(STATES.index(one) >= STATES.index(state) for one in states):
            return [Sent(one, reached) for one, reached in zip(ids, states, strict=True)]
        if time.monotonic() >= deadline:
            from wire.verbs.health import outward

            behind = next(i for i, one in enumerate(states) if STATES.index(one) < STATES.index(state))
            raise NotReached(
                f"{ids[behind]} is {states[behind]} and was not {state} within {timeout:g} s; it is on disk here, so do"
                f" not send it again; {outward(here)}",
                next_step="wire status",
                details={"ids": list(ids), "states": states, "awaited": state},
            )
        time.sleep(_POLL_SECONDS)


class AgentKey:
    """The agent's key; `wire keys rotate` may put another in its place at any time."""

    def __init__(self, here: Here, wire: str, agent: str) -> None:
        self._path = keyfile.key_path(here.settings.keys_dir, wire=wire, kind="agent", name=agent)
        self._environ = here.settings.environ
        self._loose = here.settings.allow_loose_keys
        self._wire, self._agent = wire, agent
        self._stands = self._identity()
        self.signer = self._load()

    def now(self) -> Signer:
        """Return the key at hand. With a channel's lock held it stays that for this channel: who changes it waits."""
        if self._identity() != self._stands:
            self._stands = self._identity()
            self.signer = self._load()
        return self.signer

    def _load(self) -> Signer:
        name, wire, environ = self._agent, self._wire, self._environ
        signer = keyfile.load_for(
            self._path, name=name, kind="agent", wire=wire, allow_loose=self._loose, environ=environ
        )
        # Before anything is locked or written: a person may have to be asked.
        signer.ready(ask=True)
        return signer

    def _identity(self) -> tuple[int, int]:
        try:
            status = os.stat(self._path)
        except OSError:
            return 0, 0  # loading it says what is wrong
        return status.st_ino, status.st_mtime_ns


class _Builder:
    """Makes the lines of one channel, once its end is known."""

    def __init__(self, here: Here, pin: Pin, key: AgentKey, channel: str, wanted: Sequence[_Wanted]) -> None:
        self._here = here
        self._pin = pin
        self._key = key
        self._channel = channel
        self._sender, _, self._recipient = channel.partition("/")
        self._trust = f"{pin.trust_version}:{pin.trust_hash[:16]}"
        self._wanted = wanted
        self._known: list[Sent | None] = []
        self._closing: Closing | None = None
        if any(one.sealed for one in wanted):
            from wire.verbs import sealing

            self._closing = sealing.Closing(here, pin, channel)

    def build(self, end: Position) -> list[bytes]:
        """Return the signed lines that follow `end`; a draft whose `idem` was sent before makes none."""
        pin, channel, signer = self._pin, self._channel, self._key.now()
        back = pin.accepted.get(f"{self._recipient}/{self._sender}")
        ack = [back.seq, back.head] if back is not None and back.seq and self._recipient in pin.names.agents else None
        lines: list[bytes] = []
        seq, prev = end.seq, end.head
        now = utc_now()
        issued: dict[str, tuple[int, bytes]] = {}
        allowed: list[tuple[str, str, Draft, Sequence[Found]]] = []
        for draft, found, sealed in self._wanted:
            if draft.idem is not None:
                from wire.verbs import idem

                earlier = issued.get(draft.idem) or idem.find(self._here, channel, end, draft.idem)
                if earlier is not None:
                    idem.same_content(self._here, pin, draft, earlier[1], sealed=sealed)
                    self._known.append(Sent(f"{channel}/{earlier[0]}", state_of(pin, channel, earlier[0]), True))
                    continue
            members = draft.members()
            if sealed and self._closing is not None:
                members = self._closing.close(signer, draft.type, members)
            seq += 1
            line = self._signed(signer, draft.type, seq, prev, now, ack, members)
            prev = head(line[:-1])
            if draft.idem is not None:
                issued[draft.idem] = (seq, line[:-1])
            if found:
                allowed.append((f"{channel}/{seq}", prev, draft, found))
            lines.append(line)
            self._known.append(None)
        if allowed:
            leaks.note(self._here, now, allowed)
        return lines

    def _signed(
        self, signer: Signer, type: str, seq: int, prev: str, now: str, ack: list[Any] | None, members: dict[str, Any]
    ) -> bytes:
        try:
            return seal(
                signer, wire=self._pin.wire, sender=self._sender, recipient=self._recipient, seq=seq, prev=prev,
                ts=now, trust=self._trust, type=type, ack=ack, **members,
            )  # fmt: skip
        except UsageError as error:
            if "enc" in members and self._closing is not None and error.reason == "too-large":
                error.next_step = f"shorten it: {self._closing.cost()}"
            raise

    def sent(self, ends: Sequence[Position]) -> Iterator[Sent]:
        """Yield what became of each draft, in their order."""
        stored = iter(ends)
        for known in self._known:
            yield known or Sent(f"{self._channel}/{next(stored).seq}", STORED)

    def warnings(self) -> Iterator[str]:
        """Yield what is to be told of the letters' closing, and of what was let through."""
        without = self._closing.without_key if self._closing is not None else ()
        if without:
            yield f"{', '.join(without)} cannot open it: no key in trust version {self._pin.trust_version}"
        for one in self._wanted:
            if one.leaks:
                yield leaks.told(self._here, one.leaks)


def refuse_a_taken_name(here: Here, agent: str, signer: Signer) -> None:
    """Raise IdentityError where the trust gives the agent's name to another key: nobody would ever see its lines."""
    from wire.daemon.site import name_taken
    from wire.store import trustfiles

    chain = trustfiles.read(here.places.trust_dir)
    if agent in chain.newest.agents and chain.key(agent, signer.key_id) is None:
        from wire.keys import keychange

        path = keyfile.key_path(here.settings.keys_dir, wire=chain.wire, kind="agent", name=agent)
        former = keychange.former(path, name=agent, wire=chain.wire, allow_loose=here.settings.allow_loose_keys)
        if any(chain.key(agent, one) for one in former):
            return
        if chain.newest.agents[agent].waits_for_key:
            raise IdentityError(
                f"the new key of {agent!r} on this machine is not approved yet; nothing can be sent before, since its"
                " lines go on behind those of the key before it",
                reason="not-approved",
                next_step="wire keys show",
            )
        raise name_taken(chain, agent, signer)


def _warnings(here: Here, pin: Pin, agent: str, signer: Signer, recipients: set[str]) -> tuple[str, ...]:
    known = {*pin.names.agents, *pin.names.groups, EVERYONE}
    warnings = [_unknown(here, pin, name) for name in sorted(recipients - known)]
    if agent in pin.names.agents and signer.key_id not in pin.names.keys.get(agent, ()):
        warnings.append(
            f"the key of {agent!r} on this machine does not count on the wire; its lines wait here until one does: see"
            " `wire keys show`"
        )
    elif signer.key_id not in pin.names.keys.get(agent, ()):
        warnings.append(f"{agent!r} is not approved yet; its lines wait here and go out by themselves after approval")
    if pin.frozen is not None:
        warnings.append(f"publishing is frozen since {pin.frozen.since} ({pin.frozen.code}); see `wire status`")
    return tuple(warnings)


def _unknown(here: Here, pin: Pin, name: str) -> str:
    """Say what is known of a recipient that the trust does not name."""
    try:
        asks = any(one.startswith(f"{name}.") for one in os.listdir(os.path.join(here.places.coordination, "requests")))
    except OSError:
        asks = False
    if asks:
        return f"{name!r} asks to join and is not approved yet (see `wire trust requests`); the line waits until it is"
    return (
        f"{name!r} is not in this machine's copy of the trust (version {pin.trust_version}); the line waits for whoever"
        f" gets that name{_meant(name, (*pin.names.agents, *pin.names.groups))}"
    )


def _odd_type(name: str) -> str:
    """Say that a type is none of those that ask for something: whoever mistypes one would wait for an answer."""
    return f"{name!r} is a type of your own, which no program here knows{_meant(name, TYPES)}"


def _meant(name: str, known: Iterable[str]) -> str:
    """Return a question for a name that differs little from one that is known; empty for any other."""
    from difflib import get_close_matches  # a mistake is rare, and every send would load it

    close = get_close_matches(name, sorted(known), 1, 0.75)
    return f"; did you mean {close[0]!r}?" if close else ""


def _forecast(here: Here, pin: Pin, channels: Sequence[str], urgent: frozenset[str]) -> Sequence[str]:
    """Return what is to be told of the recipients; as a rule that is nothing, and one line of a file says so."""
    if not urgent:
        said = (read_bytes(here.places.outlook_file) or b"").partition(b"\n")[0]
        try:
            if not said or time.time() < float(said):
                return ()
        except ValueError:
            return ()
    from wire.verbs import forecast

    return forecast.warnings(here, pin, channels, urgent)


def _raise(here: Here, found: journal.Finding) -> None:
    from wire.store import incidents

    incidents.raise_(here.places.incidents_dir, **found._asdict())
