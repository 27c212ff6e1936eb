"""The rows of docs/threats.md, held against the tests that are there."""

import re
from functools import cache
from pathlib import Path

import pytest

from support.checkout import ROOT

TESTS = ROOT / "tests"
OUTCOMES = ("prevented", "detected", "out of reach")
ADVERSARIES = {
    "A host, or whoever may push to it": 15,
    "A peer": 6,
    "A thief of a key": 5,
    "A newcomer who was not invited": 4,
    "Another user of the machine, and accidents on it": 5,
    "An agent that was talked into something": 4,
}
"""Who must be there, and with how many rows at least."""


@cache
def page() -> str:
    return (ROOT / "docs" / "threats.md").read_text("utf-8")


@cache
def rows() -> dict[str, list[list[str]]]:
    """Return the cells of every row, by section."""
    found: dict[str, list[list[str]]] = {}
    section = ""
    for line in page().split("\n"):
        if line.startswith("## "):
            section = line[3:]
        elif line.startswith("| ") and not line.startswith("| What "):
            found.setdefault(section, []).append([cell.strip() for cell in line.strip("|").split("|")])
    return found


ALL = [(section, row) for section, found in rows().items() for row in found]


@cache
def names_in(file: Path) -> frozenset[str]:
    return frozenset(re.findall(r"^def (test_\w+)\(", file.read_text("utf-8"), re.MULTILINE))


@pytest.mark.parametrize(("section", "row"), ALL, ids=[row[0] for _, row in ALL])
def test_a_row_has_its_tests(section: str, row: list[str]) -> None:
    assert len(row) == 4, f"{section}: {row}"
    tried, outcome, comes, shown = row
    assert outcome in OUTCOMES
    assert tried
    assert comes
    named = re.findall(r"`([\w/.]+)::(\w+)`", shown)
    assert named, f"{tried}: no test is named"
    assert shown == ", ".join(f"`{file}::{test}`" for file, test in named)
    for file, test in named:
        assert (TESTS / file).is_file(), f"{tried}: no file {file}"
        assert test in names_in(TESTS / file), f"{tried}: no test {test} in {file}"


@pytest.mark.parametrize("section", ADVERSARIES)
def test_an_adversary_is_there(section: str) -> None:
    found = rows().get(section, [])
    assert len(found) >= ADVERSARIES[section]
    assert {row[1] for row in found} >= {"prevented", "detected"} - ({"detected"} if "talked" in section else set())
    assert len({row[0] for row in found}) == len(found), "a row stands there twice"


def test_every_module_of_attacks_shows_something() -> None:
    for file in sorted((TESTS / "attacks").glob("test_*.py")):
        assert f"`attacks/{file.name}::" in page(), f"{file.name} is named in no row"
