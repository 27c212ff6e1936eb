"""Our own new lines: from the journal, and those that an agent appended by hand in the clone.

For each channel of each local agent, under the channel's lock (PROTOCOL.md, section "What a machine publishes"):
    a  the journal's end is found; a journal that is behind what was accepted is rebuilt from the accepted bytes
    b  complete lines behind it in the clone's file are adopted when each is the valid next one
    c  the clone's file is made to hold the journal's bytes again
    d  lines behind the accepted end are verified like anybody's and become accepted

`take_over` is the other direction: lines of our own key that came from the remote, which we did not have.
"""

import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from wire.daemon.accepted import Accepted
from wire.daemon.findings import Finding
from wire.daemon.site import Site
from wire.errors import IdentityError, StoreError, UsageError
from wire.keys.trust import Chain
from wire.protocol.chain import Position, lines_of, step
from wire.protocol.encoding import LINE_TYPE, Signer, verify
from wire.protocol.line import Line, LineError, head, parse, seal_again
from wire.protocol.names import segment_name, valid_channel
from wire.store import amend, incidents, journal, mending
from wire.store.journal import Held
from wire.store.mending import Inspection
from wire.store.segments import follow

GRACE_SECONDS = 60.0
"""How long an unterminated end of a clone's file is left alone: somebody may still be writing it."""


@dataclass(slots=True)
class Collected:
    """What `collect` found.

    Attributes:
        ends: new accepted ends.
        new: lines that became accepted.
        waiting: per agent that is not approved yet, how many lines wait in its journal.
    """

    ends: dict[str, Position] = field(default_factory=dict)
    new: dict[str, list[Line]] = field(default_factory=dict)
    waiting: dict[str, int] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)


def collect(
    site: Site,
    chain: Chain,
    accepted: Accepted,
    ends: Mapping[str, Position],
    approved: Mapping[str, Signer],
    frozen: Collection[str],
) -> Collected:
    """Run a to d for every channel of the local agents.

    Args:
        ends: accepted end per channel.
        approved: the local agents whose lines count.
        frozen: channels that accept nothing, since two valid lines claim one place; what is sent there stays stored.
    """
    collected = Collected()
    for channel in _channels(site, site.local(chain), ends):
        sender = channel.partition("/")[0]
        start = Position.start(chain.wire, channel)
        end = ends.get(channel, start)
        found: list[journal.Finding] = []
        try:
            with journal.hold(site.places, chain.wire, channel, on_incident=found.append) as held:
                tail = _settled(site, held, accepted, end, collected)
                tail = _adopt_and_mend(site, held, chain, accepted, end, tail, collected, sender in approved)
                # After a kill in the middle of taking lines over, the journal is ahead of the pin: the next tip tells.
                follows = tail.seq > end.seq and amend.stands(held, end)
        except StoreError as error:
            collected.findings.append(Finding("CORRUPT", channel, f"the journal of {channel} cannot be used: {error}"))
            continue
        finally:
            collected.findings += [Finding(f.code, f.scope, f.message, f.evidence, f.subject) for f in found]
        if sender not in approved:
            collected.waiting[sender] = collected.waiting.get(sender, 0) + tail.seq - end.seq
        elif follows and channel not in frozen:
            reached = _accept(site, chain, accepted, channel, end, tail, collected)
            if reached.seq < tail.seq:
                signer = site.signer(sender, chain.wire)
                if not _awaits(site, chain, channel, reached, tail, signer):
                    tail = _put_right(site, chain, channel, reached, signer, collected)
                    reached = _accept(site, chain, accepted, channel, reached, tail, collected)
                if chain.key(sender, signer.key_id) is None:
                    collected.waiting[sender] = collected.waiting.get(sender, 0) + tail.seq - reached.seq
    return collected


