"""The machine's list of wires: `config.toml`.

Rules that it keeps: what is not understood is refused, with file, line and the nearest word that would have
been; a person's comments and order survive a change by us; a file is never written over that could not be
read; remotes are never printed, because they may carry a token, and for the same reason the file is
private.

    [[wire]]
    name = "team"
    remote = "git@example.org:team/wire.git"
    branch = "main"
    agents = ["mac"]
    # clone = "/srv/wire"                       only when it is not clones/team; relative: to this file's folder
    # identity = { name = "…", email = "…" }    for hosts that insist on known commit authors
    [wire.cadence]
    # t0 = 30                                   seconds; likewise t1, t2, t3
    # hot = [1, 1, 2, 3, 5, 8]                  seconds between looks in a live exchange
    # jitter = 0.2                              0 to 1, part of an interval
    # hourly_budget = 900                       requests to the remote
    # timeout = 120                             seconds that one git command may take
    [wire.notify.mac] and [wire.drop]           see `wire.store.surfaces`

What it does not do: know whether a remote, clone or key exists, or which cadence applies where nothing is
said.
"""

import os
from collections.abc import Callable, Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from wire.errors import Corrupt, UsageError
from wire.protocol.names import valid_name
from wire.store.files import atomic_write, locked, private_folder, read_bytes
from wire.store.paths import Settings, parse_toml

if TYPE_CHECKING:
    from wire.store.surfaces import Notify

_MEND = "mend it with an editor; `wire` never writes over a configuration that it cannot read"
_NOT_IN_BRANCH = frozenset(" ~^:?*[\\")


class WireConfig(NamedTuple):
    """One wire of this machine, as configured.

    Attributes:
        name: the local name, `team`.
        remote: where git fetches from and pushes to; may carry a token.
        branch: the wire's branch at the remote.
        clone: absolute path of the local clone.
        agents: names of the agents that live on this machine; may be empty.
        identity_name: name of the commits' author, or None for the agent's.
        identity_email: address of the commits' author, or None for `<agent>@wire.invalid`.
        cadence: only what the file says of `t0 t1 t2 t3 hot jitter hourly_budget timeout`; seconds, `hot` a tuple.
        notify: how agents are notified.
        drop: agents' drop folders, absolute.
    """

    name: str
    remote: str
    branch: str
    clone: str
    agents: tuple[str, ...]
    identity_name: str | None = None
    identity_email: str | None = None
    cadence: Mapping[str, Any] = MappingProxyType({})
    notify: "Mapping[str, Notify]" = MappingProxyType({})
    drop: Mapping[str, str] = MappingProxyType({})


class Config(NamedTuple):
    """All wires of this machine, in the file's order, and the file."""

    wires: tuple[WireConfig, ...]
    path: str

    def get(self, name: str) -> WireConfig | None:
        """Return the wire of that name."""
        return next((wire for wire in self.wires if wire.name == name), None)


def load(settings: Settings) -> Config:
    """Read and check the configuration; a missing file is one without wires.

    Raises:
        Corrupt: reason `config-corrupt`; the text names file, line, what was found and what was expected.
    """
    data = read_bytes(settings.config_file)
    if data is None:
        return Config((), settings.config_file)
    return _Reader(settings, data).config()


def add_wire(settings: Settings, wire: WireConfig) -> Config:
    """Write one more wire into the configuration and return all of it.

    Raises:
        UsageError: reason `wire-exists`, there is one of that name.
        Corrupt: the file that is there cannot be read, or the new wire would not be.
    """

    def change(document: Any, config: Config) -> None:
        import tomlkit

        if config.get(wire.name) is not None:
            raise UsageError(
                f"there is a wire {wire.name!r} in {settings.config_file} already",
                reason="wire-exists",
                next_step="choose another name, or remove that entry from the file",
            )
        table = tomlkit.table()
        _fill(table, wire, settings)
        if "wire" not in document:
            document["wire"] = tomlkit.aot()
        document["wire"].append(table)

    return _change(settings, change)


def update_wire(settings: Settings, wire: WireConfig) -> Config:
    """Write new values of the wire of that name and return the whole configuration.

    Raises:
        UsageError: reason `wire-unknown`, there is none of that name.
        Corrupt: the file that is there cannot be read, or the new values would not be.
    """

    def change(document: Any, config: Config) -> None:
        if config.get(wire.name) is None:
            raise _unknown_wire(wire.name, None, config)
        for table in document["wire"]:
            if table["name"] == wire.name:
                _fill(table, wire, settings)

    return _change(settings, change)


