"""One sync cycle, under one lock per wire (PROTOCOL.md, section "Verification", steps 0 to 10).

    0   take the lock, load the pin and the trust
    -   collect our own new lines
    1   fetch into a quarantine ref
    2-8 verify (`verify`)
    9   persist: incidents, accepted bytes, views, pin, verified ref, first sight
    10  only now is a line visible to readers
    -   presences that came with it
    -   publish on the incoming tip, with our own presences; a lost race fetches and builds again
    -   tidy the clone

A kill between any two writes replays as nothing or as done: the pin alone says what was accepted, and it names objects
and files that were written before it.
"""

import time
from collections.abc import Iterable, Mapping

from wire.daemon import asked
from wire.daemon.beating import Promise
from wire.daemon.bounds import Bounds, View
from wire.daemon.collect import collect
from wire.daemon.conditions import branch_gone, end_conditions, end_remote, remote_failed
from wire.daemon.findings import Finding, raise_all
from wire.daemon.judged import Before, Judged, forks_in_force
from wire.daemon.pending import Pending
from wire.daemon.presence import Voices
from wire.daemon.publish import grounds, heal_plan, plan, push, subject, write
from wire.daemon.races import RaceLost, gave_up, racing
from wire.daemon.report import Report
from wire.daemon.site import INCOMING_REF, OUTGOING_REF, VERIFIED_REF, Site, able
from wire.daemon.taking import take
from wire.daemon.tidy import tidied
from wire.daemon.transport import shows
from wire.daemon.verify import Verifier
from wire.daemon.views import Notes, refresh
from wire.daemon.wasread import was_read
from wire.gitio import Change, GitFailed, Kind
from wire.keys.trust import Chain
from wire.protocol.chain import Position
from wire.protocol.line import Line
from wire.store import incidents, trustforks
from wire.store.files import utc_now
from wire.store.pin import Frozen, replace


def run(
    site: Site, *, fresh: bool = False, lock_timeout: float | None = None, promise: Promise | None = None
) -> Report:
    """Run one cycle.

    Args:
        fresh: the remote was seen moments ago, so that new lines of ours may be pushed on the tip that is known
            before anything is fetched.
        lock_timeout: seconds to wait for another process's cycle.
        promise: what our presences promise; None for who publishes none.

    Raises:
        WireError: the state of this machine cannot be used (pin, trust, keys, lock). Trouble with the remote is not
            raised but reported: see `Report.failure`.
    """
    with site.cycle_lock(lock_timeout) if lock_timeout is not None else site.cycle_lock():
        try:
            return _Cycle(site, promise).run(fresh=fresh)
        finally:
            site.blobs.trim()


def beat(site: Site, promise: Promise, *, lock_timeout: float) -> int:
    """Publish the presences that are due, at the price of one push, and return how many the remote took.

    Raises:
        GitFailed: the remote did not take them.
        WireError: as `run`.
    """
    with site.cycle_lock(lock_timeout):
        return _Cycle(site, promise).beat()


def heal(site: Site) -> Report:
    """Put back what a forced history lacks: one commit on the forced tip that also descends from the verified one.

    It only lengthens: what the tip has beyond ours stays. Every other machine thaws by itself when it sees it.

    Raises:
        WireError: as `run`.
    """
    with site.cycle_lock():
        return _Cycle(site).heal()


