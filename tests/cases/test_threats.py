"""The rows of docs/threats.md, held against the tests that are there."""

import re
from functools import cache
from pathlib import Path

import pytest

from support.checkout import ROOT
from support.moves import ALL as ALL_MOVES
from support.moves import ELSEWHERE, MOVES
from support.moves_rows import AT_THE_MACHINE, PLAYED, UNPLAYED

TESTS = ROOT / "tests"
OUTCOMES = ("prevented", "detected", "out of reach")
ADVERSARIES = {
    "A host, or whoever may push to it": 30,
    "A peer": 10,
    "A thief of a key": 10,
    "A newcomer who was not invited": 5,
    "Another user of the machine, and accidents on it": 8,
    "An agent that was talked into something": 6,
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
        elif section in ADVERSARIES and line.startswith("| ") and not line.startswith("| What "):
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


def played_by(row: list[str], title: str) -> bool:
    """Return whether one of the tests that a row names makes a move."""
    move, named = ALL_MOVES[title], re.findall(r"`([\w/.]+)::\w+`", row[3])
    if title in MOVES and "attacks/test_matrix.py" in named:
        return True
    words = {f'"{title}"', getattr(move, "__name__", "<lambda>")} - {"<lambda>"}
    texts = [(TESTS / file).read_text("utf-8") for file in named]
    return any(word in text for word in words for text in texts)


@pytest.mark.parametrize("section", ADVERSARIES)
def test_every_row_of_who_acts_at_the_repository_has_its_moves(section: str) -> None:
    for row in rows()[section]:
        moves = PLAYED.get(row[0], ())
        assert bool(moves) != (row[0] in UNPLAYED or section in AT_THE_MACHINE), f"{row[0]}: {moves}"
        for title in moves:
            assert title in ALL_MOVES, f"{row[0]}: there is no move {title!r}"
            assert played_by(row, title), f"{row[0]}: none of its tests makes the move {title!r}"


def test_every_move_belongs_to_a_row() -> None:
    tried = {row[0] for _, row in ALL}
    assert PLAYED.keys() | UNPLAYED.keys() <= tried, "a row that is not there"
    assert not PLAYED.keys() & UNPLAYED.keys()
    assert AT_THE_MACHINE.keys() < ADVERSARIES.keys()
    assert all((*UNPLAYED.values(), *AT_THE_MACHINE.values())), "and the reason?"
    assert {title for moves in PLAYED.values() for title in moves} == ALL_MOVES.keys()
    assert not MOVES.keys() & ELSEWHERE.keys()


def test_what_others_call_it_stands_in_the_tables() -> None:
    table = page().partition("## By the names that others give them")[2].partition("## ")[0]
    places = [line.split("|")[2] for line in table.split("\n") if line.startswith("| ")][1:]
    assert len(places) >= 12
    known = [row[0] for _, row in ALL] + [*ADVERSARIES, "the next section"]
    for place in places:
        for part in place.split(";"):
            assert any(part.strip() in one for one in known), f"{part!r} is no row"


def test_every_module_of_attacks_shows_something() -> None:
    for file in sorted((TESTS / "attacks").glob("test_*.py")):
        assert f"`attacks/{file.name}::" in page(), f"{file.name} is named in no row"
