"""`wire evidence`: what this machine has that shows an incident to somebody else, as one file.

Bytes are looked up where the incident says that they are: in the commit that was judged, in the accepted bytes, among
the lines that were cut. Git drops what no branch holds after some weeks, so that evidence of a history that was
replaced is best written soon.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from wire.daemon.accepted import BLOB_MAX, Accepted
from wire.daemon.shape import FILE_MODE, segment_path, trust_path
from wire.daemon.site import Site
from wire.errors import UsageError
from wire.gitio import GitFailed
from wire.keys.exhibits import BYTES, DOCUMENT, EXHIBITS_MAX, LINE, PRESENCE, TEXT_MAX, Bundle, Claim, Exhibit, write
from wire.protocol.chain import line_at, lines_of
from wire.protocol.encoding import sha256_hex
from wire.protocol.line import LINE_MAX, LineError, content, parse
from wire.protocol.names import parse_id, valid_name
from wire.store import cutlines, incidents, presences
from wire.store.incidents import Incident
from wire.store.pin import Pin
from wire.verbs.here import Here

LINES_SHOWN = 20
"""Accepted lines of one loss that are shown; signed all the same, the others say no more."""
SEGMENTS_SEARCHED = 256


def evidence(here: Here, wanted: str) -> bytes:
    """Return the evidence file of an incident.

    Args:
        wanted: the incident's id, or the beginning of it.

    Raises:
        UsageError: there is no such incident (`incident-unknown`), or it is a breakdown of this machine, about which
            nobody signed anything (`no-evidence`).
    """
    incident = incidents.get(here.places.incidents_dir, wanted)
    if not incident.integrity:
        raise UsageError(
            f"{incident.id} is {incident.code}, a breakdown of this machine: nobody signed anything about it",
            reason="no-evidence",
            next_step=f"wire incidents show {incident.id}",
        )
    site = Site.open(here.settings, here.config)
    pin = here.pin()
    chain = site.trust(pin)
    found: dict[tuple[str, bytes], Exhibit] = {}
    for exhibit in _Search(site, pin, incident).all():
        found.setdefault((exhibit.kind, exhibit.data), exhibit)
        if len(found) == EXHIBITS_MAX:
            break
    claim = Claim(
        incident.code,
        incident.scope[:TEXT_MAX],
        incident.message[:TEXT_MAX],
        incident.first,
        incident.last,
        incident.count,
    )
    trust = tuple((one.raw, signed) for one, signed in zip(chain.documents, chain.signatures, strict=True))
    return write(Bundle(chain.wire, claim, trust, tuple(found.values())))


class _Search:
    """Looks for the bytes of one incident."""

    def __init__(self, site: Site, pin: Pin, incident: Incident) -> None:
        self._site = site
        self._pin = pin
        self._accepted: Accepted = site.accepted(pin)
        self._incident = incident
        self._facts: Mapping[str, Any] = incident.evidence
        self._channel = incident.scope if incident.scope.count("/") == 1 else ""

    def all(self) -> Iterator[Exhibit]:
        """Yield what there is, what matters most first."""
        yield from self._at_offset()
        yield from self._by_heads()
        yield from self._named()
        yield from self._presences()
        yield from self._documents()
        yield from self._missed()

    def _text(self, name: str) -> str:
        value = self._facts.get(name)
        return value if isinstance(value, str) else ""

    def _number(self, name: str) -> int:
        value = self._facts.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else 0

    def _at_offset(self) -> Iterator[Exhibit]:
        """The bytes that a tip carried at a place."""
        path, tip, length = self._text("path"), self._text("tip"), self._number("length")
        if not path or not tip or not length:
            return
        at = self._number("offset")
        raw = (self._blob(tip, path) or b"")[at : at + min(length, LINE_MAX)].removesuffix(b"\n")
        if not raw:
            return
        yield from self._with_neighbours(raw, f"{tip}:{path}, byte {at}")

    def _with_neighbours(self, raw: bytes, found: str) -> Iterator[Exhibit]:
        """What was found, and the accepted lines at its place and in front of it."""
        try:
            line = parse(raw)
        except LineError:
            yield Exhibit(BYTES, raw, found)
            return
        yield Exhibit(LINE, raw, found)
        for seq in (line.seq, line.seq - 1):
            yield from self._line(line.channel, seq)

    def _by_heads(self) -> Iterator[Exhibit]:
        """Lines that the incident names by their hashes, wherever they still are."""
        wanted = {self._text(name) for name in ("other_head", "head", "acknowledged", "accepted", "claimed")}
        cut = self._facts.get("cut")
        wanted |= {head for head in cut if isinstance(head, str)} if isinstance(cut, list) else set()
        wanted.discard("")
        if not wanted or not self._channel:
            return
        with suppress(LineError):
            for line in cutlines.read(self._site.places, self._channel):
                if line.head in wanted:
                    wanted.discard(line.head)
                    yield Exhibit(LINE, line.raw, "accepted once, and cut")
        for commit in dict.fromkeys(self._text(name) for name in ("commit", "tip", "new_tip")):
            if commit and wanted:
                for found, raw in self._lines_at(commit):
                    if sha256_hex(raw) in wanted:
                        wanted.discard(sha256_hex(raw))
                        yield from self._with_neighbours(raw, found)

    def _named(self) -> Iterator[Exhibit]:
        """Accepted lines that the incident names by their ids or numbers."""
        ids = self._facts.get("ids")
        names = [name for name in ids if isinstance(name, str)] if isinstance(ids, list) else []
        for name in [*names, self._text("ack")]:
            with suppress(UsageError):
                channel, seq = parse_id(name)
                yield from self._line(channel, seq)
                yield from self._acknowledged(channel, seq)
        for seq in (self._number("seq"), self._number("end")) if self._channel else ():
            yield from self._line(self._channel, seq)

    def _acknowledged(self, channel: str, seq: int) -> Iterator[Exhibit]:
        for exhibit in self._line(channel, seq):
            with suppress(LineError):
                line = parse(exhibit.data)
                members = content(line)
                if "ack" in members:
                    yield from self._line(f"{line.recipient}/{line.sender}", members["ack"][0])

    def _presences(self) -> Iterator[Exhibit]:
        raw = presences.as_shown(self._site.places, self._facts)
        if not raw:
            return
        yield Exhibit(PRESENCE, raw, "at the remote")
        words = (self._incident.subject.rpartition(" ")[2], self._incident.scope.rpartition("/")[2], self._text("by"))
        agent = next((word for word in words if valid_name(word)), None)
        held = presences.load_one(self._site.places, agent) if agent is not None else None
        if held is not None:
            yield Exhibit(PRESENCE, held.presence.raw, "accepted")

    def _documents(self) -> Iterator[Exhibit]:
        """The other document of a number, or one that does not count."""
        if not self._incident.code.startswith("TRUST") or not self._incident.subject.isdecimal():
            return
        tip, path = self._text("tip"), trust_path(int(self._incident.subject))
        raw = self._blob(tip, path) if tip else None
        if raw:
            yield Exhibit(DOCUMENT, raw, f"{tip}:{path}", self._blob(tip, f"{path}.sig") or b"")

    def _missed(self) -> Iterator[Exhibit]:
        """Accepted lines that a tip lacked."""
        first, last = self._number("first"), self._number("last")
        if first and self._channel:
            for seq in range(first, min(last, first + LINES_SHOWN - 1) + 1):
                yield from self._line(self._channel, seq)

    # Where bytes are

    def _line(self, channel: str, seq: int) -> Iterator[Exhibit]:
        end = self._pin.accepted.get(channel)
        if end is None or not 0 < seq <= end.seq:
            return
        raw = line_at(seq, end.segment, lambda number: self._accepted.segment(channel, number))
        if raw is not None:
            yield Exhibit(LINE, raw, "accepted")

    def _lines_at(self, commit: str) -> Iterable[tuple[str, bytes]]:
        for number in range(1, SEGMENTS_SEARCHED + 1):
            path = segment_path(self._channel, number)
            data = self._blob(commit, path)
            if data is None:
                return
            for raw in lines_of(data):
                yield f"{commit}:{path}", raw

    def _blob(self, commit: str, path: str) -> bytes | None:
        """Return a file of a commit, or None where it is not there, no plain file, too large, or git dropped it."""
        try:
            there = [one for one in self._site.git.entries(commit, path) if one.path == path.encode("ascii")]
            oids = [one.oid for one in there if one.mode == FILE_MODE]
            return next(iter(self._site.git.blobs(oids, max_size=BLOB_MAX).values()), None)
        except GitFailed:
            return None
