"""`wire verify FILE` and `wire verify --repo`: what can be known of a wire that was never joined, from a checkpoint.

Nothing is pinned and nothing is kept: a repository is fetched into a folder that is thrown away, and judged there by
the same verifier that judges for a newcomer. Each result says what it cannot know.
"""

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from wire.daemon.accepted import Accepted, Blobs
from wire.daemon.bounds import ahead
from wire.daemon.findings import Finding
from wire.daemon.history import Known, undone
from wire.daemon.judged import Before, Judged
from wire.daemon.site import FETCH_MAX_BYTES, INCOMING_REF, Site
from wire.daemon.verify import COMMITS_WALKED, Verifier
from wire.errors import IntegrityError, TrustError, UsageError, WireError
from wire.gitio import Git
from wire.keys import exhibits, weighing
from wire.keys.exhibits import LINE, Claim, Exhibit
from wire.keys.trust import Chain
from wire.keys.weighing import Proof, Shown
from wire.protocol.chain import Position
from wire.protocol.encoding import check_checkpoint
from wire.protocol.line import LineError, parse
from wire.setup.common import absolute_remote, object_format
from wire.setup.joining import chain_at, find_branch, not_the_checkpoint
from wire.store import config as configs
from wire.store import pin as pins
from wire.store.paths import Settings, WirePlaces

_ALWAYS = (
    "whether there is a newer trust version, by which a key here counts no longer",
    "when anything was written: times are their author's clock, and git's are anybody's",
    "whether what was said is true",
)
_OF_A_FILE = (
    "that a host or a repository showed these bytes, left others out, or when: commits are signed by nobody",
    "whether there is more than the file shows",
)
_OF_A_LINE = (
    "whether the line stands in the channel, with nothing else in its place: a repository tells, `--repo`",
    "whether anybody received it",
)
_OF_A_REPOSITORY = (
    "whether the host shows others another history, or a newer one: compare `wire status` with a machine of the wire",
    "what stood here before and was replaced by force: only a machine that saw it can tell",
    f"what commits did before the newest {COMMITS_WALKED} of them",
    "lines at the end of a channel that nobody has acknowledged and that are withheld",
)


class FileChecked(NamedTuple):
    """What a file came to.

    Attributes:
        claim: of an evidence file what its maker says; None for lines.
        shown: every piece, looked at.
        proved: what the signatures prove, also what nobody claimed.
        holds: of evidence whether what is claimed is proved; of lines whether each one holds.
        unknown: what such a check cannot know.
    """

    wire: str
    checkpoint: str
    claim: Claim | None
    shown: tuple[Shown, ...]
    proved: tuple[Proof, ...]
    holds: bool
    unknown: tuple[str, ...]


class RepositoryChecked(NamedTuple):
    """What a repository came to that was never joined.

    Attributes:
        tip: the commit that was judged.
        checkpoint: of the newest trust version at the tip.
        ends: where each channel ends.
        lines: how many lines hold, all channels together.
        findings: what is no honest append at the tip: code, scope and sentence.
        past: the same of the newest commits on the way to it; it may have been put right since.
        waiting: lines of keys that nobody vouched for, which a request to join leaves behind.
        unknown: what such a check cannot know.
    """

    wire: str
    branch: str
    tip: str
    checkpoint: str
    ends: Mapping[str, Position]
    lines: int
    findings: tuple[tuple[str, str, str], ...]
    past: tuple[tuple[str, str, str], ...]
    waiting: int
    unknown: tuple[str, ...]


