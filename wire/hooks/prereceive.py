"""The pre-receive hook of a host: judge a push before the host takes any of it, and refuse it with reasons.

    outcome = run(os.environ, os.getcwd(), sys.stdin.buffer.read(), Rules(branch="main"))
    for refusal in outcome: print(refusal.text)

Judged is what each commit of the push *changes*, by the walk that every peer makes (`judge`): the bytes that the tip
carries stay, what comes is signed by who owns the folder, in its place and readable, the trust is only ever extended.
Taking out bytes that are nobody's lines, and putting back what was lost, are lawful. Where a channel ends is remembered
between two pushes (`recall`), so that ten lines cost what ten lines cost, however long the channel is.

A branch is a wire's if its tip, before or after the push, has a trust chain, or if the host's owner named it. It is
never deleted and never replaced. Below `refs/wire/` there are presences and nothing else; only they are replaced. Other
refs are not the wire's, and pass.

What it does not do: decide what peers accept; they verify for themselves, the host least of all being trusted. Nor does
it know who pushes. A new branch brings what its wire has become elsewhere, so that only its trust is judged: whatever
else is not right there is left out by every peer, and put right by its owner.
"""

import os
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from wire.daemon.accepted import Blobs
from wire.daemon.shape import ROOT, Kind, classify, trust_path
from wire.errors import TrustError, WireError
from wire.gitio import REPLACEABLE, Change, Commit, Entry, Git, quarantine
from wire.hooks.ground import Channel, Ground, carried, segments
from wire.hooks.judge import Staging, judge, judge_keys
from wire.hooks.problems import Problem, shown
from wire.hooks.recall import Recall
from wire.keys.trust import Chain
from wire.protocol.chain import Position
from wire.protocol.codes import Code
from wire.protocol.encoding import parse_checkpoint

COMMITS_MAX = 500
"""Commits of one push on a wire's branch."""
CHANGES_MAX = 20_000
"""Changed paths of one push."""
WIRES_MAX = 32
"""Branches of a repository that are looked at for a wire's trust, that of HEAD first."""
SHOWN = 8
"""Reasons that who pushes is told."""
_TOGETHER = 128
"""Files that are read at a time."""
_TOLD = re.compile(r"([0-9a-f]{40}|[0-9a-f]{64}) ([0-9a-f]{40}|[0-9a-f]{64}) (.+)")
_TRUST_FILES = f"{ROOT}/trust/".encode()
_WIRES_OWN = "refs/wire/"
_REPLACEMENTS = "refs/replace/"


class Rules(NamedTuple):
    """What the host's owner told the hook.

    Attributes:
        branch: the wire's branch; without, every branch that carries a trust chain is one.
        trust: a checkpoint through which its trust must pass.
    """

    branch: str | None = None
    trust: str | None = None


class Update(NamedTuple):
    """One ref that a push wants to move; an id of zeros stands for none."""

    old: str
    new: str
    ref: str


class Refusal(NamedTuple):
    """One reason against a push: the ref, what is wrong, and the commit that does it."""

    ref: str
    problem: Problem
    commit: str = ""

    @property
    def text(self) -> str:
        """The reason in one line."""
        commit = f"commit {self.commit[:12]}, " if self.commit else ""
        return f"{commit}{self.problem.text}"


def updates(stdin: bytes) -> list[Update]:
    """Return what git tells the hook on its standard input; raises ValueError."""
    found = []
    for line in stdin.decode("utf-8", "surrogateescape").split("\n")[:-1]:
        match = _TOLD.fullmatch(line)
        if match is None:
            raise ValueError(f"{line[:80]!r} is not what git tells a pre-receive hook")
        found.append(Update(match[1], match[2], match[3]))
    return found


def run(environ: Mapping[str, str], git_dir: str, stdin: bytes, rules: Rules) -> list[Refusal]:
    """Judge one push; without refusals it may be taken.

    Args:
        environ: the hook's environment, as git made it.
        git_dir: the repository.
        stdin: what git told the hook.

    Raises:
        WireError, ValueError: it cannot be judged; it must not be taken.
    """
    git = Git(git_dir, environ=environ, quarantine=quarantine(environ))
    blobs = Blobs(git)
    recall = Recall(git_dir, rules.trust)
    refused: list[Refusal] = []
    presences = []
    for update in updates(stdin):
        if update.ref.startswith(REPLACEABLE):
            presences.append(update)
        elif update.ref.startswith((_WIRES_OWN, _REPLACEMENTS)):
            refused.append(Refusal(update.ref, _of_ref(update.ref, "no ref of this name belongs on a wire's remote")))
        elif update.ref.startswith("refs/heads/"):
            refused += _Branch(git, blobs, recall, rules, update).judge()
    if presences:
        from wire.hooks.presences import judge_presence  # not loaded for lines alone

        chains = _chains(git, blobs, rules)
        if recall.chain is not None:
            chains[recall.chain.wire] = recall.chain
        for update in presences:
            problem = judge_presence(git, blobs, chains, update.old, update.new, update.ref.removeprefix(REPLACEABLE))
            if problem:
                refused.append(Refusal(update.ref, _of_ref(update.ref, problem)))
    if not refused:
        recall.save()
    return refused


