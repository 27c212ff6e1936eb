"""The trust core is pure: bytes and state in, a verdict or new state out.

What is pure is what `make core` measures: all modules of `wire.protocol` and `wire.keys` but those that the settings of
coverage leave out, which are about the files of a machine's own private keys.
"""

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.checkout import ROOT

PURE = {
    "base64", "binascii", "collections.abc", "dataclasses", "enum", "functools", "hashlib", "hmac", "itertools", "json",
    "re", "typing", "nacl.bindings", "nacl.exceptions",
}  # fmt: skip
ALSO = {
    "wire/protocol/encoding.py": {"os", "datetime"},
    "wire/protocol/sealed.py": {"os"},
    "wire/keys/invitations.py": {"secrets"},
    "wire/keys/fingerprints.py": {"importlib.resources"},
}
"""For fresh random bytes, for reading the text of a time, and for the list of words that comes with the package."""
NEVER = {"open", "print", "input", "exec", "eval", "__import__", "breakpoint"}
USED = {"os": {"urandom"}, "secrets": {"token_bytes"}, "datetime": {"fromisoformat"}}
LEFT_OUT = [
    Path(one).name for one in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["coverage"]["run"]["omit"]
]
CORE = sorted(path for room in ("protocol", "keys") for path in (ROOT / "wire" / room).glob("*.py"))


def impure(path: str, source: str) -> Iterator[str]:
    """Yield what a module of the core has that it may not have."""
    allowed = PURE | ALSO.get(path, set())
    for node in ast.walk(ast.parse(source)):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or "."]
            if node.module in ("wire", "wire.keys", "wire.protocol"):
                names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            own = name == "wire.errors" or name.split(".")[:2] in (["wire", "protocol"], ["wire", "keys"])
            if own and f"{name.split('.')[-1]}.py" in LEFT_OUT:
                yield f"imports {name}, which is not pure"
            elif name not in allowed and not own:
                yield f"imports {name}"
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            one = node.value.id
            if one in USED and node.attr not in USED[one]:
                yield f"uses {one}.{node.attr}"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in NEVER:
            yield f"calls {node.func.id}"


@pytest.mark.parametrize("path", [path for path in CORE if path.name not in LEFT_OUT], ids=lambda path: path.stem)
def test_a_module_of_the_core_is_pure(path: Path) -> None:
    assert list(impure(str(path.relative_to(ROOT)), path.read_text("utf-8"))) == []


def test_what_is_left_out_is_there_and_is_not_pure() -> None:
    assert len(CORE) > 25
    for name in LEFT_OUT:
        (path,) = (one for one in CORE if one.name == name)
        assert list(impure(str(path.relative_to(ROOT)), path.read_text("utf-8"))) != []


@pytest.mark.parametrize(
    "source",
    [
        "import socket", "from time import time", "import os", "from wire.store import files", "from wire import store",
        "from wire.keys.keyfile import read", "from wire.keys import keyfile", "from datetime import datetime",
        "from wire.keys import model\nopen('x')", "def late():\n    import subprocess",
    ],
)  # fmt: skip
def test_what_is_not_pure_is_noticed(source: str) -> None:
    assert list(impure("wire/keys/rules.py", source)) != []
    assert list(impure("wire/protocol/encoding.py", "import os\nos.listdir('.')")) == ["uses os.listdir"]
