"""The daemon's log: one event a line on standard error, `name=value`, for people, `grep` and journald.

    log = Log(sys.stderr.fileno(), level="info", journald=False)
    log.info("sent", wire="team", lines=3, took="0.21s")
    2026-11-29T11:20:00.123Z info sent wire=team lines=3 took=0.21s

Values are quoted where they hold more than a word, so that nobody's text can look like another event. Texts of git come
in redacted (see `wire.gitio`), and nothing else here ever held a secret. A log that cannot be written stops nobody.
"""

import json
import logging
import os
import re
import threading
from contextlib import suppress
from typing import Any

from wire.store.files import utc_now

LEVELS = ("debug", "info", "warning", "error")
_PRIORITY = {"debug": 7, "info": 6, "warning": 4, "error": 3}
_WORD = re.compile(r"[\w.,:;/@+%*()\[\]{}~^|!?&#$-]+", re.ASCII)
_LONGEST = 2000


class Log:
    """A log on a descriptor; any thread may write.

    Args:
        descriptor: where to; standard error's.
        level: what is less is left out; one of `LEVELS`.
        journald: mark the priority instead of writing the time, which journald adds itself.
    """

    def __init__(self, descriptor: int, *, level: str = "info", journald: bool = False) -> None:
        self._descriptor = descriptor
        self._least = LEVELS.index(level)
        self._journald = journald
        self._lock = threading.Lock()

    def debug(self, event: str, **values: Any) -> None:
        """Write what only somebody who looks for a fault wants to see."""
        self.write("debug", event, **values)

    def info(self, event: str, **values: Any) -> None:
        """Write that something happened as it should."""
        self.write("info", event, **values)

    def warning(self, event: str, **values: Any) -> None:
        """Write that something went wrong which the daemon copes with."""
        self.write("warning", event, **values)

    def error(self, event: str, **values: Any) -> None:
        """Write that something needs a person."""
        self.write("error", event, **values)

    def write(self, level: str, event: str, **values: Any) -> None:
        """Write one event; members that are None are left out."""
        if LEVELS.index(level) < self._least:
            return
        said = " ".join([event, *(f"{name}={_text(value)}" for name, value in values.items() if value is not None)])
        start = f"<{_PRIORITY[level]}>" if self._journald else f"{utc_now()} {level} "
        with self._lock, suppress(OSError):
            os.write(self._descriptor, f"{start}{said}\n".encode("utf-8", "backslashreplace"))

    def take_over(self, *names: str) -> None:
        """Let what libraries log through `logging` under these names come here, as `debug`."""
        for name in names:
            logger = logging.getLogger(name)
            logger.handlers = [_Handler(self)]
            logger.propagate = False


class _Handler(logging.Handler):
    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        self._log.debug("library", name=record.name, said=record.getMessage())


def _text(value: Any) -> str:
    text = str(value)
    if len(text) > _LONGEST:
        text = text[:_LONGEST] + "…"
    return text if _WORD.fullmatch(text) else json.dumps(text, ensure_ascii=True)