def remove_wire(settings: Settings, name: str) -> Config:
    """Take a wire out of the configuration, if it is there; raises as `add_wire`."""

    def change(document: Any, config: Config) -> None:
        tables = document.get("wire", [])
        for number, table in enumerate(tables):
            if table.get("name") == name:
                del tables[number]
                if not tables:  # written out, an empty list of tables would be no TOML
                    document.remove("wire")
                return

    return _change(settings, change)


def choose_wire(config: Config, settings: Settings) -> WireConfig:
    """Return the wire that is meant: the chosen one, or the only one.

    Raises:
        UsageError: none is configured (`no-wire`), none has the chosen name (`wire-unknown`), or there are
        several
            and none was chosen (`wire-ambiguous`); the text lists them.
    """
    if not config.wires:
        raise UsageError(
            f"no wire is configured on this machine ({config.path})",
            reason="no-wire",
            next_step="`wire init REMOTE --as NAME` begins one; `wire join CODE`, with a code of `wire invite`, or"
            " `wire join REMOTE --as NAME --trust 1:SHA256:…` joins one",
        )
    if settings.wire is not None:
        wire = config.get(settings.wire)
        if wire is None:
            raise _unknown_wire(settings.wire, settings.wire_from, config)
        return wire
    if len(config.wires) > 1:
        names = ", ".join(wire.name for wire in config.wires)
        raise UsageError(
            f"several wires are configured and none was chosen: {names}",
            reason="wire-ambiguous",
            next_step=f"say which with `--wire {config.wires[0].name}` or WIRE_NAME={config.wires[0].name}",
            details={"wires": [wire.name for wire in config.wires]},
        )
    return config.wires[0]


def choose_agent(wire: WireConfig, settings: Settings) -> str:
    """Return the local agent that is meant: the chosen one, or the only one.

    Raises:
        UsageError: none lives here (`no-agent`), none has the chosen name (`agent-unknown`), or there are
        several
            and none was chosen (`agent-ambiguous`); the text lists them.
    """
    names = ", ".join(wire.agents)
    if not wire.agents:
        raise UsageError(
            f"no agent of wire {wire.name!r} lives on this machine",
            reason="no-agent",
            next_step="`wire join REMOTE --as NAME --trust 1:SHA256:…` gives it one",
        )
    if settings.agent is not None:
        if settings.agent not in wire.agents:
            raise UsageError(
                f"no agent {settings.agent[:64]!r} (chosen by {settings.agent_from}) lives on this machine;"
                f" on wire {wire.name!r} there is {names}",
                reason="agent-unknown",
                details={"agents": list(wire.agents)},
            )
        return settings.agent
    if len(wire.agents) > 1:
        raise UsageError(
            f"several agents of wire {wire.name!r} live here and none was chosen: {names}",
            reason="agent-ambiguous",
            next_step=f"say which with `--as {wire.agents[0]}` or WIRE_AGENT={wire.agents[0]}",
            details={"agents": list(wire.agents)},
        )
    return wire.agents[0]


def _unknown_wire(name: str, chosen_by: str | None, config: Config) -> UsageError:
    names = ", ".join(wire.name for wire in config.wires) or "none"
    by = f" (chosen by {chosen_by})" if chosen_by else ""
    return UsageError(
        f"no wire {name[:64]!r}{by} is configured in {config.path}; there is {names}",
        reason="wire-unknown",
        details={"wires": [wire.name for wire in config.wires]},
    )


# ------------------------------------------------------------------------------------------ reading


