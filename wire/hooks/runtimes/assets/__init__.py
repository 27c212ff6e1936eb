"""Files that are put beside a runtime."""

import os

_SHARED = "ask.js"


def asset(name: str) -> str:
    """Return the text of one of them, with what they share in the place of its name."""
    return _text(name).replace(f"// {_SHARED}\n", _text(_SHARED))


def _text(name: str) -> str:
    with open(os.path.join(os.path.dirname(__file__), name), encoding="utf-8") as file:
        return file.read()
