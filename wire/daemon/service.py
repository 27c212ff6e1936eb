"""The daemon: one process that serves every wire of this machine's configuration.

    status = run(settings, log)                     until SIGTERM

One thread works for each wire (see `worker`); this one, the main thread, never waits for git. Every two seconds or so
it

- takes signals: SIGTERM and SIGINT end, SIGUSR1 looks now, SIGHUP reads the configuration again, SIGCONT is a resume;
- notices naps and returning networks, and a configuration that changed;
- writes the beat of each worker that keeps its promises, and tells the service manager that all do;
- starts a worker again that an error of ours ended.

Rules that it keeps: a second daemon for a wire does not start; one wire that cannot be served keeps no other from being
served; READY means that the locks are held and the folders watched; on the way out git gets time to finish, and no lock
is left.
"""

import os
import selectors
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from types import FrameType
from typing import Protocol

from wire.daemon import claim as claims
from wire.daemon.claim import Claim
from wire.daemon.logs import Log
from wire.daemon.naps import Clocks, Naps
from wire.daemon.network import Routes
from wire.daemon.notify import ALIVE, READY, STOPPING, VARIABLES, Notifier
from wire.daemon.worker import Worker
from wire.errors import DONE, Busy, Corrupt, IdentityError, StoreError, WireError
from wire.keys import passphrases
from wire.store import config as configs
from wire.store import pin as pins
from wire.store.config import WireConfig
from wire.store.files import private_folder
from wire.store.paths import Settings, WirePlaces

TICK_SECONDS = 2.0
PATIENCE_SECONDS = 2.0
"""How long a round may go on after a stop was asked for, before git children are ended."""
END_SECONDS = 15.0
"""How long the workers have after that; longer than git's grace."""

COMPANION_SECONDS = 30.0
"""How long after its start a companion that an error of ours ended is started again."""

UNFINISHED = "unfinished"

_RESTART_FIRST, _RESTART_MAX = 5.0, 300.0
_READY_SECONDS = 20.0
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGHUP, signal.SIGCONT)


class Companion(Protocol):
    """A thread that works beside a worker, for the same wire, and that no worker waits for."""

    def is_alive(self) -> bool:
        """Return whether it works."""

    def stop(self) -> None:
        """End soon."""

    def join(self, timeout: float | None = None) -> None:
        """Wait for the end."""


Companions = Callable[[Settings, WireConfig, Log], Companion | None]
"""Starts what is to work beside the worker of a wire, if there is anything to do."""


def run(settings: Settings, log: Log, companions: Companions = lambda settings, wire, log: None) -> int:
    """Serve until told to stop, and return the exit status.

    Args:
        companions: what works beside each worker.

    Raises:
        Busy: reason `daemon-running`: another daemon serves this machine, or one of the wires.
        Corrupt: the configuration cannot be read.
    """
    passphrases.never_ask()
    notifier = Notifier(settings.environ, os.getpid())
    children = {name: value for name, value in settings.environ.items() if name not in VARIABLES}
    for name in VARIABLES:
        # What is not here need not be taken from each of git's children, which costs them one more program.
        os.environ.pop(name, None)
    log.take_over("watchdog", "git")
    with ExitStack() as stack:
        private_folder(settings.state_dir)
        stack.enter_context(claims.sole(settings.state_dir))
        signals = stack.enter_context(_signals())
        service = _Service(settings._replace(environ=children), log, notifier, companions)
        stack.callback(service.end)
        service.begin()
        return service.serve(signals)