def take_over(
    site: Site,
    chain: Chain,
    channel: str,
    keep: Position,
    adopted: list[Line],
    signer: Signer,
    tell: Callable[[Finding], None],
) -> bool:
    """Bring lines of our own key that the remote had, and we did not, into the journal.

    Lines of ours behind `keep` that nobody has seen are issued again behind them; nothing of ours is given up.

    Args:
        keep: the last end that our journal and the remote share.
        adopted: the remote's lines behind it.
        tell: told of what is about to happen, so that a kill in between loses neither the lines nor their new ids.

    Returns:
        Whether lines of ours stand behind those that were taken over, and wait to be collected.

    Raises:
        StoreError: the journal cannot be used; it is rebuilt from the accepted lines when it can be again.
    """
    theirs = [line.raw + b"\n" for line in adopted]
    with journal.hold(site.places, chain.wire, channel) as held:
        try:
            tail = journal.settle(held)
        except StoreError:
            tell(_state_lost(channel, adopted))
            journal.extend(held, theirs)
            return False
        ours = list(journal.read_lines(site.places, channel, keep, tail)) if tail.seq > keep.seq else []
        shared = _shared(ours, [line.raw for line in adopted])
        if shared == len(adopted):
            # A kill came between the journal and the pin: what is to be done here was done.
            return len(ours) > shared
        if shared == len(ours):
            tell(_state_lost(channel, adopted))
            journal.extend(held, theirs[shared:])
            return False
        end = Position(adopted[-1].seq, adopted[-1].head, 0, 0)
        issued, moved = _issue_again(chain, [parse(raw) for raw in ours[shared:]], end, signer)
        shown = ", ".join(f"{old} is now {new}" for old, new in moved.items())
        tell(
            Finding(
                "CLONED",
                channel,
                f"another copy of this machine's key wrote {channel} from line {keep.seq + 1} on; "
                f"{len(moved)} line(s) of ours that nobody had are issued again: {shown}",
                {"issued_again": moved, "adopted": [line.head for line in adopted]},
            )
        )
        amend.replace_from(held, keep, [*theirs, *issued])
    return True


def cut_back(
    site: Site, chain: Chain, channel: str, keep: Position, published: int, tell: Callable[[Finding], None]
) -> None:
    """Take published lines of our own that no longer count out of the journal, so that the next key can go on.

    A copy is kept aside, as of everything that leaves a journal. They are not issued again: whoever revoked the key may
    have meant that they are a thief's. Lines behind them that nobody had yet are: under the key that is here, which the
    next one replaces once it counts (see `collect`).

    Args:
        published: number of the last line that the remote had.
        tell: told of what is about to happen, as in `take_over`.
    """
    try:
        with journal.hold(site.places, chain.wire, channel) as held:
            tail = journal.settle(held)
            behind = list(journal.read_lines(site.places, channel, keep, tail)) if tail.seq > keep.seq else []
            ours = [line for line in map(parse, behind) if line.seq > published]
            issued: list[bytes] = []
            if ours:
                signer = site.signer(channel.partition("/")[0], chain.wire)
                issued, moved = _issue_again(chain, ours, keep, signer)
                shown = ", ".join(f"{old} is now {new}" for old, new in moved.items())
                why = f"{len(ours)} line(s) of {channel} that nobody had stood behind lines that no longer count"
                evidence = {"issued_again": moved}
                tell(
                    Finding("KEY_RETIRED", channel, f"{why}; they are issued again: {shown}", evidence, "issued-again")
                )
            amend.replace_from(held, keep, issued)
    except (StoreError, IdentityError, UsageError) as error:
        code = "KEY" if isinstance(error, IdentityError) else "CORRUPT"
        tell(Finding(code, channel, f"the journal of {channel} could not be cut at line {keep.seq}: {error}"))


def _channels(site: Site, local: Collection[str], ends: Mapping[str, Position]) -> list[str]:
    found = {channel for channel in [*journal.channels(site.places), *ends] if channel.partition("/")[0] in local}
    for agent in local:
        try:
            names = os.listdir(os.path.join(site.places.coordination, agent))
        except OSError:
            continue
        found |= {f"{agent}/{name}" for name in names if valid_channel(agent, name)}
    return sorted(found)


def _settled(site: Site, held: Held, accepted: Accepted, end: Position, collected: Collected) -> Position:
    """Step a: return the journal's end, rebuilding it where it lost accepted lines."""
    try:
        return journal.settle(held, floor=end if end.seq else None)
    except StoreError as error:
        if error.reason not in ("journal-behind", "journal-damaged") or not end.seq:
            raise
        lost = error
    if _is_heir(site, held, accepted, end):
        amend.rebuild(held, (accepted.segment(held.channel, number) for number in range(1, end.segment + 1)))
        return journal.settle(held, floor=end)
    return _rebuilt(held, accepted, end, collected, lost)


