"""Names that a person takes for one another: for warnings, never for decisions."""

from collections.abc import Iterable

_CHARACTERS = str.maketrans("0158i", "olsbl", "-")
_PAIRS = (("rn", "m"), ("vv", "w"), ("cl", "d"))


def alike(name: str, others: Iterable[str]) -> tuple[str, ...]:
    """Return those of other names that look like this one and are not it."""
    mine = _look(name)
    return tuple(other for other in others if other != name and _look(other) == mine)


def _look(name: str) -> str:
    for pair, one in _PAIRS:
        name = name.replace(pair, one)
    return name.translate(_CHARACTERS)
