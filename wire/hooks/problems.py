"""One thing that is wrong with a staged file, said so that a person finds it: file, line, byte, first bytes, cause."""

from typing import NamedTuple

SHOWN_BYTES = 40


class Problem(NamedTuple):
    """Why a staged change is refused.

    Attributes:
        code: a code of PROTOCOL.md, or `NOT_YOURS`, `PRIVATE_KEY`, `UNMERGED`, `REQUEST`.
        path: the file, as bytes from git.
        why: what was found and what was expected.
        line, offset: where, line from 1 and byte from 0; None where the whole file is meant.
        begins: the bytes there.
    """

    code: str
    path: bytes
    why: str
    line: int | None = None
    offset: int | None = None
    begins: bytes = b""

    @property
    def text(self) -> str:
        """The problem in one line that no terminal obeys."""
        place = shown(self.path) + ("" if self.line is None else f":{self.line}")
        byte = "" if self.offset is None else f" byte {self.offset}:"
        begins = f"; begins with {quoted(self.begins)}" if self.begins else ""
        return f"{place}:{byte} {self.code}: {self.why}{begins}"

    def as_json(self) -> dict[str, str | int | None]:
        """Return the problem as the object that `--json` prints."""
        return {
            "code": str(self.code),
            "path": shown(self.path),
            "line": self.line,
            "offset": self.offset,
            "why": self.why,
            "begins": quoted(self.begins) if self.begins else None,
        }


def at(code: str, path: bytes, why: str, data: bytes, offset: int) -> Problem:
    """Return the problem of the bytes at an offset of a file that holds `data`; never shows a whole private key."""
    end = data.find(b"\n", offset)
    begins = data[offset : offset + SHOWN_BYTES] if end < 0 else data[offset : min(end, offset + SHOWN_BYTES)]
    return Problem(code, path, why, data.count(b"\n", 0, offset) + 1, offset, begins)


def shown(path: bytes) -> str:
    """Return a path in printable ASCII, other bytes escaped."""
    return "".join(chr(byte) if 0x20 <= byte < 0x7F and byte != 0x5C else f"\\x{byte:02x}" for byte in path[:300])


def quoted(data: bytes) -> str:
    """Return bytes in printable ASCII between quotes, everything else escaped."""
    return repr(data[:SHOWN_BYTES])[1:]
