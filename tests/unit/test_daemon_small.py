"""The small parts of the daemon: naps, notices, the log."""

import logging
import os
import socket

import pytest

from wire.daemon.logs import Log
from wire.daemon.naps import Clocks, Naps
from wire.daemon.notify import Notifier

# Naps


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        pytest.param((2, 2, 2), None, id="an ordinary tick"),
        pytest.param((11, 11, 11), None, id="a busy machine"),
        pytest.param((2, 602, 602), "the machine slept for 600 s", id="suspend"),
        pytest.param((2, 3.5, 3.5), None, id="clocks are not read in one instant"),
        pytest.param((600, 600, 600), "this process stood still for 600 s", id="SIGSTOP"),
        pytest.param((2, 2, 3602), "the clock was set by +3600 s", id="a paused machine with hidden clocks"),
        pytest.param((2, 2, -598), "the clock was set by -600 s", id="set back"),
        pytest.param((2, 2, 12), None, id="ntp"),
    ],
)
def test_naps(after, expected):
    start = Clocks(100.0, 5000.0, 1.7e9)
    naps = Naps(start)
    now = Clocks(*(a + b for a, b in zip(start, after, strict=True)))
    assert naps.check(now, expected=2.0) == expected
    assert naps.check(now, expected=2.0) is None, "told once"


def test_the_real_clocks_run():
    naps = Naps(Clocks.now())
    assert naps.check(Clocks.now(), expected=0.0) is None


# Notices


@pytest.mark.parametrize("kind", ["path", "abstract"])
def test_notices_arrive(tmp_path, kind):
    address = str(tmp_path / "s") if kind == "path" else f"@wire-small-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(address if kind == "path" else "\0" + address[1:])
        notifier = Notifier({"NOTIFY_SOCKET": address}, os.getpid())
        notifier.tell("READY=1", "STATUS=two\nlines")
        assert manager.recv(4096) == b"READY=1\nSTATUS=two lines"


def test_a_manager_that_does_not_read_holds_nobody():
    address = f"@wire-deaf-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind("\0" + address[1:])
        notifier = Notifier({"NOTIFY_SOCKET": address}, os.getpid())
        for _ in range(2000):
            notifier.tell("WATCHDOG=1")
    notifier.tell("STOPPING=1")


def test_without_a_manager_nothing_happens():
    notifier = Notifier({}, os.getpid())
    notifier.tell("READY=1")
    assert notifier.watchdog is None


@pytest.mark.parametrize(
    ("environ", "seconds"),
    [
        ({"WATCHDOG_USEC": "30000000"}, 30.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "7"}, 30.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "8"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
    ],
)
def test_what_the_manager_wants_to_hear(environ, seconds):
    assert Notifier(environ, 7).watchdog == seconds


# The log


@pytest.fixture
def log_file(tmp_path):
    with (tmp_path / "log").open("wb+") as file:
        yield file


def test_an_event_is_one_line_of_words(log_file):
    log = Log(log_file.fileno())
    log.info("sent", wire="team", lines=3, nothing=None, text='two words\n"and" \x1b[31mmore')
    log.debug("unseen")
    log_file.seek(0)
    line = log_file.read().decode()
    time, _, rest = line.partition(" ")
    assert time.endswith("Z")
    assert rest == 'info sent wire=team lines=3 text="two words\\n\\"and\\" \\u001b[31mmore"\n'


def test_journald_gets_the_priority(log_file):
    log = Log(log_file.fileno(), level="debug", journald=True)
    for level in ("debug", "info", "warning", "error"):
        log.write(level, "event")
    log_file.seek(0)
    assert log_file.read() == b"<7>event\n<6>event\n<4>event\n<3>event\n"


def test_a_log_that_cannot_be_written_stops_nobody():
    reading, writing = os.pipe()
    os.close(reading)
    Log(writing).info("event")
    os.close(writing)
    Log(writing).info("event")


def test_libraries_speak_through_the_same_log(log_file):
    Log(log_file.fileno(), level="debug").take_over("wire-test-library")
    logging.getLogger("wire-test-library.deep").warning("odd %s", "thing")
    log_file.seek(0)
    assert b'debug library name=wire-test-library.deep said="odd thing"\n' in log_file.read()
