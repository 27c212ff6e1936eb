"""The thread beside a daemon's worker: it tells agents what came, and serves drop folders.

    beside = Beside(settings, config, log); beside.start()      …      beside.stop(); beside.join()

It looks at a few files four times a second and does something only when one of them changed, or when it is time to try
again. What hangs or fails in it (a command, a pane, a folder) holds up nobody but itself: the worker's rounds neither
know of it nor wait for it.

`ask` has the daemon's own thread send a test notification, from the daemon's environment and not from that of the
shell in which somebody asks: through two files, the question and its answer, in the state folder.
"""

import json
import os
import threading
import time
from collections.abc import Sequence
from contextlib import suppress

from wire.api import Wire
from wire.daemon.logs import Log
from wire.errors import NotReached, WireError
from wire.store import surfaces
from wire.store.config import WireConfig
from wire.store.files import atomic_write, is_locked, private_folder, read_bytes
from wire.store.paths import Settings, WirePlaces
from wire.store.surfaces import Trouble
from wire.surfacing import drop, notifying
from wire.surfacing.adapters import Runner
from wire.surfacing.notifying import Outcome
from wire.verbs.here import Here

LOOK_SECONDS = 0.25
TROUBLED_SECONDS = 30.0
"""How long a drop folder, or reading, that does not work is left alone, unless something changes."""
ANSWER_SECONDS = 60.0
_ASK, _ANSWER = ".ask", ".answer"


class Beside(threading.Thread):
    """One wire's thread; `config` says what there is to do."""

    def __init__(self, settings: Settings, config: WireConfig, log: Log) -> None:
        super().__init__(name=f"{config.name}-surfacing", daemon=True)
        self.config = config
        self._log = log
        self._stopping = threading.Event()
        places = WirePlaces(settings.state_dir, config.name, config.clone)
        self._places = places
        self._here = {
            agent: Here(settings.choosing(wire=config.name, agent=agent), config, places)
            for agent in (*config.notify, *config.drop)
        }
        self._runner = Runner(settings.environ, self._stopping)
        self._said: dict[str, str] = {}

    def stop(self) -> None:
        """End soon; a program that runs just now is ended."""
        self._stopping.set()

    def run(self) -> None:
        """Look and act until told to stop."""
        seen: object = None
        due = 0.0
        while not self._stopping.is_set():
            found = self._look()
            if found != seen or time.time() >= due:
                seen = found
                due = self._act(time.time())
            self._answer()
            self._stopping.wait(LOOK_SECONDS)

    def _look(self) -> object:
        """Return what changes when a message was accepted or read, or something was put into an outbox."""
        found: list[object] = [_signature(path) for path in (self._places.pin_file, self._places.cursors_dir)]
        for folder in self.config.drop.values():
            outbox = os.path.join(folder, "outbox")
            # Of the folders only who may write: what we put there ourselves must not be news.
            found += [_mode(path) for path in (folder, outbox, os.path.join(folder, "inbox"))]
            with suppress(WireError):
                found += [_signature(os.path.join(outbox, name)) for name in drop.waiting(outbox)]
        return found

    def _act(self, now: float) -> float:
        """Do one pass for each agent, and return when the next one is due at the latest."""
        due = [now + drop.STATUS_SECONDS] if self.config.drop else []
        for agent in self.config.notify:
            here = self._here[agent]
            try:
                outcomes = notifying.notify_all(here, self._runner, now)
            except (WireError, OSError) as error:
                self._say(f"notify {agent}", str(error))
                due.append(now + TROUBLED_SECONDS)
                continue
            for one in outcomes:
                if one.surfaced:
                    self._log.info(
                        "notified", wire=self.config.name, agent=agent, by=one.adapter, messages=one.surfaced
                    )
                self._say(f"notify {agent} {one.adapter}", one.why)
                due += [one.again] if one.again is not None else []
            self._say(f"notify {agent}", "")
        for agent, folder in self.config.drop.items():
            try:
                done = drop.run(Wire(self._here[agent]), folder, now)
            except (WireError, OSError) as error:
                self._say(f"drop {agent}", str(error))
                self._note(agent, str(error), now)
                due.append(now + TROUBLED_SECONDS)
                continue
            self._say(f"drop {agent}", "")
            surfaces.clear(self._places, agent, surfaces.DROP)
            if done.sent or done.shown:
                name = self.config.name
                self._log.info("dropped", wire=name, agent=agent, sent=len(done.sent), shown=done.shown)
            for name, why in done.refused:
                self._log.warning("refused", wire=self.config.name, agent=agent, file=name, why=why)
            if done.waits:
                due.append(now + drop.WRITING_SECONDS)
        return min(due, default=float("inf"))

    def _note(self, agent: str, why: str, now: float) -> None:
        """Keep a drop folder's trouble for `wire status`."""
        before = surfaces.trouble(self._places, agent, surfaces.DROP)
        attempts, since = (before.attempts + 1, before.since) if before is not None else (1, now)
        with suppress(WireError):  # the log has it
            told = Trouble(agent, surfaces.DROP, 0, why, attempts, since, now + TROUBLED_SECONDS)
            surfaces.note(self._places, told)

    def _say(self, what: str, why: str) -> None:
        """Log a trouble once, and its end."""
        before = self._said.get(what, "")
        if why and why != before:
            self._log.warning("surfacing", wire=self.config.name, what=what, failed=why)
        elif before and not why:
            self._log.info("surfacing", wire=self.config.name, what=what, well=True)
        self._said[what] = why

    def _answer(self) -> None:
        """Answer who asks for a test."""
        folder = surfaces.folder(self._places)
        try:
            asked = [name for name in os.listdir(folder) if name.endswith(_ASK)]
        except OSError:
            return
        for name in asked:
            path = os.path.join(folder, name)
            agent = name.partition(".")[0]
            with suppress(WireError, OSError):
                os.unlink(path)
                if agent in self.config.notify:
                    results = notifying.test(self._here[agent], self._runner)
                    data = json.dumps([[one.adapter, one.why] for one in results]).encode("ascii")
                    atomic_write(path.removesuffix(_ASK) + _ANSWER, data, durable=False)


