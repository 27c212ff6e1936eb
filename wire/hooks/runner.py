"""The long way of a runtime hook: look, decide what this session is told, hand it over, remember that it was.

    status = run(("claude-code", "stop"), surroundings, stdin, hand_over)

Rules that it keeps:

- It ends with 0 unless it blocks on purpose: whatever goes wrong here must not stop somebody's session. It is recorded
  for `wire doctor` instead, and standard output is the runtime's neutral answer.
- Nothing counts as shown before it was handed over.
- All text goes through the runtime's shape, an encoder; what a peer wrote goes through the one renderer before that.
"""

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from wire.errors import StoreError, WireError
from wire.hooks import quick, sessions, texts
from wire.hooks.mail import Mail, wakes
from wire.hooks.runtimes import Event, Runtime, Said, Shows, find
from wire.hooks.sessions import Ground, Kept, Session
from wire.store.paths import Settings
from wire.verbs.health import Health
from wire.verbs.here import Here
from wire.verbs.look import Item

LOOK_AGAIN_SECONDS = 300.0
"""How long an answer holds while no file changes: the ages of messages and of the last look change by themselves."""
LOOK_AGAIN_WAITING_SECONDS = 60.0
"""How often a waiter looks while no file changes, in case that it could not when one did."""
OVERDUE_LOOK_SECONDS = 900.0
"""Not to have looked for so long is worth a word; less than that is a nap of the machine."""
MOST_WAIT_SECONDS = 86_340.0
"""A waiter's longest life: a minute less than the runtime gives it."""
FIRST_PAUSE_SECONDS = 1.0
"""At the end of a turn its waiter lets the other hook go first."""

_LATE = "late:"

HandOver = Callable[[Said], None]
Pause = Callable[[float], object]


class Surroundings(NamedTuple):
    """What a process was given.

    Attributes:
        environ: its environment.
        cwd: its folder.
        wire: the wire that was named on the command line.
        agent: the agent that was named there.
    """

    environ: Mapping[str, str]
    cwd: str
    wire: str | None = None
    agent: str | None = None

    def settings(self) -> Settings:
        """Return what they say."""
        return Settings.from_environ(self.environ, self.cwd).choosing(wire=self.wire, agent=self.agent)


class Outcome(NamedTuple):
    """What was said, how the run went, and what went wrong."""

    said: Said
    outcome: str
    problem: str = ""


def run(
    words: Sequence[str], around: Surroundings, stdin: bytes, hand_over: HandOver, pause: Pause = time.sleep
) -> int:
    """Run one hook and return its exit status.

    Args:
        words: the runtime and the event.
        around: environment and folder.
        stdin: what the runtime told.
        hand_over: prints, and returns when it was taken; raises OSError when nobody took it.
        pause: waits for some seconds, and raises OSError when nobody is there any more; for the waiter.
    """
    runtime = find(words[0])
    event = runtime.event(words[1]) if runtime is not None else None
    if runtime is None or event is None:
        # Settings may be older or newer than this program. Status 2 would block the session.
        hand_over(Said(err=f"wire: there is no hook {' '.join(words)[:80]!r} in this version; it did nothing\n"))
        return 0
    try:
        ended = _Hook(runtime, event, around, stdin, hand_over, pause).run()
    except OSError as error:
        ended = Outcome(Said(event.neutral), "failed", f"{type(error).__name__}: {error.strerror or error}")
    except WireError as error:
        ended = Outcome(Said(event.neutral), "failed", f"{error.reason}: {error.message}")
    except Exception as error:  # noqa: BLE001  # the edge of somebody else's session: see the rules above
        ended = Outcome(Said(event.neutral), "failed", f"an error inside wire: {type(error).__name__}: {error}")
    try:
        state_dir = quick.state_folder(around.environ, around.cwd)
    except KeyError:
        state_dir = None
    if state_dir is not None:
        sessions.note_run(state_dir, runtime.name, event.name, ended.outcome, ended.problem)
    if ended.outcome == "shown":
        return ended.said.status
    try:
        hand_over(ended.said)
    except OSError:
        return 0
    return 0


