"""Check that every module of `wire` imports only what its floor may know.

    python tools/floors.py [ROOT]        exit 0: the house stands; 1: the violations, one a line

The house has floors, and nothing imports upward (the table `FLOORS`). Some packages have one door each (`DOORS`): the
rest of the code gets an interface of ours. A module of more than `LONGEST` lines has two jobs and fails as well.

Imports are read from the source with `ast`, wherever they stand: a lazy import inside a function and one under
`TYPE_CHECKING` are knowledge too. A name handed to `importlib.import_module` counts where it is a literal; one that
is computed at run time is not seen.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PACKAGE = "wire"
LONGEST = 450

_GROUND = frozenset({"errors", "protocol"})
_LOWER = _GROUND | {"keys", "store"}
_MIDDLE = _LOWER | {"gitio"}
_UPPER = _MIDDLE | {"daemon", "setup"}

FLOORS: dict[str, frozenset[str]] = {
    "errors": frozenset(),
    "protocol": frozenset({"errors"}),
    "keys": _GROUND,
    "store": _GROUND | {"keys"},
    "gitio": frozenset({"errors"}),
    "daemon": _MIDDLE,
    "setup": _MIDDLE | {"daemon"},
    "verbs": _UPPER,
    "api": _UPPER | {"verbs"},
    "checking": _UPPER | {"verbs"},
    "governing": _UPPER | {"verbs"},
    "keeping": _UPPER | {"verbs", "api"},
    "systemd": _UPPER | {"verbs"},
    "hooks": _UPPER | {"verbs", "api"},
    "mcp": _UPPER | {"verbs", "api"},
    "surfacing": _UPPER | {"verbs", "api"},
    "demo": frozenset({"errors"}),
    "doctor": _UPPER | {"verbs", "systemd", "hooks"},
    "cli": _UPPER
    | {"verbs", "api", "checking", "governing", "keeping", "systemd", "hooks", "mcp", "surfacing", "demo", "doctor"},
    "__init__": frozenset({"errors", "api"}),
    "__main__": frozenset({"cli", "hooks"}),
}
"""What each room may import from `wire`, besides itself; `__init__` holds the lazy public names."""

DOORS: dict[str, tuple[str, ...]] = {
    "git": ("wire/gitio/child.py",),
    "gitdb": ("wire/gitio/child.py",),
    "watchdog": ("wire/daemon/watch.py",),
    "click": ("wire/cli/",),
    "rich": ("wire/cli/",),
    "mcp": ("wire/mcp/server.py",),
    "mcp_types": ("wire/mcp/server.py",),
    "anyio": ("wire/mcp/server.py",),
}
"""The only file, or folder (with a slash), that may import a package from outside."""


class Import(NamedTuple):
    """One imported module or name, dotted from the top, and the line it stands on."""

    target: str
    line: int


class Violation(NamedTuple):
    """One broken rule."""

    path: str
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.what}"


def imports(source: str, module: str, *, is_package: bool) -> Iterator[Import]:
    """Yield everything that a module's source imports, at any depth.

    Args:
        source: the text of the module.
        module: its dotted name, from which relative imports are resolved.
        is_package: whether the source is an `__init__.py`.
    """
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, node.lineno)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = module.split(".")
                kept = above[: len(above) - node.level + is_package]
                base = ".".join([*kept, base] if base else kept)
            for alias in node.names:
                yield Import(f"{base}.{alias.name}", node.lineno)
        elif isinstance(node, ast.Call) and _is_dynamic(node.func) and node.args:
            name = node.args[0]
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                yield Import(name.value, node.lineno)


def _is_dynamic(function: ast.expr) -> bool:
    called = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return called in {"import_module", "__import__"}


def check(root: Path) -> list[Violation]:
    """Return the violations of every module below `root/wire`, in the order of the files."""
    found: list[Violation] = []
    for file in sorted((root / PACKAGE).rglob("*.py")):
        found += _check_file(file.relative_to(root).as_posix(), file.read_text("utf-8"))
    return found


def _check_file(path: str, source: str) -> Iterator[Violation]:
    parts = path.removesuffix(".py").split("/")
    is_package = parts[-1] == "__init__"
    room = parts[1]
    lines = source.count("\n")
    if lines > LONGEST:
        yield Violation(path, lines, f"{lines} lines, more than {LONGEST}: it has more than one job")
    if room not in FLOORS:
        yield Violation(path, 1, f"the room '{room}' has no floor: give it one in tools/floors.py")
        return
    for target, line in imports(source, ".".join(parts[:-1] if is_package else parts), is_package=is_package):
        top, _, rest = target.partition(".")
        if top == PACKAGE:
            met = rest.split(".")[0] or "__init__"
            if met == "__version__":  # a fact about the distribution, known to all
                continue
            # A name that is no room is one of the public ones, which come from the top floor.
            met = met if met in FLOORS else "__init__"
            if met != room and met not in FLOORS[room]:
                may = ", ".join(sorted(FLOORS[room])) or "nobody"
                yield Violation(path, line, f"imports {target}; '{room}' may know {may}")
        elif top in DOORS and not any(
            path.startswith(door) if door.endswith("/") else path == door for door in DOORS[top]
        ):
            yield Violation(path, line, f"imports {target}; only {', '.join(DOORS[top])} may")


def main(argv: list[str]) -> int:
    """Print what is wrong below the given root, or one line that says what was looked at."""
    root = Path(argv[1]) if len(argv) > 1 else Path(__file__).parent.parent
    violations = check(root)
    for violation in violations:
        print(violation)
    files = sorted((root / PACKAGE).rglob("*.py"))
    if not files:
        print(f"floors: no module below {root / PACKAGE}")
        return 1
    size, longest = max((file.read_text("utf-8").count("\n"), file.relative_to(root).as_posix()) for file in files)
    print(f"floors: {len(files)} modules, longest {longest} ({size} lines), {len(violations)} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