def check_file(
    settings: Settings,
    raw: bytes,
    *,
    checkpoint: str | None = None,
    repository: str | None = None,
    branch: str | None = None,
) -> FileChecked:
    """Check an evidence file, or a line, or several as a segment has them.

    Args:
        raw: the file's bytes.
        checkpoint: from a person; a wire that this machine has joined needs none.
        repository: of a line whose wire this machine has not joined: where its trust stands.

    Raises:
        UsageError: nothing says which trust counts (`trust-needed`, `bad-checkpoint`).
        TrustError: the trust does not hold, or does not pass through the checkpoint.
        IntegrityError: the file is neither evidence nor lines (`evidence-malformed`).
    """
    if exhibits.looks_like_one(raw):
        return _check_evidence(settings, raw, checkpoint)
    pieces = raw.removesuffix(b"\n").split(b"\n")
    if len(raw) > exhibits.BUNDLE_MAX or not raw.startswith(b'{"v":1,"wire":"'):
        raise IntegrityError(
            "this is neither an evidence file nor a line of a wire; nothing in it was believed",
            reason="evidence-malformed",
            next_step="a line is what `wire show ID --json` prints as `line`; evidence is made by `wire evidence`",
        )
    try:
        wire = parse(pieces[0]).wire
    except LineError as error:
        raise IntegrityError(f"the first line is none: {error.why}", reason="line-malformed") from error
    chain = _trust_of(settings, wire, checkpoint, repository, branch)
    weighed = weighing.weigh(
        [Exhibit(LINE, piece, f"line {n} of the file") for n, piece in enumerate(pieces, 1)], chain
    )
    proved = (*weighed.proved, *weighing.links(weighed.lines))
    holds = all(one.signed and not one.code for one in weighed.shown) and not proved
    return FileChecked(chain.wire, chain.newest.checkpoint, None, weighed.shown, proved, holds, (*_OF_A_LINE, *_ALWAYS))


def check_repository(
    settings: Settings, remote: str, checkpoint: str, *, branch: str | None = None
) -> RepositoryChecked:
    """Check everything that a repository carries of a wire, from a checkpoint, as a newcomer would; it keeps nothing.

    Raises:
        UsageError: `bad-checkpoint`, or no wire is found there (`no-wire-there`).
        TrustError: its trust does not hold, or does not pass through the checkpoint.
        RemoteError, GitFailed: it cannot be reached or read.
    """
    wanted = check_checkpoint(checkpoint)
    with _fetched(settings, remote, branch) as (git, found_branch):
        tip = git.resolve(INCOMING_REF) or ""
        chain = chain_at(git, tip)
        if not chain.passes(*wanted):
            raise not_the_checkpoint(chain, wanted[0], checkpoint)
        blobs = Blobs(git)
        before = Before(chain=chain, verified=None, ends={}, published={}, own=frozenset(), forks={})
        accepted = Accepted(git, blobs, None)
        judged = Verifier(git, blobs, accepted, before, tip).judge()
        past = _past(git, blobs, accepted, judged, tip)
    findings = [(str(one.code), one.scope, one.message) for one in judged.findings]
    findings += _withheld(judged)
    lines = sum(end.seq for end in judged.ends.values())
    return RepositoryChecked(
        chain.wire,
        found_branch,
        tip,
        judged.chain.newest.checkpoint,
        judged.ends,
        lines,
        tuple(findings),
        tuple((str(one.code), one.scope, one.message) for one in past),
        sum(judged.pending.values()),
        (*_OF_A_REPOSITORY, *_ALWAYS),
    )


def _check_evidence(settings: Settings, raw: bytes, checkpoint: str | None) -> FileChecked:
    bundle = exhibits.read(raw)
    chain = Chain.replay(bundle.trust)
    if chain.wire != bundle.wire:
        raise TrustError(
            f"the evidence names wire {bundle.wire}, its trust is that of {chain.wire}", reason="wrong-wire"
        )
    if checkpoint is not None:
        wanted = check_checkpoint(checkpoint)
        if not chain.passes(*wanted):
            raise _another_trust(chain, wanted[0], checkpoint)
    else:
        own = _own(settings, chain.wire)
        if own is None:
            raise _needed(chain.wire)
        common = own.documents[min(own.newest.version, chain.newest.version) - 1]
        if not chain.passes(common.version, common.digest):
            raise _another_trust(chain, common.version, common.checkpoint)
        chain = max(own, chain, key=lambda one: one.newest.version)
    weighed = weighing.weigh(bundle.exhibits, chain)
    holds = any(proof.code == bundle.claim.code for proof in weighed.proved)
    return FileChecked(
        chain.wire,
        chain.newest.checkpoint,
        bundle.claim,
        weighed.shown,
        weighed.proved,
        holds,
        (*_OF_A_FILE, *_ALWAYS),
    )