class _Hook:
    """One run of one hook."""

    def __init__(
        self, runtime: Runtime, event: Event, around: Surroundings, stdin: bytes, hand_over: HandOver, pause: Pause
    ) -> None:
        self._runtime = runtime
        self._event = event
        self._around = around
        self._hand_over = hand_over
        self._pause = pause
        self._problem = ""
        self._told = _parse(stdin)
        self._named = quick.session_of(self._told)

    def run(self) -> Outcome:
        settings = self._around.settings()
        session = Session.of(settings.state_dir, self._runtime.name, self._named)
        if self._told.get("agent_id"):
            # A helper that the session started, within the session: what is told to it, the session never sees.
            return self._quiet()
        if self._event.shows is Shows.END:
            return self._end(settings, session)
        if self._event.shows is Shows.WAIT and not self._runtime.idles(self._around.environ):
            return self._quiet()
        here = Here.find(settings)
        if self._event.shows is Shows.WAIT:
            return self._wait(here, session)
        if self._event.shows is Shows.BEGIN:
            for gone in sessions.sweep(settings.state_dir):
                _drop_cursors(settings, gone)
        ground = self._ground(here)
        with session.held():
            mail, kept = _opened(here, session)
            if self._event.shows is Shows.BEGIN:
                return self._tell(mail, session, kept, self._beginning(mail, kept))
            if self._event.shows is Shows.OWED:
                if self._runtime.stopping(self._told):
                    return self._quiet()
                telling = self._owed(mail, kept)
            else:
                telling = self._new(mail, kept)
            if not telling.text:
                session.settle(self._event.name, self._event.neutral, ground)
                return self._quiet()
            return self._tell(mail, session, kept, telling)

    def _quiet(self) -> Outcome:
        return Outcome(Said(self._event.neutral), "quiet", self._problem)

    # What is told

    def _beginning(self, mail: Mail, kept: Kept) -> "_Telling":
        late = self._late(mail, kept)
        again = self._told.get("source") == "compact"
        head = texts.beginning(mail.here, mail.agent, mail.health, mail.total, late.owed, again=again)
        head = "\n".join((head, *late.lines))
        telling = self._telling(mail, head, mail.items, total=mail.total, unwell=_unwell(mail.health))
        return telling._replace(asked=late.keys)

    def _new(self, mail: Mail, kept: Kept) -> "_Telling":
        unwell = _unwell(mail.health)
        late = self._late(mail, kept)
        lines = [texts.unwell(mail.health)] if unwell and not kept.unwell else []
        head = "\n".join([*lines, *late.lines])
        telling = self._telling(mail, head, mail.items, total=mail.total, unwell=unwell)
        return telling._replace(asked=late.keys)

    def _owed(self, mail: Mail, kept: Kept) -> "_Telling":
        """Return what keeps a turn going: each demand once, with its text where the session has not seen it."""
        owed = {one.id: one for one in mail.owed() if one.id not in kept.asked}
        if not owed:
            return _Telling("", (), (), kept.unwell)
        unseen = [item for item in mail.items if item.id in owed]
        unread = {item.id for item in unseen}
        seen = [one for one in owed.values() if one.id not in unread][: texts.MOST_NAMED]
        telling = self._telling(mail, texts.owed(mail.agent, len(owed), seen), unseen, unwell=kept.unwell)
        return telling._replace(asked=(*(item.id for item in telling.shown), *(one.id for one in seen)))

    def _late(self, mail: Mail, kept: Kept) -> "_Late":
        """Return what is owed, and lines about what is overdue on either side, each told once."""
        try:
            owed, overdue = mail.owed(), mail.overdue()
        except StoreError as error:
            # The book of receipts can be made again; what is new must not wait for that.
            self._problem = f"{error.reason}: {error.message}"
            return _Late((), (), ())
        lines = {f"{_LATE}{one.id}": texts.late_here(one) for one in owed if one.overdue}
        lines |= {f"{_LATE}{one.id}": texts.late_there(one) for one in overdue}
        fresh = {key: line for key, line in lines.items() if key not in kept.asked}
        keys = tuple(fresh)[: texts.MOST_LATE]
        return _Late(tuple(one.id for one in owed), tuple(fresh[key] for key in keys), keys)

    def _waking(self, mail: Mail, kept: Kept) -> "_Telling":
        if not any(wakes(item) for item in mail.items):
            return _Telling("", (), (), kept.unwell)
        return self._telling(mail, texts.WOKEN, mail.items, total=mail.total, unwell=kept.unwell)

    def _telling(
        self, mail: Mail, head: str, items: Sequence[Item], *, unwell: bool, total: int | None = None
    ) -> "_Telling":
        room = self._runtime.limit - len(head) - 2
        while True:
            said = mail.digest(items, room, total=total)
            text = "\n\n".join(part for part in (head, said.text) if part)
            if len(text.encode()) <= self._runtime.limit_bytes or room <= texts.LEAST_ROOM:
                break
            room = max(room * 3 // 4, texts.LEAST_ROOM)
        return _Telling(text, said.shown, (), unwell)

    def _tell(self, mail: Mail, session: Session, kept: Kept, telling: "_Telling") -> Outcome:
        """Hand a text over, and only then remember it. The session is held."""
        said = self._event.shape(self._event.native, telling.text)
        self._hand_over(said)
        try:
            session.unsettle()
            mail.save(telling.shown)
            session.save(kept._replace(asked=(*kept.asked, *telling.asked), unwell=telling.unwell))
        except (WireError, OSError) as error:
            # It was told, and will be once more: nothing else may be printed behind it.
            self._problem = f"told, and not noted: {error}"
        return Outcome(said, "shown", self._problem)

    # Beside the session, and behind it

    def _wait(self, here: Here, session: Session) -> Outcome:
        """Block until something is new that is worth waking for; one process per session."""
        from wire.errors import Busy
        from wire.store.files import locked, private_folder
        from wire.verbs.following import changes

        private_folder(session.folder)
        try:
            with locked(session.waiter, what="the waiter", timeout=0):
                pause = self._until(time.monotonic() + MOST_WAIT_SECONDS)
                pause(FIRST_PAUSE_SECONDS)
                for number, _ in enumerate(changes(here, pause, every=LOOK_AGAIN_WAITING_SECONDS)):
                    woken = self._woken(here, session, patient=number > 0)
                    if woken is not None:
                        return woken
        except (Busy, _Over, BrokenPipeError):
            pass  # another one waits, the time is over, or the runtime is gone
        return self._quiet()

    def _woken(self, here: Here, session: Session, *, patient: bool) -> Outcome | None:
        """Tell the session what is worth waking it for; None where nothing is, or it could not be found out now."""
        try:
            with session.held():
                mail, kept = _opened(here, session)
                telling = self._waking(mail, kept)
                return self._tell(mail, session, kept, telling) if telling.text else None
        except WireError as error:
            # What is wrong from the beginning is said at once. Later it may be a full disk, or a hook of the same
            # session that takes its time: a waiter lives for a day, and looks again.
            if not patient:
                raise
            self._problem = f"{error.reason}: {error.message}"
            return None

    def _until(self, deadline: float) -> Pause:
        def pause(seconds: float) -> None:
            if time.monotonic() >= deadline:
                raise _Over
            self._pause(seconds)

        return pause

    def _end(self, settings: Settings, session: Session) -> Outcome:
        session.end_waiter()
        _drop_cursors(settings, session)
        session.forget()
        return self._quiet()

    def _ground(self, here: Here) -> Ground:
        """Return on what the answer will rest, before anything of it is read."""
        around = self._around
        files = [here.settings.config_file, here.places.pin_file, *_project_files(around.cwd)]
        now = time.time()
        return Ground(
            around.cwd,
            [around.environ.get(name) for name in quick.DEPENDS_ON],
            [(path, quick.signature(path)) for path in files],
            now,
            now + LOOK_AGAIN_SECONDS,
        )


class _Over(Exception):
    """A waiter's time is over."""


class _Late(NamedTuple):
    """What is owed, and what is overdue.

    Attributes:
        owed: ids of messages that wait for an answer of the agent.
        lines: what is to be said of what is overdue.
        keys: under which it is remembered that it was.
    """

    owed: tuple[str, ...]
    lines: tuple[str, ...]
    keys: tuple[str, ...]


class _Telling(NamedTuple):
    """What a session is to be told.

    Attributes:
        text: empty for nothing.
        shown: the messages that the text shows.
        asked: what it asks for, or says to be late: never again to this session.
        unwell: whether the session knows then that nobody looked lately.
    """

    text: str
    shown: tuple[Item, ...]
    asked: tuple[str, ...]
    unwell: bool


def _parse(stdin: bytes) -> Mapping[str, Any]:
    try:
        told = json.loads(stdin)
    except (ValueError, RecursionError) as error:
        raise WireError(f"standard input is no JSON: {error}", reason="bad-input") from None
    if not isinstance(told, dict):
        raise WireError("standard input is not a JSON object", reason="bad-input")
    try:
        quick.session_of(told)
    except ValueError as error:
        raise WireError(str(error), reason="bad-input") from None
    return told


def _opened(here: Here, session: Session) -> tuple[Mail, Kept]:
    """Return the mail of a session that is held, and what is kept for it, from its beginning on."""
    mail = Mail(here, session.reader)
    kept = session.load(f"{here.pin().wire}:{mail.agent}")
    if not kept.begun:
        mail.begin()
        kept = kept._replace(begun=True)
        session.save(kept)
    return mail, kept


def _unwell(health: Health) -> bool:
    return not health.looked and (health.age is None or health.age > OVERDUE_LOOK_SECONDS)


def _project_files(cwd: str) -> Iterator[str]:
    """Yield where a project file would be found, upward to the root."""
    from wire.store.paths import PROJECT_FILE

    while True:
        yield os.path.join(cwd, PROJECT_FILE)
        parent = os.path.dirname(cwd)
        if parent == cwd:
            return
        cwd = parent


def _drop_cursors(settings: Settings, session: Session) -> None:
    from wire.store import config as configs
    from wire.store import cursors
    from wire.store.paths import WirePlaces

    for wire in configs.load(settings).wires:
        places = WirePlaces(settings.state_dir, wire.name, wire.clone)
        for agent in wire.agents:
            cursors.forget(places.cursors_dir, agent, session.reader)
