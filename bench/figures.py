"""Figures: what was measured, against which floor, and whether the promise holds.

Absolute times mean nothing on a shared machine. A figure is a ratio to a floor that was measured in the same run, in
alternating pairs whose order is swapped each time: the median of the pairs' ratios.
"""

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

PAIRS = 15
"""Fewer are not worth a median."""

Measure = Callable[[int], float]
"""Gets the number of the pair, and returns what was measured."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """What alternating measurements of a floor and of ours came to, in the same unit."""

    floor: tuple[float, ...]
    ours: tuple[float, ...]

    @property
    def ratio(self) -> float:
        """The median of ours divided by the floor beside it."""
        return statistics.median(mine / floor for floor, mine in zip(self.floor, self.ours, strict=True))

    @property
    def share(self) -> float:
        """The median of the floor divided by ours beside it: how fast we are, where both are times for one work."""
        return statistics.median(floor / mine for floor, mine in zip(self.floor, self.ours, strict=True))


def alternate(floor: Measure, ours: Measure, *, pairs: int = PAIRS, warm: int = 1) -> Pairs:
    """Measure in alternation, each first in every other pair; `warm` pairs before are not counted."""
    floors, mines = [], []
    for number in range(-warm, pairs):
        if number % 2:
            mine, base = ours(number), floor(number)
        else:
            base, mine = floor(number), ours(number)
        if number >= 0:
            floors.append(base)
            mines.append(mine)
    return Pairs(tuple(floors), tuple(mines))


def percentile(values: tuple[float, ...], part: float) -> float:
    """Return the smallest value that at least `part` (0 to 1) of all do not exceed."""
    ranked = sorted(values)
    return ranked[max(0, -(-int(part * 1000) * len(ranked) // 1000) - 1)]


@dataclass(frozen=True, slots=True)
class Figure:
    """One promise and what was found.

    Attributes:
        name: what `--only` takes.
        what: the promise in words.
        value: what was measured, in `unit`.
        target: what it may be at most, or must be at least.
        at_most: which of the two.
        floor: what it was compared with, and what that took.
        how: how it was measured.
        beside: what else is worth knowing, by name.
    """

    name: str
    what: str
    value: float
    target: float
    unit: str
    floor: str
    how: str
    at_most: bool = True
    beside: Mapping[str, Any] = field(default_factory=dict)

    @property
    def met(self) -> bool:
        """Whether the promise holds."""
        return self.value <= self.target if self.at_most else self.value >= self.target

    def as_json(self) -> dict[str, Any]:
        """Return everything for programs."""
        return {
            "name": self.name,
            "what": self.what,
            "value": round(self.value, 4),
            "unit": self.unit,
            "target": self.target,
            "at_most": self.at_most,
            "met": self.met,
            "floor": self.floor,
            "how": self.how,
            "beside": dict(self.beside),
        }

    def lines(self) -> list[str]:
        """Return it for people."""
        sign = "<=" if self.at_most else ">="
        verdict = "met" if self.met else "MISSED"
        shown = f"{self.value:.2f}".rstrip("0").rstrip(".")
        lines = [
            f"{verdict:6}  {shown} {self.unit} ({sign} {self.target:g} {self.unit})  {self.what}",
            f"        floor: {self.floor}",
            f"        how:   {self.how}",
        ]
        return [*lines, *(f"        {name}: {value}" for name, value in self.beside.items())]


def ms(seconds: float) -> str:
    """Return a time for people."""
    return f"{seconds * 1000:.1f} ms"
