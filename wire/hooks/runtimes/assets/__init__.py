"""Files that are put beside a runtime as they are."""

import os


def asset(name: str) -> str:
    """Return the text of one of them."""
    with open(os.path.join(os.path.dirname(__file__), name), encoding="utf-8") as file:
        return file.read()
