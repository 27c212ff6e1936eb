"""The text of the user unit: made from the template, recognised again, and read back (pure).

    text = render(Unit(["/usr/bin/python3", "-P", "-m", "wire", "daemon", "run"], {"PATH": "/usr/bin"}), "0.1.0")
    origin(text)        # Origin.OURS, and Origin.EDITED once somebody changed a byte of it
    command(text)       # the words of ExecStart

The first line carries a checksum of all that follows, so that a person's own changes are noticed before they would be
written over. Values are quoted the way systemd reads them (systemd.syntax, systemd.service: "Command lines").
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from importlib.resources import files

from wire.errors import UsageError
from wire.keys.passphrases import CREDENTIAL

NAME = "wire.service"
IDENTIFIER = "wire"
"""What the service's lines are marked with in the journal; the template says the same."""
_MARK = re.compile(rb"# Written by `wire service install` of wire [^\n]*; checksum ([0-9a-f]{64})\n")
_APPEND = "append:"


class Origin(StrEnum):
    """Whose text stands in the unit's file."""

    OURS = "ours"
    EDITED = "edited"
    """Ours, and somebody changed it afterwards."""
    FOREIGN = "foreign"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Unit:
    """What differs from machine to machine.

    Attributes:
        command: program (an absolute path) and arguments.
        environment: variables that are set; never secrets, since other processes of the user can read a unit.
        unset: variables of the user manager that the daemon must not see.
        log_file: where output goes on a system without a journal; None for the journal.
        passphrase: the file whose first line opens the keys of this machine's agents; systemd reads it at each start.
        shared: git must be able to set the group bit of folders in a shared repository on this machine.
    """

    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    unset: Sequence[str] = ()
    log_file: str | None = None
    passphrase: str | None = None
    shared: bool = False


def render(unit: Unit, version: str) -> bytes:
    """Return the unit's file.

    Raises:
        UsageError: a path or value cannot stand in a unit (`bad-path`).
    """
    template = files(__package__).joinpath(f"{NAME}.in").read_text("utf-8")
    program, *arguments = _runnable(unit.command)
    lines = [f"Environment={_quoted(f'{name}={value}')}" for name, value in sorted(unit.environment.items())]
    if unit.unset:
        lines.append("UnsetEnvironment=" + " ".join(unit.unset))
    output = "journal" if unit.log_file is None else _APPEND + _plain(unit.log_file)
    for place, text in (
        ("@EXEC@", " ".join([_quoted(program), *(_quoted(word).replace("$", "$$") for word in arguments)])),
        ("@ENVIRONMENT@", "\n".join(lines)),
        ("@CREDENTIALS@", _credential(unit.passphrase) if unit.passphrase is not None else ""),
        ("@SUIDSGID@", f"RestrictSUIDSGID={'no' if unit.shared else 'yes'}"),
        ("@OUTPUT@", f"StandardOutput={output}\nStandardError={output}"),
    ):
        template = template.replace(f"{place}\n", f"{text}\n" if text else "")
    body = (
        "# Changes of your own belong into a drop-in, which stays when this file is written anew:\n"
        f"#   systemctl --user edit {NAME}\n{template}"
    ).encode()
    mark = f"# Written by `wire service install` of wire {version}; checksum {hashlib.sha256(body).hexdigest()}\n"
    return mark.encode() + body


def origin(data: bytes | None) -> Origin:
    """Return whose text this is."""
    if data is None:
        return Origin.MISSING
    mark = _MARK.match(data)
    if mark is None:
        return Origin.FOREIGN
    return Origin.OURS if hashlib.sha256(data[mark.end() :]).hexdigest().encode() == mark[1] else Origin.EDITED


def command(data: bytes) -> list[str]:
    """Return the words of `ExecStart`, the last one if there are several; empty without one."""
    values = [value for value in _values(data, "ExecStart") if value]
    if not values:
        return []
    return [_expanded(word).replace("$$", "$") for word in _words(values[-1].lstrip("@-:+!"))]


def environment(data: bytes) -> dict[str, str]:
    """Return the variables that the unit sets."""
    words = [_expanded(word) for value in _values(data, "Environment") for word in _words(value)]
    return {name: value for name, equals, value in (word.partition("=") for word in words) if equals}


def passphrase(data: bytes) -> str | None:
    """Return the file with the passphrase that the unit names, if any."""
    pairs = [value.partition(":") for value in _values(data, "LoadCredential")]
    return next((_expanded(path) for name, _, path in reversed(pairs) if name == CREDENTIAL), None)


def log_file(data: bytes) -> str | None:
    """Return the file that the unit's output is appended to; None where it goes to the journal."""
    values = _values(data, "StandardOutput")
    if not values or not values[-1].startswith(_APPEND):
        return None
    return _expanded(values[-1].removeprefix(_APPEND))


def _credential(path: str) -> str:
    # The empty one stands in where the file is gone: the daemon starts all the same, and says what it cannot do.
    return f"SetCredential={CREDENTIAL}:\\n\nLoadCredential={CREDENTIAL}:{_plain(path)}"


def _runnable(command: Sequence[str]) -> Sequence[str]:
    """Return words that systemd runs: it takes no program whose path has one of its own special characters."""
    program = command[0]
    special = any(character in program for character in "\"'\\$")
    if not program.startswith("/") or (special and "=" in program):
        raise UsageError(f"{program!r} cannot be the program of a unit", reason="bad-path")
    return ["/usr/bin/env", *command] if special else command


def _values(data: bytes, key: str) -> list[str]:
    text = re.sub(r"\\\n", " ", data.decode("utf-8", "replace"))
    return [match[1].strip() for match in re.finditer(rf"^{key}\s*=([^\n]*)$", text, re.MULTILINE)]


_WORD = re.compile(r'"((?:[^"\\]|\\.)*)"|\'((?:[^\'\\]|\\.)*)\'|((?:[^\s"\'\\]|\\.)+)')


def _words(text: str) -> list[str]:
    """Split a value as systemd does: at blanks, with quotes and escapes."""
    words: list[str] = []
    end = -1
    for match in _WORD.finditer(text):
        part = re.sub(r"\\(.)", r"\1", next(group for group in match.groups() if group is not None))
        if match.start() == end:
            words[-1] += part
        else:
            words.append(part)
        end = match.end()
    return words


def _expanded(text: str) -> str:
    return text.replace("%%", "%")


def _quoted(text: str) -> str:
    escaped = _plain(text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _plain(text: str) -> str:
    if not text.isprintable():
        raise UsageError(f"{text!r} cannot stand in a unit: it holds characters that are no text", reason="bad-path")
    return text.replace("%", "%%")
