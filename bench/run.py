"""Measure what wire promises, each figure against a floor of the same run.

    make bench                                              the way to run it: a wheel, in an environment of its own
    make bench BENCH_ARGS="--only send --only tail --json"

Exit status: 0 every promise holds, 1 one of them is missed, 2 wrong use (an editable install is one: it triples the
floor, and what is measured would not be what people install).
"""

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path

BENCH = Path(__file__).resolve().parent
# Behind everything else, so that `wire` is what is installed.
sys.path += [str(BENCH), str(BENCH.parent / "tests")]

import crypto  # noqa: E402 - after sys.path is right
import daemons  # noqa: E402
import exchange  # noqa: E402
import processes  # noqa: E402
from figures import Figure  # noqa: E402
from history import long_history  # noqa: E402

import wire  # noqa: E402


def _of_a_long_history(wanted: frozenset[str]) -> Iterator[Figure]:
    with long_history() as here:
        if "long" in wanted:
            yield processes.long_channel(here)
        if "pre-receive" in wanted:
            yield processes.pre_receive(here)
        if wanted & {"verify-one", "verify-two"}:
            yield from crypto.verification(here)


def _batch(wanted: frozenset[str]) -> Iterator[Figure]:
    yield crypto.batch()


MEASUREMENTS: dict[tuple[str, ...], Callable[[frozenset[str]], Iterator[Figure]]] = {
    ("send", "tail"): lambda wanted: processes.send_and_tail(),
    ("hook",): lambda wanted: processes.hook(),
    ("batch",): _batch,
    ("long", "pre-receive", "verify-one", "verify-two"): _of_a_long_history,
    ("latency-p50", "latency-p95"): lambda wanted: daemons.latency(),
    ("ssh-p50", "ssh-p95"): lambda wanted: exchange.over_ssh(),
    ("burst-rate", "burst-commits"): lambda wanted: exchange.burst(),
    ("idle-cpu", "idle-rss", "idle-writes"): lambda wanted: daemons.idle(),
}
"""The names of figures, and what measures them; those of one line share their preparation."""


def main() -> int:
    """Run the measurements and return the exit status."""
    names = [name for group in MEASUREMENTS for name in group]
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", action="append", choices=names, metavar="NAME", help=", ".join(names))
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    wanted = frozenset(options.only or names)
    installed = Path(wire.__file__).parent
    if Path(sys.prefix) not in installed.parents:
        parser.error(f"wire is {installed}, and not installed in {sys.prefix}: run `make bench`")
    about = _about(installed)
    if not options.json:
        _print(*(f"{name}: {value}" for name, value in about.items()), "")
    found: list[Figure] = []
    for group, measure in MEASUREMENTS.items():
        if not wanted & set(group):
            continue
        for figure in measure(wanted):
            if figure.name in wanted:
                found.append(figure)
                if not options.json:
                    _print(*figure.lines(), "")
    missed = [figure.name for figure in found if not figure.met]
    if options.json:
        figures = [figure.as_json() for figure in found]
        _print(json.dumps({"about": {**about, "load_after": _load()}, "figures": figures, "missed": missed}, indent=1))
    else:
        _print(f"load afterwards: {_load()}", f"missed: {', '.join(missed) or 'none'}")
    return 1 if missed else 0


def _about(installed: Path) -> dict[str, str]:
    """Return what a reader needs to judge the figures by."""
    code = "import sys; print(sys.path)"
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    floor = subprocess.run(
        [sys.executable, "-c", code], env=environ, cwd="/", capture_output=True, text=True, check=True
    )
    git = subprocess.run(["git", "version"], capture_output=True, text=True, check=True)
    packages = ", ".join(f"{name} {version(name)}" for name in ("git-wire", "click", "PyNaCl", "GitPython", "watchdog"))
    return {
        "wire": str(installed),
        "python": f"{platform.python_version()} on {platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "git": git.stdout.strip().removeprefix("git version "),
        "packages": packages,
        "sys.path of the floor": floor.stdout.strip(),
        "load before": _load(),
    }


def _load() -> str:
    return ", ".join(f"{one:.1f}" for one in os.getloadavg())


def _print(*lines: str) -> None:
    print(*lines, sep="\n", flush=True)


if __name__ == "__main__":
    sys.exit(main())