class _Branch:
    """One branch that a push wants to move."""

    def __init__(self, git: Git, blobs: Blobs, recall: Recall, rules: Rules, update: Update) -> None:
        self._git = git
        self._blobs = blobs
        self._recall = recall
        self._rules = rules
        self._update = update
        # Where the host's disk knows no capitals, `MAIN` is `main`.
        self._named = update.ref.lower() == f"refs/heads/{rules.branch}".lower()

    def judge(self) -> list[Refusal]:
        old, new, ref = self._update
        if self._rules.branch is not None and not self._named:
            return []
        entries = self._entries(old)
        gone = not new.strip("0")
        if not (self._named or _has_trust(entries) or (not gone and _has_trust(self._entries(new)))):
            return []
        if gone:
            return [Refusal(ref, _of_ref(ref, "the wire's branch is never deleted", Code.FORCED))]
        if not old.strip("0"):
            return self._begin(new)
        history = self._git.history(old, new, max_count=COMMITS_MAX)
        if not history.descends:
            why = f"{new[:12]} does not descend from {old[:12]}: the wire's branch is only ever extended"
            return [Refusal(ref, _of_ref(ref, why, Code.FORCED))]
        trunk = self._first_parents(old, new) if history.truncated else _trunk(history.commits, old, new)
        if trunk is None:
            return [Refusal(ref, _of_ref(ref, f"more than {COMMITS_MAX} commits in one push", Code.SIZE))]
        return self._steps(entries, trunk)

    def _first_parents(self, old: str, new: str) -> list[tuple[str, Commit]] | None:
        """Return the way from `old` to `new` where much is merged beside it; None where it is too long itself."""
        span = ("--first-parent", "--parents", f"--max-count={COMMITS_MAX + 1}", new, f"^{old}")
        listed = self._git.run("rev-list", *span).stdout.decode("ascii").split("\n")[:-1]
        way = [line.split(" ") for line in listed]
        if len(way) > COMMITS_MAX or not way or way[-1][1:2] != [old]:
            return None
        # What they change is asked for one by one, since it is not known here.
        return [(commit[1], Commit(commit[0], (), ())) for commit in reversed(way)]

    def _entries(self, commit: str) -> dict[bytes, Entry]:
        if not commit.strip("0"):
            return {}
        return {entry.path: entry for entry in self._git.entries(commit, ROOT)}

    def _begin(self, new: str) -> list[Refusal]:
        """A new branch: its trust must hold."""
        ref, entries = self._update.ref, self._entries(new)
        chain, why = _chain(self._blobs, entries)
        why = why or self._not_pinned(chain)
        if chain is None or why:
            return [Refusal(ref, Problem(Code.TRUST, trust_path(1).encode(), why or "there is no trust chain"))]
        self._recall.chain = chain
        staging = Staging(self._git.diff(None, new, ROOT), {}, self._blobs)
        return [Refusal(ref, problem) for problem in judge_keys(staging, strict=False)[0]]

    def _steps(self, entries: dict[bytes, Entry], steps: Sequence[tuple[str, Commit]]) -> list[Refusal]:
        ref, refused = self._update.ref, []
        changed = [
            commit.changes if commit.parents == (parent,) else tuple(self._git.diff(parent, commit.oid))
            for parent, commit in steps
        ]
        if sum(map(len, changed)) > CHANGES_MAX:
            return [Refusal(ref, _of_ref(ref, f"more than {CHANGES_MAX} changed paths in one push", Code.SIZE))]
        self._fetch(entries, changed)
        moves_trust = any(change.path.startswith(_TRUST_FILES) for changes in changed for change in changes)
        chain, why = self._trust(entries, whole=moves_trust)
        if chain is None:
            # What was there does not hold: the push that puts the trust back is judged by what it puts there.
            chain, why = _chain(self._blobs, self._entries(self._update.new))
        why = why if chain is None else self._not_pinned(chain)
        if chain is None or why:
            return [Refusal(ref, Problem(Code.TRUST, trust_path(1).encode(), why))]
        for (_, commit), changes in zip(steps, changed, strict=True):
            staging = Staging(changes, entries, self._blobs)
            ground = _Ground(entries, self._blobs, self._recall)
            problems, _ = judge_keys(staging, strict=True)
            found = judge(staging, Ground(chain, None, ground.channel, alone=True))
            problems += found.problems
            if problems:
                name = commit.oid if len(steps) > 1 else ""
                refused += [Refusal(ref, problem, name) for problem in problems]
                break
            chain = found.chain
            entries = _applied(entries, changes)
            ground.remember(entries, chain, found.ends)
        self._recall.trust(entries, chain)
        return refused

    def _fetch(self, entries: Mapping[bytes, Entry], changed: Sequence[Sequence[Change]]) -> None:
        """Read what will be looked at, in as few children as it takes."""
        wanted = [oid for changes in changed for change in changes for oid in _readable(change)]
        newest = self._recall.newest(entries)
        if newest is not None:
            wanted += newest
        for start in range(0, len(wanted), _TOGETHER):
            self._blobs.fetch(wanted[start : start + _TOGETHER])

    def _trust(self, entries: Mapping[bytes, Entry], *, whole: bool) -> tuple[Chain | None, str]:
        """Return the chain that the tip has; where no version is touched, the newest one that was verified before."""
        newest = None if whole else self._recall.newest(entries)
        if newest is not None:
            raw, signatures = (self._blobs.get(oid) or b"" for oid in newest)
            chain = self._recall.chain_of(raw, signatures)
            if chain is not None:
                return chain, ""
        chain, why = _chain(self._blobs, entries)
        return chain, why

    def _not_pinned(self, chain: Chain | None) -> str:
        if self._rules.trust is None or chain is None:
            return ""
        version, digest = parse_checkpoint(self._rules.trust)
        if len(chain.documents) < chain.newest.version or chain.passes(version, digest):
            # Of a chain that was verified before only the end is here.
            return ""
        return f"its trust does not pass through {self._rules.trust}, which this host takes alone"


