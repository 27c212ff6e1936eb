"""The tool that looks for missing tests: it finds the one that is missing, and no other."""

import subprocess
import sys
from pathlib import Path

from support.checkout import ROOT

MODULE = '''
"""Not changed: 3 > 2."""
import re

LONGEST = 4
WORD = re.compile(rf"[a-z]{{1,{LONGEST}}}")
NOWHERE = 7


class Bounds:
    def __init__(self, most: int) -> None:
        self.most = most

    @property
    def none(self) -> bool:
        return self.most == 0

    @staticmethod
    def bounded(number: int, most: int) -> int:
        if number > most:
            return most
        return number


def is_word(text: str) -> bool:
    return WORD.fullmatch(text) is not None


def low(number: int) -> bool:
    """Whether it is below ten."""
    return 0 <= number < 10 or number == -7
'''
TESTS = """
import pytest
from measured import Bounds, is_word, low


def test_bounds():
    assert Bounds.bounded(5, 3) == 3
    assert Bounds.bounded(2, 3) == 2
    assert Bounds(0).none is True
    assert Bounds(1).none is Bounds(-1).none is False


def test_words():
    assert [len(text) for text in ("", "a", "abcd", "abcde") if is_word(text)] == [1, 4]


@pytest.mark.parametrize(("number", "is_low"), [(-8, False), (-7, True), (-1, False), (0, True), (9, True)])
def test_low(number, is_low):
    assert low(number) is is_low
"""


def test_a_missing_test_is_found(tmp_path: Path) -> None:
    (tmp_path / "measured.py").write_text(MODULE, "utf-8")
    (tmp_path / "test_measured.py").write_text(TESTS, "utf-8")

    def run() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-P", ROOT / "tools" / "mutants.py", "measured", "--", "test_measured.py"],
            cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, timeout=120,
        )  # fmt: skip

    done = run()
    missing = [line.split(": ", 2)[2] for line in done.stdout.splitlines() if line.startswith("no test notices it")]
    assert missing == [
        "measured Bounds.bounded: number > most -> GtE",  # which means the same
        "measured low: 0 <= number < 10 -> LtE",
        "measured low: 0 <= number < 10: 10 -> 11",
    ], done.stdout + done.stderr
    assert done.returncode == 1
    more = TESTS.replace("(9, True)", "(9, True), (10, False)").replace('"abcde"', '"abcdef"')
    (tmp_path / "test_measured.py").write_text(more, "utf-8")
    done = run()
    assert "no test notices it: measured:5: measured LONGEST: 4 -> 5" in done.stdout, done.stdout
    assert (done.returncode, done.stdout.count("no test notices it")) == (1, 2), done.stdout
    (tmp_path / "test_measured.py").write_text(TESTS.replace("(0, True)", "(0, False)"), "utf-8")
    done = run()
    assert "the tests fail without any change" in done.stdout
    assert done.returncode == 1
