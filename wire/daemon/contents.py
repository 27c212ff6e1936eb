"""Steps 7 and 8 of the verifier: what new lines say, and what that tells of others (PROTOCOL.md, "Verification")."""

from collections.abc import Callable, Iterable

from wire.daemon.accepted import Accepted
from wire.daemon.bounds import Fit, Said, other, weigh
from wire.daemon.findings import WIRE, Finding
from wire.daemon.judged import Before, Judged, end_of
from wire.protocol.chain import line_at
from wire.protocol.codes import Code
from wire.protocol.line import Line, LineError, content, parse

SHOWN = 5


class ContentSteps:
    """Both steps for one tip; see `verify.Verifier`."""

    def __init__(
        self, accepted: Accepted, before: Before, judged: Judged, find: Callable[..., Finding], tip: str
    ) -> None:
        self._accepted = accepted
        self._before = before
        self._judged = judged
        self._find = find
        self._tip = tip

    def judge(self) -> None:
        """Run both steps."""
        newest = self._judged.chain.newest.version
        for channel, lines in self._judged.new.items():
            unreadable: list[tuple[Line, LineError]] = []
            ahead: Line | None = None
            older: Line | None = None
            named = self._named_before(lines[0], newest)
            for line in lines:
                if line.trust_version > newest:
                    ahead = line
                if line.trust_version < named:
                    older = older or line
                named = max(named, line.trust_version)
                self._trust_named(line)
                try:
                    members = content(line)
                except LineError as error:
                    unreadable.append((line, error))
                    continue
                if "ack" in members:
                    self._ack(line, *members["ack"])
            if unreadable:
                line, problem = unreadable[0]
                self._find(
                    problem.code,
                    channel,
                    f"{len(unreadable)} line(s) of {channel} cannot be read, the first is {line.id}: {problem.why}",
                    subject="content",
                    ids=[item.id for item, _ in unreadable[:SHOWN]],
                    head=line.head,
                    types=types(item for item, _ in unreadable),
                )
            if older is not None:
                self._find(
                    Code.SCHEMA,
                    channel,
                    f"{older.id} names trust version {older.trust_version} after lines that name a newer one; "
                    "it is valid and shown, and its author's machine lost what it knew",
                    subject="trust",
                    head=older.head,
                )
            if ahead is not None:
                self._find(
                    Code.TRUST_WITHHELD,
                    WIRE,
                    f"{ahead.id} names trust version {ahead.trust_version}, the newest that the remote shows is "
                    f"{newest}",
                    named=ahead.trust,
                    ids=[ahead.id],
                )

    def _named_before(self, line: Line, newest: int) -> int:
        """Return the trust version that the line before this one names, where that can be more than this one's."""
        if line.seq == 1 or line.trust_version >= newest:
            return 0
        raw = line_at(
            line.seq - 1,
            end_of(self._before, self._judged, line.channel).segment,
            lambda n: self._accepted.segment(line.channel, n),
        )
        return parse(raw).trust_version if raw is not None else 0

    def _ack(self, line: Line, seq: int, head: str) -> None:
        """Compare an ack, which says what its author accepted of the way back, with what we accepted of it (step 8)."""
        said = Said(line.sender, f"{line.recipient}/{line.sender}", seq, head, line.trust, line.id)
        end = end_of(self._before, self._judged, said.channel)
        fit = weigh(said, self._judged.chain, end, self._accepted.segment)
        if fit is Fit.OTHER:
            self._judged.findings.append(other(said, end, self._accepted.segment, {"tip": self._tip}))
        elif fit is Fit.AHEAD:
            # The lines of one author come in their order, so that what is said last says most.
            self._judged.beyond[said.agent, said.channel] = said

    def _trust_named(self, line: Line) -> None:
        """Compare the trust that a line names with the version of that number that is held here (step 8)."""
        held = self._judged.chain.at(line.trust_version)
        if held is not None and held.reference != line.trust:
            self._find(
                Code.SPLIT_VIEW,
                line.channel,
                f"{line.id} names another trust version {line.trust_version} than the one held here",
                subject="trust",
                ids=[line.id],
                named=line.trust,
                held=held.reference,
            )


def types(lines: Iterable[Line | None]) -> list[str]:
    """Return what kinds of lines their authors signed, so that incidents about incident lines can be told apart."""
    return sorted({line.type for line in lines if line is not None})[:SHOWN]
