"""verify, evidence."""

import os
import sys

import click

from wire.checking import verify_file, verify_repository
from wire.cli.common import for_a_wire, wire_of
from wire.cli.console import flush, is_terminal, leave, safe, say, say_json, styled, write
from wire.errors import DONE, FAILED, INTEGRITY, StoreError, UsageError
from wire.keys.exhibits import BUNDLE_MAX
from wire.store.files import atomic_write
from wire.verbs.outside import FileChecked, RepositoryChecked


@click.command()
@click.argument("file", required=False)
@click.option("--repo", "repository", metavar="URL|PATH", help="A repository that this machine need not have joined.")
@click.option("--trust", "checkpoint", metavar="CHECKPOINT", help="What `wire trust show` prints on a machine of it.")
@click.option("--branch", metavar="NAME", help="The repository's branch; found when omitted.")
@click.option("--full", is_flag=True, help="Check every signature, on all cores, and not only hashes and links.")
@click.option("--jobs", type=click.IntRange(min=1), help="Processes; the number of cores when omitted.")
@for_a_wire
def verify(
    ctx: click.Context,
    file: str | None,
    repository: str | None,
    checkpoint: str | None,
    branch: str | None,
    full: bool,
    jobs: int | None,
    as_json: bool,
) -> None:
    """Check everything that was accepted again, from the checkpoint; or a FILE, or a repository.

    FILE is what `wire evidence` wrote, or a line, or several as a segment has them; `-` is standard input. A wire that
    this machine has not joined needs --trust, and lines of it --repo as well, where its trust stands.

    Exit 0: all of it holds (and evidence proves its claim); 1: evidence that does not prove its claim; 4: something
    does not hold; 5: the trust is not that of the checkpoint.
    """
    if file is not None:
        checked = verify_file(_read(file), checkpoint=checkpoint, repository=repository, branch=branch)
        _tell_file(checked, as_json)
    if repository is not None:
        if checkpoint is None:
            raise UsageError(
                "a repository is checked from a checkpoint, and none was given",
                reason="trust-needed",
                next_step="ask a person of the wire for the output of `wire trust show`, then add --trust CHECKPOINT",
            )
        _tell_repository(verify_repository(repository, checkpoint, branch=branch), as_json)
    if checkpoint is not None or branch is not None:
        raise UsageError("--trust and --branch are for a FILE or for --repo; the accepted lines have their own pin")
    _accepted(ctx, full, jobs, as_json)


@click.command()
@click.argument("incident")
@click.option("-o", "--output", metavar="FILE", help="Where to write it; standard output when omitted.")
@for_a_wire
def evidence(ctx: click.Context, incident: str, output: str | None, as_json: bool) -> None:
    """Write what proves an incident, for somebody who checks it with `wire verify FILE --trust CHECKPOINT`.

    The file holds signed lines as they are: whoever gets it can read them.
    """
    found = wire_of(ctx).evidence(incident)
    if output is None:
        write(found)
        return
    if os.path.isdir(output):
        raise UsageError(f"{output} is a folder; expected a file's name", reason="bad-output")
    atomic_write(os.path.abspath(output), found)
    if as_json:
        say_json({"file": os.path.abspath(output), "bytes": len(found)})
        return
    say(f"wrote {safe(output)}, {len(found)} bytes; whoever gets it reads the lines in it, and checks it with")
    say("  wire verify FILE --trust CHECKPOINT")


def _read(file: str) -> bytes:
    try:
        if file == "-":
            return sys.stdin.buffer.read(BUNDLE_MAX + 1)
        with open(file, "rb") as opened:
            return opened.read(BUNDLE_MAX + 1)
    except OSError as error:
        raise StoreError(f"cannot read {file}: {error.strerror}", reason="file-missing") from error


