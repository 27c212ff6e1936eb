"""One wire, served by one thread: waiting for something to do, and doing it.

    wait        for own lines, for the remote where it is on this machine, for the time, for somebody who asks
    beat        our presences by themselves, where they changed and no round takes them along (see `pulse`)
    gather      where lines come faster than they can be pushed, until they pause, five seconds at most
    round       `rounds.run`: collect, fetch, verify, publish, tell
    look again  what changed meanwhile is worth another round: nothing that happens during one is lost
    note        the stamp, the cadence, the log; packing when it is due and quiet

Rules that it keeps: an event only shortens a wait, what decides is a look at the files; whatever goes wrong in a round
is counted, logged and tried again, and never ends the thread; the thread promises by when it will have shown life, and
who waits for git keeps that promise through git's own time-out.

Other threads may call the methods below "From other threads", and nothing else.
"""

import os
import random
import threading
import time
from typing import Any

from wire.daemon import rounds, transport, upkeep
from wire.daemon.accounting import Accounting
from wire.daemon.beating import Promise
from wire.daemon.cadence import Cadence, Pace
from wire.daemon.claim import Claim
from wire.daemon.eyes import Eyes
from wire.daemon.logs import Log
from wire.daemon.lull import Lull
from wire.daemon.outbox import Outbox
from wire.daemon.pulse import Pulse
from wire.daemon.report import Report
from wire.daemon.site import Site
from wire.daemon.stamp import stamp
from wire.daemon.telling import Teller, interrupted
from wire.daemon.tidy import tidy_up
from wire.daemon.watch import Watcher
from wire.errors import Busy, RemoteError, StoreError, WireError
from wire.gitio import GitFailed
from wire.store import presences
from wire.store.config import WireConfig
from wire.store.paths import Settings
from wire.store.progress import BEAT_SECONDS, Progress

FRESH_SECONDS = 15.0
"""How long after a look the remote's tip counts as known, so that a push is tried before a fetch."""
GATHER_SECONDS = 0.3
"""The pause between lines after which a stream of them counts as over; it doubles while the stream goes on."""
STREAM_SECONDS = 0.15
"""Lines that come this soon after a round that sent some are a stream, however fast they could be pushed."""
PRESENCE_SECONDS = 1.0
"""How soon presences of others are fetched where it shows that there are new ones."""
GATHER_MOST = 5.0
"""How long a line waits at most for others to be pushed with it."""
TIDY_SECONDS, TIDY_MOST = 0.2, 2.0
"""How long after a round the clone is tidied, and how long that may be put off by further rounds."""
LOCK_SECONDS = 60.0
ROUND_SECONDS = 300.0
"""How long a round may take without asking git for anything, apart from the time in which it waits for git."""
SLACK_SECONDS = 30.0

_UPKEEP_SECONDS = 60.0
_UPKEEP_AFTER_FAILURE = 3600.0
_TELL_SECONDS = 3600.0
_NETWORK = frozenset({"network", "timeout"})


