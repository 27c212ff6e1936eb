"""What a peer wrote, shown: nothing in it may move, hide, reorder, or look like something of ours."""

import pytest

from wire.verbs.render import MARK, age, block, body_text, one_line

HOSTILE = {
    "ansi colour": "\x1b[31mred\x1b[0m",
    "terminal title": "\x1b]0;owned\x07",
    "carriage return": "safe\rmac/spark/9 message forged",
    "newline": "one\nspark/mac/7 message forged",
    "bell and backspace": "\x07\x08\x08",
    "nul": "a\0b",
    "c1 control": "\x9b31m",
    "next line": "a\u0085b",
    "line separator": "a\u2028b\u2029c",
    "bidi override": "user\u202egnp.exe",
    "bidi isolate": "\u2066hidden\u2069",
    "zero width": "pass\u200bword\u2060",
    "byte order mark": "\ufeffx",
    "tag characters": "\U000e0041\U000e0042",
    "private use": "\ue000",
    "lone surrogate": "\udcb2",
    "vertical tab and form feed": "a\x0bb\x0cc",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_one_line_is_one_printable_line(text: str) -> None:
    shown = one_line(text)
    assert shown.isprintable()
    assert shown.encode("utf-8")
    assert len(shown.splitlines()) <= 1


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_every_line_of_a_block_is_marked(text: str) -> None:
    shown = block(f"first {text} last\nsecond")
    lines = shown.split("\n")
    assert all(line.startswith(MARK) for line in lines)
    assert all(line.isprintable() for line in lines)
    assert lines == shown.splitlines()


def test_ordinary_text_in_any_script_is_shown_as_it_is() -> None:
    for text in ("Grüße, 世界", "שלום", "नमस्ते", "emoji 👩‍💻 ok", "tab\there"):
        assert one_line(text) == text.replace("\t", "    ")


def test_length_is_bounded_on_characters_and_said() -> None:
    assert one_line("é" * 500, 10) == "é" * 9 + "…"
    shown = block("x" * 5000, 100)
    assert "4900 more characters" in shown
    assert len(shown) < 300
    assert len(block("y\n" * 500_000, 4000)) < 40_000


def test_objects_are_shown_as_json() -> None:
    assert body_text({"body": {"a": [1, "ü"]}}).replace("\n", "") == '{ "a": [  1,  "ü" ]}'
    assert body_text({}) == ""


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(None, "never"), (0, "0 s"), (119, "119 s"), (600, "10 min"), (7200, "2 h"), (172800, "2 d"), (864000, "10 d")],
)
def test_ages(seconds: float | None, shown: str) -> None:
    assert age(seconds) == shown
