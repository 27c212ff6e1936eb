"""What the daemon finds around it when systemd starts it, decided once from the environment of the installing shell.

A user manager gives its services a PATH of its own and none of the shell's variables. So the unit names the program by
absolute paths, and carries the few variables that say where things are and how hosts are reached. Nothing that could be
a secret is written: a unit's settings can be read by every process of the user, and end up in backups.
"""

import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Mapping, Sequence

from wire.daemon import transport
from wire.errors import WireError
from wire.store.paths import Settings

STANDARD_PATH = ("/usr/local/bin", "/usr/bin", "/bin")
UNSET = ("WIRE_AGENT", "WIRE_NAME")
"""The daemon serves every wire and every agent; a manager's own choice must not reach it."""

_DEFAULTS = {"XDG_CONFIG_HOME": ".config", "XDG_DATA_HOME": ".local/share", "XDG_STATE_HOME": ".local/state"}
_REACHING = (
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_CONFIG_SYSTEM",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_SSH_VARIANT",
    "GIT_SSL_CAINFO",
    "GIT_SSL_CAPATH",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "WIRE_ALLOW_LOOSE_KEYS",
)
_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


def entry_point() -> list[str]:
    """Return the words that run this very `wire`: its interpreter, without the current folder on its path.

    An environment's interpreter keeps its path when the packages in it are upgraded, and never finds another program
    of the same name.
    """
    return [sys.executable, "-P", "-m", "wire"]


def environment(settings: Settings, manager: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Return the variables for the unit, and the names of those that were left out because they hold a password.

    Args:
        manager: what the user manager gives to its services by itself.
    """
    environ = settings.environ
    chosen = {"PATH": search_path(environ)}
    home = os.path.expanduser("~")
    if manager.get("HOME") != home:
        chosen["HOME"] = home
    if environ.get("WIRE_HOME"):
        chosen["WIRE_HOME"] = os.path.dirname(settings.config_file)
    for name, default in _DEFAULTS.items():
        value = environ.get(name, "")
        here = value if os.path.isabs(value) else os.path.join(home, default)
        if here != manager.get(name, os.path.join(manager.get("HOME", ""), default)):
            chosen[name] = here
    withheld = []
    for name in (*_REACHING, *_PROXIES):
        value = environ.get(name, "")
        if name in _PROXIES and "@" in value:
            withheld.append(name)
        elif value and value.isprintable():
            chosen[name] = value
    return chosen, withheld


def unset(settings: Settings) -> list[str]:
    """Return the variables of the manager that the daemon must not see."""
    return [*UNSET, *([] if settings.environ.get("WIRE_HOME") else ["WIRE_HOME"])]


def search_path(environ: Mapping[str, str]) -> str:
    """Return the PATH for the daemon and its git: the shell's, as far as it is safe, and the system's own.

    Folders are kept for the credential helpers that git finds in them. Left out are relative ones, those that are not
    there, and those in which another user could put a program.
    """
    folders = [folder for folder in environ.get("PATH", "").split(os.pathsep) if _safe(folder)]
    return os.pathsep.join(dict.fromkeys([*folders, *STANDARD_PATH]))


def probe(command: Sequence[str], variables: Mapping[str, str], *, timeout: float = 30.0) -> str:
    """Run an entry point with `--version` and nothing but these variables, and return what it printed.

    Raises:
        WireError: it cannot be run, or is not wire (`entry-point`).
    """
    argv = [*command, "--version"]
    environ = {"HOME": os.path.expanduser("~"), "LC_ALL": "C.UTF-8", **variables}
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, env=environ, cwd="/", timeout=timeout, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise WireError(f"{' '.join(argv)} cannot be run: {error}", reason="entry-point") from error
    said = done.stdout.decode("utf-8", "replace").strip()
    if done.returncode != 0 or not said.startswith("wire "):
        shown = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2] or said
        raise WireError(
            f"{' '.join(argv)} exited {done.returncode} and said {shown[:200]!r}; expected wire's version",
            reason="entry-point",
        )
    return said


def missing_programs(path: str, names: Sequence[str]) -> list[str]:
    """Return those programs that a PATH does not have."""
    return [name for name in names if shutil.which(name, path=path) is None]


def is_shared(remote: str) -> bool:
    """Tell whether a remote is a repository on this machine that git keeps writable for a group.

    git then sets the group bit of its folders, which a unit with `RestrictSUIDSGID` may not.
    """
    path = transport.of(remote).path
    for config in (os.path.join(path, "config"), os.path.join(path, ".git", "config")) if path else ():
        try:
            with open(config, encoding="utf-8", errors="replace") as file:
                found = re.search(r"^\s*sharedrepository\s*=\s*(\S+)", file.read(1 << 16), re.MULTILINE | re.IGNORECASE)
        except OSError:
            continue
        return found is not None and found[1].strip('"').lower() not in ("0", "false", "umask", "no")
    return False


def _safe(folder: str) -> bool:
    if not os.path.isabs(folder) or not folder.isprintable() or os.pathsep in folder:
        return False
    try:
        about = os.stat(folder)
    except OSError:
        return False
    ours = about.st_uid in (0, os.geteuid())
    return stat.S_ISDIR(about.st_mode) and ours and not about.st_mode & stat.S_IWOTH