def ask(here: Here, timeout: float = ANSWER_SECONDS) -> Sequence[Outcome] | None:
    """Have the daemon send a test notification to the agent that is meant; None when no daemon runs.

    Raises:
        NotReached: the daemon did not answer in time.
    """
    if not is_locked(here.places.lock("daemon")):
        return None
    agent = here.agent()
    folder = surfaces.folder(here.places)
    private_folder(folder)
    path = os.path.join(folder, f"{agent}.{os.urandom(6).hex()}")
    atomic_write(path + _ASK, b"\n", durable=False)
    deadline = time.monotonic() + timeout
    try:
        while time.monotonic() < deadline:
            data = read_bytes(path + _ANSWER)
            if data is not None:
                return [Outcome(adapter, 0 if why else 1, None, why) for adapter, why in json.loads(data)]
            time.sleep(0.05)
    finally:
        for end in (_ASK, _ANSWER):
            with suppress(FileNotFoundError):
                os.unlink(path + end)
    raise NotReached(
        f"the daemon did not answer within {timeout:g} s; it may not have read the configuration yet",
        next_step="wire status",
    )


def _signature(path: str) -> tuple[int, int, int]:
    try:
        status = os.stat(path, follow_symlinks=False)
    except OSError:
        return 0, 0, 0
    return status.st_ino, status.st_size, status.st_mtime_ns


def _mode(path: str) -> tuple[int, int]:
    try:
        status = os.stat(path)
    except OSError:
        return 0, 0
    return status.st_mode, status.st_uid


def wanted(config: WireConfig) -> bool:
    """Return whether there is anything to do for a wire."""
    return bool(config.notify or config.drop)


def begin(settings: Settings, config: WireConfig, log: Log) -> Beside | None:
    """Start the thread of a wire, if there is anything for it to do."""
    if not wanted(config):
        return None
    beside = Beside(settings, config, log)
    beside.start()
    return beside