class _Reader:
    """Checks one file; knows where in it each value stands."""

    def __init__(self, settings: Settings, data: bytes) -> None:
        self._settings = settings
        self._path = settings.config_file
        self._data = data

    def config(self) -> Config:
        if not self._data:
            # An editor leaves a comment; zero bytes are what a crash leaves, and reading them as "no wires"
            # would let a daemon rest in peace beside a full journal.
            raise Corrupt(
                f"{self._path} is empty: 0 bytes where at least a comment or a [[wire]] was expected",
                reason="config-corrupt",
                next_step="restore it; if this machine has no wires yet, remove the file",
            )
        try:
            top = parse_toml(self._data, self._path)
        except Corrupt as error:
            raise Corrupt(error.message, reason="config-corrupt", next_step=_MEND) from error
        self._known(top, {"wire": list}, 0, "")
        wires: list[WireConfig] = []
        for number, table in enumerate(top.get("wire", []), 1):
            if not isinstance(table, dict):
                raise self._bad(number, "wire", "each wire must be a [[wire]] table")
            wire = self._wire(table, number)
            if any(wire.name == other.name for other in wires):
                raise self._bad(number, "name", f"a second wire {wire.name!r}; names must differ")
            wires.append(wire)
        return Config(tuple(wires), self._path)

    def _wire(self, table: dict[str, Any], number: int) -> WireConfig:
        kinds = {"name": str, "remote": str, "branch": str, "clone": str, "agents": list}
        self._known(table, {**kinds, "identity": dict, "cadence": dict, "notify": dict, "drop": dict}, number, "")
        for key in ("name", "remote", "branch"):
            if key not in table:
                raise self._bad(number, "[[wire]]", f"this wire has no `{key}`")
        name, remote, branch = table["name"], table["remote"], table["branch"]
        if not (valid_name(name) or name == "wire"):
            raise self._bad(number, "name", f"{name[:64]!r} is not 1 to 32 of a-z, 0-9 and inner hyphens")
        if not _plain(remote):
            raise self._bad(number, "remote", "`remote` must be a URL or a path, not beginning with '-'")
        if not _plain(branch) or _NOT_IN_BRANCH & set(branch) or ".." in branch or "@{" in branch:
            raise self._bad(number, "branch", f"{branch[:64]!r} is not the name of a branch")
        clone = table.get("clone", "")
        if clone and not _plain(clone):
            raise self._bad(number, "clone", "`clone` must be the path of a folder")
        clone = (
            os.path.normpath(os.path.join(os.path.dirname(self._path), clone))
            if clone
            else self._settings.default_clone(name)
        )
        agents = table.get("agents", [])
        for agent in agents:
            if not isinstance(agent, str) or not valid_name(agent):
                raise self._bad(number, "agents", f"{str(agent)[:64]!r} cannot be the name of an agent")
        if len(set(agents)) != len(agents):
            raise self._bad(number, "agents", "an agent is listed twice")
        identity = table.get("identity", {})
        self._known(identity, {"name": str, "email": str}, number, "identity.")
        for key, value in identity.items():
            if not _plain(value) or set("<>") & set(value):
                raise self._bad(number, key, f"`identity.{key}` must be plain text without < and >")
        cadence = self._cadence(table.get("cadence", {}), number)
        made = WireConfig(
            name, remote, branch, clone, tuple(agents), identity.get("name"), identity.get("email"), cadence
        )
        return self._surfaces(made, table, number) if "notify" in table or "drop" in table else made

    def _surfaces(self, wire: WireConfig, table: dict[str, Any], number: int) -> WireConfig:
        from wire.store import surfaces  # few machines have any

        try:
            return wire._replace(
                notify=surfaces.notify(table.get("notify", {}), wire.agents),
                drop=surfaces.drop(table.get("drop", {}), wire.agents, os.path.dirname(self._path)),
            )
        except surfaces.Wrong as error:
            raise self._bad(number, error.key, str(error)) from error

    def _cadence(self, table: dict[str, Any], number: int) -> Mapping[str, Any]:
        seconds = (int, float)
        tiers = ("t0", "t1", "t2", "t3")
        kinds = {**dict.fromkeys((*tiers, "timeout", "jitter"), seconds), "hot": list, "hourly_budget": int}
        self._known(table, kinds, number, "cadence.")
        found: dict[str, Any] = dict(table)
        given = [(tier, table[tier]) for tier in tiers if tier in table]
        for key in (*tiers, "timeout"):
            if not _duration(table.get(key, 1)):
                raise self._bad(number, key, f"`cadence.{key}` must be seconds, above 0 and at most 86400")
        for (tier, value), (later, slower) in pairwise(given):
            if slower < value:
                raise self._bad(number, later, f"`cadence.{later}` must not be shorter than `{tier}`")
        if "hot" in table:
            if not 1 <= len(table["hot"]) <= 32 or not all(map(_duration, table["hot"])):
                raise self._bad(number, "hot", "`cadence.hot` must be a list of 1 to 32 times in seconds")
            found["hot"] = tuple(table["hot"])
        if not 0 <= table.get("jitter", 0) <= 1:
            raise self._bad(number, "jitter", "`cadence.jitter` must be between 0 and 1")
        if table.get("hourly_budget", 1) < 1:
            raise self._bad(number, "hourly_budget", "`cadence.hourly_budget` must be at least 1")
        return MappingProxyType(found)

    def _known(self, table: dict[str, Any], kinds: Mapping[str, Any], number: int, prefix: str) -> None:
        for key, value in table.items():
            if key not in kinds:
                raise self._bad(number, key, f"unknown key `{prefix}{key[:64]}`{_nearest(key, kinds, prefix)}")
            kind = kinds[key]
            # In Python a bool is an int; in a configuration `jitter = true` is a mistake.
            if not isinstance(value, kind) or isinstance(value, bool):
                raise self._bad(number, key, f"`{prefix}{key}` must be {_KINDS.get(kind, 'a number')}")

    def _bad(self, number: int, key: str, why: str) -> Corrupt:
        line = self._line(number, key)
        return Corrupt(f"{self._path}, line {line}: {why}", reason="config-corrupt", next_step=_MEND)

    def _line(self, number: int, key: str) -> int:
        """Return the line of `key` in the table of wire `number` (0: the whole file), or where that begins."""
        at = 0
        here = 1
        for line, raw in enumerate(self._data.split(b"\n"), 1):
            text = raw.strip()
            if text.startswith(b"[[") and text[2:].lstrip().startswith(b"wire"):
                at += 1
                if at == number:
                    here = line
            if at == number or not number:
                word = text.lstrip(b"[").partition(b"=")[0].rstrip(b" ]")
                if word == key.encode() or word.endswith(b"." + key.encode()) or text == key.encode():
                    return line
        return here