class _Service:
    def __init__(self, settings: Settings, log: Log, notifier: Notifier, companions: Companions) -> None:
        self._settings = settings
        self._companions = companions
        self._beside: dict[str, Companion] = {}
        self._accompanied: dict[str, float] = {}
        self._log = log
        self._notifier = notifier
        self._workers: dict[str, Worker] = {}
        self._leaving: list[Worker] = []
        self._wanted: Mapping[str, WireConfig] = {}
        self._not_before: dict[str, tuple[float, float]] = {}
        self._config_seen: object = None
        self._naps = Naps(Clocks.now())
        self._routes = Routes()
        self._said = ""
        self._stuck: set[str] = set()
        self._stop = ""
        self._tick = TICK_SECONDS
        if notifier.watchdog is not None:
            self._tick = min(self._tick, notifier.watchdog / 4)

    # The beginning and the end

    def begin(self) -> None:
        """Take every wire, watch, show life, and say that we are ready."""
        with suppress(WireError):
            private_folder(self._settings.runtime_dir)  # for ssh's shared connections
        threading.excepthook = self._crashed
        self._config_seen = self._config_signature()
        self._wanted = {wire.name: wire for wire in configs.load(self._settings).wires}
        for wire in self._wanted.values():
            try:
                self._start(wire)
            except Busy:
                raise
            except (WireError, OSError) as error:
                self._failed_to_start(wire.name, error)
        until = time.monotonic() + _READY_SECONDS
        for worker in self._workers.values():
            worker.watching.wait(max(0.0, until - time.monotonic()))
            worker.show_life(time.monotonic())
        self._log.info("ready", pid=os.getpid(), wires=",".join(self._wanted) or "none")
        self._notifier.tell(READY)

    def end(self) -> None:
        """Stop all workers: those that are busy get a moment, then their git children are ended."""
        self._notifier.tell(STOPPING)
        workers = [*self._workers.values(), *self._leaving]
        for worker in workers:
            worker.stop()
        for beside in self._beside.values():
            beside.stop()
        _join(workers, PATIENCE_SECONDS)
        for worker in workers:
            if worker.is_alive():
                worker.cancel()
        _join(workers, END_SECONDS)
        for worker in workers:
            if worker.is_alive():
                self._log.error("left", wire=worker.config.name, why="it did not end in time")
        for beside in self._beside.values():
            beside.join(PATIENCE_SECONDS)
        self._routes.close()
        self._log.info("stopped", why=self._stop)

    def serve(self, signals: int) -> int:
        """Take signals, from the descriptor on which they arrive, and ticks until it is over."""
        with selectors.DefaultSelector() as waiting:
            waiting.register(signals, selectors.EVENT_READ)
            if self._routes.listening is not None:
                waiting.register(self._routes.listening, selectors.EVENT_READ)
            while not self._stop:
                waiting.select(self._tick)
                for number in _taken(signals):
                    self._signal(number)
                if self._routes.appeared():
                    for worker in self._workers.values():
                        worker.network_up()
                if not self._stop:
                    self._on_tick()
        return DONE

    # What a tick does

    def _signal(self, number: int) -> None:
        if self._stop:
            return  # a service manager sends SIGCONT after SIGTERM
        name = signal.Signals(number).name
        self._log.info("signal", name=name)
        if number in (signal.SIGTERM, signal.SIGINT):
            self._stop = name
        elif number == signal.SIGHUP:
            self._reload()
        elif number == signal.SIGUSR1:
            for worker in self._workers.values():
                worker.ask("asked")
        elif number == signal.SIGCONT:
            self._resume("this process was continued")

    def _on_tick(self) -> None:
        why = self._naps.check(Clocks.now(), expected=self._tick)
        if why is not None:
            self._resume(why)
        if self._config_signature() != self._config_seen:
            self._reload()
        self._tend()
        now = time.monotonic()
        for worker in self._workers.values():
            worker.show_life(now)
        stuck = {name for name, worker in self._workers.items() if not worker.progressing(now)}
        for name in stuck - self._stuck:
            self._log.error("stuck", wire=name)
        self._stuck = stuck
        self._tell(alive=not stuck)

    def _resume(self, why: str) -> None:
        self._log.info("resume", why=why)
        # The clocks are compared anew: one nap is one reason.
        self._naps = Naps(Clocks.now())
        for worker in self._workers.values():
            worker.resume(why)

    def _tell(self, *, alive: bool) -> None:
        messages = [ALIVE] if alive else []
        said = "; ".join(worker.status() for worker in self._workers.values()) or "no wire is configured"
        missing = sorted(self._wanted.keys() - self._workers.keys())
        said += f"; not served: {', '.join(missing)}" if missing else ""
        if said != self._said:
            self._said = said
            messages.append(f"STATUS={said}")
        if messages:
            self._notifier.tell(*messages)

    # Workers and the configuration

    def _start(self, wire: WireConfig) -> None:
        places = WirePlaces(self._settings.state_dir, wire.name, wire.clone)
        _begun(places)
        claim = Claim.take(places)
        try:
            worker = Worker(self._settings, wire, claim, self._log)
        except BaseException:
            claim.release()
            raise
        worker.start()
        self._workers[wire.name] = worker
        self._accompany(wire)

    def _accompany(self, wire: WireConfig) -> None:
        self._accompanied[wire.name] = time.monotonic()
        if (beside := self._companions(self._settings, wire, self._log)) is not None:
            self._beside[wire.name] = beside

    def _tend(self) -> None:
        """Bring the workers in line with what is wanted: end, start, and start again."""
        for name, worker in list(self._workers.items()):
            if not worker.is_alive():
                del self._workers[name]
                self._wait_for(name)
            elif self._wanted.get(name) != worker.config:
                worker.stop()
                self._leaving.append(self._workers.pop(name))
            else:
                beside = self._beside.get(name)
                ended = beside is not None and not beside.is_alive()
                if ended and time.monotonic() - self._accompanied[name] > COMPANION_SECONDS:
                    self._accompany(worker.config)
                continue
            if (beside := self._beside.pop(name, None)) is not None:
                beside.stop()
        for worker in self._leaving:
            if worker.is_alive() and not worker.progressing(time.monotonic()):
                worker.cancel()
        self._leaving = [worker for worker in self._leaving if worker.is_alive()]
        busy = {worker.config.name for worker in self._leaving}
        for name, wire in self._wanted.items():
            if name in self._workers or name in busy or time.monotonic() < self._not_before.get(name, (0.0, 0.0))[0]:
                continue
            try:
                self._start(wire)
            except (WireError, OSError) as error:
                self._failed_to_start(name, error)
            else:
                self._log.info("serving", wire=name)

    def _reload(self) -> None:
        self._config_seen = self._config_signature()
        try:
            loaded = configs.load(self._settings)
        except (WireError, OSError) as error:
            # What was right goes on; the file is read again when it changes.
            self._log.error("configuration", failed=str(error))
            return
        self._wanted = {wire.name: wire for wire in loaded.wires}
        self._not_before.clear()
        self._log.info("configuration", wires=",".join(self._wanted) or "none")

    def _config_signature(self) -> object:
        try:
            status = os.stat(self._settings.config_file)
        except OSError:
            return None
        return status.st_ino, status.st_size, status.st_mtime_ns

    def _failed_to_start(self, name: str, error: Exception) -> None:
        if isinstance(error, WireError) and error.reason == UNFINISHED:
            if name not in self._not_before:
                self._log.info("not-served", wire=name, why=str(error))
            self._not_before[name] = (time.monotonic() + TICK_SECONDS, 0.0)
            return
        pause = self._wait_for(name)
        self._log.error("not-served", wire=name, why=str(error), next=f"{pause:.0f}s")

    def _wait_for(self, name: str) -> float:
        """Put the next start of a worker off, longer each time; return by how much."""
        now = time.monotonic()
        at, before = self._not_before.get(name, (now, 0.0))
        # What went well for a while begins anew.
        pause = min(max(_RESTART_FIRST, 2 * before), _RESTART_MAX) if now - at < _RESTART_MAX else _RESTART_FIRST
        self._not_before[name] = (now + pause, pause)
        return pause

    def _crashed(self, args: threading.ExceptHookArgs) -> None:
        """An error of ours ended a thread: it is told with its trace, and the worker is started again later."""
        trace = "".join(traceback.format_exception(args.exc_type, args.exc_value, args.exc_traceback))
        self._log.error("crashed", thread=args.thread.name if args.thread else "?", trace=trace)


