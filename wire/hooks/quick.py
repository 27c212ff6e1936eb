"""The first look of a runtime hook: is everything as it was when this session last had nothing to be told?

    answer = settled(["claude-code", "stop"], os.environ, os.getcwd(), stdin)
    if answer is None: …                          the long way, see `wire.hooks.runner`

A hook runs at every prompt and every turn's end, nearly always for nothing. So what the long way found is remembered
beside the session, with the signature of each file that it depended on; while none of them changed, the answer is the
runtime's neutral one. Nothing of `wire` is imported here, and nothing heavier than `json`. In doubt it returns None.
"""

import json
import os
import time

TYPE_CHECKING = False  # `typing` and `collections.abc` cost milliseconds
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FOLDER = ".hooks"
"""In the state folder; the dot keeps it apart from every wire's name."""
QUIET = "quiet.json"
DEPENDS_ON = ("HOME", "WIRE_HOME", "WIRE_AGENT", "WIRE_NAME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")
SESSION_MEMBERS = ("session_id", "conversation_id")
_PLAIN = frozenset("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_")
_LONGEST = 80


def settled(words: "Sequence[str]", environ: "Mapping[str, str]", cwd: str, stdin: bytes) -> str | None:
    """Return what to print where nothing changed since this session had nothing to be told, else None.

    Args:
        words: the runtime and the event.
        environ: the process's environment.
        cwd: its folder, which chooses a project's wire and agent.
        stdin: what the runtime told about the event.
    """
    try:
        runtime, event = words
        told = json.loads(stdin)
        folder = session_folder(state_folder(environ, cwd), runtime, session_of(told))
        with open(os.path.join(folder, QUIET), "rb", buffering=0) as file:
            found = json.loads(file.readall())
        answer = found["quiet"].get(event)
        if (
            not isinstance(answer, str)
            or found["cwd"] != cwd
            or found["environ"] != [environ.get(name) for name in DEPENDS_ON]
            or not found["since"] <= time.time() < found["until"]
            or any(signature(path) != then for path, then in found["files"])
        ):
            return None
        os.utime(run_file(state_folder(environ, cwd), runtime, event))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return answer


def state_folder(environ: "Mapping[str, str]", cwd: str) -> str:
    """Return `Settings.state_dir` of an environment; a test compares them. Raises KeyError without a home."""
    own = environ.get("WIRE_HOME")
    if own:
        return os.path.join(os.path.normpath(os.path.join(cwd, own)), "state")
    given = environ.get("XDG_STATE_HOME", "")
    if os.path.isabs(given):
        return os.path.join(given, "wire")
    home = environ["HOME"]
    if not os.path.isabs(home):
        raise KeyError("HOME")
    return os.path.join(home, ".local/state", "wire")


def session_of(told: object) -> str:
    """Return the id of the session that a runtime names on standard input; raises ValueError."""
    if isinstance(told, dict):
        for name in SESSION_MEMBERS:
            session = told.get(name)
            if isinstance(session, str) and session:
                return session
    raise ValueError("an object with `session_id` was expected on standard input")


def session_folder(state: str, runtime: str, session: str) -> str:
    """Return the folder of one session of a runtime; the id is the runtime's, and may be anything."""
    if len(session) > _LONGEST or not _PLAIN.issuperset(session):
        from hashlib import sha256  # no runtime has such ids today

        session = "." + sha256(session.encode("utf-8", "surrogatepass")).hexdigest()
    return os.path.join(state, FOLDER, "sessions", f"{runtime}.{session}")


def run_file(state: str, runtime: str, event: str) -> str:
    """Return the file whose time says when a hook last ran, and whose content how that ended."""
    return os.path.join(state, FOLDER, "runs", f"{runtime}.{event}")


def signature(path: str) -> list[int] | None:
    """Return what changes when a file does, None where there is none."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return [status.st_ino, status.st_size, status.st_mtime_ns]
