"""Machines to measure on: homes of their own, the installed console script, a local bare remote.

They are the tests' machines (`tests/support/machine.py`): nothing of the developer's environment gets in.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from support.machine import Machine
from support.remote import BareRemote
from wire.api import Wire
from wire.daemon.site import Site
from wire.store import config as configs
from wire.store.paths import Settings

BODY = "the build is green again, and the benchmark is where it was before"
"""What a short message looks like."""


class Took(NamedTuple):
    """What a process took, in seconds: by the clock, and of processors (user and system)."""

    wall: float
    cpu: float


class World:
    """One wire over a bare remote, and its machines.

    Args:
        folder: where everything is put.
        names: the machines and their agents; the first one begins the wire.
    """

    def __init__(self, folder: Path, *names: str) -> None:
        self.folder = folder
        self.remote = BareRemote(folder / "hub.git")
        self.machines = {}
        for name in names:
            root = folder / name
            root.mkdir()
            self.machines[name] = Machine(name, root, forks=False)
        first, *others = self.machines.values()
        checkpoint = first.json("init", self.remote.url, "--as", first.name)["checkpoint"]
        for other in others:
            joined = other.json("join", self.remote.url, "--as", other.name, "--trust", checkpoint)
            first.wire("trust", "approve", other.name, "--fingerprint", joined["fingerprint"])
        for machine in self.machines.values():
            machine.wire("sync")

    def __getitem__(self, name: str) -> Machine:
        return self.machines[name]

    def settings(self, name: str) -> Settings:
        """Return what a process on a machine would find in its environment."""
        machine = self.machines[name]
        return Settings.from_environ(machine.environ(), str(machine.home))

    def api(self, name: str) -> Wire:
        """Return a machine's wire, for this process."""
        return Wire.open(environ=self.machines[name].environ())

    def site(self, name: str) -> Site:
        """Return what a daemon on a machine would work with."""
        settings = self.settings(name)
        return Site.open(settings, configs.load(settings).wires[0])

    def run(self, name: str, *args: str) -> Took:
        """Run `wire ARGS` on a machine, its output thrown away, and return what it took."""
        machine = self.machines[name]
        return took([str(machine.program), *args], machine.environ(), machine.home)

    def floor(self, name: str) -> Took:
        """Run `python -c pass` of the same environment on a machine, and return what it took."""
        machine = self.machines[name]
        return took([sys.executable, "-c", "pass"], machine.environ(), machine.home)

    def close(self) -> None:
        """End everything."""
        for machine in self.machines.values():
            machine.close()


def took(argv: Sequence[str], env: Mapping[str, str], cwd: Path, given: Path | None = None) -> Took:
    """Run a process to its end and return what it took.

    Args:
        given: a file for its standard input, which is empty otherwise.

    Raises:
        RuntimeError: it did not exit with 0.
    """
    began = time.perf_counter()
    with open(given or os.devnull, "rb") as stdin:
        process = subprocess.Popen(
            argv, env=env, cwd=cwd, stdin=stdin, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(argv)} exited {process.returncode}")
    return Took(wall, usage.ru_utime + usage.ru_stime)


@contextmanager
def making(*names: str) -> Iterator[World]:
    """Make a world in a folder of its own, and leave nothing of it."""
    folder = Path(tempfile.mkdtemp(prefix="wire-bench-"))
    made = None
    try:
        made = World(folder, *names)
        yield made
    finally:
        if made is not None:
            made.close()
        shutil.rmtree(folder)
