"""One worker in this process: its promises, its pauses, what wakes it; and the service around it, when things break."""

import os
import signal
import socket
import struct
import threading
import time

import pytest

from support.clones import failing_ssh
from support.waiting import eventually
from wire.daemon import rounds, service, worker
from wire.daemon.claim import Claim
from wire.daemon.logs import Log
from wire.daemon.network import Routes, has_new_route
from wire.daemon.report import Report
from wire.daemon.worker import Worker
from wire.errors import StoreError
from wire.gitio import GitFailed, Kind
from wire.store import config as configs
from wire.store.paths import Settings, WirePlaces
from wire.store.progress import Progress


class Stage:
    """A worker of `mac`, its log, and its rounds, which a test may replace."""

    def __init__(self, team, tmp_path, monkeypatch):
        self.team = team
        self.file = tmp_path / "log"
        self._descriptor = os.open(self.file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self.log = Log(self._descriptor, level="debug")
        self._monkeypatch = monkeypatch
        self.workers: list[Worker] = []

    def settings(self, **environ):
        return Settings.from_environ({**self.team.mac.env, **environ}, str(self.team.mac.home))

    def start(self, **environ) -> Worker:
        settings = self.settings(**environ)
        wire = configs.load(settings).wires[0]
        claim = Claim.take(WirePlaces(settings.state_dir, wire.name, wire.clone))
        self.workers.append(Worker(settings, wire, claim, self.log))
        self.workers[-1].start()
        assert self.workers[-1].watching.wait(10)
        return self.workers[-1]

    def replace_rounds(self, run):
        self._monkeypatch.setattr(rounds, "run", run)

    def said(self):
        return self.file.read_text("utf-8")

    def close(self):
        for one in self.workers:
            one.cancel()
        for one in self.workers:
            one.join(20)
            assert not one.is_alive()
        os.close(self._descriptor)


@pytest.fixture
def stage(team, tmp_path, monkeypatch):
    made = Stage(team, tmp_path, monkeypatch)
    yield made
    made.close()


def quiet_rounds(stage, *reports):
    """Let rounds report what a test wants, without doing anything; return the list of causes so far."""
    ran = []
    waiting = list(reports)

    def run(site, **_):
        ran.append(time.monotonic())
        found = waiting.pop(0) if waiting else Report(tip="0" * 40)
        if isinstance(found, Exception):
            raise found
        return found

    stage.replace_rounds(run)
    return ran


def test_a_worker_that_is_stuck_shows_no_life(stage, monkeypatch):
    monkeypatch.setattr(worker, "ROUND_SECONDS", 0.5)
    free = threading.Event()
    stage.replace_rounds(lambda site, **_: free.wait(20) and Report())
    one = stage.start()
    places = WirePlaces(stage.settings().state_dir, "hub", str(stage.team.mac.clone()))
    try:
        eventually(lambda: not one.progressing(time.monotonic()), timeout=5)
        before = Progress.load(places).beat
        one._beat = 0.0
        one.show_life(time.monotonic())
        assert Progress.load(places).beat == before
    finally:
        free.set()


def test_a_long_round_that_goes_on_asking_git_is_not_stuck(stage, monkeypatch):
    monkeypatch.setattr(worker, "ROUND_SECONDS", 0.5)
    free = threading.Event()

    def verify(site, **_):
        while not free.wait(0.1):
            site.git.resolve("HEAD^{tree}")
        return Report(tip="0" * 40)

    stage.replace_rounds(verify)
    one = stage.start()
    time.sleep(1.5)
    try:
        assert one.progressing(time.monotonic())
    finally:
        free.set()


def test_who_waits_for_git_is_not_stuck(stage, monkeypatch, tmp_path):
    monkeypatch.setattr(worker, "ROUND_SECONDS", 0.2)
    monkeypatch.setattr(worker, "SLACK_SECONDS", 0.2)
    environ = failing_ssh(tmp_path, stage.team.mac.env, "exec sleep 600")
    stage.team.mac.env["PATH"] = environ["PATH"]
    for file in (stage.team.mac.wire_home / "config.toml", stage.team.mac.wire_home / "state/hub/pin.json"):
        file.write_text(file.read_text().replace(stage.team.remote.url, "ssh://git@host.invalid/x.git"))
    one = stage.start(WIRE_GIT_TIMEOUT="30")
    eventually((tmp_path / "pids").exists, what="a fetch that hangs")
    time.sleep(1)
    assert one.progressing(time.monotonic())
    # A resume ends it at once: what hangs on a connection from before a nap would hang until its time is up.
    began = time.monotonic()
    one.resume("a nap")
    eventually(lambda: len((tmp_path / "pids").read_text().split()) > 1, what="another try")
    assert time.monotonic() - began < 10
    assert "failed" not in stage.said(), "to be interrupted is no failure"


@pytest.mark.parametrize(
    "error",
    [
        GitFailed("the remote is away", kind=Kind.NETWORK),
        StoreError("the pin is odd", reason="pin-corrupt"),
        Report(failure=GitFailed("no such key", kind=Kind.AUTH)),
    ],
    ids=["network", "local", "reported"],
)
def test_a_failure_is_told_once_and_counted(stage, error):
    ran = quiet_rounds(stage, *[error] * 3)
    one = stage.start()
    for n in range(2, 5):
        eventually(lambda n=n: len(ran) >= n - 1)
        time.sleep(0.1)
        one.ask("asked")
    eventually(lambda: "recovered" in stage.said(), what=stage.said)
    failed = [line for line in stage.said().split("\n") if " failed " in line]
    assert len(failed) == 3
    assert " warning failed " in failed[0]
    assert "why=" in failed[0]
    assert all(" info failed " in line and "why=" not in line for line in failed[1:])


def test_the_network_wakes_only_whom_the_network_failed(stage):
    ran = quiet_rounds(
        stage,
        Report(failure=GitFailed("x", kind=Kind.NETWORK)),
        Report(failure=GitFailed("x", kind=Kind.AUTH)),
    )
    one = stage.start()
    eventually(lambda: len(ran) == 1)
    time.sleep(0.2)
    one.network_up()
    eventually(lambda: len(ran) == 2, timeout=1.5)
    time.sleep(0.2)
    one.network_up()
    time.sleep(0.5)
    assert len(ran) == 2


def test_a_new_tip_on_this_machine_wakes_and_the_same_one_does_not(stage):
    ran = quiet_rounds(stage)
    stage.start()
    eventually(lambda: len(ran) == 1)
    time.sleep(0.5)
    assert len(ran) == 1, "also where what git found is another tip than the glance shows"
    vera = stage.team.vandal()
    tips = []
    stage.replace_rounds(lambda site, **_: (tips.append(stage.team.remote.tip()), Report(tip=tips[-1]))[1])
    for n in range(2):
        vera.write("note", b"%d" % n)
        vera.commit()
        vera.push()
        eventually(lambda n=n: len(tips) == n + 1, timeout=2)
        time.sleep(0.5)
        assert len(tips) == n + 1


def test_a_command_that_holds_the_wire_is_waited_for(stage):
    """`wire sync` in another process: its look is ours as well."""
    from wire.errors import Busy

    ran = quiet_rounds(stage, Busy("somebody is at work"))
    stage.start()
    eventually(lambda: len(ran) >= 2, timeout=10)
    assert " info busy " in stage.said()
    assert " failed " not in stage.said()


# The service


@pytest.fixture
def serving(stage):
    """Run the service in this thread until a test's own thread has done its part."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def serve(act, companions=lambda *_: None, **environ):
        problems = []

        def play():
            try:
                act()
            except BaseException as error:  # noqa: BLE001 - it is the test's, and raised below
                problems.append(error)
            finally:
                os.kill(os.getpid(), signal.SIGTERM)

        acting = threading.Thread(target=play)
        acting.start()
        status = service.run(stage.settings(**environ), stage.log, companions)
        acting.join()
        if problems:
            raise problems[0]
        return status

    yield serve
    for number, handler in handlers.items():
        signal.signal(number, handler)
    threading.excepthook = threading.__excepthook__


def test_an_error_of_ours_ends_one_thread_and_it_is_started_again(stage, serving, monkeypatch):
    monkeypatch.setattr(service, "_RESTART_FIRST", 0.1)
    ran = quiet_rounds(stage, ZeroDivisionError("of ours"))

    def act():
        eventually(lambda: len(ran) >= 2, timeout=20, what=stage.said)
        eventually(lambda: "serving wire=hub" in stage.said())

    assert serving(act) == 0
    said = stage.said()
    (crash,) = [line for line in said.split("\n") if " error crashed " in line]
    assert "ZeroDivisionError: of ours" in crash
    assert "thread=hub" in crash


def test_what_works_beside_a_worker_ends_alone_and_is_started_again(stage, serving, monkeypatch):
    monkeypatch.setattr(service, "COMPANION_SECONDS", 0.1)
    monkeypatch.setattr(service, "TICK_SECONDS", 0.2)
    ran = quiet_rounds(stage)
    made = []

    class Companion(threading.Thread):
        def __init__(self, wire):
            super().__init__(name=f"{wire.name}-beside", daemon=True)
            self.over = threading.Event()
            made.append(self)

        def stop(self):
            self.over.set()

        def run(self):
            if len(made) == 1:
                raise ZeroDivisionError("of ours")
            self.over.wait(30)

    def companions(settings, wire, log):
        found = Companion(wire)
        found.start()
        return found

    def act():
        eventually(lambda: len(made) == 2, what=stage.said)
        eventually(lambda: ran)
        assert made[1].is_alive()

    assert serving(act, companions) == 0
    assert "error crashed thread=hub-beside" in stage.said()
    assert len(made) == 2, "one that works is left alone"
    assert not made[1].is_alive(), "and ends with the daemon"


def test_a_stuck_worker_is_told_and_the_manager_not_pinged(stage, serving, monkeypatch):
    monkeypatch.setattr(worker, "ROUND_SECONDS", 1.0)
    free = threading.Event()
    stage.replace_rounds(lambda site, **_: free.wait(30) and Report())
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind("\0wire-stuck-" + str(os.getpid()))
        manager.setblocking(False)

        def heard():
            found = []
            while True:
                try:
                    found += manager.recv(4096).decode().split("\n")
                except BlockingIOError:
                    return found

        def act():
            try:
                eventually(lambda: "error stuck wire=hub" in stage.said(), what=stage.said)
                heard()
                time.sleep(1)
                assert "WATCHDOG=1" not in heard()
            finally:
                free.set()
            eventually(lambda: "WATCHDOG=1" in heard())

        serving(act, NOTIFY_SOCKET=f"@wire-stuck-{os.getpid()}", WATCHDOG_USEC="1000000")


def test_a_wire_that_cannot_be_served_is_tried_again(stage, serving, monkeypatch):
    monkeypatch.setattr(service, "_RESTART_FIRST", 0.2)
    quiet_rounds(stage)
    locks = stage.team.mac.wire_home / "state/hub/locks"
    locks.rename(locks.with_name("kept"))
    locks.write_bytes(b"in the way")

    def act():
        eventually(lambda: "error not-served wire=hub" in stage.said(), what=stage.said)
        locks.unlink()
        eventually(lambda: "serving wire=hub" in stage.said(), what=stage.said)

    serving(act)


# The network


def message(kind, payload=b""):
    return struct.pack("=IHHII", 16 + len(payload), kind, 0, 0, 0) + payload


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (message(24), True),
        (message(16, b"link"), False),
        (message(16, b"odd") + b"\0" + message(24), True),
        (message(25), False),
        (b"", False),
        (b"\0" * 16, False),
        (message(24)[:10], False),
    ],
)
def test_routes_in_a_datagram(data, expected):
    assert has_new_route(data) is expected


def test_listening_for_routes_costs_nothing_and_closes():
    routes = Routes()
    assert routes.appeared() in (False, True)
    routes.close()
    assert not routes.appeared()
