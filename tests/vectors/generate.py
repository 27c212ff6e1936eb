"""Write the vector files; deterministic. Run from `tests/`: `python -m vectors.generate`."""

import json
from pathlib import Path
from typing import Any

from vectors import (
    make_evidence,
    make_lines,
    make_presence,
    make_proposals,
    make_rotations,
    make_sealed,
    make_small,
    make_trust,
    make_walks,
)

FOLDER = Path(__file__).parent


def files() -> dict[str, str]:
    """Return the text of every vector file by its name."""
    made = {
        "world.json": make_small.world(),
        "names.json": make_small.names(),
        "encodings.json": make_small.encodings(),
        "json.json": make_small.strict_json(),
        "lines.json": make_lines.make(),
        "walks.json": make_walks.make(),
        "trust.json": make_trust.make(),
        "requests.json": make_trust.requests(),
        "rotations.json": make_rotations.make(),
        "proposals.json": make_proposals.make(),
        "sealed.json": make_sealed.make(),
        "presence.json": make_presence.make(),
        "evidence.json": make_evidence.make(),
    }
    return {name: text(content) for name, content in made.items()}


def text(content: dict[str, Any]) -> str:
    """Return a file's text: ASCII, one member or one vector on a line, so that a change shows as what it is."""
    parts = []
    for name, value in content.items():
        if isinstance(value, list):
            shown = "[\n" + ",\n".join("  " + json.dumps(entry) for entry in value) + "\n ]"
        elif isinstance(value, dict):
            shown = (
                "{\n" + ",\n".join(f"  {json.dumps(key)}: {json.dumps(entry)}" for key, entry in value.items()) + "\n }"
            )
        else:
            shown = json.dumps(value)
        parts.append(f" {json.dumps(name)}: {shown}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def main() -> None:
    for name, text in files().items():
        (FOLDER / name).write_text(text, "ascii")


if __name__ == "__main__":
    main()
