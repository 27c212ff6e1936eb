"""Commands as processes that are forked from a warm interpreter, instead of started from nothing.

A started `wire sync` spends more time on imports than on its work, and the tests run thousands of commands. So each
test worker keeps one process that has everything imported and does nothing; a command is a fork of it, with arguments,
environment, folder, standard streams and exit status of its own. It takes real locks, starts real git, and is killed
like any other process. What depends on how an interpreter starts (locales, import cost, closed streams, system calls)
is tested with started processes, and so are daemons and everything in the full sizes.
"""

import gc
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

_STARTUP = ("PYTHON", "LC_", "LD_", "GIT_PYTHON_")
"""Variables that are read while an interpreter starts, or a package is imported."""
_LANG = "C.UTF-8"
_LAZY = (
    "difflib",
    "email.parser",
    "encodings.ascii",
    "git",
    "importlib.metadata",
    "importlib.readers",
    "nacl.signing",
    "rich.console",
    "sqlite3",
    "tenacity",
    "tomlkit",
    "tomllib",
)
"""What commands import when they need it, beside the modules of wire."""
_HUGE = ("wire.mcp.server",)
"""What is left to the few who need it: with a package as large as all the rest, every fork would take half again."""


def serves(env: Mapping[str, str]) -> bool:
    """Return whether a process with this environment can be a fork: nothing in it changes how Python starts."""
    return env.get("LANG") == _LANG and not any(name.startswith(_STARTUP) for name in env)


class Warm:
    """The warm interpreter of one test worker. It ends when this process does."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", __file__, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env={"PATH": os.environ.get("PATH", os.defpath), "LANG": _LANG},
                start_new_session=True,
            )

    def run(
        self, argv: Sequence[str], *, given: bytes, env: Mapping[str, str], cwd: Path, timeout: float
    ) -> tuple[int, bytes, bytes]:
        """Run a command line of wire to its end; return status (as `subprocess` tells it), stdout and stderr.

        Raises:
            subprocess.TimeoutExpired: it took too long, and was killed.
        """
        told = json.dumps({"argv": list(argv), "env": dict(env), "cwd": str(cwd)}).encode()
        with ExitStack() as stack:
            files = [_file(stack, data) for data in (told, given, b"", b"")]
            ours, theirs = socket.socketpair()
            stack.enter_context(ours)
            with theirs:
                socket.send_fds(self._socket, [b"."], [*files, theirs.fileno()])
            answers = stack.enter_context(ours.makefile("rb"))
            pid = int(answers.readline() or 0)
            assert pid, "the warm interpreter is gone"
            ours.settimeout(timeout)
            try:
                status = int(answers.readline())
            except TimeoutError:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                raise subprocess.TimeoutExpired(list(argv), timeout) from None
            return status, _contents(files[2]), _contents(files[3])

    def close(self) -> None:
        """End the interpreter."""
        self._socket.close()
        self._process.wait(10)


def _file(stack: ExitStack, data: bytes) -> int:
    """Return the descriptor of a file in memory, at its beginning."""
    file = os.memfd_create("stream")
    stack.callback(os.close, file)
    os.write(file, data)
    os.lseek(file, 0, os.SEEK_SET)
    return file


def _contents(file: int) -> bytes:
    return os.pread(file, os.fstat(file).st_size, 0)


# The warm interpreter


def _serve(listening: socket.socket) -> None:
    """Fork a process for each request until nobody can ask any more; return in the processes, never here."""
    _load()
    running: dict[int, tuple[int, int]] = {}
    """By the descriptor of a process: its id, and where its exit status is awaited."""
    waiting = select.poll()
    waiting.register(listening, select.POLLIN)
    while True:
        for ready, _ in waiting.poll():
            if ready in running:
                child, answers = running.pop(ready)
                waiting.unregister(ready)
                os.close(ready)
                _, ended = os.waitpid(child, 0)
                _answer(answers, os.waitstatus_to_exitcode(ended))
                os.close(answers)
                continue
            asked, files, _, _ = socket.recv_fds(listening, 1, 5)
            if not asked:
                os._exit(0)
            told, *streams, answers = files
            child = os.fork()
            if child == 0:
                listening.close()
                for ended, asker in running.items():
                    os.close(ended)
                    os.close(asker[1])
                os.close(answers)
                request = json.loads(_contents(told))
                os.close(told)
                _become(request, streams)
                return
            for file in (told, *streams):
                os.close(file)
            _answer(answers, child)
            ended = os.pidfd_open(child)
            running[ended] = (child, answers)
            waiting.register(ended, select.POLLIN)


def _answer(answers: int, number: int) -> None:
    with suppress(BrokenPipeError):  # who asked is gone, or has given up
        os.write(answers, b"%d\n" % number)


def _load() -> None:
    import wire

    for module in pkgutil.walk_packages(wire.__path__, "wire."):
        if module.name not in _HUGE:
            importlib.import_module(module.name)
    for name in _LAZY:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()


def _become(request: Mapping[str, object], streams: Sequence[int]) -> None:
    argv, env, cwd = request["argv"], request["env"], request["cwd"]
    assert isinstance(argv, list)
    assert isinstance(env, dict)
    os.environ.clear()
    os.environ.update(env)
    time.tzset()
    os.chdir(str(cwd))
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin = os.fdopen(0, encoding="utf-8", errors="surrogateescape")
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", errors="surrogateescape")
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1)
    sys.argv = argv


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
    from wire.__main__ import main

    main()
