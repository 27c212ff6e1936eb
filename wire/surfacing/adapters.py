"""The ways of notifying, one function each: it returns when the notification is out, and raises NotSurfaced otherwise.

    pointer = Pointer("mac", "team", 2, ("spark",))
    tmux(notify, pointer, run)

What goes out is a pointer: how many, from whom, and the command that shows them. It holds no character that a shell or
a terminal would obey, because a pane may turn out to show something else than an agent.
"""

import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import IO, NamedTuple

from wire.errors import WireError
from wire.protocol.messages import TYPES
from wire.store.surfaces import COMMAND, DESKTOP, TMUX, Notify
from wire.verbs.look import Item
from wire.verbs.render import one_line

TIMEOUT_SECONDS = 15.0
SENDERS_SHOWN = 3
_ENTER_SECONDS = 0.3
"""Programs that take fast input for a paste take an Enter within it for a part of that."""
_POLL_SECONDS = 0.05
_GRACE_SECONDS = 2.0
_OUTPUT_MOST = 4096
_SHELLS = frozenset({"sh", "ash", "bash", "csh", "dash", "fish", "ksh", "mksh", "nu", "pwsh", "tcsh", "zsh"})


class NotSurfaced(WireError):
    """A notification did not go through."""

    reason = "not-surfaced"


class Pointer(NamedTuple):
    """What a notification says.

    Attributes:
        agent, wire: whose messages, and on which wire.
        messages: how many.
        senders: from whom, in the order of the messages.
        choice: options that the command needs on this machine to mean this agent, `--as mac`.
        test: there is no message; somebody wants to see whether notifications arrive.
    """

    agent: str
    wire: str
    messages: int
    senders: tuple[str, ...]
    choice: str = ""
    test: bool = False

    def text(self) -> str:
        """Return one line of letters, digits, and marks that nothing obeys."""
        if self.test:
            return f"wire: a test for {self.agent}, nothing to do"
        shown = ", ".join(self.senders[:SENDERS_SHOWN])
        more = f" and {len(self.senders) - SENDERS_SHOWN} more" if len(self.senders) > SENDERS_SHOWN else ""
        what = "message" if self.messages == 1 else "messages"
        return f"wire: {self.messages} new {what} for {self.agent} from {shown}{more}, shown by wire inbox{self.choice}"


class Ran(NamedTuple):
    """How a program ended: its exit status, and the beginning of what it printed."""

    status: int
    out: str
    err: str


class Runner:
    """Runs programs that may hang: each ends in time, with everything that it started.

    Args:
        environ: for all of them.
        stop: set when nobody wants them any more.
    """

    def __init__(self, environ: Mapping[str, str], stop: threading.Event) -> None:
        self.environ = dict(environ)
        self.stop = stop

    def run(self, argv: Sequence[str], more: Mapping[str, str] | None = None) -> Ran:
        """Run a program to its end.

        Raises:
            NotSurfaced: it cannot be started, or did not end in time.
        """
        program = shutil.which(argv[0], path=self.environ.get("PATH", os.defpath))
        if program is None:
            raise NotSurfaced(f"there is no program {one_line(argv[0], 80)} on the PATH of the process that notifies")
        try:
            process = subprocess.Popen(
                [program, *argv[1:]],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**self.environ, **(more or {})},
                cwd="/",
                start_new_session=True,
            )
        except OSError as error:
            raise NotSurfaced(f"{one_line(argv[0], 80)} cannot be started: {error.strerror}") from error
        outputs = [_Reader(pipe) for pipe in (process.stdout, process.stderr) if pipe is not None]
        deadline = time.monotonic() + TIMEOUT_SECONDS
        try:
            while process.poll() is None:
                if time.monotonic() > deadline:
                    raise NotSurfaced(f"{one_line(argv[0], 80)} did not end within {TIMEOUT_SECONDS:g} s")
                if self.stop.wait(_POLL_SECONDS):
                    raise NotSurfaced("the daemon stopped before it ended")
        finally:
            _end(process)
        out, err = (reader.text() for reader in outputs)
        return Ran(process.returncode, out, err)

    def must(self, argv: Sequence[str], more: Mapping[str, str] | None = None) -> str:
        """Run a program that has to exit 0, and return what it printed; raises NotSurfaced."""
        ran = self.run(argv, more)
        if ran.status:
            said = one_line(ran.err.strip() or ran.out.strip(), 160)
            raise NotSurfaced(f"{one_line(argv[0], 80)} exited {ran.status}" + (f": {said}" if said else ""))
        return ran.out