def _tell_file(found: FileChecked, as_json: bool) -> None:
    claim = found.claim
    if as_json:
        say_json(
            {
                "kind": "lines" if claim is None else "evidence",
                "wire": found.wire,
                "checkpoint": found.checkpoint,
                "claim": claim and {"code": claim.code, "scope": claim.scope, "message": claim.message},
                "shown": [one._asdict() for one in found.shown],
                "proved": [one._asdict() for one in found.proved],
                "holds": found.holds,
                "unknown": list(found.unknown),
            }
        )
    else:
        say(f"wire {found.wire}, trust {found.checkpoint}")
        if claim is not None:
            say(f"its maker says: {claim.code} in {safe(claim.scope)}, {claim.count} time(s): {safe(claim.message)}")
        for one in found.shown:
            mark = "signed" if one.signed else "not signed"
            say(f"  {mark}{f' {one.code}' if one.code else ''}: {safe(one.text)} ({safe(one.found)})")
        for proof in found.proved:
            say(f"{styled('proved', bold=True)} {proof.code}: {safe(proof.text)}")
        if claim is not None and not found.holds:
            say(f"no signature proves {claim.code}: that is the word of who made the file")
        elif claim is None:
            say("every line is signed by who it names" if found.holds else "not all of it holds")
        _say_unknown(found.unknown)
    flush()
    leave(DONE if found.holds else FAILED if claim is not None else INTEGRITY)


def _tell_repository(found: RepositoryChecked, as_json: bool) -> None:
    if as_json:
        say_json(
            {
                "kind": "repository",
                "wire": found.wire,
                "branch": found.branch,
                "tip": found.tip,
                "checkpoint": found.checkpoint,
                "lines": found.lines,
                "waiting": found.waiting,
                "channels": {name: {"seq": end.seq, "head": end.head} for name, end in sorted(found.ends.items())},
                "findings": [{"code": code, "scope": scope, "why": why} for code, scope, why in found.findings],
                "past": [{"code": code, "scope": scope, "why": why} for code, scope, why in found.past],
                "holds": not found.findings,
                "unknown": list(found.unknown),
            }
        )
    else:
        say(f"wire {found.wire}, branch {safe(found.branch)} at {found.tip[:12]}, trust {found.checkpoint}")
        say(f"{found.lines} line(s) hold: every signature, hash and link from the first line on")
        for name, end in sorted(found.ends.items()):
            say(f"  {name:<24} {end.seq:>7} {end.head[:16]}")
        if found.waiting:
            say(f"{found.waiting} line(s) of keys that nobody vouched for")
        for code, scope, why in found.findings:
            say(f"{styled(code, bold=True)} {safe(scope)}: {safe(why)}")
        for code, scope, why in found.past:
            say(f"on the way: {code} {safe(scope)}: {safe(why)}")
        _say_unknown(found.unknown)
    flush()
    leave(INTEGRITY if found.findings else DONE)


def _say_unknown(unknown: tuple[str, ...]) -> None:
    say("this check cannot know:")
    for what in unknown:
        say(f"  - {what}")


def _accepted(ctx: click.Context, full: bool, jobs: int | None, as_json: bool) -> None:
    """Check what this machine has accepted."""

    def progress(done: int, total: int) -> None:
        if done % 16 == 0 or done == total:
            sys.stderr.write(f"\rverified {done} of {total} segments" + ("\n" if done == total else ""))
            sys.stderr.flush()

    shown = progress if is_terminal() and not as_json else None
    found = wire_of(ctx).verify(full=full, jobs=jobs, progress=shown)
    if as_json:
        say_json(
            {
                "full": found.full,
                "lines": found.lines,
                "unreadable": found.unreadable,
                "checkpoint": found.checkpoint,
                "problems": [problem._asdict() for problem in found.problems],
                "views": list(found.views),
            }
        )
    else:
        what = "signatures, hashes and links" if found.full else "hashes and links"
        # What lines say is looked at in full only.
        unreadable = f"; {found.unreadable} of them cannot be shown" if found.full else ""
        say(f"{found.lines} line(s) hold ({what}){unreadable}; trust {found.checkpoint}")
        for one in found.problems:
            say(f"{one.code} {one.channel} segment {one.segment} byte {one.offset}: {safe(one.why)}")
        for path in found.views:
            say(f"the clone's {path} differs from what is accepted; `wire sync` mends it")
    flush()
    leave(INTEGRITY if found.problems or found.views else DONE)
