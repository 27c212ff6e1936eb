"""Why a trust document or a request was refused (PROTOCOL.md, section "Trust", table of reasons)."""

from enum import StrEnum

from wire.errors import TrustError


class Reason(StrEnum):
    """The `reason` of a `TrustError`; the values are stable and stand in `--json`, incidents and golden vectors."""

    # The form of one document or of its signature file.
    TOO_LARGE = "trust-too-large"
    MALFORMED = "trust-malformed"
    SIGNATURES_MALFORMED = "signatures-malformed"

    # What one document says, judged without any other.
    NAME_INVALID = "name-invalid"
    NAME_CLASH = "name-clash"
    KEY_INVALID = "key-invalid"
    KEY_SHARED = "key-shared"
    TWO_ACTIVE_KEYS = "two-active-keys"
    REMOVED_WITH_ACTIVE_KEY = "removed-with-active-key"
    POSITION_INVALID = "position-invalid"
    MEMBER_UNKNOWN = "member-unknown"
    THRESHOLD_INVALID = "threshold-invalid"
    FIRST_NOT_EMPTY = "first-not-empty"

    # What a document says as the next of a chain.
    NOT_NEXT = "not-next"
    WRONG_WIRE = "wrong-wire"
    WRONG_PREV = "wrong-prev"
    TOO_FEW_OLD = "too-few-old-signatures"
    TOO_FEW_NEW = "too-few-new-signatures"
    NAME_VANISHED = "name-vanished"
    NAME_REUSED = "name-reused"
    NAME_REVIVED = "name-revived"
    ROLE_CHANGED = "role-changed"
    KEY_VANISHED = "key-vanished"
    KEY_REVIVED = "key-revived"
    POSITION_VANISHED = "position-vanished"
    PROOF_CHANGED = "proof-changed"
    PROOF_INVALID = "proof-invalid"

    # What somebody asked a builder for.
    NAME_TAKEN = "name-taken"
    NAME_UNKNOWN = "name-unknown"
    NAME_REMOVED = "name-removed"
    NAME_HAS_KEY = "name-has-key"
    KEY_UNKNOWN = "key-unknown"

    # Requests to join; they also use `name-invalid`, `key-invalid`, `wrong-wire` and `proof-invalid`.
    REQUEST_MALFORMED = "request-malformed"
    REQUEST_MISPLACED = "request-misplaced"
    CLOSING_INVALID = "closing-invalid"

    # Proposals; they also use `request-malformed`, `request-misplaced` and `wrong-wire`.
    PROPOSER_UNKNOWN = "proposer-unknown"

    # A new root's key, on its way to who adds it.
    ROOT_LINE_INVALID = "root-line-invalid"


def refused(reason: Reason, why: str) -> TrustError:
    """Return the error for a refusal; `why` says what was found and what was expected."""
    return TrustError(why, reason=reason.value)
