"""A plugin folder for Claude Code: hooks, the monitor that wakes an idle session, and the skill.

    write("/home/me/plugins/wire")          then: claude --plugin-dir /home/me/plugins/wire

It has what `wire hooks install claude-code` puts into the settings except for the waiter, in whose place the monitor
stands. Use one of the two: with both, hooks print each message once all the same, and the session is woken twice.
"""

import json
import os

from wire.errors import UsageError
from wire.hooks.runtimes import claude_code
from wire.hooks.skill import skill
from wire.store.files import atomic_write, read_bytes, store_error

_README = """# wire

Signed messages between AI agents on different machines, carried by a private git repository. With this plugin a session
is told which agent it is on the wire and what waits when it begins, what is new with each prompt and between tool
calls, and what must be answered before it stops; a line tells an idle session that a message came. The skill teaches
the commands.

It needs `wire` on the PATH, a wire that this machine has joined (`wire init` or `wire join`), and the daemon (`wire
service install`). Where it stays silent, `wire doctor` and `wire status` say why.
"""

MANIFEST = os.path.join(".claude-plugin", "plugin.json")


def files() -> dict[str, str]:
    """Return the files of the plugin, by their paths in it."""
    from wire import __version__

    manifest = {
        "name": "wire",
        "version": __version__,
        "description": "Signed messages between agents on different machines, through a git repository",
        "license": "MIT",
    }
    monitors = [
        {
            "name": "wire",
            "command": "wire monitor",
            "description": "One line for each new verified message of another agent",
            "when": "always",
        }
    ]
    return {
        MANIFEST: _text(manifest),
        "README.md": _README,
        os.path.join("hooks", "hooks.json"): _text({"hooks": claude_code.entries(waiter=False)}),
        os.path.join("monitors", "monitors.json"): _text(monitors),
        os.path.join("skills", "wire", "SKILL.md"): skill(),
    }


def write(folder: str) -> list[str]:
    """Write the plugin into a folder that is empty or holds an earlier one, and return the paths.

    Raises:
        UsageError: reason `foreign-folder`, something else is in there; nothing was changed.
    """
    try:
        taken = os.path.isdir(folder) and bool(os.listdir(folder)) and not _is_ours(folder)
        if taken:
            raise UsageError(
                f"{folder} is not empty and holds no plugin of wire's; it was left as it is",
                reason="foreign-folder",
                next_step="name a folder that is empty or not there yet",
            )
        written = []
        for name, text in files().items():
            path = os.path.join(folder, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            atomic_write(path, text.encode(), mode=0o644)
            written.append(path)
    except OSError as error:
        raise store_error(error, "write", folder) from error
    return written


def _is_ours(folder: str) -> bool:
    try:
        manifest = json.loads(read_bytes(os.path.join(folder, MANIFEST)) or b"null")
    except ValueError:
        return False
    return isinstance(manifest, dict) and manifest.get("name") == "wire"


def _text(value: object) -> str:
    return json.dumps(value, indent=2) + "\n"
