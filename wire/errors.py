"""Errors that a person or a program can act on.

Every failure that leaves `wire` is a `WireError`: a text for people that says what was found, where, and what was
expected; a stable `reason` for programs; an exit status; and, where there is one, the next step. A subclass exists
per decision that a caller can take, not per place that can fail.

    raise IdentityError("no key for 'mac' at /k/mac.key", reason="key-missing", next_step="wire join …")

The exit statuses are a public contract, printed in `wire --help`.
"""

from collections.abc import Mapping
from typing import Any

DONE = 0
FAILED = 1
USAGE = 2
NOT_REACHED = 3
INTEGRITY = 4
IDENTITY = 5
REMOTE = 6


class WireError(Exception):
    """Base of everything that `wire` reports.

    Args:
        message: what was found, where, and what was expected; one paragraph, no trailing newline.
        reason: stable kebab-case code for programs; the class's own when omitted.
        next_step: one sentence or command that helps in exactly this state.
        details: machine-readable facts for `--json`; never secrets.
    """

    reason = "failed"
    exit_status = FAILED

    def __init__(
        self,
        message: str,
        *,
        reason: str | None = None,
        next_step: str | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        if reason is not None:
            self.reason = reason
        self.next_step = next_step
        self.details: dict[str, Any] = dict(details or {})

    def as_json(self) -> dict[str, Any]:
        """Return the error as the object that `--json` prints."""
        shown: dict[str, Any] = {"error": self.message, "reason": self.reason, "exit_status": self.exit_status}
        if self.next_step:
            shown["next_step"] = self.next_step
        if self.details:
            shown["details"] = self.details
        return shown


class UsageError(WireError):
    """The caller asked for something that cannot mean anything."""

    reason = "usage"
    exit_status = USAGE


class NotReached(WireError):
    """The awaited state was not reached in time; nothing is lost."""

    reason = "not-reached"
    exit_status = NOT_REACHED


class IntegrityError(WireError):
    """What was asked for is concerned by an open incident or does not verify."""

    reason = "integrity"
    exit_status = INTEGRITY


class IdentityError(WireError):
    """A key or an identity is missing, unsafe or ambiguous."""

    reason = "identity"
    exit_status = IDENTITY


class TrustError(WireError):
    """A trust document, checkpoint or request does not hold."""

    reason = "trust"
    exit_status = IDENTITY


class RemoteError(WireError):
    """The remote could not be reached, or refused.

    `kind` is one of the failure kinds of `wire.gitio` (`auth`, `host-key`, `network`, …).
    """

    reason = "remote"
    exit_status = REMOTE

    def __init__(self, message: str, *, kind: str, **rest: Any) -> None:
        super().__init__(message, **rest)
        self.kind = kind
        if "reason" not in rest:
            self.reason = f"remote-{kind}"


class Busy(WireError):
    """A lock is held by another process for longer than the caller wants to wait."""

    reason = "busy"


class StoreError(WireError):
    """The state folder, the journal or another local file cannot be used."""

    reason = "store"


class DiskFull(StoreError):
    """A write did not fit; it was taken back."""

    reason = "disk-full"


class Corrupt(StoreError):
    """A local file does not hold what it must; it was left as it is."""

    reason = "corrupt"
