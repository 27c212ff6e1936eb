"""`wire mcp` in a runtime's list of tool servers: put in, taken out, and compared.

    report = install("gemini", scope)       `wire hooks install gemini --mcp`

The entry is called `wire` and runs `wire mcp`, by name and not by a path of this machine. `--as` and `--wire` of the
installing command stand in it, and one that acts for another agent is brought up to date; what else somebody added to
its arguments or its environment stays. An entry of that name which runs something else is somebody else's.
The rules for files are those of `wire.hooks.settingsfile`; Codex's is TOML, whose comments stay. pi has no such list.
"""

import json
import os
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, NamedTuple

from wire.errors import UsageError
from wire.hooks.installer import Report, Scope, State
from wire.hooks.settingsfile import BACKUP, indent_of, malformed, replace
from wire.store.files import read_bytes

NAME = "wire"
RUNTIMES = ("claude-code", "codex", "gemini", "opencode", "cursor")
"""Those that have a list of tool servers."""
_COMMAND, _ARGS = "wire", ["mcp"]


class Listed(NamedTuple):
    """Where a runtime has its list: the file, the member that holds it, and our entry in its form."""

    path: str
    member: str
    entry: Mapping[str, Any]


def listed(runtime: str, scope: Scope) -> Listed:
    """Return where a runtime looks for tool servers.

    Raises:
        UsageError: reason `no-mcp`, the runtime has none.
    """
    environ, project = scope.settings.environ, scope.folder
    home = environ.get("HOME", "")
    args = [*_ARGS, *_chosen(scope)]
    plain = {"command": _COMMAND, "args": args}
    match runtime:
        case "claude-code":
            own = environ.get("CLAUDE_CONFIG_DIR") or home
            path = os.path.join(project, ".mcp.json") if project else os.path.join(own, ".claude.json")
            return Listed(path, "mcpServers", {"type": "stdio", **plain})
        case "codex":
            own = environ.get("CODEX_HOME") or os.path.join(home, ".codex")
            return Listed(
                os.path.join(os.path.join(project, ".codex") if project else own, "config.toml"), "mcp_servers", plain
            )
        case "gemini":
            own = project or environ.get("GEMINI_CLI_HOME") or home
            return Listed(os.path.join(own, ".gemini", "settings.json"), "mcpServers", plain)
        case "cursor":
            return Listed(os.path.join(project or home, ".cursor", "mcp.json"), "mcpServers", plain)
        case "opencode":
            given = environ.get("XDG_CONFIG_HOME", "")
            config = os.path.join(given if os.path.isabs(given) else os.path.join(home, ".config"), "opencode")
            own = project or environ.get("OPENCODE_CONFIG_DIR") or config
            entry = {"type": "local", "command": [_COMMAND, *args], "enabled": True}
            return Listed(os.path.join(own, "opencode.json"), "mcp", entry)
    raise UsageError(f"{runtime} has no tool servers", reason="no-mcp", next_step=f"wire hooks install {runtime}")


def look(runtime: str, scope: Scope) -> Report:
    """Return how the entry stands; raises UsageError, Corrupt."""
    where = listed(runtime, scope)
    entry = _servers(where, _read(where.path)).get(NAME)
    report = Report(runtime, where.path, State.MISSING, project=scope.folder)
    if entry is None:
        return report
    if not _is_ours(entry):
        return report._replace(state=State.FOREIGN, why=f"its server {NAME!r} is not `wire mcp`")
    words, chosen = _words(entry), _chosen(scope)
    for option, name in zip(chosen[::2], chosen[1::2], strict=True):
        if name != _value(words, option):
            return report._replace(state=State.DRIFTED, why=f"it does not say {option} {name}")
    return report._replace(state=State.INSTALLED)


def free(runtime: str, scope: Scope) -> Report:
    """Return how the entry stands, if it may be put in.

    Raises:
        Corrupt: reason `settings-malformed`, the file was left as it is.
        UsageError: reason `no-mcp`, or `foreign-mcp`: another server has the name.
    """
    report = look(runtime, scope)
    if report.state is State.FOREIGN:
        raise UsageError(
            f"{report.path} has a server {NAME!r} that is not `wire mcp`; it was left as it is",
            reason="foreign-mcp",
            next_step="give that server another name, then install again",
        )
    return report