class _Ground:
    """Where the channels of a tree end."""

    def __init__(self, entries: Mapping[bytes, Entry], blobs: Blobs, recall: Recall) -> None:
        self._entries = entries
        self._blobs = blobs
        self._recall = recall
        self._clean: dict[str, bool] = {}

    def clean(self, name: str) -> bool:
        """Return whether a channel that was asked for carries its lines and nothing else."""
        return self._clean[name]

    def channel(self, name: str, chain: Chain) -> Channel:
        there = segments(self._entries, name)
        end = self._recall.end(name, there, chain)
        self._clean[name] = True
        if end is None:
            held, self._clean[name] = carried(chain, name, there, self._blobs)
            return held

        def segment(number: int) -> bytes:
            return (self._blobs.get(there[number].oid) or b"") if number in there else b""

        return Channel(end, segment, lambda number: there[number].oid if number in there else None)

    def remember(self, entries: Mapping[bytes, Entry], chain: Chain, ends: Mapping[str, Position | None]) -> None:
        """Note where channels end after the changes, where they carry nothing but their lines."""
        for name, end in ends.items():
            if end is not None and self._clean.get(name):
                self._recall.note(name, segments(entries, name), chain, end)


def _trunk(commits: Sequence[Commit], old: str, new: str) -> list[tuple[str, Commit]]:
    """Return the commits that lead from `old` to `new`, each with the parent that leads there, oldest first.

    What is merged beside them counts by what the merge makes of it: that is how a lost history is brought back.
    """
    by_oid = {commit.oid: commit for commit in commits}
    descends = {old}
    for commit in commits:
        if descends.intersection(commit.parents):
            descends.add(commit.oid)
    trunk = []
    at = new
    while at != old:
        commit = by_oid[at]
        at = next(parent for parent in commit.parents if parent in descends)
        trunk.append((at, commit))
    return trunk[::-1]


def _applied(entries: Mapping[bytes, Entry], changes: Sequence[Change]) -> dict[bytes, Entry]:
    after = dict(entries)
    for change in changes:
        if change.new_oid.strip("0"):
            kind = "commit" if change.new_mode == "160000" else "blob"
            after[change.path] = Entry(change.new_mode, kind, change.new_oid, change.path)
        else:
            after.pop(change.path, None)
    return after


def _readable(change: Change) -> list[str]:
    """Return the objects of a change that are looked at."""
    sides = ((change.old_mode, change.old_oid), (change.new_mode, change.new_oid))
    return [oid for mode, oid in sides if mode != "160000" and oid.strip("0")]


def _has_trust(entries: Mapping[bytes, Entry]) -> bool:
    return any(path.startswith(_TRUST_FILES) for path in entries)


