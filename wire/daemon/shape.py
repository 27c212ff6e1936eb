"""What a path of a tip is (PROTOCOL.md, section "Repository layout"; step 3 of the verification). Pure.

Only `_coordination/` is ours to judge. Below it a path is one of the few forms that the protocol knows, with the mode
of a plain file; anything else has an illegal shape and is left out of our next commit.
"""

from enum import Enum, auto
from typing import NamedTuple

from wire.gitio import Change
from wire.protocol.names import parse_segment_name, valid_channel, valid_name

ROOT = "_coordination"
ATTRIBUTES_PATH = f"{ROOT}/.gitattributes"
ATTRIBUTES = b"* -text -filter -ident -merge -working-tree-encoding -export-subst\n"
NEWEST_TRUST_PATH = f"{ROOT}/trust.json"
FILE_MODE = "100644"
ABSENT_MODE = "000000"
PROPOSER = "trust"
"""What stands for a name in the file of a proposal; it is reserved, and so nobody's."""


class Kind(Enum):
    """The forms of a path."""

    FOREIGN = auto()
    ATTRIBUTES = auto()
    NEWEST_TRUST = auto()
    TRUST = auto()
    TRUST_SIGNATURES = auto()
    REQUEST = auto()
    PROPOSAL = auto()
    SEGMENT = auto()
    ILLEGAL = auto()


class Shape(NamedTuple):
    """A classified path; `channel` and `number` where they mean something."""

    kind: Kind
    channel: str = ""
    number: int = 0


def segment_path(channel: str, number: int) -> str:
    """Return the path of a segment in the repository."""
    return f"{ROOT}/{channel}/{number:06d}.jsonl"


def trust_path(version: int) -> str:
    """Return the path of a trust version's document; its signatures stand at the same path plus `.sig`."""
    return f"{ROOT}/trust/{version:06d}.json"


def request_path(file_name: str) -> str:
    """Return the path of a request or a proposal."""
    return f"{ROOT}/requests/{file_name}"


def carried(change: Change) -> Change:
    """Return a change as a verifier takes it: a link, an executable or a submodule carries nothing, as if it were gone.

    So a segment or a trust version that was made one of these is missed like one that was deleted, and put back. The
    object that a submodule names is nowhere; nobody asks for it.
    """
    if change.old_mode not in (FILE_MODE, ABSENT_MODE):
        change = change._replace(old_mode=ABSENT_MODE, old_oid="0" * len(change.old_oid))
    if change.new_mode not in (FILE_MODE, ABSENT_MODE):
        change = change._replace(new_mode=ABSENT_MODE, new_oid="0" * len(change.new_oid))
    return change


def classify(path: bytes, mode: str = FILE_MODE) -> Shape:
    """Return what a path with this mode is; a mode of all zeros (a path that is gone) counts as a plain file."""
    try:
        parts = path.decode("ascii").split("/")
    except UnicodeDecodeError:
        return Shape(Kind.ILLEGAL if path.startswith(ROOT.encode() + b"/") else Kind.FOREIGN)
    if parts[0] != ROOT:
        return Shape(Kind.FOREIGN)
    if mode not in (FILE_MODE, ABSENT_MODE):
        return Shape(Kind.ILLEGAL)
    match parts[1:]:
        case [".gitattributes"]:
            return Shape(Kind.ATTRIBUTES)
        case ["trust.json"]:
            return Shape(Kind.NEWEST_TRUST)
        case ["trust", name]:
            stem, dot, signatures = name.partition(".json")
            number = parse_segment_name(f"{stem}.jsonl") if dot and signatures in ("", ".sig") else None
            if number is not None:
                return Shape(Kind.TRUST_SIGNATURES if signatures else Kind.TRUST, number=number)
        case ["requests", name]:
            owner, dot, rest = name.partition(".")
            if dot and _is_key_file(rest) and (valid_name(owner) or owner == PROPOSER):
                return Shape(Kind.PROPOSAL if owner == PROPOSER else Kind.REQUEST)
        case [sender, recipient, name]:
            number = parse_segment_name(name)
            if number is not None and valid_channel(sender, recipient):
                return Shape(Kind.SEGMENT, f"{sender}/{recipient}", number)
    return Shape(Kind.ILLEGAL)


def _is_key_file(name: str) -> bool:
    key_id, _, suffix = name.partition(".")
    return suffix == "json" and len(key_id) == 32 and all(c in "0123456789abcdef" for c in key_id)
