"""Where things live on a machine, decided once from the environment.

Rules that it keeps: nothing here touches the disk except for the search of the project file; the
environment is read once, at the edge, by `Settings.from_environ`; a name becomes part of a path only after
it was checked.

    settings = Settings.from_environ(os.environ, os.getcwd())
    places = WirePlaces(settings.state_dir, "team", clone="/home/me/.local/share/wire/clones/team")
    places.journal_of("mac/spark")

Everything is in the XDG base directories, on macOS too, or under one folder when `WIRE_HOME` is set:

    config.toml  keys/  state/<wire>/  clones/<wire>/

What it does not do: create folders, or know whether a wire of that name exists.
"""

import os
from collections.abc import Mapping
from typing import Any, NamedTuple, Self

from wire.errors import Corrupt, UsageError
from wire.protocol.names import check_name, split_channel, valid_name
from wire.store.files import read_bytes

PROJECT_FILE = ".wire.toml"
_PROJECT_KEYS = ("wire", "agent")
# `.wire.toml` holds two names. Whatever is larger is something else, and not worth parsing at every command.
_PROJECT_MAX = 4096


class Settings(NamedTuple):
    """What the environment says: folders, and which wire and agent are meant.

    Attributes:
        config_file: path of `config.toml`.
        keys_dir: folder of private keys.
        state_dir: folder with one folder per wire.
        clones_dir: default place of clones.
        runtime_dir: short-lived sockets; may vanish at logout.
        agent: the chosen agent or None; of `WIRE_AGENT`, else of the project file.
        wire: the chosen wire or None; of `WIRE_NAME`, else of the project file.
        agent_from: what chose the agent, for messages: `WIRE_AGENT` or the project file's path.
        wire_from: what chose the wire.
        environ: the whole environment, for child processes.
    """

    config_file: str
    keys_dir: str
    state_dir: str
    clones_dir: str
    runtime_dir: str
    agent: str | None
    wire: str | None
    agent_from: str | None
    wire_from: str | None
    environ: Mapping[str, str]

    @classmethod
    def from_environ(cls, environ: Mapping[str, str], cwd: str) -> "Settings":
        """Decide everything from an environment and a working folder.

        `WIRE_HOME` may be relative to `cwd`; relative XDG folders are ignored, as their specification asks.
        An explicit `--wire` or `--as` is the caller's, through `choosing`.

        Raises:
            Corrupt: the project file is needed and malformed; names file and line.
            UsageError: neither `HOME` nor the system's user list gives a home.
        """
        home = environ.get("HOME", "")
        if not os.path.isabs(home):
            home = _home_of_user()
        own = environ.get("WIRE_HOME")
        if own:
            base = os.path.normpath(os.path.join(cwd, own))
            config_file, keys, clones = (os.path.join(base, part) for part in ("config.toml", "keys", "clones"))
            state = os.path.join(base, "state")
            runtime = os.path.join(state, ".run")
        else:
            config_file = os.path.join(_xdg(environ, "XDG_CONFIG_HOME", home, ".config"), "wire", "config.toml")
            data = os.path.join(_xdg(environ, "XDG_DATA_HOME", home, ".local/share"), "wire")
            keys, clones = os.path.join(data, "keys"), os.path.join(data, "clones")
            state = os.path.join(_xdg(environ, "XDG_STATE_HOME", home, ".local/state"), "wire")
            given = environ.get("XDG_RUNTIME_DIR", "")
            runtime = os.path.join(given, "wire") if os.path.isabs(given) else os.path.join(state, ".run")
        agent, wire = environ.get("WIRE_AGENT") or None, environ.get("WIRE_NAME") or None
        agent_from, wire_from = agent and "WIRE_AGENT", wire and "WIRE_NAME"
        if agent is None or wire is None:
            path, bound = find_project(cwd, home)
            if agent is None and "agent" in bound:
                agent, agent_from = bound["agent"], path
            if wire is None and "wire" in bound:
                wire, wire_from = bound["wire"], path
        return cls(config_file, keys, state, clones, runtime, agent, wire, agent_from, wire_from, environ)

    def choosing(self, *, wire: str | None = None, agent: str | None = None) -> "Settings":
        """Return these settings with what `--wire` and `--as` say, which is stronger than anything else."""
        return self._replace(
            agent=agent or self.agent,
            agent_from="--as" if agent else self.agent_from,
            wire=wire or self.wire,
            wire_from="--wire" if wire else self.wire_from,
        )

    @property
    def allow_loose_keys(self) -> bool:
        """Whether somebody answers for keys on a file system that keeps no modes: `WIRE_ALLOW_LOOSE_KEYS` is 1."""
        return self.environ.get("WIRE_ALLOW_LOOSE_KEYS") == "1"

    def default_clone(self, wire: str) -> str:
        """Return where the clone of a wire stands unless the configuration says otherwise."""
        return os.path.join(self.clones_dir, check_wire_name(wire))


class _WirePlaces(NamedTuple):
    state_dir: str
    name: str
    clone: str


