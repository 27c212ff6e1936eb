"""Fixtures and rules for all tests.

- The package under test is the installed one. The root of the checkout is taken off `sys.path`, where `python -m
  pytest` puts it: `import wire` would find the source, and `import daemon` the link of that name.
- In continuous integration a skip is a failure: with `CI=true` or `WIRE_NO_SKIP=1` a test that skips itself fails, and
  says why it wanted to.
- A test marked `exclusive` has the machine to itself, also among the workers of pytest-xdist.
"""

import contextlib
import fcntl
import gc
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import hypothesis
import pytest

if TYPE_CHECKING:
    from support.http_git import HttpGit
    from support.sshd import Sshd

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)

ROOT = Path(__file__).resolve().parent.parent
sys.path[:] = [entry for entry in sys.path if Path(entry or os.curdir).resolve() != ROOT]

from support import memory_disk, sizes  # noqa: E402 - after sys.path is right
from support.machine import Machine  # noqa: E402
from support.remote import BareRemote  # noqa: E402
from support.team import Team, Template  # noqa: E402

NO_SKIP = os.environ.get("CI") == "true" or os.environ.get("WIRE_NO_SKIP") == "1"

# The same examples in every run: a failure in CI is one that anybody can see again. How fast they are made depends on
# what else the machine does.
hypothesis.settings.register_profile(
    "wire",
    derandomize=True,
    deadline=None,
    database=None,
    print_blob=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
    max_examples=sizes.size(100, 2000, "examples per property"),
)
hypothesis.settings.load_profile("wire")


# What is tested, and in which sizes


def pytest_report_header() -> list[str]:
    import wire

    skips = "skips fail" if NO_SKIP else "skips allowed"
    return [
        f"wire: {wire.__version__} from {Path(wire.__file__).parent}",
        f"sizes: {'full' if sizes.FULL else 'ci'}; {skips}",
        f"folders: {os.environ.get(FOLDERS) or tempfile.gettempdir()}",
    ]


_reported: dict[str, str] = {}
"""The sizes that the workers of pytest-xdist told the controller."""


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    _reported.update(getattr(node, "workeroutput", {}).get("sizes", {}))


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["sizes"] = sizes.chosen


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.section("sizes")
    for what, number in sorted({**sizes.chosen, **_reported}.items()):
        terminalreporter.line(f"{what}: {number}")


# What was collected stays until the end: no collector of garbage needs to look at it


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


# No skips


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    return _without_skip(report, xfailed=hasattr(report, "wasxfail"))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    return _without_skip(report)


def _without_skip(report: Report, *, xfailed: bool = False) -> Report:
    if NO_SKIP and report.skipped and not xfailed:
        path, line, reason = report.longrepr if isinstance(report.longrepr, tuple) else ("", 0, report.longreprtext)
        report.outcome = "failed"
        report.longrepr = f"{path}:{line}: skipped where no test may be: {reason}"
    return report


# The machine to oneself, and folders in memory

ROOM = "WIRE_TESTS_ROOM"
"""The variable that tells the workers of a run where its two lock files are."""
FOLDERS = "PYTEST_DEBUG_TEMPROOT"
"""The variable that tells pytest where the tests' folders go; --basetemp wins over it."""


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        os.environ[ROOM] = tempfile.mkdtemp(prefix="wire-tests-")
        if not os.environ.keys() & {FOLDERS, "TMPDIR"} and (memory := memory_disk.find()):
            os.environ[FOLDERS] = str(memory)


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        shutil.rmtree(os.environ.pop(ROOM))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    with _room(Path(os.environ[ROOM]), alone=item.get_closest_marker("exclusive") is not None):
        return (yield)


@contextlib.contextmanager
def _room(folder: Path, *, alone: bool) -> Iterator[None]:
    """Hold the room of a test run: shared with the other workers, or alone.

    Who wants it alone waits at the gate with the gate in hand, so that those who come later queue behind; otherwise
    the shared holders would relieve each other for ever.
    """
    with (folder / "gate").open("w") as gate, (folder / "room").open("w") as room:
        fcntl.flock(gate, fcntl.LOCK_EX)
        fcntl.flock(room, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        fcntl.flock(gate, fcntl.LOCK_UN)
        yield


# Machines and remotes


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Callable[..., Machine]]:
    """Return a function that sets up a machine: `machines("mac")`; see `support.machine.Machine`."""
    made: list[Machine] = []

    def make(name: str, **rest: Any) -> Machine:
        folder = tmp_path / f"machine-{name}"
        folder.mkdir()
        made.append(Machine(name, folder, **rest))
        return made[-1]

    yield make
    problems = []
    for machine in made:
        try:
            machine.close()
        except AssertionError as error:
            problems.append(str(error))
    assert not problems, "\n".join(problems)


@pytest.fixture
def remote(tmp_path: Path) -> BareRemote:
    """Return an empty bare repository."""
    return BareRemote(tmp_path / "hub.git")


@pytest.fixture
def host(tmp_path: Path) -> Iterator["HttpGit"]:
    """Return a host that serves what lies in the test's folder over http."""
    from support.http_git import HttpGit

    with HttpGit(tmp_path) as host:
        yield host


@pytest.fixture
def server(tmp_path: Path) -> Iterator["Sshd"]:
    """Return a host that serves this machine over ssh."""
    from support import sshd

    if sshd.PROGRAM is None:
        pytest.skip("sshd is not installed")
    with sshd.Sshd(tmp_path / "sshd") as server:
        yield server


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Template:
    """Return a wire of two machines, to be copied."""
    return Template(tmp_path_factory.mktemp("template"))


@pytest.fixture
def team(template: Template, tmp_path: Path, remote: BareRemote, machines: Callable[..., Machine]) -> Team:
    """Return `mac` and `spark` on one wire; see `support.team`."""
    return template.copy(tmp_path, remote, machines)