def install(runtime: str, scope: Scope) -> Report:
    """Put the entry in, or bring it up to date; a second time changes nothing. Raises as `free`."""
    right = free(runtime, scope).state is State.INSTALLED
    if not right:
        _change(listed(runtime, scope), put=True)
    return look(runtime, scope)._replace(changed=not right)


def uninstall(runtime: str, scope: Scope) -> Report:
    """Take our entry out and leave everything else; raises as `look`."""
    where = listed(runtime, scope)
    ours = look(runtime, scope).state in (State.INSTALLED, State.DRIFTED)
    if ours:
        _change(where, put=False)
    return look(runtime, scope)._replace(changed=ours)


def _chosen(scope: Scope) -> list[str]:
    """Return the options of the installing command that say who is meant."""
    settings = scope.settings
    found = ["--as", settings.agent] if settings.agent and settings.agent_from == "--as" else []
    return found + (["--wire", settings.wire] if settings.wire and settings.wire_from == "--wire" else [])


def _words(entry: Mapping[str, Any]) -> list[str]:
    """Return the words of an entry's command."""
    command = entry.get("command")
    args = entry.get("args")
    words = list(command) if isinstance(command, list) else [command, *(args if isinstance(args, list) else [])]
    return [str(word) for word in words]


def _value(words: list[str], option: str) -> str | None:
    return next((value for name, value in pairwise(words) if name == option), None)


def _is_ours(entry: Any) -> bool:
    return isinstance(entry, Mapping) and _words(entry)[:2] == [_COMMAND, *_ARGS]


def _changed(entry: Any, where: Listed) -> dict[str, Any]:
    """Return our entry as it must be, with what somebody added to the one that is there."""
    if not isinstance(entry, Mapping):
        return dict(where.entry)
    wanted = _words(where.entry)
    rest = _words(entry)[len(_ARGS) + 1 :]
    for option in wanted[len(_ARGS) + 1 :: 2]:
        if option in rest:
            at = rest.index(option)
            del rest[at : at + 2]
    words = [*wanted, *rest]
    said = {"command": words} if isinstance(where.entry["command"], list) else {"command": words[0], "args": words[1:]}
    return {**entry, **said}


def _servers(where: Listed, settings: Mapping[str, Any]) -> Mapping[str, Any]:
    servers = settings.get(where.member, {})
    if not isinstance(servers, Mapping):
        raise malformed(where.path, f"`{where.member}` is no table of servers")
    return servers


def _is_toml(path: str) -> bool:
    return path.endswith(".toml")


def _table() -> Any:
    import tomlkit

    return tomlkit.table(is_super_table=True)


def _read(path: str) -> Any:
    """Return the settings, empty where there is no file; raises Corrupt for what is not understood."""
    data = read_bytes(path)
    try:
        text = (data or b"").decode("utf-8")
        if _is_toml(path):
            import tomlkit

            return tomlkit.parse(text)
        found = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError) as error:
        raise malformed(path, f"not plain {'TOML' if _is_toml(path) else 'JSON'}: {error}") from None
    if not isinstance(found, dict):
        raise malformed(path, "an object was expected at the top")
    return found


def _change(where: Listed, *, put: bool) -> None:
    target = os.path.realpath(where.path)
    data = read_bytes(target)
    settings = _read(where.path)
    if put:
        if where.member not in settings:
            settings[where.member] = _table() if _is_toml(where.path) else {}
        servers = settings[where.member]
        servers[NAME] = _changed(servers.get(NAME), where)
    else:
        del settings[where.member][NAME]
        if not settings[where.member]:
            del settings[where.member]
    if _is_toml(where.path):
        import tomlkit

        text = tomlkit.dumps(settings)
    else:
        text = json.dumps(settings, ensure_ascii=False, indent=indent_of(data or b"")) + "\n"
    replace(target, data, text, keep=not os.path.lexists(target + BACKUP))
