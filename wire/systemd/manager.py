"""The user's systemd manager, as `systemctl --user` reaches it, and what else a service depends on.

Rules that it keeps: every child has a time limit and a fixed language; "there is no manager", "there is no such
program" and "it refused" are told apart; a manager that runs is found although the session's variables are missing, as
after `su` or in a cron job.
"""

import os
import pwd
import stat
import subprocess
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from wire.errors import WireError

JOURNAL_SOCKET = "/run/systemd/journal/stdout"
LINGER_DIR = "/var/lib/systemd/linger"
_NO_MANAGER = ("failed to connect to", "not been booted with systemd", "no medium found", "connection refused")


class Ran(NamedTuple):
    """How a program ended, and what it printed."""

    status: int
    out: str
    err: str


class Lingering(NamedTuple):
    """Whether the user's services outlive the last session: `on`, `off`, or `unknown` with the reason."""

    state: Literal["on", "off", "unknown"]
    why: str = ""


class Manager:
    """The user manager of this user.

    Args:
        environ: the environment that wire was started with.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = {**environ, "LC_ALL": "C", "SYSTEMD_PAGER": "", "SYSTEMD_COLORS": "0"}
        runtime = f"/run/user/{os.geteuid()}"
        if not self._environ.get("XDG_RUNTIME_DIR") and os.path.isdir(os.path.join(runtime, "systemd")):
            self._environ["XDG_RUNTIME_DIR"] = runtime

    def run(self, *args: str, timeout: float = 90.0, ok: Sequence[int] = (0,)) -> Ran:
        """Run `systemctl --user ARGS` and return what it said.

        Raises:
            WireError: there is no user manager (`no-user-manager`), or it refused (`systemctl`).
        """
        done = self.tool("systemctl", "--user", "--no-ask-password", *args, timeout=timeout)
        if done is None:
            raise no_manager("there is no systemctl on PATH")
        if done.status not in ok:
            said = _first_line(done.err) or _first_line(done.out) or f"exit status {done.status}"
            if any(sign in said.lower() for sign in _NO_MANAGER):
                raise no_manager(said)
            raise WireError(f"systemctl --user {args[0]} failed: {said}", reason="systemctl")
        return done

    def tool(self, *argv: str, timeout: float = 30.0) -> Ran | None:
        """Run another program in the manager's surroundings; None where there is no such program."""
        try:
            done = subprocess.run(
                argv, stdin=subprocess.DEVNULL, capture_output=True, env=self._environ, timeout=timeout, check=False
            )
        except (FileNotFoundError, PermissionError):
            return None
        except subprocess.TimeoutExpired:
            return Ran(124, "", f"{argv[0]} did not answer within {timeout:g} s")
        return Ran(done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace"))

    def follow(self, *argv: str) -> int:
        """Run a program on our own standard output until it ends, and return its exit status; 127 for no program."""
        try:
            return subprocess.run(argv, stdin=subprocess.DEVNULL, env=self._environ, check=False).returncode
        except (FileNotFoundError, PermissionError):
            return 127

    def environment(self) -> dict[str, str]:
        """Return the variables that the manager gives to services; raises as `run`."""
        found = {}
        for line in self.run("show-environment").out.split("\n"):
            name, equals, value = line.partition("=")
            if equals and not value.startswith("$'"):  # what a shell would have to unquote is nothing we look for
                found[name] = value
        return found

    def show(self, unit: str, *properties: str) -> dict[str, str]:
        """Return properties of a unit; raises as `run`."""
        out = self.run("show", unit, "--property=" + ",".join(properties)).out
        pairs = (line.partition("=") for line in out.split("\n"))
        return {name: value for name, equals, value in pairs if equals}

    def lingering(self) -> Lingering:
        """Tell whether the user's manager stays after the last logout.

        logind is asked first; where it does not answer, the file that it keeps says what it knew.
        """
        user = user_name()
        done = self.tool("loginctl", "show-user", user, "--property=Linger", "--value")
        if done is not None and done.status == 0 and done.out.strip() in ("yes", "no"):
            return Lingering("on" if done.out.strip() == "yes" else "off")
        if done is not None and "not logged in or lingering" in done.err:
            return Lingering("off")
        why = "there is no loginctl" if done is None else (_first_line(done.err) or f"exit status {done.status}")
        if os.path.exists(os.path.join(LINGER_DIR, user)):
            return Lingering("on", f"by the file in {LINGER_DIR}; logind does not answer ({why})")
        if os.path.isdir(LINGER_DIR):
            return Lingering("off", f"there is no file in {LINGER_DIR}; logind does not answer ({why})")
        return Lingering("unknown", f"logind does not answer ({why}) and there is no {LINGER_DIR}")


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]


def user_name() -> str:
    """Return the name of the user that this process runs as, or the number of one that has none."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def has_journal() -> bool:
    """Tell whether what a service prints reaches a journal on this system."""
    try:
        return stat.S_ISSOCK(os.stat(JOURNAL_SOCKET).st_mode)
    except OSError:
        return False


def no_manager(why: str) -> WireError:
    """Return the error for a system, or a session, without a user manager."""
    return WireError(
        f"there is no systemd user manager to run the service ({why})",
        reason="no-user-manager",
        next_step="wire daemon run",
    )
