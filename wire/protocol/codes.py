"""The codes of everything that a verifier can hold against bytes (PROTOCOL.md, section "Incidents")."""

from enum import StrEnum


class Code(StrEnum):
    """What is wrong; the values are stable and appear in incidents, in `--json` and in golden vectors."""

    FORCED = "FORCED"
    SHAPE = "SHAPE"
    TRUST = "TRUST"
    TRUST_FORK = "TRUST_FORK"
    TRUST_WITHHELD = "TRUST_WITHHELD"
    PREFIX = "PREFIX"
    SIZE = "SIZE"
    SIGNATURE = "SIGNATURE"
    KEY_UNKNOWN = "KEY_UNKNOWN"
    KEY_RETIRED = "KEY_RETIRED"
    MISPLACED = "MISPLACED"
    REPLAY = "REPLAY"
    GAP = "GAP"
    FORK = "FORK"
    SCHEMA = "SCHEMA"
    SPLIT_VIEW = "SPLIT_VIEW"
    PRESENCE = "PRESENCE"
    STATE_LOST = "STATE_LOST"
    CLONED = "CLONED"
