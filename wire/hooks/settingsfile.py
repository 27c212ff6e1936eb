"""A runtime's settings file in JSON: our entries go in and come out, everybody else's stay as they are.

    found = read(path)
    changed = merged(found, place, "claude-code")

Rules that it keeps: a file that is not understood to the last byte is refused, never written over; what was there
before our first entry is kept beside it; a link is followed and its target replaced, with the mode that it had; where
nothing has to change nothing is written.
"""

import json
import os
import stat
from collections.abc import Iterator, Mapping
from typing import Any

from wire.errors import Corrupt
from wire.hooks.runtimes import Place, owns
from wire.store.files import atomic_write, read_bytes, store_error

BACKUP = ".before-wire"
_HOOKS = "hooks"


def read(path: str) -> dict[str, Any]:
    """Return the settings, empty where there is no file.

    Raises:
        Corrupt: reason `settings-malformed`; the text says where, and nothing is changed.
    """
    data = read_bytes(path)
    if data is None:
        return {}
    try:
        found = json.loads(data.decode("utf-8"), object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise malformed(path, f"not plain JSON: {error}") from None
    if not isinstance(found, dict):
        raise malformed(path, "an object was expected at the top")
    hooks = found.get(_HOOKS, {})
    if not isinstance(hooks, dict):
        raise malformed(path, "`hooks` is not an object")
    for event, groups in hooks.items():
        if not isinstance(groups, list):
            raise malformed(path, f"`hooks.{event[:64]}` is not a list")
    return found


def merged(settings: Mapping[str, Any], place: Place, runtime: str) -> dict[str, Any]:
    """Return settings with our entries as they must be, behind those of others."""
    found = without(settings, runtime)
    for name, value in (place.head or {}).items():
        found = {name: value, **found} if name not in found else found
    hooks = dict(found.get(_HOOKS, {}))
    for event, groups in (place.entries or {}).items():
        hooks[event] = [*hooks.get(event, []), *groups]
    return {**found, _HOOKS: hooks}


def without(settings: Mapping[str, Any], runtime: str) -> dict[str, Any]:
    """Return settings without our entries; what is empty only because of that goes as well."""
    if not any(True for _ in ours(settings, runtime)):
        return dict(settings)
    hooks: dict[str, Any] = {}
    for event, groups in settings[_HOOKS].items():
        kept = [group for group in (_less(group, runtime) for group in groups) if group is not None]
        if kept or not groups:
            hooks[event] = kept
    if hooks:
        return {**settings, _HOOKS: hooks}
    return {name: value for name, value in settings.items() if name != _HOOKS}


def ours(settings: Mapping[str, Any], runtime: str) -> Iterator[tuple[str, Any]]:
    """Yield our entries with their events, in the order of the file: what is compared to find a drift."""
    for event, groups in settings.get(_HOOKS, {}).items():
        for group in groups:
            if not isinstance(group, dict):
                continue
            if owns(group.get("command"), runtime):
                yield event, group
            inner = group.get(_HOOKS)
            if isinstance(inner, list) and any(_is_ours(hook, runtime) for hook in inner):
                yield event, {**group, _HOOKS: [hook for hook in inner if _is_ours(hook, runtime)]}


def write(path: str, before: Mapping[str, Any], after: Mapping[str, Any], runtime: str) -> bool:
    """Write settings where they differ, with what was there before kept beside them; return whether they did."""
    data = read_bytes(path)
    if before == after and data is not None:
        return False
    text = json.dumps(after, ensure_ascii=False, indent=indent_of(data or b"")) + "\n"
    replace(os.path.realpath(path), data, text, keep=not any(True for _ in ours(before, runtime)))
    return True


def replace(target: str, before: bytes | None, text: str, *, keep: bool) -> None:
    """Write a settings file with the mode that it had; with `keep`, what was there stays beside it.

    Raises:
        StoreError, DiskFull: it is as it was.
    """
    try:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        mode = stat.S_IMODE(os.stat(target).st_mode) if before is not None else 0o600
    except OSError as error:
        raise store_error(error, "write", target) from error
    if before is not None and keep:
        atomic_write(target + BACKUP, before, mode=mode)
    atomic_write(target, text.encode("utf-8", "surrogatepass"), mode=mode)


def _less(group: Any, runtime: str) -> Any:
    """Return a group without our hooks; None when nothing else was in it."""
    if _is_ours(group, runtime):
        return None
    inner = group.get(_HOOKS) if isinstance(group, dict) else None
    if not isinstance(inner, list) or not any(_is_ours(hook, runtime) for hook in inner):
        return group
    kept = [hook for hook in inner if not _is_ours(hook, runtime)]
    return {**group, _HOOKS: kept} if kept else None


def _is_ours(hook: Any, runtime: str) -> bool:
    return isinstance(hook, dict) and owns(hook.get("command"), runtime)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a member stands twice in one object")
    return found


def indent_of(data: bytes) -> int | str:
    """Return how a file of JSON is indented: a number of blanks, or a tab."""
    for line in data.split(b"\n")[1:]:
        blank = line[: len(line) - len(line.lstrip(b" \t"))]
        if blank:
            return "\t" if blank.startswith(b"\t") else len(blank)
    return 2


def malformed(path: str, why: str) -> Corrupt:
    """Return the error for a settings file that is not understood."""
    return Corrupt(
        f"{path}: {why}; it was left as it is",
        reason="settings-malformed",
        next_step="mend the file with an editor, then install again",
    )
