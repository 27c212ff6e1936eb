"""What the daemon costs: the time between a send and a peer's screen, and a minute in which nothing happens."""

import json
import os
import statistics
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from figures import Figure, ms, percentile
from world import BODY, World, making, took

from support.machine import Machine
from wire.store.progress import Progress

MESSAGES = 40
WARM = 5
GAP_SECONDS = 0.7
"""Between two messages: time for everybody to finish, and short enough for all to stay hot."""
IDLE_SECONDS = 60.0
ARRIVES_SECONDS = 30.0


def latency() -> Iterator[Figure]:
    """Measure from a send's return, and from its start, to the peer's line, against a plain push and a plain fetch."""
    with making("mac", "spark") as here:
        floor = PlainGit(here.folder / "plain", here["mac"])
        for machine in here.machines.values():
            machine.start_daemon()
        with Follower(here["spark"]) as follower:
            after, whole, floors = [], [], []
            for number in range(-WARM, MESSAGES):
                floors.append(floor.push() + floor.fetch())
                began = time.perf_counter()
                sent = here["mac"].json("send", "spark", f"{BODY} ({number})")["id"]
                returned = time.perf_counter()
                arrived = follower.wait_for(sent)
                if number >= 0:
                    after.append(arrived - returned)
                    whole.append(arrived - began)
                time.sleep(GAP_SECONDS)
    base = statistics.median(floors)
    told = f"a plain `git push` and a plain `git fetch` of one commit over a local bare remote, {ms(base)}"
    how = (
        f"two daemons, hot, default configuration; {MESSAGES} messages, each after one floor, "
        "from the return of `wire send` to the line out of `wire tail -f --json`"
    )
    for name, part, target in (("latency-p50", 0.5, 1.5), ("latency-p95", 0.95, 5)):
        value = percentile(tuple(after), part)
        yield Figure(
            name,
            f"from the return of `wire send` to the peer's `wire tail -f`, {name[-3:]}",
            value / base,
            target,
            "x",
            told,
            how,
            beside={
                "ours": ms(value),
                "from the start of `wire send`": ms(percentile(tuple(whole), part)),
            },
        )


def idle() -> Iterator[Figure]:
    """Measure a daemon while nothing happens."""
    with making("mac", "spark") as here:
        here.run("mac", "send", "spark", BODY)
        here.run("mac", "sync")
        here.run("spark", "sync")
        machine = here["spark"]
        daemon = machine.start_daemon()
        time.sleep(5)
        written = _Written(here, machine)
        before, began = _processor_seconds(daemon.pid), time.monotonic()
        time.sleep(IDLE_SECONDS)
        used = _processor_seconds(daemon.pid) - before
        passed = time.monotonic() - began
        changed, beats = written.changes(), written.beats()
        looked = Progress.load(here.site("spark").places).fetch_age(time.time())
        if looked is None or looked > IDLE_SECONDS:
            raise RuntimeError("the daemon did not look at the remote: it is not idle, it is dead")
        resident = _status_mib(daemon.pid, "VmRSS")
        most = _status_mib(daemon.pid, "VmHWM")
    how = f"one daemon that serves one wire, {passed:.0f} s, default configuration"
    yield Figure(
        "idle-cpu",
        "an idle daemon's share of a core, its git children included",
        100 * used / passed,
        1,
        "%",
        "none",
        how,
        beside={"processor time": ms(used), "its last look at the remote": f"{looked:.0f} s before the end"},
    )
    yield Figure(
        "idle-rss",
        "an idle daemon's memory",
        resident,
        80,
        "MiB",
        "none",
        how,
        beside={"at its highest": f"{most:.1f} MiB"},
    )
    yield Figure(
        "idle-writes",
        "what an idle daemon writes into the clone, its git objects, the remote or the pin, beside its presences",
        len(changed),
        0,
        "files",
        "none",
        how,
        beside={"written": ", ".join(sorted(changed)[:8]) or "nothing", "objects of presences": beats},
    )


