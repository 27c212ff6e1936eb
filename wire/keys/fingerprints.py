"""What two people compare: a key's fingerprint, or ten words that stand for it (PROTOCOL.md, section "Keys").

    words("SHA256:…")                       ten words of a published list, the same on every machine
    meant = parse("Abacus, abdomen …")      what somebody typed; UsageError says what is wrong with it
    meant.fits("SHA256:…")

The words are the first 128 bits of the hash. To make another key with the same ten words takes 2^128 tries, and
2^128 / N for any of N words that are waited for, which nobody can make. A handful of digits or two words could be had
in seconds, so nothing shorter is taken.
"""

import re
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from wire.errors import UsageError
from wire.protocol.encoding import unb64

WORDS = 10
_PREFIX = "SHA256:"
_DIGITS = 43
_BYTES = 16
_BETWEEN = re.compile(r"[\s,;.·-]+")
_SHOWN = 40


class Meant(NamedTuple):
    """What somebody named a key by: its whole fingerprint, or its ten words in the list's own spelling."""

    text: str

    def fits(self, fingerprint: str) -> bool:
        """Return whether a key has this fingerprint, or these words."""
        return self.text in (fingerprint, words(fingerprint))


def words(fingerprint: str) -> str:
    """Return the ten words of a fingerprint, `SHA256:<43 base64>`, with blanks between.

    Raises:
        ValueError: it is no fingerprint.
    """
    if not fingerprint.startswith(_PREFIX):
        raise ValueError("a fingerprint has the form SHA256:<43 base64 characters>")
    number = int.from_bytes(unb64(fingerprint.removeprefix(_PREFIX) + "=", 32)[:_BYTES])
    known = _known()
    found = []
    for _ in range(WORDS):
        number, place = divmod(number, len(known))
        found.append(known[place])
    return " ".join(reversed(found))


def parse(text: str) -> Meant:
    """Return what somebody typed, whose value counts and not its spelling: case, blanks, commas, hyphens.

    Raises:
        UsageError: it is too short (`fingerprint-short`), holds a word that is not in the list (`unknown-word`), or is
            no fingerprint (`bad-fingerprint`).
    """
    parts = [part for part in _BETWEEN.split(text.strip().lower()) if part]
    if ":" in text or not parts:
        return _by_digits(text.strip())
    if not all(part.isalpha() for part in parts):
        raise _short(text.strip())
    found = _joined(parts)
    unknown = [part for part in found if part not in _places()]
    if unknown:
        listed = ", ".join(repr(part[:_SHOWN]) for part in unknown[:WORDS])
        raise _wrong(f"not in the word list: {listed}", "unknown-word")
    if len(found) < WORDS:
        raise _short(text.strip())
    if len(found) > WORDS:
        raise _wrong(f"{len(found)} words, where {WORDS} stand for a key", "bad-fingerprint")
    return Meant(" ".join(found))


def _by_digits(text: str) -> Meant:
    head, _, digits = text.partition(":")
    digits = digits.strip().rstrip("=")
    if head.strip().upper() != _PREFIX[:-1]:
        raise _wrong(f"{text[:_SHOWN]!r} is no fingerprint", "bad-fingerprint")
    if len(digits) < _DIGITS:
        raise _short(text)
    try:
        unb64(digits + "=", 32)
    except ValueError:
        raise _wrong(f"{text[: 2 * _SHOWN]!r} is no fingerprint", "bad-fingerprint") from None
    return Meant(_PREFIX + digits)


def _joined(parts: list[str]) -> list[str]:
    """Return the words as the list spells them: four have a hyphen, which may have come as a blank."""
    found: list[str] = []
    for part in parts:
        pair = f"{found[-1]}-{part}" if found else ""
        if pair in _places():
            found[-1] = pair
        else:
            found.append(part)
    return found


def _short(text: str) -> UsageError:
    return _wrong(
        f"{text[:_SHOWN]!r} is no whole fingerprint: another key with the same few digits or words is made in "
        "no time, so only the whole one counts",
        "fingerprint-short",
    )


def _wrong(what: str, reason: str) -> UsageError:
    return UsageError(
        f"{what}; expected SHA256: with {_DIGITS} characters, or the {WORDS} words that stand for them",
        reason=reason,
        next_step="ask the key's owner for what `wire keys show` prints there",
    )


@cache
def _known() -> tuple[str, ...]:
    return tuple(files(__package__).joinpath("words.txt").read_text("ascii").split())


@cache
def _places() -> frozenset[str]:
    return frozenset(_known())