class Worker(threading.Thread):
    """The thread of one wire. It gives its claim back when it ends.

    Attributes:
        watching: set once the folders are watched, or known not to be watchable.
    """

    def __init__(self, settings: Settings, config: WireConfig, claim: Claim, log: Log) -> None:
        super().__init__(name=config.name, daemon=True)
        self.config = config
        self.watching = threading.Event()
        self._claim = claim
        self._told = Teller(log, config.name)
        self._site = Site.open(settings, config, lasting=True)
        self._places = self._site.places
        remote = transport.of(config.remote)
        pace = Pace.of(config.cadence, minimum=remote.minimum, budgeted=remote.budgeted)
        self._cadence = Cadence(pace, time.monotonic(), random.random)
        self._bell = threading.Event()
        self._watcher = Watcher(
            self._bell.set,
            lambda why: self._told.say("warning", "watch", mode="polling", why=why),
            off=settings.environ.get("WIRE_WATCH") == "off",
        )
        self._pulse = Pulse(self._places, config.agents)
        self._eyes = Eyes(self._places, config, remote, self._watcher, self._pulse.folders())
        self._accounting = Accounting(self._site)
        self._stamping = threading.Lock()
        self._asked = ""
        self._nap = False
        self._stopping = threading.Event()
        self._promise = time.monotonic() + ROUND_SECONDS
        self._in_round = False
        self._beat = 0.0
        self._claim_trouble = ""
        self._seen_at: float | None = None
        self._pressed = 0
        self._sent_at = -STREAM_SECONDS
        self._far = remote.path is None
        self._look_took: float | None = None
        self._untidy = Lull(TIDY_SECONDS, TIDY_MOST)
        self._upkeep_at = 0.0
        self._tell_at = 0.0

    # From other threads

    def ask(self, why: str) -> None:
        """Have a look now, whatever the cadence says."""
        self._asked = why
        self._bell.set()

    def network_up(self) -> None:
        """Look now if it was the network that failed."""
        if self._told.failure in {f"git-{kind}" for kind in _NETWORK}:
            self.ask("network")

    def resume(self, why: str) -> None:
        """Look now, with new connections: what was open before a nap is dead, and a child that waits on it as well."""
        self._nap = True
        self.ask(why)
        self._site.git.cancel()

    def stop(self) -> None:
        """End after what is being done; see also `cancel`."""
        self._stopping.set()
        self._bell.set()

    def cancel(self) -> None:
        """End what is being done: git children are asked to, and killed after a few seconds."""
        self._stopping.set()
        self._bell.set()
        self._site.git.cancel(stop=True)

    def progressing(self, now: float) -> bool:
        """Return whether the thread keeps its promise to show life (`now` in monotonic seconds)."""
        busy = self._site.git.busy_until()
        if busy is not None:
            self._promise = max(self._promise, busy + SLACK_SECONDS)
        if self._in_round:
            self._promise = max(self._promise, self._site.git.last_ended() + ROUND_SECONDS)
        return self.is_alive() and now <= self._promise

    def show_life(self, now: float) -> None:
        """Write the beat for others to see, if it is due and true."""
        if now - self._beat < BEAT_SECONDS or not self.progressing(now):
            return
        with self._stamping:
            try:
                self._watcher.expect(self._places.progress_file)
                Progress.load(self._places)._replace(**self._life()).save(self._places)
            except StoreError as error:
                self._watcher.expect_nothing()
                self._told.say("debug", "beat", failed=error.message)
                return
            self._beat = now

    def status(self) -> str:
        """Return how it stands in a few words, for the service manager."""
        how = f"not reached ({self._told.failure})" if self._told.failure else self._cadence.name
        return f"{self.config.name}: {how}"

    # The thread

    def run(self) -> None:
        """Serve the wire until told to stop."""
        try:
            self._arm()
            self._eyes.look()  # what is there is the first round's; only what comes is news
            self.watching.set()
            self._clear_up()
            while True:
                why = self._wait()
                if self._stopping.is_set():
                    break
                self._in_round = True
                self._round(why)
                self._in_round = False
        finally:
            self._watcher.close()
            self._site.git.linger(False)
            self._site.git.close_connections()
            self._claim.release()

    # Waiting

    def _wait(self) -> str:
        """Return, in a word, why a round is due now."""
        why, rang = "time", False
        while not self._stopping.is_set():
            now = time.monotonic()
            # Cleared before the looks: whatever comes after them rings again.
            self._bell.clear()
            if asked := self._take_request(now):
                why = asked
            # What rang is looked at first; nothing is waited for before the folders that came are watched.
            armed, rang = not rang, False
            if armed:
                self._arm()
            if self._eyes.look():
                self._cadence.stirred(now)
                why = "lines"
                if not self._pressed and now - self._sent_at < STREAM_SECONDS:
                    self._pressed = 1
            elif self._eyes.remote_moved():
                self._cadence.wake(now)
                why = "remote"
            if self._cadence.due <= now:
                if why == "lines" and self._pressed:
                    self._gather()
                return why
            if not armed:
                continue
            if self._eyes.presence_moved():
                self._cadence.stir_gently(now, PRESENCE_SECONDS)
            if self._untidy.due <= now:
                self._tidy()
                continue
            pause = min(self._cadence.due - now, self._eyes.interval, self._beat_in(now))
            pause = min(pause, self._untidy.due - now, self._site.git.rest())
            if pause <= 0:
                self._beat_alone(now)
                continue
            self._promise = now + pause + SLACK_SECONDS
            rang = self._bell.wait(pause)
        return why

    def _beat_in(self, now: float) -> float:
        """Return in how many seconds our presences are worth a push of their own."""
        if self._seen_at is None or self._told.failure:
            return self._eyes.interval  # who could not look knows nothing to say, and cannot say it
        self._pulse.look(now)
        due = self._pulse.due
        return self._eyes.interval if due is None else max(due, self._cadence.beat(now)) - now

    def _beat_alone(self, now: float) -> None:
        self._promise = now + ROUND_SECONDS
        try:
            count = rounds.beat(self._site, self._promised(eager=True), lock_timeout=LOCK_SECONDS)
        except (WireError, OSError) as error:
            self._pulse.failed(time.monotonic())
            self._told.say("info", "presence", failed=str(error))
        else:
            if count:
                self._pulse.beaten(time.monotonic())
            elif presences.refusal(self._places) is not None:
                self._pulse.rest()
            else:
                self._pulse.failed(time.monotonic())
            self._told.say("debug", "presence", pushed=count)
        self._cadence.spent(now, 1)

    def _promised(self, *, eager: bool = False) -> Promise:
        """Return what our presences may promise: the next slower tier's interval, since quiet may bring it."""
        cadence = self._cadence
        return Promise(cadence.name, cadence.next_interval, cadence.interval * (1 + cadence.pace.jitter), eager)

    def _take_request(self, now: float) -> str:
        asked, self._asked = self._asked, ""
        if asked:
            self._cadence.wake(now)
        if self._nap:
            self._nap = False
            self._seen_at = None
            self._site.git.close_connections()
        return asked

    def _arm(self) -> None:
        for folder in self._eyes.arm():
            self._told.say("warning", "watch", mended=folder)
        trouble = ""
        try:
            self._claim.renew()
        except (Busy, StoreError) as error:
            trouble = error.message
        if trouble and trouble != self._claim_trouble:
            self._told.say("error", "claim", failed=trouble)
        self._claim_trouble = trouble

    def _gather(self) -> None:
        """Wait until lines stop coming for a moment, so that a stream of them makes few commits."""
        quiet = GATHER_SECONDS * 2 ** (min(self._pressed, 3) - 1)
        until = time.monotonic() + GATHER_MOST
        while (left := until - time.monotonic()) > 0 and not self._asked:
            if self._stopping.wait(min(quiet, left)):
                return
            if not self._eyes.look() or self._eyes.remote_moved():
                return

    # A round

    def _round(self, why: str) -> None:
        began = time.monotonic()
        self._eyes.look()
        before, glance = self._eyes.seen, self._eyes.begin()
        if glance is not None:
            fresh = glance == self._eyes.tip
        else:
            fresh = self._seen_at is not None and began - self._seen_at < FRESH_SECONDS
        self._promise = began + ROUND_SECONDS
        try:
            report = rounds.run(
                self._site,
                fresh=fresh and not self._told.failure,
                lock_timeout=LOCK_SECONDS,
                tell=began >= self._tell_at,
                promise=self._promised(),
            )
        except Busy as error:
            # A command is at work: it does what we were about to do.
            self._told.say("info", "busy", why=error.message)
            self._cadence.failed(time.monotonic(), "busy", requests=0)
            return
        except WireError as error:
            report = Report(failure=error)
        now = time.monotonic()
        self._promise = now + ROUND_SECONDS
        if began >= self._tell_at:
            self._tell_at = now + _TELL_SECONDS
        if report.tip is not None and report.frozen is None:
            self._untidy.stirred(now)
        self._eyes.noted(report.tip, failed=report.failure is not None)
        if report.failure is None:
            self._seen_at = now
            if self._far and not report.moved:
                self._look_took = now - began
            self._cadence.looked(now, moved=report.moved, requests=_requests(report), took=self._look_took)
        elif interrupted(report.failure):
            self._cadence.wake(now)
        else:
            self._seen_at = None
            self._failed(now, report.failure)
        self._told.round(
            why,
            report,
            attempt=self._cadence.failures,
            due=max(0.0, self._cadence.due - now),
            tier=self._cadence.name,
            took=now - began,
        )
        if not interrupted(report.failure):
            self._note(report)
        if report.collected:
            self._sent_at = time.monotonic()
        if trouble := self._accounting.bring_up():
            self._told.say("warning", "receipts", failed=trouble)
        self._look_again(before, report, now)
        if report.failure is None and not self._pressed:
            self._upkeep(now)

    def _look_again(self, before: Outbox, report: Report, now: float) -> None:
        """See what changed during the round, and whether it needs another one."""
        self._eyes.look()
        after = self._eyes.seen
        waits = after != before and self._waits(after)
        self._pressed = self._pressed + 1 if waits and self._crowded(before, after, report.pushed_at) else 0
        if waits:
            self._cadence.stirred(now)
            self._eyes.seen = before

    def _crowded(self, before: Outbox, after: Outbox, pushed_at: float | None) -> bool:
        """Return whether lines were sent before those ahead of them were out: faster than they are pushed."""
        arrived = after.lines_since(before, self._places)
        return pushed_at is not None and (arrived > 1 or (arrived == 1 and after.written() < pushed_at))

    def _waits(self, seen: Outbox) -> bool:
        try:
            return seen.waits(self._site.pin().accepted)
        except WireError:
            return False  # the round has told what is wrong with the pin

    def _failed(self, now: float, error: WireError) -> None:
        kind = str(error.kind) if isinstance(error, GitFailed | RemoteError) else error.reason
        retry_after = error.retry_after if isinstance(error, GitFailed) else None
        self._cadence.failed(now, kind, retry_after=retry_after)

    # Tidying

    def _tidy(self) -> None:
        """Put the clone in order for people, which nobody waits for."""
        self._untidy.over()
        self._promise = time.monotonic() + ROUND_SECONDS
        try:
            for one in tidy_up(self._site, lock_timeout=LOCK_SECONDS):
                self._told.say("warning", "tidied", incident=one.id, code=one.code)
        except (WireError, OSError) as error:
            self._told.say("warning", "tidied", failed=str(error))

    # The stamp

    def _note(self, report: Report) -> None:
        with self._stamping:
            try:
                self._watcher.expect(self._places.progress_file)
                stamp(self._places, report, **self._life())
            except StoreError as error:
                self._watcher.expect_nothing()
                self._told.say("warning", "stamp", failed=error.message)
                return
            self._beat = time.monotonic()

    def _life(self) -> dict[str, Any]:
        """Return what of the stamp only a daemon knows."""
        now = time.time()
        return {
            "pid": os.getpid(),
            "beat": now,
            "next_look": now + max(0.0, self._cadence.due - time.monotonic()),
            "interval": self._cadence.interval,
            "tier": self._cadence.name,
            "watching": self._watcher.mode,
            "event": self._watcher.last_event,
            "rescan": self._eyes.rescan,
        }

    # Upkeep

    def _clear_up(self) -> None:
        try:
            for told in upkeep.clear(self._site, crashed=self._claim.crashed):
                self._told.say("warning", "cleared", what=told)
        except (WireError, OSError) as error:
            self._told.say("warning", "cleared", failed=str(error))

    def _upkeep(self, now: float) -> None:
        if now < self._upkeep_at or self._stopping.is_set():
            return
        self._upkeep_at = now + _UPKEEP_SECONDS
        try:
            if upkeep.due(self._site):
                counts = upkeep.pack(self._site, lively=self._cadence.name == "hot")
                self._told.say("info", "packed", loose=counts.loose, packs=counts.packs)
        except Busy:
            return
        except (WireError, OSError) as error:
            self._upkeep_at = now + _UPKEEP_AFTER_FAILURE
            self._told.say("warning", "packed", failed=str(error))
        self._promise = time.monotonic() + ROUND_SECONDS


def _requests(report: Report) -> int:
    """Return how many requests the remote had to answer, about; presences that went by themselves took one more."""
    return (3 if report.pushed_at is not None else 1) + bool(report.beats)
