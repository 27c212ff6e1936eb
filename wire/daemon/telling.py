"""What the log says of one wire: each round that moved something, each change of fortune once, each new incident."""

from wire.daemon.logs import Log
from wire.daemon.report import Report
from wire.errors import WireError
from wire.gitio import GitFailed, Kind


class Teller:
    """Writes the log of one wire.

    Attributes:
        failure: the reason why the last round failed, empty when it went well.
    """

    def __init__(self, log: Log, wire: str) -> None:
        self.failure = ""
        self._log = log
        self._wire = wire

    def say(self, level: str, event: str, **values: object) -> None:
        """Write one event of this wire."""
        self._log.write(level, event, wire=self._wire, **values)

    def round(self, why: str, report: Report, *, attempt: int, due: float, tier: str, took: float) -> None:
        """Write what a round came to.

        Args:
            why: what it was made for.
            attempt: how many rounds have failed in a row.
            due: seconds until the next look.
            took: seconds.
        """
        self._outcome(report.failure, attempt, due)
        self.say(
            "info" if report.moved else "debug",
            "round",
            cause=why,
            received=sum(report.accepted.values()),
            collected=sum(report.collected.values()),
            pushed=report.pushed,
            tip=report.tip[:12] if report.tip else None,
            frozen=report.frozen.code if report.frozen else None,
            tier=tier,
            next=f"{due:.1f}s",
            took=f"{took:.3f}s",
        )
        for incident in report.raised:
            self.say(
                "warning" if incident.count == 1 else "debug",
                "incident",
                id=incident.id,
                code=incident.code,
                scope=incident.scope,
                count=incident.count,
                what=incident.message,
            )

    def _outcome(self, error: WireError | None, attempt: int, due: float) -> None:
        """Tell a failure in full when it is another one than before, and in a few words while it lasts."""
        if interrupted(error):
            return
        if error is None:
            if self.failure:
                self.say("info", "recovered", after=self.failure)
            self.failure = ""
            return
        changed = error.reason != self.failure
        self.failure = error.reason
        self.say(
            "warning" if changed else "info",
            "failed",
            reason=error.reason,
            attempt=attempt,
            next=f"{due:.1f}s",
            why=error.message if changed else None,
        )


def interrupted(error: WireError | None) -> bool:
    """Return whether somebody asked for the end of what failed, so that it means nothing."""
    return isinstance(error, GitFailed) and error.kind is Kind.CANCELLED