def _past(git: Git, blobs: Blobs, accepted: Accepted, judged: Judged, tip: str) -> list[Finding]:
    """Return what the commits on the way did to lines that hold now: a rewrite leaves its traces in the history."""
    roots = git.run("rev-list", "--max-parents=0", tip).stdout.decode("ascii").split()
    chain = judged.chain
    known = Known(
        segment=accepted.segment,
        end=lambda channel: (
            judged.ends.get(channel, Position.start(chain.wire, channel))
            if channel.partition("/")[0] in chain.newest.agents
            else None
        ),
        trust={
            document.version: (document.raw, signatures)
            for document, signatures in zip(chain.documents, chain.signatures, strict=True)
        },
        wire=chain.wire,
        keys=chain,
    )
    return undone(git, blobs, git.history(roots[-1], tip, max_count=COMMITS_WALKED).commits, known, tip)


def _withheld(judged: Judged) -> Iterator[tuple[str, str, str]]:
    """Yield channels of which somebody acknowledges more than is there: acks are lower bounds."""
    for said in judged.beyond.values():
        if said.channel not in judged.forks:
            end = judged.ends.get(said.channel)
            found = ahead(said, end.seq if end is not None else 0, {})
            yield found.code, found.scope, found.message


@contextmanager
def _fetched(settings: Settings, remote: str, branch: str | None) -> Iterator[tuple[Git, str]]:
    """Fetch a repository's branch into a folder that is thrown away; yield it and the branch."""
    remote = absolute_remote(remote)
    with tempfile.TemporaryDirectory(prefix="wire-verify-") as folder:
        git = Git(os.path.join(folder, "git"), environ=settings.environ, runtime_dir=folder)
        refs = git.ls_remote(remote)
        git.init(object_format(git, remote, refs))
        heads = [name.removeprefix("refs/heads/") for name in refs if name.startswith("refs/heads/")]
        branch = branch or find_branch(settings, git, remote, heads)
        git.fetch(remote, [f"+refs/heads/{branch}:{INCOMING_REF}"], max_bytes=FETCH_MAX_BYTES)
        yield git, branch


def _trust_of(
    settings: Settings, wire: str, checkpoint: str | None, repository: str | None, branch: str | None
) -> Chain:
    """Return the trust by which lines of a wire are judged."""
    if checkpoint is not None and repository is not None:
        wanted = check_checkpoint(checkpoint)
        with _fetched(settings, repository, branch) as (git, _):
            chain = chain_at(git, INCOMING_REF)
    else:
        own = _own(settings, wire)
        if own is None:
            raise _needed(wire, line=True)
        wanted, chain = (own.newest.version, own.newest.digest), own
        if checkpoint is not None:
            wanted = check_checkpoint(checkpoint)
    if not chain.passes(*wanted):
        raise _another_trust(chain, wanted[0], checkpoint or "")
    return chain


def _own(settings: Settings, wire: str) -> Chain | None:
    """Return the trust of a wire that this machine has joined, None where it has not."""
    for config in configs.load(settings).wires:
        try:
            pin = pins.load(WirePlaces(settings.state_dir, config.name, config.clone).pin_file)
        except WireError:
            continue
        if pin.wire == wire:
            return Site.open(settings, config).trust(pin)
    return None


def _needed(wire: str, *, line: bool = False) -> UsageError:
    return UsageError(
        f"this machine has not joined the wire {wire}, and nothing says which trust counts",
        reason="trust-needed",
        next_step="ask a person of the wire for the output of `wire trust show`, then: "
        f"wire verify FILE --trust CHECKPOINT{' --repo URL' if line else ''}",
    )


def _another_trust(chain: Chain, version: int, expected: str) -> TrustError:
    held = chain.at(version)
    found = held.checkpoint if held is not None else f"only {chain.newest.version} version(s)"
    return TrustError(
        f"the trust does not pass through the checkpoint: expected {expected}, found {found}. It is another wire's, "
        "an older copy, or a forgery; nothing in it was believed",
        reason="checkpoint",
        next_step="compare with the output of `wire trust show` on a machine of the wire",
    )