class WirePlaces(_WirePlaces):
    """The files of one wire on this machine: its state folder, and its clone.

    Raises:
        UsageError: on making it, when the name is none.
    """

    __slots__ = ()

    def __new__(cls, state_dir: str, name: str, clone: str) -> Self:
        return super().__new__(cls, state_dir, check_wire_name(name), clone)

    @property
    def root(self) -> str:
        """The wire's own folder of state."""
        return os.path.join(self.state_dir, self.name)

    @property
    def pin_file(self) -> str:
        return os.path.join(self.root, "pin.json")

    @property
    def trust_dir(self) -> str:
        return os.path.join(self.root, "trust")

    @property
    def journal_dir(self) -> str:
        return os.path.join(self.root, "journal")

    @property
    def cursors_dir(self) -> str:
        return os.path.join(self.root, "cursors")

    @property
    def invitations_dir(self) -> str:
        return os.path.join(self.root, "invitations")

    @property
    def incidents_dir(self) -> str:
        return os.path.join(self.root, "incidents")

    @property
    def aside_dir(self) -> str:
        """Where bytes that belong nowhere are kept."""
        return os.path.join(self.root, "aside")

    @property
    def text_index_file(self) -> str:
        return os.path.join(self.root, "text.sqlite")

    @property
    def seen_file(self) -> str:
        return os.path.join(self.root, "seen.jsonl")

    @property
    def progress_file(self) -> str:
        return os.path.join(self.root, "progress.json")

    @property
    def outlook_file(self) -> str:
        return os.path.join(self.root, "outlook")

    @property
    def locks_dir(self) -> str:
        return os.path.join(self.root, "locks")

    @property
    def git_dir(self) -> str:
        return os.path.join(self.clone, ".git")

    @property
    def coordination(self) -> str:
        """The clone's only tracked folder (PROTOCOL.md, section "Repository layout")."""
        return os.path.join(self.clone, "_coordination")

    def lock(self, name: str) -> str:
        """Return the folder to give to `files.locked` for one of the wire's own locks ("sync", "daemon")."""
        return os.path.join(self.locks_dir, check_name(name, "lock"))

    def journal_of(self, channel: str) -> str:
        """Return the folder of a channel's journal; raises UsageError for what is no channel."""
        return os.path.join(self.journal_dir, *split_channel(channel))


def check_wire_name(name: str) -> str:
    """Return `name` if it may name a wire on this machine: the form of an agent's name, and `wire` as well.

    Raises:
        UsageError: reason `bad-name`.
    """
    return name if name == "wire" else check_name(name, "wire name")


def find_project(cwd: str, home: str) -> tuple[str | None, dict[str, str]]:
    """Return the nearest project file's path and what it binds, searching upward from `cwd`.

    The search ends with the home folder or the root of the file system. A file that belongs to another user
    (and not to root) is passed over: in a shared folder it would decide for us who we are.

    Raises:
        Corrupt: the nearest one is malformed; the text names file and line.
    """
    folder = cwd
    homes = (home, os.path.realpath(home))
    user = os.geteuid()
    while True:
        path = os.path.join(folder, PROJECT_FILE)
        try:
            owner = os.stat(path).st_uid
        except OSError:
            pass
        else:
            if user == 0 or owner in (user, 0):
                return path, _read_project(path)
        parent = os.path.dirname(folder)
        if folder in homes or parent == folder:
            return None, {}
        folder = parent


def line_of(data: bytes, needle: bytes) -> int:
    """Return the number of the first line that begins with `needle`, blanks aside; 1 when there is none."""
    for number, line in enumerate(data.split(b"\n"), 1):
        if line.lstrip().startswith(needle):
            return number
    return 1


def parse_toml(data: bytes, path: str) -> dict[str, Any]:
    """Parse TOML, in UTF-8.

    Raises:
        Corrupt: with file, line and cause.
    """
    import tomllib  # only machines that have such a file pay for it

    hint = "mend it by hand, or move it away"
    nul = data.find(b"\0")
    if nul >= 0:
        line = data.count(b"\n", 0, nul) + 1
        raise Corrupt(f"{path}, line {line}: a NUL byte where text was expected", next_step=hint)
    try:
        return tomllib.loads(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise Corrupt(f"{path}, line {line}: not UTF-8", next_step=hint) from None
    except tomllib.TOMLDecodeError as error:
        text = str(error)
        line_text = text.rpartition("(at line ")[2].partition(",")[0]
        line = int(line_text) if line_text.isdigit() else data.count(b"\n") + 1
        raise Corrupt(f"{path}, line {line}: not valid TOML: {text}", next_step=hint) from None


def _read_project(path: str) -> dict[str, str]:
    data = read_bytes(path) or b""
    if len(data) > _PROJECT_MAX:
        raise Corrupt(f"{path}: {len(data)} bytes where at most {_PROJECT_MAX} were expected")
    bound: dict[str, str] = {}
    for key, value in parse_toml(data, path).items():
        where = f"{path}, line {line_of(data, key.encode())}"
        if key not in _PROJECT_KEYS:
            raise Corrupt(f"{where}: unknown key {key[:64]!r}; only `wire` and `agent` are read")
        if not isinstance(value, str) or not (valid_name(value) or (key == "wire" and value == "wire")):
            raise Corrupt(f'{where}: `{key}` must be a name in quotes, such as {key} = "mac"')
        bound[key] = value
    return bound


def _xdg(environ: Mapping[str, str], variable: str, home: str, default: str) -> str:
    given = environ.get(variable, "")
    return given if os.path.isabs(given) else os.path.join(home, default)


def _home_of_user() -> str:
    import pwd  # only where HOME is missing: under cron, or in a stripped unit

    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        raise UsageError(
            f"no home folder: HOME is not set and user {os.getuid()} is unknown here",
            next_step="set HOME, or set WIRE_HOME to a folder for wire's files",
        ) from None