_KINDS: dict[Any, str] = {str: "text in quotes", list: "a list", dict: "a table", int: "a whole number"}


def _plain(text: str) -> bool:
    return bool(text) and text.isprintable() and text[0] not in "- " and text[-1] != " "


def _duration(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= 86_400


def _nearest(key: str, kinds: Mapping[str, Any], prefix: str) -> str:
    import difflib  # on the way to an error only

    near = difflib.get_close_matches(key, list(kinds), n=1, cutoff=0.5)
    if near:
        return f"; did you mean `{prefix}{near[0]}`?"
    return f"; known are {', '.join(kinds)}"


# ------------------------------------------------------------------------------------------ writing


def _change(settings: Settings, change: Callable[[Any, Config], None]) -> Config:
    import tomlkit  # only init, join and their like write

    # A configuration that is kept elsewhere and linked to stays a link.
    path = os.path.realpath(settings.config_file)
    private_folder(os.path.dirname(path))
    lock = os.path.join(settings.state_dir, ".locks", "config")
    with locked(lock, what="the configuration", timeout=30):
        config = load(settings)
        old = read_bytes(path) or b""
        document = tomlkit.parse(old.decode("utf-8"))
        change(document, config)
        data = tomlkit.dumps(document).encode("utf-8")
        if data == old:
            return config
        if not data.strip():
            data = b"# no wires\n"
        changed = _Reader(settings, data).config()
        atomic_write(path, data)
    return changed


def _fill(table: Any, wire: WireConfig, settings: Settings) -> None:
    """Put a wire's values into its table, touching only what differs."""
    identity = {"name": wire.identity_name, "email": wire.identity_email}
    _merge(
        table,
        {
            "name": wire.name,
            "remote": wire.remote,
            "branch": wire.branch,
            # The default place is left out, so that a WIRE_HOME that was moved keeps working.
            "clone": None if wire.clone == settings.default_clone(wire.name) else os.path.abspath(wire.clone),
            "agents": list(wire.agents),
            "identity": {key: value for key, value in identity.items() if value is not None},
            "cadence": {key: list(value) if isinstance(value, tuple) else value for key, value in wire.cadence.items()},
        },
    )


def _merge(table: Any, values: Mapping[str, Any]) -> None:
    for key, value in values.items():
        old = table.get(key)
        if isinstance(value, dict):
            # Member by member: a comment below a table belongs to it, and would go with it.
            if old is not None:
                _merge(old, {**dict.fromkeys(old), **value})
            elif value:
                table[key] = value
        elif value is None:
            if key in table:
                table.remove(key)
        elif old is None or old.unwrap() != value:
            table[key] = value
