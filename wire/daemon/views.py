"""The clone's files as a view of what was accepted.

A channel of ours is the journal's view, and `collect` keeps it. Here are the channels of others: their files hold
exactly the accepted bytes, appended in place, so that somebody who tails one sees every line on the same inode.
"""

import os
import stat
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial

from wire.daemon.accepted import Accepted
from wire.daemon.collect import GRACE_SECONDS
from wire.daemon.findings import WIRE, Finding
from wire.daemon.site import Site
from wire.errors import StoreError
from wire.gitio import blob_id
from wire.protocol.chain import SEGMENT_MAX, Position
from wire.protocol.line import Line
from wire.protocol.names import parse_segment_name, segment_name
from wire.store import seen
from wire.store.files import read_bytes, utc_now
from wire.store.mending import mend
from wire.store.pin import Pin


def refresh(
    site: Site, accepted: Accepted, local: Collection[str], ends: Mapping[str, Position], changed: Collection[str]
) -> list[Finding]:
    """Make the accepted bytes of others visible, and mend what somebody did to the files.

    Args:
        local: the agents whose folders are the journal's view.
        ends: accepted end of every channel.
        changed: channels whose end moved in this cycle.
    """
    findings = []
    for channel, end in ends.items():
        if channel.partition("/")[0] in local:
            continue
        if channel in changed:
            _take_away(site, channel, end)
        for number in range(1, end.segment + 1) if end.seq else ():
            tag = end.head if number == end.segment else None
            name = f"{channel}/{segment_name(number)}"
            path = os.path.join(site.places.coordination, name)
            if channel not in changed and (
                not site.signatures.changed(path, tag) or _is_blob(site, path, tag, accepted.oid(channel, number))
            ):
                continue
            wanted = accepted.segment(channel, number)
            done = mend(site.places.coordination, name, wanted, site.places.aside_dir, grace=GRACE_SECONDS)
            if done.action != "waiting":
                site.signatures.remember(path, tag)
            if done.aside is not None and channel not in changed:
                findings.append(
                    Finding(
                        "ADOPT_REFUSED",
                        channel,
                        f"the clone's file {name} held bytes that nobody verified; they were set aside and it "
                        f"was mended",
                        {"aside": done.aside.path},
                        subject="view",
                    )
                )
    return findings


def _take_away(site: Site, channel: str, end: Position) -> None:
    """Take segments behind the end out of the clone: what was cut does not stay to be read there."""
    last = end.segment if end.seq else 0
    try:
        names = os.listdir(os.path.join(site.places.coordination, channel))
    except OSError:
        return
    for name in names:
        if (parse_segment_name(name) or 0) > last:
            mend(site.places.coordination, f"{channel}/{name}", None, site.places.aside_dir, grace=GRACE_SECONDS)


def _is_blob(site: Site, path: str, tag: str | None, oid: str | None) -> bool:
    """Return whether a file holds exactly the bytes of a blob, which is told without reading the blob."""
    try:
        status = os.stat(path, follow_symlinks=False)
        data = read_bytes(path) if stat.S_ISREG(status.st_mode) and status.st_size <= SEGMENT_MAX else None
    except (OSError, StoreError):
        return False
    if data is None or oid is None or blob_id(data, oid) != oid:
        return False
    site.signatures.remember(path, tag, seen=status)
    return True


class Notes:
    """What is to be noted of accepted lines: at once for those that others may see now, after the push for our own."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._due: list[tuple[Mapping[str, Position], Pin, Mapping[str, Sequence[Line]]]] = []

    def take(
        self, before: Mapping[str, Position], pin: Pin, new: Mapping[str, Sequence[Line]], *, later: bool
    ) -> list[Finding]:
        """Note what was accepted, or keep it for `write`.

        Args:
            before: the accepted ends before.
            pin: as it was saved.
            new: the lines that were accepted.
        """
        self._due.append((before, pin, new))
        return [] if later else self.write()

    def write(self) -> list[Finding]:
        """Note everything that was kept, and return what troubled that; no reader depends on it."""
        due, self._due = self._due, []
        return [finding for one in due for finding in self._note(*one)]

    def _note(self, before: Mapping[str, Position], pin: Pin, new: Mapping[str, Sequence[Line]]) -> Iterator[Finding]:
        """Note first sight of new lines, and forget that of lines that were cut."""
        now, path = utc_now(), self._site.places.seen_file
        steps = []
        for channel, end in before.items():
            kept = pin.accepted[channel].seq - len(new.get(channel, ()))
            if kept < end.seq:
                steps.append(partial(seen.cut, path, now, channel, kept))
        spans = {channel: (lines[0].seq, lines[-1].seq) for channel, lines in new.items()}
        for step in (*steps, partial(seen.append, path, now, pin.verified or "", spans)):
            try:
                step()
            except StoreError as error:
                yield Finding("CORRUPT", WIRE, f"not noted: {error}", subject="seen")