class _Cycle:
    def __init__(self, site: Site, promise: Promise | None = None) -> None:
        self.site = site
        self.voices = Voices(site, promise, self._tell)
        self.pin = site.pin()  # step 0
        self.chain = site.trust(self.pin)
        self.signers, self.unusable = site.approved(self.chain)
        self.blobs = site.blobs
        self.accepted = site.accepted(self.pin)
        self.report = Report(locked=tuple(self.signers.keys() - able(self.signers)))
        self.notes = Notes(site)
        self.findings: list[Finding] = []
        self._ready: tuple[str, str] | None = None
        for agent, why in self.unusable.items():
            self.findings.append(Finding("KEY", agent, why.message, subject=agent, next_step=why.next_step))
        for agent in set(site.config.agents) - self.unusable.keys():
            incidents.end(site.places.incidents_dir, "KEY", agent)
        self.pending = Pending.load(site.places)
        self.bounds = Bounds.load(site.places)

    # The order of things.

    def run(self, *, fresh: bool) -> Report:
        try:
            self.report.alive += self.voices.show_life(self.pin, self.signers)
            self._collect()
            skip_fetch = fresh and self.pin.verified is not None and self._owes()
            for attempt in racing():
                with attempt:
                    if not skip_fetch:
                        self._fetch_and_verify()
                    skip_fetch = False
                    self._listen()
                    self._publish()
            self._listen()
            self._compare()
            self.report.beats += self.beat()
        except RaceLost as lost:
            self.report.failure = gave_up(lost)
        except GitFailed as error:
            self._failed(error)
        else:
            end_remote(self.site.places)
        finally:
            self.findings += self.notes.write()
            self._raise()
        if not self.site.lasting and self.report.tip is not None and self.report.frozen is None:
            self.pin, raised = tidied(self.site, self.pin, self.pin.verified or self.report.tip)
            self.report.raised += raised
        return self.report

    def heal(self) -> Report:
        try:
            self._collect()
            for attempt in racing():
                with attempt:
                    self._put_back()
        except RaceLost as lost:
            self.report.failure = gave_up(lost)
            return self.report
        except GitFailed as error:
            self._failed(error)
            return self.report
        return self.run(fresh=False)

    def _put_back(self) -> None:
        """Push one commit that carries everything accepted, where the tip does not."""
        tip, verified = self._fetch(), self.pin.verified
        if verified is None:
            return
        self.accepted = self.site.accepted(self.pin)
        chain, forked = self.chain, False
        if tip is not None:
            # What the tip has beyond ours is kept: it is accepted here before anything is put back.
            judged = self._judge(tip)
            chain, forked = judged.chain, any(finding.code == "TRUST_FORK" for finding in judged.findings)
        self.accepted.put_trust(chain)
        commit = self.accepted.commit_changes()
        base, parents = grounds(self.site, tip, verified, commit)
        wanted = heal_plan(self.site.git.diff(commit, base), self.blobs, restore_trust=not forked)
        self.accepted = self.site.accepted(self.pin)
        if tip is None or wanted.needed:
            self._push(write(self.site, base, parents, wanted, "heal: every accepted line"))

    # Own lines.

    def _collect(self) -> None:
        collected = collect(
            self.site, self.chain, self.accepted, self.pin.accepted, self.signers, self.pin.forks.keys()
        )
        waiting = collected.waiting.items()
        self.report.waiting = {agent: count for agent, count in waiting if agent not in self.unusable}
        self.report.collected.update({channel: len(lines) for channel, lines in collected.new.items()})
        self.findings += collected.findings
        if collected.ends:
            self._persist(collected.ends, collected.new)
        else:
            # What a person did to the files of others is mended also when there is no news.
            self.findings += refresh(self.site, self.accepted, self.site.local(self.chain), self.pin.accepted, ())
            self._raise()

    @property
    def own(self) -> frozenset[str]:
        return frozenset(self.signers)

    def _own_channels(self, ends: Mapping[str, Position] | None = None) -> list[str]:
        """Return the channels that this machine publishes: not one in which two lines claim one place."""
        forks = self.pin.forks
        known = self.pin.accepted if ends is None else ends
        return [ch for ch in known if ch.partition("/")[0] in self.own and ch not in forks]

    def _owes(self) -> bool:
        """Whether the remote lacks something of ours, as far as is known."""
        return self.pin.frozen is None and (
            self.pin.restore
            or any(self.pin.accepted[ch].seq > self.pin.remote_seq.get(ch, 0) for ch in self._own_channels())
        )

    # Fetch and verify.

    def _fetch(self, pushed: str | None = None) -> str | None:
        """Fetch into the quarantine ref and return the tip, None for no such branch (step 1); `pushed`: see `shows`."""
        if pushed is not None and shows(self.pin.remote, self.pin.branch, pushed):
            self.report.fetched = True
            return pushed
        try:
            self.voices.fetch(self.pin, self.chain)
        except GitFailed as error:
            if error.kind is not Kind.NO_REF:
                raise
            self.report.fetched = True
            return None
        self.report.fetched = True
        return self.site.git.resolve(INCOMING_REF)

    def _fetch_and_verify(self) -> None:
        tip = self._fetch()
        if tip is None:
            self._branch_gone()
            return
        self.report.tip = tip
        known = tip == self.pin.verified and self.pin.judged_trust == self.chain.newest.version
        if known and not self.pending.due and self.pin.frozen is None:
            return
        self._settle(tip, self._judge(tip))

    def _branch_gone(self) -> None:
        if self.pin.verified is None:
            raise GitFailed(
                f"the remote has no branch {self.pin.branch!r}; it was expected to carry the wire", kind=Kind.NO_REF
            )
        self.findings.append(branch_gone(self.pin.branch, self.pin.verified))
        self._freeze()

    def _judge(self, tip: str) -> Judged:
        pin = self.pin
        before = Before(
            chain=self.chain,
            verified=pin.verified,
            ends=pin.accepted,
            published=pin.remote_seq,
            own=self.own,
            forks=pin.forks,
            decided=trustforks.decided(self.site.places),
        )
        return Verifier(self.site.git, self.blobs, self.accepted, before, tip).judge()

    def _settle(self, tip: str, judged: Judged) -> None:
        """Take over what the tip turned out to be (steps 9 and 10)."""
        if judged.frozen is None:
            seen = self._view(judged.chain, judged.ends, {**self.pin.forks, **judged.forks})
            judged.findings += self.bounds.acks(judged.beyond, seen, tip)
            judged.findings += asked.look(self.site, judged.chain, judged.requests)
        self.findings += judged.findings
        self.findings += self.pending.beat(judged.pending, tip, judged.unknown)
        if judged.frozen is not None:
            self.accepted = self.site.accepted(self.pin)
            self._freeze()
            return
        moved = take(self.site, judged, self.pin.remote_seq, self._tell)
        was_read(self.site, judged.chain, judged.ends, judged.cut, self._tell)
        own = {ch: end for ch, end in {**self.pin.accepted, **judged.ends}.items() if ch.partition("/")[0] in self.own}
        forks = {**forks_in_force(self.pin.forks, judged.chain), **judged.forks}
        carried = {ch: judged.carried.get(ch, end.seq) for ch, end in own.items() if ch not in forks}
        published = {
            **self.pin.remote_seq,
            **{ch: max(seq, min(self.pin.remote_seq.get(ch, 0), own[ch].seq)) for ch, seq in carried.items()},
        }
        self.report.pushed += sum(max(0, seq - self.pin.remote_seq.get(ch, 0)) for ch, seq in published.items())
        self.report.accepted.update({ch: len(lines) for ch, lines in judged.new.items() if ch not in judged.adopted})
        self.report.heartbeats += self.voices.take(judged.new.values())
        self.chain = judged.chain
        before = self.signers
        self.signers, _ = self.site.approved(self.chain)
        self.pin = replace(
            self.pin,
            remote_seq=published,
            judged_trust=self.chain.newest.version,
            restore=judged.restore,
            forks=forks,
            frozen=None,
        )
        self._persist(judged.ends, judged.new, tip, judged.changes)
        end_conditions(self.site.places, judged, self.chain)
        counts = {agent: signer.key_id for agent, signer in before.items()}
        if moved or any(counts.get(agent) != signer.key_id for agent, signer in self.signers.items()):
            # Lines were issued again, or a key of this machine was approved just now: they go out with this cycle.
            self._collect()

    def _freeze(self) -> None:
        self._raise()
        if self.pin.frozen is None:
            self.pin = self.site.save(replace(self.pin, frozen=Frozen("FORCED", utc_now())))
        self.report.frozen = self.pin.frozen

    # Publish.

    def _publish(self) -> None:
        if not self._owes():
            return
        base = self.pin.verified
        if base is None:
            return
        added = self._added(self.pin.accepted)
        commit: str | None = self.accepted.commit
        if (base, commit) != self._ready:
            wanted = plan(self.site, self.accepted, base, self.own, self.pin.forks)
            commit = write(self.site, base, [base], wanted, subject(added, self.own)) if wanted.needed else None
        if commit is not None:
            self._push(commit)
            tip = self._fetch(pushed=commit)
            self.report.tip = tip
            if tip != commit:
                self._not_there(commit, base, tip)
                return
            if self.pin.restore:
                # What was put back is there now: the conditions that it was about are over.
                self._settle(commit, self._judge(commit))
                return
        else:
            commit = base
        self.report.pushed += sum(added.values())
        self.pin = replace(
            self.pin,
            remote_seq={**self.pin.remote_seq, **{ch: self.pin.accepted[ch].seq for ch in self._own_channels()}},
            restore=False,
        )
        same = self.accepted.commit is not None and self.site.git.same_tree(self.accepted.commit, commit)
        self._persist({}, {}, commit, () if same else None)

    def _push(self, commit: str) -> None:
        beats = self.voices.ready(self.pin, self.chain, self.signers, riding=True)
        reason = push(self.site, self.pin, commit, beats)
        if reason is not None:
            raise RaceLost(reason)
        self.report.pushed_at = time.time()
        self.findings += self.notes.write()

    def beat(self) -> int:
        """Publish the presences that are due."""
        return self.voices.alone(self.pin, self.chain, self.signers)

    def _listen(self) -> None:
        self.voices.listen(self.pin, self.chain, self.accepted, self.own)

    def _compare(self) -> None:
        """Compare what others say to have with what the remote shows (step 8), once a look."""
        if self.report.fetched and self.pin.frozen is None and self.pin.verified is not None:
            self.findings += self.bounds.presences(self.voices.heard, self._view(self.chain, {}, self.pin.forks))
            self._raise()

    def _view(self, chain: Chain, ends: Mapping[str, Position], forks: Mapping[str, str]) -> View:
        return View(chain, {**self.pin.accepted, **ends}, self.accepted.segment, self.site.config.agents, forks)

    def _added(self, ends: Mapping[str, Position]) -> dict[str, int]:
        """Return how many lines of ours the remote lacks, per channel."""
        return {ch: ends[ch].seq - self.pin.remote_seq.get(ch, 0) for ch in self._own_channels(ends)}

    def _not_there(self, commit: str, base: str, tip: str | None) -> None:
        """The push was reported as done, and the remote's tip is another commit: judge that one."""
        if tip is None:
            self._branch_gone()
            return
        if tip == base:
            raise GitFailed(
                f"the remote reported the push of {commit[:12]} as done and still shows {base[:12]}", kind=Kind.REJECTED
            )
        self._settle(tip, self._judge(tip))
        if self._owes():
            raise RaceLost(f"the tip was {tip[:12]} right after {commit[:12]} was pushed")

    # Persist (step 9).

    def _persist(
        self,
        ends: dict[str, Position],
        new: dict[str, list[Line]],
        tip: str | None = None,
        changes: Iterable[Change] | None = None,
    ) -> None:
        """Write what was accepted, in the order that survives a kill between any two writes.

        Args:
            tip: the remote's, where it was judged.
            changes: all differences from the accepted commit to the tip, where they are known.
        """
        site, before = self.site, self.pin
        self._raise()
        ends_after = {**before.accepted, **ends}
        if tip is not None and self.chain.newest.hash != before.trust_hash:
            self.pin = site.pin_trust(self.pin, self.chain)
        if self.accepted.commit is None:
            self.accepted.put_trust(self.chain)
        moved = tip is not None and tip != before.verified
        if tip is not None and changes is not None and self.accepted.equals(changes):
            if tip != self.accepted.commit:
                self.accepted.adopt(tip)
        elif self.accepted.dirty:
            self._commit(ends_after, ours=tip is None)
        self.findings += refresh(site, self.accepted, site.local(self.chain), ends_after, ends.keys())
        self.pin = replace(
            self.pin,
            accepted=ends_after,
            accepted_commit=self.accepted.commit,
            verified=tip or self.pin.verified,
        )
        if self.pin != before or site.pin() != self.pin:
            site.save(self.pin)
        if tip is not None and moved:
            site.git.update_ref(VERIFIED_REF, tip)
        self.findings += self.notes.take(before.accepted, self.pin, new, later=tip is None)

    def _commit(self, ends: Mapping[str, Position], *, ours: bool) -> None:
        """Write the accepted bytes; where they are the verified tip and lines of ours, as what we are about to push."""
        tip = self.pin.verified
        if ours and tip is not None and tip == self.accepted.commit and not self.pin.restore:
            message = subject(self._added(ends), self.own)
            self._ready = tip, self.accepted.commit_changes(on=tip, message=message, also=[OUTGOING_REF])
        else:
            self.accepted.commit_changes()

    # What people are told.

    def _tell(self, finding: Finding) -> None:
        """Raise one finding at once, before what it tells of is done."""
        self.findings.append(finding)
        self._raise()

    def _raise(self) -> None:
        if self.findings:
            self.report.raised += raise_all(self.site.places, self.findings, utc_now())
            self.findings.clear()

    def _failed(self, error: GitFailed) -> None:
        self.report.failure = error
        self.findings += remote_failed(error)
        self._raise()
