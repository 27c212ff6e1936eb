"""A terminal for a program that wants one: a tmux server of its own, with one pane.

with Pane(["claude"], env=…, cwd=…, socket=folder / "t") as pane:
    pane.type("hello")
    assert "hello" in pane.screen()
"""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from support.waiting import eventually


class Pane:
    """One server with one pane; it ends with what runs in it.

    Args:
        argv: what runs in the pane.
        env: its environment.
        cwd: its folder.
        socket: where the server listens; a short path.
        prefix: a command that the server is started under.
    """

    def __init__(
        self, argv: Sequence[str], *, env: Mapping[str, str], cwd: Path, socket: Path, prefix: Sequence[str] = ()
    ) -> None:
        self._tmux = [*prefix, "tmux", "-S", str(socket), "-f", "/dev/null"]
        self._env = {**env, "TERM": "xterm-256color"}
        self._cwd = cwd
        self._argv = argv

    def __enter__(self) -> "Pane":
        self._run("new-session", "-d", "-x", "160", "-y", "50", *self._argv)
        return self

    def __exit__(self, *_: object) -> None:
        self._run("kill-server", check=False)

    def _run(self, *args: str, check: bool = True) -> str:
        done = subprocess.run([*self._tmux, *args], env=self._env, cwd=self._cwd, capture_output=True, timeout=60)
        assert not check or done.returncode == 0, done.stderr
        return done.stdout.decode("utf-8", "replace")

    def screen(self) -> str:
        """Return what the pane shows; nothing when the program has ended."""
        return self._run("capture-pane", "-p", check=False)

    def type(self, text: str) -> None:
        """Type a line and, once the pane shows it, Enter."""
        self._run("send-keys", "-l", text)
        eventually(lambda: text in self.screen(), what=self.screen)
        self._run("send-keys", "Enter")

    def ended(self, timeout: float = 30.0) -> None:
        """Wait until the program has ended by itself."""
        eventually(lambda: not self._run("list-panes", check=False), timeout=timeout, what=self.screen)
