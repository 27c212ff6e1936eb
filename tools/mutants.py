"""What the tests of a module would let through: small changes of its code, each judged by the tests that run it.

    python -P tools/mutants.py wire.keys.chain wire.keys.rules -- tests/unit/test_trust_chain.py …
    python -P tools/mutants.py all -- tests/unit/test_trust_chain.py …

`all` stands for the modules that `make core` measures, as pyproject.toml lists them.

The tests are collected once and run once, to learn which of them call which function. Then a fork for each change puts
it into the live function and runs those tests, the fastest first, until one fails. A change that none notices is a
survivor: a missing test, or a change that means the same. `tools/mutants.txt` lists the second kind, with why; any
other survivor, and a line there of which nothing survives, is a failure.

Changed are the bodies of functions: comparisons, conditions and their parts, arithmetic, numbers, texts, codes,
results, the order of arguments, named arguments that are left out, exceptions that are raised or caught, and statements
that are left out; and the limits, forms and tables at the top of a module, where one of these functions uses them. Not
changed are defaults of arguments, and words for people.
"""

import ast
import copy
import gc
import importlib
import os
import re
import resource
import sys
import time
import tomllib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any, NamedTuple

import pytest

KNOWN = Path(__file__).with_suffix(".txt")
CPU_SECONDS = 5
"""What the tests of a change may take, in seconds of the processor, beside three times what they take without it."""
MEMORY_BYTES = 4 << 30

_SWAPPED: dict[type[ast.AST], tuple[type[ast.AST], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE), ast.LtE: (ast.Lt, ast.Gt), ast.Gt: (ast.GtE, ast.LtE), ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,), ast.NotIn: (ast.In,), ast.And: (ast.Or,), ast.Or: (ast.And,),
    ast.Add: (ast.Sub,), ast.Sub: (ast.Add,), ast.Mult: (ast.FloorDiv,), ast.FloorDiv: (ast.Mult,),
    ast.Mod: (ast.FloorDiv,), ast.BitOr: (ast.BitAnd,), ast.BitAnd: (ast.BitOr,), ast.Div: (ast.Mult,),
    ast.Pow: (ast.Mult,), ast.LShift: (ast.RShift,), ast.RShift: (ast.LShift,),
    ast.Continue: (ast.Break,), ast.Break: (ast.Continue,),
}  # fmt: skip
_FUNCTIONS = {"all": "any", "any": "all", "min": "max", "max": "min", "sorted": "list"}
_METHODS = {"startswith": "endswith", "endswith": "startswith", "find": "rfind", "partition": "rpartition"}
_UNORDERED = ("max", "min", "isinstance")
"""Whose arguments stay in order: it says the same the other way round, or nothing at all."""
_NEVER = "ArithmeticError"
"""Which nothing of the core raises or catches."""
_UNUSED, _UNFIT = 3, 4
"""The exit status of a fork in which there is nothing to run, or into which the change could not be put."""
_CODES = ("Code", "Reason", "Verdict", "State")


class Change(NamedTuple):
    """One small change: where it is, what it reads like, and the changed module.

    Attributes:
        function: or the name of what stands at the top of the module.
        top: whether it is the latter.
    """

    module: str
    function: str
    line: int
    text: str
    tree: ast.Module
    top: bool = False

    @property
    def name(self) -> str:
        """What `KNOWN` lists it as: no line numbers, which other changes of the file move."""
        return f"{self.module} {self.function}: {self.text}"


def changes(module: str, source: str) -> Iterator[Change]:
    """Yield all changes of a module, in the order of its text."""
    tree = ast.parse(source)
    for path, function in _functions(tree, ()):
        body = function.body if isinstance(function.body, list) else [function.body]
        yes_or_no = isinstance(function, ast.FunctionDef) and _said(function.returns or function) == "bool"
        for part in body:
            for node, parent in _nodes(part, function):
                edits = [*_edits(node, parent), *_left_out(node, parent, function), *_other_calls(node)]
                if isinstance(node, ast.Return) and yes_or_no:
                    others = [one for one in (True, False) if _said(node) != f"return {one}"]
                    edits += [(f"{_said(node)} -> {one}", _with(value=ast.Constant(one))) for one in others]
                for text, edit in edits:
                    yield Change(module, ".".join(path), getattr(node, "lineno", 0), text, _edited(tree, node, edit))
    for statement in tree.body:
        for name in sorted(_targets(statement) - {"__all__"}):
            for node in _constants(statement):
                for text, value in _other_forms(node.value):
                    yield Change(module, name, node.lineno, text, _edited(tree, node, _with(value=value)), top=True)


def _targets(statement: ast.AST) -> set[str]:
    """Return the names that a statement at the top of a module gives a value."""
    if isinstance(statement, ast.AnnAssign) and statement.value is not None:
        return {statement.target.id} if isinstance(statement.target, ast.Name) else set()
    if isinstance(statement, ast.Assign):
        return {target.id for target in statement.targets if isinstance(target, ast.Name)}
    return set()


def _constants(node: ast.AST) -> Iterator[ast.Constant]:
    """Yield the constants of a node outside of the functions in it, which are changed as such, and of annotations."""
    if isinstance(node, ast.Constant):
        yield node
    elif not isinstance(node, ast.Lambda):
        for child in ast.iter_child_nodes(node):
            if not (isinstance(node, ast.AnnAssign) and child is node.annotation):
                yield from _constants(child)


def _nodes(node: ast.AST, parent: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Yield (node, parent) of all that is in a node, but for descriptions, and texts for people."""
    if (isinstance(node, ast.JoinedStr) and " " in _literal(node)) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    ):
        return
    yield node, parent
    for child in ast.iter_child_nodes(node):
        if not (isinstance(node, ast.AnnAssign) and child is node.annotation):
            yield from _nodes(child, node)


def _literal(text: ast.JoinedStr) -> str:
    """Return what stands in a text that is put together, without its parts: with a blank it is for people."""
    return "".join(one.value for one in text.values if isinstance(one, ast.Constant) and isinstance(one.value, str))


def _functions(node: ast.AST, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], ast.FunctionDef | ast.Lambda]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef):
            yield (*path, child.name), child
        elif isinstance(child, ast.Lambda):
            yield (*path, "<lambda>"), child
        else:
            yield from _functions(child, (*path, child.name) if isinstance(child, ast.ClassDef) else path)


Edit = Callable[[Any], ast.AST]
"""Makes the changed node of a copy of the node."""


def _edits(node: ast.AST, parent: ast.AST) -> Iterator[tuple[str, Edit]]:
    """Yield (what it reads like, edit) for all changes of one node itself."""
    if isinstance(node, (ast.Compare, ast.BoolOp, ast.BinOp, ast.AugAssign, ast.Continue, ast.Break)):
        yield from _other_operators(node)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield f"{_said(node)} -> {_said(node.operand)}", lambda it: it.operand
    if isinstance(node, (ast.If, ast.While, ast.IfExp)):
        for value in (True, False):
            # An endless loop is noticed by its time alone, which would say little for its costs.
            if not (value and isinstance(node, ast.While)):
                yield f"if {_said(node.test)} -> {value}", _with(test=ast.Constant(value))
    if isinstance(node, ast.comprehension):
        for number, one in enumerate(node.ifs):
            yield f"for … if {_said(one)} -> True", _without("ifs", number)
    nothing = isinstance(node, ast.Return) and isinstance(node.value, ast.Constant) and not node.value.value
    if isinstance(node, ast.Return) and node.value is not None and not nothing:
        yield f"{_said(node)} -> None", _with(value=ast.Constant(None))
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in _CODES:
        other = {"Code": "CLONED", "Reason": "TOO_LARGE", "Verdict": "FUTURE", "State": "EXPIRED"}[node.value.id]
        if node.attr != other:
            yield f"{_said(node)} -> {other}", _with(attr=other)
    if isinstance(node, ast.Constant):
        for changed in _other_values(node.value):
            yield f"{_said(parent)}: {_said(node)} -> {changed!r}", _with(value=changed)


def _left_out(node: ast.AST, parent: ast.AST, function: ast.AST) -> Iterator[tuple[str, Edit]]:
    """Yield (what it reads like, edit) for what can be missing without that anybody stumbles."""
    gone = isinstance(node, (ast.Expr, ast.AugAssign, ast.Delete))
    if isinstance(node, ast.Raise):  # where it is all that a condition leads to, the condition is changed
        gone = not (isinstance(parent, ast.If) and parent.body == [node] and not parent.orelse)
    if isinstance(node, ast.Assign):
        gone = not all(isinstance(one, ast.Name) and _bound(function, one.id) == 1 for one in node.targets)
    if gone:
        yield f"{_said(node)} -> left out", _instead(ast.Pass())
    if isinstance(node, ast.BoolOp):
        for number, one in enumerate(node.values):
            others = [*node.values[:number], *node.values[number + 1 :]]
            changed = _with(values=others) if len(others) > 1 else _instead(others[0])
            yield f"{_said(node)} -> without {_said(one)}", changed
    if isinstance(node, ast.Compare) and isinstance(node.ops[-1], (ast.In, ast.NotIn)):
        many = node.comparators[-1]
        if isinstance(many, (ast.Tuple, ast.Set, ast.List)) and len(many.elts) > 1:
            for one in many.elts:
                rest = ast.Tuple([other for other in many.elts if other is not one], ast.Load())
                yield f"{_said(node)} -> without {_said(one)}", _with(comparators=[*node.comparators[:-1], rest])
    if isinstance(node, ast.ExceptHandler) and node.type is not None:
        caught = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
        for one in caught:
            left: list[ast.expr] = [other for other in caught if other is not one] or [ast.Name(_NEVER, ast.Load())]
            yield f"except {_said(node.type)} -> without {_said(one)}", _with(type=ast.Tuple(left, ast.Load()))


def _bound(function: ast.AST, name: str) -> int:
    """Return how often a function gives a name a value, as an argument too."""
    return sum(
        (isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load))
        or (isinstance(node, ast.arg) and node.arg == name)
        for node in ast.walk(function)
    )


def _other_calls(node: ast.AST) -> Iterator[tuple[str, Edit]]:
    if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
        other = ast.Call(ast.Name(_NEVER, ast.Load()), [], [])
        yield f"raise {_said(node.exc)} -> another", _with(exc=other)
    if not isinstance(node, ast.Call):
        return
    called = node.func.id if isinstance(node.func, ast.Name) else ""
    if called in _FUNCTIONS:
        yield f"{_said(node)} -> {_FUNCTIONS[called]}", _with(func=ast.Name(_FUNCTIONS[called], ast.Load()))
    if isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS:
        method = _METHODS[node.func.attr]
        yield f"{_said(node)} -> {method}", _with(func=ast.Attribute(node.func.value, method, ast.Load()))
    for number, (one, after) in enumerate(zip(node.args, node.args[1:], strict=False)):
        starred = isinstance(one, ast.Starred) or isinstance(after, ast.Starred)
        if called not in _UNORDERED and not starred and _said(one) != _said(after):
            changed = [*node.args[:number], after, one, *node.args[number + 2 :]]
            yield f"{_said(node)} -> {_said(after)}, {_said(one)}", _with(args=changed)
    for number, keyword in enumerate(node.keywords):
        if keyword.arg is not None:
            yield f"{_said(node)} -> without {keyword.arg}", _without("keywords", number)


def _other_operators(node: ast.AST) -> Iterator[tuple[str, Edit]]:
    if isinstance(node, (ast.Continue, ast.Break)):
        for other in _SWAPPED[type(node)]:
            yield f"{_said(node)} -> {other.__name__.lower()}", _instead(other())
    elif isinstance(node, ast.Compare):
        for number, operator in enumerate(node.ops):
            for other in _SWAPPED[type(operator)]:
                changed = [*node.ops[:number], other(), *node.ops[number + 1 :]]
                yield f"{_said(node)} -> {other.__name__}", _with(ops=changed)
    else:
        for other in _SWAPPED.get(type(node.op), ()):  # type: ignore[attr-defined]  # those that are left have one
            yield f"{_said(node)} -> {other.__name__}", _with(op=other())


def _other_values(value: object) -> tuple[object, ...]:
    if isinstance(value, bool):
        return (not value,)
    if isinstance(value, int):
        return value + 1, value - 1
    if isinstance(value, str) and " " not in value:  # with a blank it is for people
        return (f"{value}X",)
    return (value + b"X",) if isinstance(value, bytes) else ()


def _other_forms(value: object) -> Iterator[tuple[str, object]]:
    """Yield (what it reads like, value) for what a limit or a form may be, also with other numbers of characters."""
    for changed in _other_values(value):
        yield f"{_cut(repr(value))} -> {_cut(repr(changed))}", changed
    text = value.decode("latin-1") if isinstance(value, bytes) else value if isinstance(value, str) else ""
    for found in re.finditer(r"(?<=[{,])[0-9]+(?=[,}])", text):
        for number in {int(found[0]) + 1, max(0, int(found[0]) - 1)} - {int(found[0])}:
            other = f"{text[: found.start()]}{number}{text[found.end() :]}"
            where = text[max(0, found.start() - 30) : found.end() + 1]
            yield f"{where} -> {number}", other.encode("latin-1") if isinstance(value, bytes) else other


def _instead(other: ast.AST) -> Edit:
    return lambda _: other


def _with(**fields: Any) -> Edit:
    def edit(node: Any) -> ast.AST:
        for name, value in fields.items():
            setattr(node, name, value)
        return node  # type: ignore[no-any-return]  # a copy of the node that came

    return edit


def _without(field: str, number: int) -> Edit:
    def edit(node: Any) -> ast.AST:
        del getattr(node, field)[number]
        return node  # type: ignore[no-any-return]  # a copy of the node that came

    return edit


def _said(node: ast.AST) -> str:
    return _cut(" ".join(ast.unparse(node).split()))


def _cut(text: str) -> str:
    return text if len(text) <= 90 else text[:60] + "…" + text[-29:]


def _edited(tree: ast.Module, node: ast.AST, edit: Edit) -> ast.Module:
    """Return a copy of the tree in which one node is another."""
    changed = ast.copy_location(edit(copy.deepcopy(node)), node)
    other = copy.deepcopy(tree, {id(node): changed})
    for (_, before), (_, after) in zip(_functions(tree, ()), _functions(other, ()), strict=True):
        if isinstance(after, ast.FunctionDef) and _reaches_class(before) and not _reaches_class(after):
            # What took `super()` away has to reach the class as before, to be put into the live function.
            after.body.insert(0, ast.Expr(ast.Name("__class__", ast.Load())))
    return ast.fix_missing_locations(other)


def _reaches_class(function: ast.AST) -> bool:
    return any(isinstance(one, ast.Name) and one.id in ("super", "__class__") for one in ast.walk(function))


# In a live process


def _units(code: CodeType) -> Iterator[CodeType]:
    """Yield the code of the functions of a module, those in its classes among them, in a fixed order."""
    for const in code.co_consts:
        if isinstance(const, CodeType):
            if const.co_flags & 0x2:  # CO_NEWLOCALS: a function's; a class body has none
                yield const
            else:
                yield from _units(const)


class Live:
    """A module as it is loaded: whose code is whose."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.path = importlib.import_module(name).__file__ or ""
        self.source = Path(self.path).read_text("utf-8")
        self.codes = list(_units(compile(self.source, self.path, "exec", dont_inherit=True)))
        wanted = set(self.codes)
        self.functions: dict[CodeType, list[FunctionType]] = {}
        gc.unfreeze()  # what the tests' own settings may have put out of sight
        for one in gc.get_objects():
            if isinstance(one, FunctionType) and one.__code__ in wanted:
                self.functions.setdefault(one.__code__, []).append(one)
        if wanted and not self.functions:
            raise RuntimeError(f"{name} is not loaded as {self.path} has it; was the file changed meanwhile?")

    def put(self, tree: ast.Module) -> set[CodeType]:
        """Put a change into the functions; return the code that they had."""
        changed = set()
        codes = list(_units(compile(tree, self.path, "exec", dont_inherit=True)))
        for old, new in zip(self.codes, codes, strict=True):
            if old != new:
                changed.add(old)
                for function in self.functions.get(old, ()):
                    function.__code__ = new
        return changed

    def put_top(self, tree: ast.Module, name: str, tests: Iterable[Any]) -> set[str]:
        """Give a name at the top of the module, and what is made of it there, the values of a tree; return the names.

        Whoever imported one of them by its name gets the new value, too, modules of tests among them.
        """
        module = sys.modules[self.name]
        space = dict(vars(module))
        changed: set[str] = set()
        for statement in tree.body:
            targets = _targets(statement)
            loaded = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)} - targets
            if name in targets or (targets and loaded & changed):
                code = compile(ast.Module([statement], []), self.path, "exec", dont_inherit=True)
                exec(code, space)  # noqa: S102 - a line of the product, with one constant changed
                changed |= targets
        for one in changed:
            old = vars(module)[one]
            for other in [*sys.modules.values(), *tests]:
                if getattr(other, "__dict__", {}).get(one) is old:
                    setattr(other, one, space[one])
        return changed