def _begun(places: WirePlaces) -> None:
    """Leave a wire alone until the command that begins it here is done: it may yet take everything back.

    Raises:
        StoreError: reason `unfinished`.
    """
    try:
        begun = pins.load(places.pin_file).verified is not None
    except (Corrupt, IdentityError):
        # Its rounds tell what is wrong with it: the pin is written before the configuration, so that it was there once.
        return
    if not begun:
        raise StoreError(
            "nothing of this wire was ever fetched here; `wire init` or `wire join` has not finished", reason=UNFINISHED
        )


def _join(workers: list[Worker], seconds: float) -> None:
    until = time.monotonic() + seconds
    for worker in workers:
        if worker.ident is not None:
            worker.join(max(0.0, until - time.monotonic()))


@contextmanager
def _signals() -> Iterator[int]:
    """Turn signals into bytes of a pipe; yield its reading end."""
    reading, writing = os.pipe()
    for end in (reading, writing):
        os.set_blocking(end, False)
    before = {number: signal.signal(number, _nothing) for number in _SIGNALS}
    old = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    try:
        yield reading
    finally:
        signal.set_wakeup_fd(old)
        for number, handler in before.items():
            # SIGTERM and SIGINT stay as they are: who asks twice is not to interrupt the orderly end.
            if number not in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, handler)
        os.close(reading)
        os.close(writing)


def _nothing(number: int, frame: FrameType | None) -> None:
    """Take a signal; its number arrives through the pipe."""


def _taken(pipe: int) -> list[int]:
    try:
        return [number for number in os.read(pipe, 256) if number in _SIGNALS]
    except BlockingIOError:
        return []