def _is_heir(site: Site, held: Held, accepted: Accepted, end: Position) -> bool:
    """Return whether the accepted lines are those of a key before ours, which another machine had: nothing was lost."""
    sender, _, _ = held.channel.partition("/")
    if journal.segments(site.places, held.channel) or held.sent() is not None:
        return False
    ours = {site.signer(sender, held.wire).key_id, *site.former(sender, held.wire)}
    return all(
        parse(raw).key_id not in ours
        for number in range(1, end.segment + 1)
        for raw in lines_of(accepted.segment(held.channel, number))
    )


def _rebuilt(held: Held, accepted: Accepted, end: Position, collected: Collected, why: StoreError | str) -> Position:
    """Make the journal hold the accepted lines again, and return its end."""
    amend.rebuild(held, (accepted.segment(held.channel, number) for number in range(1, end.segment + 1)))
    tail = journal.settle(held, floor=end)
    collected.findings.append(
        Finding(
            "STATE_LOST",
            held.channel,
            f"the journal of {held.channel} had lost lines that were accepted ({why}); it was rebuilt up to line "
            f"{tail.seq}",
            subject="journal",
        )
    )
    return tail


def _put_right(site: Site, chain: Chain, channel: str, end: Position, signer: Signer, collected: Collected) -> Position:
    """Issue lines again that nobody has, behind one that does not hold; return the journal's new end.

    Either their key counts no longer, or a line was damaged on the disk. What its author did not sign as it stands is
    not signed for him: it is kept aside, and what was sent behind it goes out in its place.
    """
    try:
        with journal.hold(site.places, chain.wire, channel) as held:
            raws = list(journal.read_lines(site.places, channel, end, journal.settle(held)))
            ours = [line for raw in raws if (line := _genuine(chain, raw, signer)) is not None]
            issued, moved = _issue_again(chain, ours, end, signer)
            after, kept = amend.replace_from(held, end, issued)
    except StoreError as error:
        collected.findings.append(Finding("CORRUPT", channel, f"the journal of {channel} cannot be used: {error}"))
        return end
    except IdentityError as error:
        # They stay where they are until the key can sign.
        why = f"lines of {channel} behind line {end.seq} have to be signed again: {error}"
        collected.findings.append(Finding("KEY", channel, why, next_step=error.next_step))
        return end
    incidents.end(site.places.incidents_dir, "KEY", channel)
    damaged = len(raws) - len(ours)
    if damaged:
        why = f"{damaged} line(s) of {channel} behind line {end.seq} were damaged here before anybody had them"
    else:
        why = f"lines of {channel} behind line {end.seq} were sent under a key that counts no longer"
    collected.findings.append(
        Finding(
            "CORRUPT" if damaged else "KEY_RETIRED",
            channel,
            f"{why}; a copy is kept, and {len(moved)} line(s) were issued again: "
            + (", ".join(f"{old} is now {new}" for old, new in moved.items()) or "none"),
            {"issued_again": moved, "kept": [one.path for one in kept]},
            subject="issued-again",
        )
    )
    return after


def _awaits(site: Site, chain: Chain, channel: str, end: Position, tail: Position, signer: Signer) -> bool:
    """Return whether the lines behind an end only wait for the trust to name the key that signed them, our next one."""
    if chain.owner(signer.key_id) is not None:
        return False
    raw = next(iter(journal.read_lines(site.places, channel, end, tail)))
    line = _parsed(raw)
    return line is not None and line.key_id == signer.key_id and line.prev == end.head


def _parsed(raw: bytes) -> Line | None:
    try:
        return parse(raw)
    except LineError:
        return None


def _genuine(chain: Chain, raw: bytes, signer: Signer) -> Line | None:
    """Return a line if some key of its author signed it, whether or not that counts any more, or does yet."""
    line = _parsed(raw)
    if line is None:
        return None
    name, key = chain.owner(line.key_id) or ("", None)
    public = signer.public if line.key_id == signer.key_id else key.public if name == line.sender and key else None
    signed = public is not None and verify(public, line.signature, LINE_TYPE, line.body_bytes)
    return line if signed else None