def _names(code: CodeType) -> set[str]:
    """Return the global names and attributes that a function uses."""
    inside = (_names(const) for const in code.co_consts if isinstance(const, CodeType))
    return set(code.co_names).union(*inside)


class Runner:
    """A pytest plugin that runs the tests once for each change."""

    def __init__(self, modules: list[str]) -> None:
        self.modules = modules
        self.survived: list[Change] = []
        self.count = 0
        self._forked = False
        self._items: list[pytest.Item] = []
        self.failed = False
        self._callers: dict[CodeType, list[tuple[float, Any]]] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        """Make Hypothesis stop at the first failure: nobody reads what it would shrink it to."""
        import hypothesis  # pytest rewrites the assertions of its plugin first

        phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
        hypothesis.settings.register_profile("mutants", hypothesis.settings.default, phases=phases, max_examples=60)
        hypothesis.settings.load_profile("mutants")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Leave a fork at its first failure."""
        if report.failed and self._forked:
            os._exit(1)
        if report.failed:
            self.failed = True
            _say(f"{report.nodeid}\n{report.longreprtext}")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run each test once, then all changes."""
        beside = [name for name in sys.modules if name.startswith(("wire.protocol.", "wire.keys."))]
        live = {name: Live(name) for name in dict.fromkeys([*self.modules, *beside])}
        self._learn(session.items, {code for one in live.values() for code in one.functions})
        if self.failed:
            return True
        for one in (live[name] for name in self.modules):
            began, before, survived = time.monotonic(), self.count, len(self.survived)
            for change in changes(one.name, one.source):
                noticed = self._noticed(one, change)
                if noticed is None:
                    continue
                self.count += 1
                if not noticed:
                    self.survived.append(change)
                    _say(f"  survives: {one.path}:{change.line}: {change.name}")
            _say(
                f"{one.name}: {self.count - before} changes, {len(self.survived) - survived} survive, "
                f"{time.monotonic() - began:.0f} s"
            )
        return True

    def _learn(self, items: list[pytest.Item], wanted: set[CodeType]) -> None:
        self._items = items
        for item in items:
            called: set[CodeType] = set()

            def profile(frame: FrameType, event: str, _: object, called: set[CodeType] = called) -> None:
                if event == "call" and frame.f_code in wanted:
                    called.add(frame.f_code)

            _forget()
            began = time.process_time()
            sys.setprofile(profile)
            try:
                _run(item)
            finally:
                sys.setprofile(None)
            took = time.process_time() - began
            for code in called:
                self._callers.setdefault(code, []).append((took, item))

    def _noticed(self, live: Live, change: Change) -> bool | None:
        """Return whether a test fails with a change; None for a value that no function that was called uses."""
        child = os.fork()
        if child:
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            if status == _UNFIT:
                raise RuntimeError(f"cannot be put into the live module: {change.name}")
            return None if status == _UNUSED else status != 0
        try:
            self._forked = True
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
            if change.top:
                names = live.put_top(
                    change.tree, change.function, {getattr(item, "module", None) for item in self._items}
                )
                codes = {code for code in self._callers if names & _names(code)}
            else:
                codes = _put(live, change)
            found = {item: took for code in codes for took, item in self._callers.get(code, ())}
            if change.top and found:
                found.update({item: 0.0 for item in self._items if _mentions(item, change.function)})
            callers = sorted(found.items(), key=lambda caller: caller[1])
            if change.top and not callers:
                os._exit(_UNUSED)
            # An endless loop ends with this.
            most = CPU_SECONDS + int(3 * sum(took for _, took in callers))
            resource.setrlimit(resource.RLIMIT_CPU, (most, most))
            _forget()
            for item, _ in callers:
                _run(item)
        except BaseException:  # noqa: BLE001 - whatever it is, it was noticed
            os._exit(1)
        os._exit(0)


