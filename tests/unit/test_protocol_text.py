"""PROTOCOL.md against the code: the sections it is asked for exist, its tables and limits hold, its example is true."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import wire.keys.document
from support import second_forms
from support.checkout import ROOT
from vectors import make_lines, world
from vectors.forge import LINE, pae, unsigned
from wire.keys.reasons import Reason
from wire.keys.signatures import SIGNATURES_MAX
from wire.protocol import chain, encoding, messages, names, presence, strictjson
from wire.protocol.codes import Code
from wire.protocol.line import LINE_MAX, SIGNATURE_MEMBER_BYTES, TRAILER_BYTES

TEXT = (ROOT / "PROTOCOL.md").read_text("utf-8")
FLAT = " ".join(TEXT.split())
TITLES = {title.strip("#").strip() for title in TEXT.splitlines() if title.startswith("#")}


def section(title: str) -> str:
    """Return the text below a title."""
    level = next(line for line in TEXT.splitlines() if line.strip("# ") == title and line.startswith("#")).split()[0]
    below = TEXT.split(f"\n{level} {title}\n", 1)[1]
    return re.split(rf"\n#{{1,{len(level)}}} ", below, maxsplit=1)[0]


def rows(title: str) -> Iterator[list[str]]:
    """Yield the cells of the tables in a section, without their heads."""
    for line in section(title).splitlines():
        if line.startswith("| ") and not line.startswith(
            ("| member |", "| type |", "| reason |", "| code |", "| step |")
        ):
            yield [cell.strip() for cell in line.strip("|").split("|")]


def test_every_section_that_the_code_names_exists() -> None:
    asked = []
    for path in sorted((ROOT / "wire").rglob("*.py")):
        flat = " ".join(path.read_text("utf-8").split())
        for mention in re.finditer(r'PROTOCOL\.md, sections? ((?:(?: and |, )?"[^"]+")+)', flat):
            asked += [(path.relative_to(ROOT), title) for title in re.findall(r'"([^"]+)"', mention[1])]
    assert len(asked) > 10
    assert [(str(path), title) for path, title in asked if title not in TITLES] == []


def test_sections_that_the_text_itself_names_exist() -> None:
    named = set(re.findall(r'(?:see|calls|that|with|as in|from|by) "([A-Z][A-Za-z ]+)"', FLAT))
    assert named
    assert named <= TITLES


def test_lines_of_text_have_the_width_of_code() -> None:
    long = [number for number, line in enumerate(TEXT.splitlines(), 1) if len(line) > 120 and not line.startswith("|")]
    assert long == []


def test_the_codes() -> None:
    listed = [cells[0].strip("`") for cells in rows("Incidents") if len(cells) == 3]
    assert sorted(listed) == sorted(code.value for code in Code)


def test_the_reasons() -> None:
    listed = {cells[0].strip("`") for cells in rows("Table of reasons")}
    asked_of_builders = {
        Reason.NAME_TAKEN,
        Reason.NAME_UNKNOWN,
        Reason.NAME_REMOVED,
        Reason.NAME_HAS_KEY,
        Reason.KEY_UNKNOWN,
    }
    assert listed == {reason.value for reason in Reason if reason not in asked_of_builders}


def test_the_types_and_members() -> None:
    described = list(rows("Messages"))
    members = [cells[0].strip("`") for cells in described if "SCHEMA" in cells[2]]
    types = {cells[0].strip("`"): cells[2] for cells in described if "SCHEMA" not in cells[2]}
    assert members == list(messages.OPTIONAL)
    assert list(types) == list(messages.TYPES)
    for kind, body in messages.TYPES.items():
        needs = set(re.findall(r"`(re|code|scope|evidence)`", types[kind]))
        assert needs == {*body.needs_members, *body.needs_fields}


def test_the_reserved_words() -> None:
    reserved = section("Names").split("are reserved and no names:")[1].split("*")[0]
    words = set(re.findall(r"`([a-z0-9]+)`", reserved))
    words |= {f"{port}{number}" for port in ("com", "lpt") for number in range(10)}
    assert words == names.RESERVED == second_forms.RESERVED


@pytest.mark.parametrize(
    ("number", "of"),
    [
        (LINE_MAX, "A line"), (chain.SEGMENT_MAX, "A segment"), (wire.keys.document.DOCUMENT_MAX, "A document"),
        (SIGNATURES_MAX, "A signature file"), (4096, "A request"), (messages.REF_MAX, "A ref"),
        (presence.PRESENCE_MAX, "A presence"),
        (wire.keys.document.POSITIONS_MAX, "Positions of a key"), (wire.keys.document.VERSION_MAX, "A version"),
    ],
)  # fmt: skip
def test_the_limits(number: int, of: str) -> None:
    assert f"{number:,}" in TEXT, of


def test_the_constants() -> None:
    assert f"last {SIGNATURE_MEMBER_BYTES} bytes" in FLAT
    assert f"The trailer is the last {TRAILER_BYTES - 1} bytes" in FLAT
    assert f"nest at most {strictjson.MAX_DEPTH} deep" in FLAT
    assert f"at most {messages.SUBJECT_MAX} code points" in FLAT
    assert f"at most {messages.REFS_MAX} strings" in FLAT
    for kind in (encoding.LINE_TYPE, encoding.TRUST_TYPE, encoding.PROOF_TYPE, encoding.PRESENCE_TYPE):
        assert f"| `{kind.decode()}` |" in TEXT


def test_the_steps_in_the_code_are_those_of_the_text() -> None:
    steps = {cells[0].split()[0] for cells in rows("One line") if cells[0]}
    listed = re.findall(r"^    (6[a-g])  ", Path(chain.__file__).read_text("utf-8"), re.MULTILINE)
    assert set(listed) == steps


def test_the_example() -> None:
    example = section("Test vectors")
    first = make_lines.make()["vectors"][0]
    line = first["line"].encode()
    broken = [line.decode()[at : at + 100] for at in range(0, len(line), 100)]
    assert "\n".join("    " + part for part in broken) in example
    for fact in (world.MAC.seed.hex(), encoding.b64(world.MAC.public), world.MAC.id, world.MAC.fingerprint, world.WIRE):
        assert fact in example
    signed = pae(LINE, unsigned(line)).decode()
    begins, ends = re.findall(r"begins with `(.+?)` and ends with `(.+?)`", " ".join(example.split()))[0]
    assert signed.startswith(begins)
    assert signed.endswith(ends)
    after = first["after"]
    assert f"seq {after['seq']}, segment {after['segment']}, size {after['size']}" in example
    assert f"head {after['head']}" in example
