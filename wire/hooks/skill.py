"""The text that teaches an agent the verbs: `wire skill`."""

import os


def skill() -> str:
    """Return the text, in the form of a skill file."""
    with open(os.path.join(os.path.dirname(__file__), "skill.md"), encoding="utf-8") as file:
        return file.read()