def _put(live: Live, change: Change) -> set[CodeType]:
    """Put a change into the functions of this fork, which ends where that cannot be: a test would notice nothing."""
    try:
        return live.put(change.tree)
    except (ValueError, SyntaxError, TypeError) as error:
        _say(f"{change.name}: {error}")
        os._exit(_UNFIT)


def _run(item: pytest.Item) -> None:
    item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)


def _mentions(item: pytest.Item, name: str) -> bool:
    """Return whether a test itself looks at what stands at the top of a module, and so need not call any function."""
    code = getattr(getattr(item, "function", None), "__code__", None)
    return code is not None and (name in _names(code) or repr(name) in repr(code.co_consts))


def _forget() -> None:
    """Empty the caches of the product, which would answer in place of a changed function."""
    for name, module in list(sys.modules.items()):
        if name.startswith("wire."):
            for one in vars(module).values():
                if hasattr(one, "cache_clear"):
                    one.cache_clear()


def _say(text: str) -> None:
    os.write(3, f"{text}\n".encode())


def known() -> dict[str, str]:
    """Return the changes that mean the same, and why, as `KNOWN` lists them."""
    found = {}
    for line in KNOWN.read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            name, _, why = line.partition("  # ")
            found[name] = why
    return found


def core() -> list[str]:
    """Return the modules that the settings of coverage name: the trust core."""
    root = KNOWN.parents[1]
    settings = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["tool"]["coverage"]["run"]
    paths = [path for room in settings["source_pkgs"] for path in sorted(root.glob(f"{room.replace('.', '/')}/*.py"))]
    return [
        ".".join(path.relative_to(root).with_suffix("").parts)
        for path in paths
        if path.name != "__init__.py" and not any(path.match(pattern) for pattern in settings["omit"])
    ]


def main(arguments: list[str]) -> int:
    """Change the modules named in front of `--`, with the tests behind it; return the exit status."""
    at = arguments.index("--")
    modules, tests = arguments[:at], arguments[at + 1 :]
    everything = modules == ["all"]  # and a line of the list about a module that is gone is over
    modules = core() if everything else modules
    os.dup2(1, 3)
    runner = Runner(modules)
    options = ["-p", "no:terminal", "-p", "no:xdist", "-p", "no:cacheprovider", "--timeout=0"]
    options += ["-o", "addopts=--import-mode=importlib"]
    status = pytest.main([*options, *tests], plugins=[runner])
    if status != 0 or runner.failed:
        _say("the tests fail without any change")
        return int(status) or 1
    same = known()
    new = [change for change in runner.survived if change.name not in same]
    survived = {one.name for one in runner.survived}
    over = [name for name in same if (everything or name.split()[0] in modules) and name not in survived]
    for change in new:
        _say(f"no test notices it: {change.module}:{change.line}: {change.name}")
    for name in over:
        _say(f"nothing survives of what {KNOWN.name} lists: {name}")
    _say(f"{runner.count} changes, {len(runner.survived)} survive, {len(new)} of them without a reason")
    return 1 if new or over else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