class PlainGit:
    """Two clones of a bare repository, one that pushes and one that fetches, as a person would.

    Args:
        folder: to be made, for all three.
        machine: whose environment git gets.
        reach: returns the URL by which the clones reach the repository.
        ssh: the command that git uses for ssh.
    """

    def __init__(
        self, folder: Path, machine: Machine, *, reach: Callable[[Path], str] = str, ssh: str | None = None
    ) -> None:
        folder.mkdir()
        self._env = machine.environ({"GIT_SSH_COMMAND": ssh})
        self._ours, self._theirs = folder / "ours", folder / "theirs"
        hub = folder / "hub.git"
        self._git(folder, "init", "--quiet", "--bare", "-b", "main", str(hub))
        for clone in (self._ours, self._theirs):
            self._git(folder, "clone", "--quiet", reach(hub), str(clone))
        self._git(self._ours, "config", "user.name", "bench")
        self._git(self._ours, "config", "user.email", "bench@wire.invalid")

    def push(self) -> float:
        """Commit a line, and return how long the push of it takes."""
        with (self._ours / "lines").open("a") as file:
            file.write(BODY + "\n")
        self._git(self._ours, "add", "lines")
        self._git(self._ours, "commit", "--quiet", "-m", "one line")
        return took(["git", "push", "--quiet", "origin", "main"], self._env, self._ours).wall

    def fetch(self) -> float:
        """Return how long it takes the other clone to fetch that."""
        return took(["git", "fetch", "--quiet", "origin", "main"], self._env, self._theirs).wall

    def _git(self, folder: Path, *args: str) -> None:
        subprocess.run(["git", *args], cwd=folder, env=self._env, check=True, capture_output=True)


class Follower:
    """A `wire tail -f --json`, and when each line came out of it."""

    def __init__(self, machine: Machine) -> None:
        self._process = machine.spawn("tail", "-f", "--json")
        self._arrived: dict[str, float] = {}
        self._news = threading.Condition()
        self._thread = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> "Follower":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._thread.join(5)

    def wait_for(self, message: str) -> float:
        """Return when a message came out, on the performance counter."""
        with self._news:
            if not self._news.wait_for(lambda: message in self._arrived, ARRIVES_SECONDS):
                raise RuntimeError(f"{message} did not arrive within {ARRIVES_SECONDS:g} s")
            return self._arrived[message]

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            now = time.perf_counter()
            shown = json.loads(line)
            with self._news:
                self._arrived[shown.get("id", "")] = now
                self._news.notify_all()


class _Written:
    """What stood in the places that an idle daemon has no business to write to.

    Its presences are its own to write: their refs, and the objects that nothing but those reach.
    """

    def __init__(self, here: World, machine: Machine) -> None:
        self._pin = Path(here.site(machine.name).places.pin_file)
        self._repositories = [machine.clone() / ".git", here.remote.path]
        self._folders = [machine.clone(), here.remote.path]
        self._before = self._look()
        self._objects_before = self._objects()

    def changes(self) -> list[str]:
        """Return the paths that came, went or changed, and the objects that came."""
        after = self._look()
        changed = [path for path in self._before.keys() | after.keys() if self._before.get(path) != after.get(path)]
        return changed + sorted(self._objects() - self._objects_before - self._presences())

    def beats(self) -> int:
        """Return how many objects of presences came."""
        return len((self._objects() - self._objects_before) & self._presences())

    def _look(self) -> dict[str, tuple[int, int, int]]:
        files = [self._pin, *(path for folder in self._folders for path in folder.rglob("*"))]
        found = {}
        for path in files:
            if "objects" in path.parts or any(part in path.parts for part in ("presence", "heard", "beat")):
                continue
            status = path.lstat()
            # A folder's time changes with a lock that came and went beside a ref; what stands in it is looked at.
            found[str(path)] = (
                (status.st_ino, 0, 0) if path.is_dir() else (status.st_ino, status.st_size, status.st_mtime_ns)
            )
        return found

    def _objects(self) -> set[str]:
        return self._ask("cat-file", "--batch-all-objects", "--batch-check=%(objectname)")

    def _presences(self) -> set[str]:
        globs = [f"--glob=refs/wire/{kind}/*" for kind in ("presence", "heard", "beat")]
        return self._ask("rev-list", "--objects", "--no-object-names", *globs)

    def _ask(self, *args: str) -> set[str]:
        found: set[str] = set()
        for repository in self._repositories:
            argv = ["git", f"--git-dir={repository}", *args]
            found.update(subprocess.run(argv, check=True, capture_output=True, text=True).stdout.split())
        return found


def _processor_seconds(pid: int) -> float:
    """Return what a process and the children it waited for have used, user and system."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def _status_mib(pid: int, name: str) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"the system does not tell {name}")
