"""A fingerprint and the ten words that stand for it: tolerant of how they are typed, strict about what they say."""

import hashlib
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wire.errors import USAGE, UsageError
from wire.keys.fingerprints import parse, words
from wire.protocol.encoding import b64, fingerprint

KEY = bytes(range(32))
PRINT = fingerprint(KEY)
SPOKEN = words(PRINT)
LIST = files("wire.keys").joinpath("words.txt").read_bytes()


def of(number: int) -> str:
    """Return the fingerprint whose first 16 bytes are this number."""
    return "SHA256:" + b64(number.to_bytes(16) + bytes(16)).rstrip("=")


def test_the_list_is_the_published_one() -> None:
    assert hashlib.sha256(LIST).hexdigest() == "6d557f0693958fb5e650b68b5bee585eb82cf4da32965505c789e924743bc522"
    known = LIST.decode("ascii").split("\n")[:-1]
    assert len(set(known)) == len(known) == 7776 == 6**5
    assert 7776**10 > 2**128


def test_the_words_are_digits_of_the_hash() -> None:
    assert words(of(0)) == " ".join(["abacus"] * 10)
    assert words(of(1)).split()[8:] == ["abacus", "abdomen"]
    assert words(of(7776)).split()[8:] == ["abdomen", "abacus"]
    assert len(words(of(2**128 - 1)).split()) == 10
    assert words(of(2**128 - 1)).split() != words(of(2**127 - 1)).split()


@given(st.integers(0, 2**128 - 1), st.integers(0, 127))
def test_every_bit_of_the_first_sixteen_bytes_shows(number: int, bit: int) -> None:
    spoken = words(of(number))
    assert parse(spoken).fits(of(number))
    assert not parse(spoken).fits(of(number ^ 1 << bit))


@pytest.mark.parametrize(
    "typed",
    [
        PRINT,
        f"  {PRINT}\n",
        PRINT.replace("SHA256", "sha256"),
        f"{PRINT}=",
        SPOKEN,
        SPOKEN.upper(),
        SPOKEN.replace(" ", ", "),
        SPOKEN.replace(" ", "-"),
        "\t" + SPOKEN.replace(" ", "\n  ") + ".",
    ],
)
def test_how_it_is_typed_does_not_matter(typed: str) -> None:
    assert parse(typed).fits(PRINT)
    assert not parse(typed).fits(fingerprint(bytes(32)))


@pytest.mark.parametrize("word", ["t-shirt", "yo-yo", "felt-tip", "drop-down"])
def test_a_word_with_a_hyphen_may_come_with_a_blank(word: str) -> None:
    known = LIST.decode("ascii").split()
    print_ = of(known.index(word) * 7776 + known.index(word))
    assert words(print_).split()[8:] == [word, word]
    assert parse(words(print_)).fits(print_)
    assert parse(words(print_).replace("-", " ")).fits(print_)
    assert parse(words(print_).replace(" ", "-")).fits(print_)


@pytest.mark.parametrize(
    ("typed", "reason", "said"),
    [
        (SPOKEN.replace(SPOKEN.split()[3], "zebraa"), "unknown-word", "'zebraa'"),
        ("abacus qqq abdomen www", "unknown-word", "'qqq', 'www'"),
        (" ".join(SPOKEN.split()[:9]), "fingerprint-short", "whole"),
        (" ".join(SPOKEN.split()[:2]), "fingerprint-short", "whole"),
        (SPOKEN + " abacus", "bad-fingerprint", "11 words"),
        (PRINT[:13], "fingerprint-short", "whole"),
        (PRINT[:-1], "fingerprint-short", "whole"),
        ("123456", "fingerprint-short", "whole"),
        ("abacus 15 16", "fingerprint-short", "whole"),
        ("48 15 16", "fingerprint-short", "whole"),
        (PRINT + "A", "bad-fingerprint", "no fingerprint"),
        (PRINT + "X", "bad-fingerprint", "no fingerprint"),
        (PRINT[:-1] + "!", "bad-fingerprint", "no fingerprint"),
        (PRINT.replace("SHA256", "MD5"), "bad-fingerprint", "no fingerprint"),
        ("", "bad-fingerprint", "no fingerprint"),
        ("::", "bad-fingerprint", "no fingerprint"),
        ("\u0430bacus " * 10, "unknown-word", "word list"),
        ("x" * 100_000, "unknown-word", "xxx"),
    ],
)
def test_what_is_not_the_whole_is_refused(typed: str, reason: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(typed)
    assert (caught.value.reason, caught.value.exit_status) == (reason, USAGE)
    assert said in caught.value.message
    assert "wire keys show" in caught.value.next_step
    assert len(caught.value.message) < 1_000


@given(st.text())
def test_any_text_is_taken_or_refused(typed: str) -> None:
    try:
        meant = parse(typed)
    except UsageError:
        return
    assert meant.text.startswith("SHA256:") or len(meant.text.split()) == 10


@pytest.mark.parametrize("text", ["", "SHA256:", PRINT[:-1], PRINT + "=", PRINT[7:], "SHA256:" + "\u0391" * 43])
def test_only_a_fingerprint_has_words(text: str) -> None:
    with pytest.raises(ValueError):
        words(text)
