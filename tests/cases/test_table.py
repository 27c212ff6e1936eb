"""The table of the fault cases in README.md, held against the tests that are there."""

import re
from functools import cache
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
TESTS = HERE.parent
CASES = re.findall(
    r"\w+",
    """
    A1 A2 A3 A5 A6 A7 A8 A11 A13 A15 A16 A17 A18 A20 B1 B2 B3 B6 B7 B8 B12 B13 B14 B17 C1 C2 C4 C5 C6 C7 C8 C10
    D1 D2 D3 D4 D8 D9 D11 E1 E4 E5 E8 E9 F1 F4 F5 F8 F9 F10 F12 F13 F14 F17 G1 G2 G4 G5 G6 G7 G11 G12 G16 H2 H5 H9 H15
    H16 I3 I5 J1 J2 J3 J4 J7 J11 J12 J13 J15 R1 R2 R3 R4 R5 R6 R7 R8 R9 R10 R11 R12 R13 R14 R15 R16 R22 R28 R31 R34 R37
    R38 R39 R40 R41 R42 R43 R44 R45 R46 R47 R48 R49 R50 R51 R52 R53
    """,
)
"""What must have a row; more may."""


@cache
def rows() -> dict[str, list[str]]:
    """Return what each row names, by its case."""
    found = re.findall(r"^\| ([A-JR][0-9]+) \| .+ \| (.+) \|$", (HERE / "README.md").read_text("utf-8"), re.MULTILINE)
    assert len(dict(found)) == len(found), "a case has two rows"
    return {case: re.findall(r"`([^`]+)`", where) for case, where in found}


@cache
def names_in(file: Path) -> frozenset[str]:
    return frozenset(re.findall(r"^def (test_\w+)\(", file.read_text("utf-8"), re.MULTILINE))


def of_case(name: str) -> list[str]:
    """Return the cases that a test's name begins with: `test_c11_and_j1_…` shows two."""
    begin = re.match(r"test_((?:[a-jr][0-9]+_(?:and_)?)+)", name)
    return re.findall(r"[a-jr][0-9]+", begin[1]) if begin else []


@pytest.mark.parametrize("case", CASES)
def test_a_case_has_its_tests(case):
    assert rows().get(case), f"{case} has no row in README.md"
    shown = 0
    for named in rows()[case]:
        place, _, test = named.partition("::")
        file = (HERE / place).resolve()
        assert file.is_file(), f"{case}: no file {place}"
        if test:
            assert test in names_in(file), f"{case}: no test {test} in {place}"
            shown += 1
        elif file.suffix == ".py":
            shown += any(case.lower() in of_case(name) for name in names_in(file))
    assert shown, f"{case}: none of {rows()[case]} has a test of it"


def test_no_test_of_a_case_is_missing_in_the_table():
    for file in sorted(TESTS.rglob("test_*.py")):
        for name in names_in(file):
            for case in of_case(name):
                named = {(HERE / one.partition("::")[0]).resolve() for one in rows().get(case.upper(), [])}
                assert file in named, f"{name} of {file.relative_to(TESTS)} is not in the row of {case.upper()}"


def test_the_table_is_in_order():
    order = [(case[0], int(case[1:])) for case in rows()]
    assert order == sorted(order)
