"""The Python API: one wire on this machine, and the verbs.

    from wire import Wire
    here = Wire.here(agent="mac")
    sent = here.send("spark", "hello")
    for item in here.tail().items: print(item.id, item.line.sender)

Every verb lives once, in `wire.verbs`; this class, the command line, the hooks and the MCP server are doors to it. What
a verb needs is imported when it is called, since sending must not pay for what reading needs.
"""

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from wire.store.paths import Settings
from wire.verbs.here import Here

if TYPE_CHECKING:
    from wire.daemon.report import Report
    from wire.verbs.reading import Filters, Item, Reading
    from wire.verbs.sending import Draft, Outcome, Sent


class Wire:
    """A configured wire; see the module's text. All methods raise `WireError` and nothing else."""

    def __init__(self, here: Here) -> None:
        self._here = here

    @classmethod
    def here(
        cls, *, wire: str | None = None, agent: str | None = None, environ: Mapping[str, str] | None = None
    ) -> "Wire":
        """Return the wire that is meant: named, chosen by the environment or the project, or the only one."""
        settings = Settings.from_environ(os.environ if environ is None else environ, os.getcwd())
        return cls(Here.find(settings.choosing(wire=wire, agent=agent)))

    def send(self, to: str, body: str | dict[str, Any] | None = None, **members: Any) -> "Sent":
        """Send one message; durable when this returns. Members are those of `wire.verbs.sending.Draft`."""
        from wire.verbs.sending import Draft

        return self.send_all([Draft(to, body=body, **members)]).sent[0]

    def send_all(self, drafts: "Sequence[Draft]") -> "Outcome":
        """Send many messages with one fsync per channel segment."""
        from wire.verbs import sending

        return sending.send(self._here, drafts)

    def reply(self, message_id: str, body: str | dict[str, Any], **members: Any) -> "Sent":
        """Answer a message: its sender, `re` and `thread` are filled in."""
        from wire.verbs import sending

        draft = sending.Draft("", type=members.pop("type", "reply"), body=body, **members)
        return self.send_all([sending.reply(self._here, message_id, draft)]).sent[0]

    def wait(self, ids: Sequence[str], state: str = "pushed", timeout: float = 30.0) -> "list[Sent]":
        """Wait until all messages reached a state; raises NotReached."""
        from wire.verbs import sending

        return sending.wait(self._here, ids, state, timeout)

    def tail(self, filters: "Filters | None" = None, **how: Any) -> "Reading":
        """Return new messages for the agent; call `save()` on the result when they were handed over."""
        from wire.verbs import reading

        return reading.tail(self._here, filters or reading.Filters(), **how)

    def show(self, message_id: str) -> "Item":
        """Return one message with everything known of it."""
        from wire.verbs import reading

        return reading.find(self._here, message_id)

    def log(self, count: int = 50, **how: Any) -> "list[Item]":
        """Return the last messages of the whole wire in causal order."""
        from wire.verbs import reading

        return reading.log(self._here, count=count, **how)

    def thread(self, message_id: str) -> "list[Item]":
        """Return one conversation."""
        from wire.verbs import reading

        return reading.thread(self._here, message_id)

    def sync(self) -> "Report":
        """Run one cycle now."""
        from wire.verbs import operating

        return operating.sync(self._here)