def _adopt_and_mend(
    site: Site,
    held: Held,
    chain: Chain,
    accepted: Accepted,
    end: Position,
    tail: Position,
    collected: Collected,
    approved: bool,
) -> Position:
    """Steps b and c; return the journal's end afterwards."""
    seen = _inspected(site, held, tail)
    if not seen.same and _chained(held, chain) < end.seq:
        # It is not the clone that changed.
        tail = _rebuilt(held, accepted, end, collected, "a line in it was damaged")
        seen = _inspected(site, held, tail)
    if seen.same:
        return tail
    refused: list[tuple[bytes, str]] = []
    adopted = []
    position = tail
    for raw in seen.candidates if approved else ():
        verdict = step(position, raw, wire=chain.wire, channel=held.channel, keys=chain)
        if verdict.code is None:
            adopted.append(raw + b"\n")
            position = verdict.after
        else:
            refused.append((raw, verdict.why))
    if adopted:
        journal.extend(held, adopted)
        tail = position
    if refused or seen.odd:
        collected.findings.append(_refusal(held.channel, seen, refused, len(adopted)))
    names = [f"{held.channel}/{segment_name(number)}" for number in range(1, tail.segment + 1)]
    for number, name in enumerate(names, 1):
        path = os.path.join(site.places.coordination, name)
        tag = tail.head if number == tail.segment else None
        if site.signatures.changed(path, tag):
            size = tail.size if number == tail.segment else None
            wanted = journal.read_segment(site.places, held.channel, number)[:size]
            mending.mend(site.places.coordination, name, wanted, site.places.aside_dir, grace=GRACE_SECONDS)
    for name in set(seen.beyond) - set(names):
        mending.mend(site.places.coordination, name, None, site.places.aside_dir, grace=GRACE_SECONDS)
    return tail


def _inspected(site: Site, held: Held, tail: Position) -> Inspection:
    return mending.inspect(site.places.coordination, held.folder, held.channel, tail, signatures=site.signatures)


def _chained(held: Held, chain: Chain) -> int:
    """Return the number of the last line up to which each line of the journal names the one before it."""
    start = Position.start(chain.wire, held.channel)
    return follow(held.folder, start, wire=chain.wire, channel=held.channel).end.seq


def _refusal(channel: str, seen: Inspection, refused: list[tuple[bytes, str]], adopted: int) -> Finding:
    odd = seen.odd[0] if seen.odd else None
    why = refused[0][1] if refused else f"{odd.path}: {odd.kind} at byte {odd.offset}" if odd else ""
    return Finding(
        "ADOPT_REFUSED",
        channel,
        f"the clone's file of {channel} held bytes that are not the journal's and not valid next lines ({why}); "
        "a copy was set aside and the file was mended",
        {
            "adopted": adopted,
            "refused": len(refused),
            "sha256": [head(raw) for raw, _ in refused[:3]],
            "begins": [raw[:40] for raw, _ in refused[:3]],
            "odd": [f"{one.path} {one.kind} {one.offset}+{one.length}" for one in seen.odd[:5]],
        },
    )


def _accept(
    site: Site, chain: Chain, accepted: Accepted, channel: str, end: Position, tail: Position, collected: Collected
) -> Position:
    """Step d: accept lines of the journal up to the first that does not hold, and return the end that this reaches."""
    new: list[Line] = []
    position = end
    for raw in journal.read_lines(site.places, channel, end, tail):
        verdict = step(position, raw, wire=chain.wire, channel=channel, keys=chain)
        if verdict.code is not None or verdict.line is None:
            break
        new.append(verdict.line)
        position = verdict.after
    if new:
        accepted.append(channel, end, [line.raw for line in new])
        collected.ends[channel] = position
        collected.new.setdefault(channel, []).extend(new)
    return position


def _shared(ours: list[bytes], theirs: list[bytes]) -> int:
    """Return how many leading lines are the same."""
    count = 0
    while count < min(len(ours), len(theirs)) and ours[count] == theirs[count]:
        count += 1
    return count


def _state_lost(channel: str, adopted: list[Line]) -> Finding:
    return Finding(
        "STATE_LOST",
        channel,
        f"the remote had {len(adopted)} line(s) of {channel} under this machine's key that it did not know "
        f"({adopted[0].id} to {adopted[-1].id}); they were taken over: its state is older than what it sent",
        {"first": adopted[0].seq, "last": adopted[-1].seq},
    )


def _issue_again(chain: Chain, ours: list[Line], end: Position, signer: Signer) -> tuple[list[bytes], dict[str, str]]:
    """Sign what lines say that have no place any more under the next numbers; return them, and new ids by old ones."""
    moved: dict[str, str] = {}
    issued: list[bytes] = []
    seq, prev = end.seq, end.head
    for line in ours:
        seq += 1
        moved[line.id] = f"{line.channel}/{seq}"
        raw = seal_again(signer, line, seq=seq, prev=prev, trust=chain.newest.reference, moved=moved)
        prev = head(raw[:-1])
        issued.append(raw)
    return issued, moved