def _chain(blobs: Blobs, entries: Mapping[bytes, Entry]) -> tuple[Chain | None, str]:
    """Return the trust chain of a tree as far as it holds, and why it does not, if nothing of it does."""
    paths = sorted(path for path in entries if classify(path).kind in (Kind.TRUST, Kind.TRUST_SIGNATURES))
    for start in range(0, len(paths), _TOGETHER):
        blobs.fetch(entries[path].oid for path in paths[start : start + _TOGETHER] if entries[path].kind == "blob")
    chain: Chain | None = None
    while True:
        path = trust_path(1 if chain is None else chain.newest.version + 1).encode()
        files = [entries.get(path), entries.get(path + b".sig")]
        read = [blobs.get(entry.oid) for entry in files if entry is not None and entry.kind == "blob"]
        if len(read) < 2:
            return chain, "" if chain else "there is no trust chain"
        try:
            raw, signatures = (data or b"" for data in read)
            chain = Chain.genesis(raw, signatures) if chain is None else chain.extend(raw, signatures)
        except TrustError as error:
            return chain, "" if chain else error.message


def _chains(git: Git, blobs: Blobs, rules: Rules) -> dict[str, Chain]:
    """Return the trust of the wires in the repository, by their ids, for what a push does beside their branches."""
    found: dict[str, Chain] = {}
    head = git.symbolic_ref("HEAD") or ""
    listed = git.refs("refs/heads/")
    named = None if rules.branch is None else f"refs/heads/{rules.branch}"
    for ref in sorted(listed, key=lambda ref: (ref != head, ref))[:WIRES_MAX]:
        if named in (None, ref):
            entries = {entry.path: entry for entry in git.entries(listed[ref], f"{ROOT}/trust")}
            chain, _ = _chain(blobs, entries)
            if chain is not None:
                found.setdefault(chain.wire, chain)
    return found


def _of_ref(ref: str, why: str, code: str = "REF") -> Problem:
    return Problem(code, ref.encode("utf-8", "surrogateescape"), why)


def prime(environ: Mapping[str, str], git_dir: str, rules: Rules) -> list[str]:
    """Walk what the wire's branches carry, so that the first push finds it remembered; return what is not right there.

    Raises:
        WireError: the repository cannot be read.
    """
    git = Git(git_dir, environ=environ, quarantine={})
    blobs, recall = Blobs(git), Recall(git_dir, rules.trust)
    told = []
    for ref, tip in git.refs("refs/heads/").items():
        entries = {entry.path: entry for entry in git.entries(tip, ROOT)}
        if not _has_trust(entries) or rules.branch not in (None, ref.removeprefix("refs/heads/")):
            continue
        chain, why = _chain(blobs, entries)
        if chain is None:
            told.append(f"{ref}: {why}")
            continue
        recall.trust(entries, chain)
        ground = _Ground(entries, blobs, recall)
        names = {shape.channel for path in entries if (shape := classify(path)).kind is Kind.SEGMENT}
        for name in sorted(names):
            end = ground.channel(name, chain).end
            blobs.drop()
            if ground.clean(name):
                ground.remember(entries, chain, {name: end})
            else:
                told.append(f"{ref}: {name} carries bytes that are none of its lines; its owner takes them out")
    recall.save()
    return told


def answer(environ: Mapping[str, str], cwd: str, stdin: bytes, rules: Rules) -> tuple[int, str]:
    """Return the hook's exit status and what it tells who pushes; never raises for what a push holds."""
    try:
        refused = run(environ, folder(environ, cwd), stdin, rules)
    except (WireError, ValueError) as error:
        return 1, f"wire: refused, since this push cannot be judged: {error}\n"
    if not refused:
        return 0, ""
    ref = shown(refused[0].ref.encode("utf-8", "surrogateescape"))
    codes = ", ".join(dict.fromkeys(str(one.problem.code) for one in refused))
    lines = [f"wire: refused by the host's hook: {codes} in {ref}"]
    lines += [one.text for one in refused[:SHOWN]]
    if len(refused) > SHOWN:
        lines.append(f"and {len(refused) - SHOWN} more")
    return 1, "".join(f"{line}\n" for line in lines)


def folder(environ: Mapping[str, str], cwd: str) -> str:
    """Return the folder of the repository for which git runs the hook."""
    return os.path.join(cwd, environ.get("GIT_DIR", "."))


def rules_of(words: Sequence[str]) -> Rules | None:
    """Return the rules that the hook's script names, None for words that the command line is to look at."""
    named = dict(zip(words[::2], words[1::2], strict=False))
    if len(words) % 2 or not named.keys() <= {"--branch", "--trust"}:
        return None
    return Rules(named.get("--branch"), named.get("--trust"))