class _Reader(threading.Thread):
    """Takes everything from a pipe, and keeps the beginning."""

    def __init__(self, pipe: IO[bytes]) -> None:
        super().__init__(daemon=True)
        self._pipe = pipe
        self._kept = b""
        self.start()

    def run(self) -> None:
        with self._pipe:
            while data := os.read(self._pipe.fileno(), 65536):
                self._kept = (self._kept + data)[:_OUTPUT_MOST]

    def text(self) -> str:
        self.join(_GRACE_SECONDS)  # who inherited the pipe and got away from its group must not hold us up
        return self._kept.decode("utf-8", "replace")


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End a program's group: politely, then for good. What it left running goes as well."""
    for number, patience in ((signal.SIGTERM, _GRACE_SECONDS), (signal.SIGKILL, _GRACE_SECONDS)):
        try:
            os.killpg(process.pid, number)
        except (ProcessLookupError, PermissionError):
            break
        try:
            process.wait(patience)
        except subprocess.TimeoutExpired:
            continue
    process.wait()


def tmux(notify: Notify, pointer: Pointer, runner: Runner) -> None:
    """Type the pointer into a pane, and Enter.

    Raises:
        NotSurfaced: there is no such pane, it shows a shell (which would run the line), or it is not taking keys.
    """
    base = ["tmux", *(["-S", notify.tmux_socket] if notify.tmux_socket else [])]
    # Without the mark, `work:0` would do for the pane of a session `workshop` when there is no `work`.
    target = f"={notify.tmux}" if ":" in notify.tmux and notify.tmux[0] not in "=$" else notify.tmux
    # No keys at all, since `display-message` takes any other pane where this one is gone.
    runner.must([*base, "send-keys", "-t", target])
    asked = "#{pane_dead} #{pane_in_mode} #{pane_input_off} #{pane_current_command}"
    dead, in_mode, off, program = (
        runner.must([*base, "display-message", "-p", "-t", target, asked]).strip("\n").split(" ", 3)
    )
    where = f"the pane {one_line(notify.tmux, 60)}"
    if dead == "1":
        raise NotSurfaced(f"{where} is dead")
    if program.lstrip("-") in _SHELLS:
        raise NotSurfaced(f"{where} shows a shell ({one_line(program, 20)}), which would run what is typed")
    if in_mode != "0" or off == "1":
        raise NotSurfaced(f"{where} is in copy mode, or takes no input")
    runner.must([*base, "send-keys", "-t", target, "-l", "--", pointer.text()])
    time.sleep(_ENTER_SECONDS)
    runner.must([*base, "send-keys", "-t", target, "Enter"])


def desktop(notify: Notify, pointer: Pointer, runner: Runner) -> None:
    """Show the pointer by `notify-send`; raises NotSurfaced, also where there is no desktop."""
    runner.must(["notify-send", "--app-name=wire", "--", f"wire: {pointer.agent}", pointer.text()])


def command(notify: Notify, pointer: Pointer, item: Item | None, runner: Runner) -> None:
    """Run the configured command for one message; raises NotSurfaced when it does not exit 0."""
    runner.must(notify.command, metadata(pointer, item))


def metadata(pointer: Pointer, item: Item | None) -> dict[str, str]:
    """Return what a command is told in its environment: all of it checked, none of it free text of a peer.

    `WIRE_AGENT` and `WIRE_NAME` choose agent and wire for every `wire` that the command runs.
    """
    told = {"WIRE_AGENT": pointer.agent, "WIRE_NAME": pointer.wire, "WIRE_NOTICE": pointer.text()}
    if item is None:
        return {**told, "WIRE_TEST": "1"}
    members = item.members or {}
    told |= {
        "WIRE_MESSAGE_ID": item.id,
        "WIRE_MESSAGE_FROM": item.line.sender,
        "WIRE_MESSAGE_TO": item.line.recipient,
        "WIRE_MESSAGE_TYPE": item.line.type if item.line.type in TYPES else "other",
        "WIRE_MESSAGE_TS": item.line.ts,
        "WIRE_MESSAGE_VERDICT": item.verdict,
        "WIRE_MESSAGE_ACK_REQUIRED": "1" if members.get("ack_required") else "0",
    }
    for name in ("priority", "needs", "re", "thread", "expires"):
        if name in members:
            told[f"WIRE_MESSAGE_{name.upper()}"] = str(members[name])
    return told


POINTERS: Mapping[str, Callable[[Notify, Pointer, Runner], None]] = {TMUX: tmux, DESKTOP: desktop}
"""The ways that say once how many messages there are; `command` is run for each of them."""
PER_MESSAGE = COMMAND
