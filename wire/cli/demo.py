"""demo."""

import os
import shutil
import signal
import sys
import textwrap
import time
from types import FrameType
from typing import NoReturn

import click

from wire.cli.console import flush, is_terminal, safe, say, styled
from wire.demo import Stage, play

_WHO = 7
_NARROW = 10


@click.command()
def demo() -> None:
    """Play two machines, an attack and its repair, in half a minute.

    Everything happens in a temporary folder, with real processes and a local repository, and is removed at the end.
    Exit 0 only if everything that is told was found to be so, by a look from the outside.
    """
    begin = time.monotonic()
    # Whoever ends the demo gets it cleaned up, not only who presses Ctrl-C.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupted)
    teller = _Teller()
    with Stage(_program(), os.environ) as stage:
        teller.plain(f"Two machines, mac and spark, and a bare repository between them, in {stage.folder}")
        checks = play(stage, teller)
    teller.plain(f"All of it happened: {checks} checks in {time.monotonic() - begin:.0f} s.")
    teller.plain("Nothing is left of it: the folder is removed and every process has ended.")


class _Teller:
    """Prints the play: wrapped and in colour on a terminal, one line for each fact in a pipe."""

    def act(self, number: int, title: str) -> None:
        say("")
        self._print(f"{number}. ", title, bold=True)

    def ran(self, who: str, command: str) -> None:
        self._print(f"  {who:<{_WHO}}", f"$ {command}", fg="cyan")

    def said(self, text: str) -> None:
        self._print("  " + " " * _WHO, text)

    def held(self, text: str) -> None:
        self._print(f"  {'ok':<{_WHO}}", text, fg="green")

    def plain(self, text: str) -> None:
        """Print what is no part of the play."""
        self._print("", text, bold=True)

    def _print(self, head: str, text: str, *, fg: str | None = None, bold: bool | None = None) -> None:
        text = safe(text)
        lines = [text]
        if is_terminal():
            width = max(shutil.get_terminal_size().columns - len(head), _NARROW)
            lines = textwrap.wrap(text, width, break_on_hyphens=False, break_long_words=False) or [""]
        say(styled(head, fg=fg, bold=bold) + styled(lines[0], bold=bold))
        for line in lines[1:]:
            say(" " * len(head) + styled(line, bold=bold))
        flush()


def _program() -> list[str]:
    """Return how to start the program that is running: the installed script, or the module by its Python."""
    script = os.path.abspath(sys.argv[0])
    if os.path.basename(script) in ("wire", "git-wire") and os.access(script, os.X_OK):
        return [script]
    return [sys.executable, "-c", "from wire.cli import main; main()"]


def _interrupted(number: int, frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt
