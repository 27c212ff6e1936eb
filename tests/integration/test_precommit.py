"""The pre-commit hook's verdicts: what a commit in the wire's clone may change, by a table, and how it is said.

Everything is staged with real git in a real clone. `mac` sits there; the wire has lines of `mac` and of `spark`.
"""

import functools
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from support import gitcmd, team
from support.machine import Machine
from support.remote import BareRemote
from wire.errors import WireError
from wire.hooks import precommit
from wire.hooks.precommit import Outcome
from wire.keys import requests
from wire.keys.trust import set_group, sign_document
from wire.protocol.chain import Position
from wire.protocol.encoding import Signer
from wire.protocol.line import head
from wire.store import trustfiles
from wire.store.files import utc_now
from wire.store.paths import Settings

channel_path = functools.partial(team.path, "mac/spark")
MINE = team.path("mac/spark")
THEIRS = team.path("spark/mac")
FOREIGN = b"a line that nobody signed\n"


@dataclass
class Desk:
    """The clone of `mac`, at which a person works."""

    mac: Machine
    spark: Machine
    clone: Path
    base: str

    def git(self, *args: str | Path, **rest: Any) -> bytes:
        return gitcmd.git(self.clone, *args, **rest)

    def read(self, path: str) -> bytes:
        return (self.clone / path).read_bytes()

    def write(self, path: str, data: bytes) -> None:
        (self.clone / path).parent.mkdir(parents=True, exist_ok=True)
        (self.clone / path).write_bytes(data)

    def append(self, path: str, *data: bytes) -> None:
        before = self.read(path) if (self.clone / path).exists() else b""
        self.write(path, before + b"".join(data))

    def lines(self, path: str) -> list[bytes]:
        return self.read(path).splitlines(keepends=True)

    def stage(self) -> None:
        self.git("add", "--all", "--force")

    def commit_unseen(self) -> None:
        """Commit what stands there, around the hook."""
        self.stage()
        self.git("commit", "--quiet", "--no-verify", "-m", "unseen")

    def next(self, *bodies: Any, **rest: Any) -> list[bytes]:
        """Return signed lines that follow the accepted end of mac/spark."""
        return team.write(self.mac, "mac/spark", *(bodies or ("by hand",)), **rest)

    def judge(self, **environ: str) -> Outcome:
        self.stage()
        return self.judge_index(**environ)

    def judge_index(self, **environ: str) -> Outcome:
        settings = Settings.from_environ({**self.mac.env, **environ}, str(self.clone))
        return precommit.run(settings, str(self.clone), joined=True)

    def reset(self) -> None:
        self.git("reset", "--quiet", "--hard", self.base)
        self.git("clean", "--quiet", "-ffdx")


def sit_down(crew: team.Team) -> Desk:
    """Let the wire have a past."""
    for body in ("one", "two", "three"):
        crew.mac.send("spark", body)
    crew.mac.send("all", "hello")
    crew.spark.send("mac", "back")
    crew.settle()
    clone = crew.mac.clone()
    return Desk(crew.mac, crew.spark, clone, gitcmd.line(clone, "rev-parse", "HEAD"))


@pytest.fixture(scope="module")
def _desk(template: team.Template, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    folder = tmp_path_factory.mktemp("desk")
    made = []

    def new_machine(name: str) -> Machine:
        (folder / f"machine-{name}").mkdir()
        made.append(Machine(name, folder / f"machine-{name}"))
        return made[-1]

    yield sit_down(template.copy(folder, BareRemote(folder / "hub.git"), new_machine))
    for machine in made:
        machine.close()


@pytest.fixture
def desk(_desk: Desk) -> Iterator[Desk]:
    _desk.reset()
    yield _desk
    _desk.reset()


def codes(outcome: Outcome) -> set[str]:
    return {str(problem.code) for problem in outcome.problems}


# What may be committed


def append_next(desk: Desk) -> None:
    desk.append(MINE, *desk.next())


def append_two(desk: Desk) -> None:
    desk.append(MINE, *desk.next("a", "b"))


def begin_a_channel(desk: Desk) -> None:
    desk.append(team.path("mac/review"), *team.write(desk.mac, "mac/review", "first"))


def remove_foreign_bytes(desk: Desk) -> None:
    good = desk.read(MINE)
    desk.append(MINE, FOREIGN)
    desk.commit_unseen()
    desk.write(MINE, good)


def remove_a_foreign_segment(desk: Desk) -> None:
    desk.write(team.path("mac/spark", 2), FOREIGN)
    desk.commit_unseen()
    (desk.clone / team.path("mac/spark", 2)).unlink()


def append_behind_foreign_bytes(desk: Desk) -> None:
    """They were there before, and the daemon takes them out; what is added is lawful."""
    desk.append(MINE, FOREIGN)
    desk.commit_unseen()
    desk.append(MINE, *desk.next())


def put_back_what_is_accepted(desk: Desk) -> None:
    good = desk.read(MINE)
    desk.write(MINE, good[: good.find(b"\n") + 1])
    desk.commit_unseen()
    desk.write(MINE, good)


def carry_accepted_lines_of_another(desk: Desk) -> None:
    good = desk.read(THEIRS)
    desk.write(THEIRS, b"")
    desk.commit_unseen()
    desk.write(THEIRS, good)


def take_out_an_illegal_path(desk: Desk) -> None:
    desk.write("_coordination/notes.txt", b"x")
    desk.commit_unseen()
    (desk.clone / "_coordination/notes.txt").unlink()


def next_trust(desk: Desk, *, signed: bool = True, by: Signer | None = None) -> bytes:
    folder = team.state(desk.mac) / "trust"
    chain = trustfiles.read(str(folder))
    raw = set_group(chain.newest, chain.wire, name="review", members=["mac", "spark"], created=utc_now())
    path = f"_coordination/trust/{chain.newest.version + 1:06}.json"
    desk.write(path, raw)
    desk.write(f"{path}.sig", sign_document(raw, by or team.signer(desk.mac, kind="root")) if signed else b"")
    return raw


def change_trust_with_the_root(desk: Desk) -> None:
    desk.write("_coordination/trust.json", next_trust(desk))


def ask_to_join(desk: Desk, **other: str) -> None:
    key = Signer(bytes(range(32)))
    wire = other.get("wire", team.pin(desk.mac).wire)
    raw = requests.make(key, wire=wire, name="nova", role="agent", created=utc_now())
    desk.write(f"_coordination/requests/{requests.file_name(other.get('name', 'nova'), key.key_id)}", raw)


def talk_about_keys(desk: Desk) -> None:
    desk.append(MINE, *desk.next("it begins with -----BEGIN PRIVATE KEY----- and must stay where it is"))


@pytest.mark.parametrize(
    "change",
    [
        append_next, append_two, begin_a_channel, remove_foreign_bytes, remove_a_foreign_segment,
        append_behind_foreign_bytes, put_back_what_is_accepted, carry_accepted_lines_of_another,
        take_out_an_illegal_path, change_trust_with_the_root, ask_to_join, talk_about_keys,
    ],
)  # fmt: skip
def test_it_passes(desk: Desk, change: Callable[[Desk], None]) -> None:
    change(desk)
    outcome = desk.judge()
    assert outcome.changes > 0
    assert [problem.text for problem in outcome.problems] == []


def test_what_was_sent_and_not_synced_passes_and_nothing_else_in_its_place(team: team.Team) -> None:
    """`wire send` leaves its line in the clone's file; a second one signed by hand would split the channel."""
    desk = sit_down(team)
    before, (other,) = desk.read(MINE), desk.next("not what was sent")
    desk.mac.send("spark", "what was sent")
    assert desk.judge() == Outcome(1, (), ())
    desk.write(MINE, before + other)
    assert codes(desk.judge()) == {"FORK"}


def test_a_segment_behind_one_that_is_missing_is_refused(team: team.Team) -> None:
    """HEAD never had the second and third segment; the third is staged without the second."""
    long = [json.dumps({"to": "spark", "body": f"{number:02}" * 25_000}) for number in range(11)]
    team.mac.remember(team.mac.wire("send", "--batch", input="\n".join(long)))
    desk = sit_down(team)
    second, third = (channel_path(number) for number in (2, 3))
    kept = {path: desk.read(path) for path in (second, third)}
    for path in kept:
        (desk.clone / path).unlink()
    desk.commit_unseen()
    desk.write(third, kept[third] + desk.next()[0])
    outcome = desk.judge()
    assert codes(outcome) == {"GAP"}, [problem.text for problem in outcome.problems]
    desk.write(second, kept[second])
    assert desk.judge().problems == ()


def test_nothing_staged_passes(desk: Desk) -> None:
    assert desk.judge() == Outcome(0, (), ())


# Lines that may not


def body(line: bytes, edit: Callable[[bytes], bytes]) -> bytes:
    return edit(line[:-1]) + b"\n"


def unsigned(desk: Desk) -> bytes:
    return body(desk.next()[0], lambda raw: raw[: raw.rfind(b',"key"')] + b"}")


def signature(text: bytes) -> Callable[[Desk], bytes]:
    def change(desk: Desk) -> bytes:
        return re.sub(rb'"sig":"[^"]*"', b'"sig":' + text, desk.next()[0])

    return change


def swapped(desk: Desk) -> bytes:
    one, two = desk.next("one", "two")
    return one[:-91] + two[-91:]


def by_spark(desk: Desk) -> bytes:
    return desk.next(by=team.signer(desk.spark))[0]


def by_a_stranger(desk: Desk) -> bytes:
    return desk.next(by=Signer(bytes(32)))[0]


def for_another_channel(desk: Desk) -> bytes:
    return team.write(desk.mac, "mac/review", "x")[0]


def for_another_wire(desk: Desk) -> bytes:
    return desk.next(wire="ab" * 16)[0]


def too_far(desk: Desk) -> bytes:
    return desk.next("one", "two")[1]


def again(desk: Desk) -> bytes:
    return desk.lines(MINE)[1]


def second_for_a_place(desk: Desk) -> bytes:
    start = Position.start(team.pin(desk.mac).wire, "mac/spark")
    first = desk.lines(MINE)[0]
    return desk.next("another second line", after=start.after(len(first), head(first[:-1])))[0]


def forged(middle: bytes) -> Callable[[Desk], bytes]:
    return lambda desk: team.forge(desk.mac, "mac/spark", middle)


def raw(data: bytes) -> Callable[[Desk], bytes]:
    return lambda desk: data


def changed(edit: Callable[[bytes], bytes]) -> Callable[[Desk], bytes]:
    return lambda desk: edit(desk.next()[0])


PEM = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAA\n"

LINES: dict[str, tuple[Callable[[Desk], bytes], str, str]] = {
    "unsigned": (unsigned, "SIGNATURE", "no signature"),
    "signature null": (signature(b"null"), "SIGNATURE", "not a signed line"),
    "signature empty": (signature(b'""'), "SIGNATURE", "not a signed line"),
    "signature cut": (signature(b'"abcd"'), "SIGNATURE", "not a signed line"),
    "signature of zeros": (signature(b'"' + b"A" * 86 + b'=="'), "SIGNATURE", "signature is not that of 'mac'"),
    "signature of another line": (swapped, "SIGNATURE", "signature is not that of 'mac'"),
    "signed by another agent": (by_spark, "SIGNATURE", "signed by 'spark'"),
    "signed by a stranger": (by_a_stranger, "KEY_UNKNOWN", "not approved yet"),
    "another channel's": (for_another_channel, "MISPLACED", "mac/review"),
    "another wire's": (for_another_wire, "MISPLACED", "abababab"),
    "out of sequence": (too_far, "GAP", "line 5 where 4 is next"),
    "a copy of an accepted line": (again, "REPLAY", "line 2 again"),
    "a second line for a place": (second_for_a_place, "FORK", "second valid line 2"),
    "conflict marker": (raw(b"<<<<<<< HEAD\n"), "SIGNATURE", "conflict marker"),
    "conflict end": (raw(b">>>>>>> 0a1b2c3 (a change)\n"), "SIGNATURE", "conflict marker"),
    "byte order mark": (changed(lambda line: b"\xef\xbb\xbf" + line), "SIGNATURE", "byte order mark"),
    "CR LF": (changed(lambda line: line[:-1] + b"\r\n"), "SIGNATURE", "CR LF"),
    "torn": (changed(lambda line: line[:200] + b"\n"), "SIGNATURE", "torn"),
    "without its newline": (changed(lambda line: line[:-1]), "SIGNATURE", "unterminated"),
    "NUL bytes": (changed(lambda line: line[:50] + b"\0\0" + line[52:]), "SIGNATURE", "NUL"),
    "another version": (changed(lambda line: line.replace(b'{"v":1,', b'{"v":2,')), "SIGNATURE", "version"),
    "an empty line": (raw(b"\n"), "SIGNATURE", "empty line"),
    "duplicate keys": (forged(b'"body":"x","body":"y"'), "SCHEMA", "duplicate key 'body'"),
    "an unknown member": (forged(b'"colour":"blue"'), "SCHEMA", "colour"),
    "NaN": (forged(b'"body":{"x":NaN}'), "SCHEMA", "NaN"),
    "too long": (raw(b"x" * 70_000 + b"\n"), "SIZE", "70001 bytes"),
    "a private key as its body": (lambda desk: desk.next(PEM)[0], "PRIVATE_KEY", "OpenSSH"),
}


@pytest.mark.parametrize("name", LINES)
def test_it_refuses_a_line(desk: Desk, name: str) -> None:
    make, code, why = LINES[name]
    before = desk.read(MINE)
    desk.append(MINE, make(desk))
    outcome = desk.judge()
    assert codes(outcome) == {code}
    (problem,) = outcome.problems
    assert why in problem.why
    assert problem.path == MINE.encode()
    assert problem.line == 4
    if code != "PRIVATE_KEY":
        assert problem.offset == len(before)
        assert problem.begins == desk.read(MINE)[len(before) :].partition(b"\n")[0][:40]
        assert problem.text.startswith(f"{MINE}:4: byte {len(before)}: {code}: ")
    assert problem.text.isascii()
    assert problem.text.isprintable()


def test_no_part_of_a_private_key_is_shown(desk: Desk) -> None:
    desk.append(MINE, *desk.next(PEM))
    assert "b3Blbn" not in desk.judge().problems[0].text


# Other changes that may not


def edit(path: str, change: Callable[[bytes], bytes]) -> Callable[[Desk], object]:
    return lambda desk: desk.write(path, change(desk.read(path)))


def unlink(path: str) -> Callable[[Desk], object]:
    return lambda desk: (desk.clone / path).unlink()


def put(path: str, data: bytes = b"x\n") -> Callable[[Desk], object]:
    return lambda desk: desk.write(path, data)


def reordered(data: bytes) -> bytes:
    one, two, three = data.splitlines(keepends=True)
    return one + three + two


def make_executable(desk: Desk) -> None:
    (desk.clone / MINE).chmod(0o755)


def make_link(desk: Desk) -> None:
    (desk.clone / MINE).unlink()
    (desk.clone / MINE).symlink_to("/etc/passwd")


def make_submodule(desk: Desk) -> None:
    desk.git("update-index", "--add", "--cacheinfo", f"160000,{desk.base},_coordination/mac/sub")


def behind_a_hole(desk: Desk) -> None:
    """HEAD never had line 3, which is accepted here; line 4 is staged without it."""
    lines = desk.lines(MINE)
    desk.write(MINE, b"".join(lines[:2]))
    desk.commit_unseen()
    desk.append(MINE, *desk.next())


def valid_line_in_anothers_folder(desk: Desk) -> None:
    desk.append(THEIRS, *team.write(desk.spark, "spark/mac", "put words in its mouth"))


def root_key_as_a_file(desk: Desk) -> None:
    key = next((desk.mac.wire_home / "keys").glob("*/root-root.key"))
    desk.write("backup.txt", key.read_bytes())


def agent_key_inside_something(desk: Desk) -> None:
    key = next((desk.mac.wire_home / "keys").glob("*/agent-mac.key")).read_text()
    desk.append(MINE, *desk.next({"debug": key}))


def remove_anothers_request(desk: Desk) -> None:
    ask_to_join(desk)
    desk.commit_unseen()
    shutil.rmtree(desk.clone / "_coordination/requests")


CHANGES: dict[str, tuple[Callable[[Desk], object], set[str], str]] = {
    "a rewritten line": (edit(MINE, lambda data: data.replace(b'"two"', b'"TWO"')), {"PREFIX", "SIGNATURE"}, MINE),
    "a removed line": (edit(MINE, lambda data: data[data.find(b"\n") + 1 :]), {"PREFIX"}, MINE),
    "a removed last line": (edit(MINE, lambda data: data[: data.rfind(b"\n", 0, -1) + 1]), {"PREFIX"}, MINE),
    "a removed file": (unlink(MINE), {"PREFIX"}, MINE),
    "an emptied file": (edit(MINE, lambda data: b""), {"PREFIX"}, MINE),
    "reordered lines": (edit(MINE, reordered), {"REPLAY", "PREFIX"}, MINE),
    "a line behind a hole": (behind_a_hole, {"GAP"}, MINE),
    "an extra segment": (put(team.path("mac/spark", 2), FOREIGN), {"SIGNATURE"}, team.path("mac/spark", 2)),
    "junk in another's folder": (edit(THEIRS, lambda data: data + FOREIGN), {"NOT_YOURS"}, THEIRS),
    "a valid line in another's folder": (valid_line_in_anothers_folder, {"NOT_YOURS"}, THEIRS),
    "a removed line in another's folder": (edit(THEIRS, lambda data: b""), {"NOT_YOURS"}, THEIRS),
    "another's file removed": (unlink(THEIRS), {"NOT_YOURS"}, THEIRS),
    "a folder of nobody": (put(team.path("nobody/mac")), {"NOT_YOURS"}, team.path("nobody/mac")),
    "executable": (make_executable, {"SHAPE"}, MINE),
    "a link": (make_link, {"SHAPE"}, MINE),
    "a submodule": (make_submodule, {"SHAPE"}, "_coordination/mac/sub"),
    "an odd name": (put("_coordination/mac/spark/1.jsonl"), {"SHAPE"}, "_coordination/mac/spark/1.jsonl"),
    "a reserved name": (put("_coordination/mac/con/000001.jsonl"), {"SHAPE"}, "_coordination/mac/con/000001.jsonl"),
    "a file of no kind": (put("_coordination/notes.txt"), {"SHAPE"}, "_coordination/notes.txt"),
    "a file outside": (put("README.md"), {"SHAPE"}, "README.md"),
    "attributes": (put("_coordination/.gitattributes", b"* text=auto\n"), {"SHAPE"}, "_coordination/.gitattributes"),
    "a changed trust version": (
        edit("_coordination/trust/000002.json", lambda data: data.replace(b'"mac"', b'"max"')),
        {"TRUST"},
        "_coordination/trust/000002.json",
    ),
    "a removed trust version": (
        unlink("_coordination/trust/000002.json"),
        {"TRUST"},
        "_coordination/trust/000002.json",
    ),
    "removed signatures": (
        unlink("_coordination/trust/000002.json.sig"),
        {"TRUST"},
        "_coordination/trust/000002.json.sig",
    ),
    "an unsigned trust version": (
        lambda desk: next_trust(desk, signed=False),
        {"TRUST"},
        "_coordination/trust/000004.json.sig",
    ),
    "a trust version signed by no root": (
        lambda desk: next_trust(desk, by=team.signer(desk.mac)),
        {"TRUST"},
        "_coordination/trust/000004.json",
    ),
    "a trust version too far": (
        put("_coordination/trust/000009.json", b"{}\n"),
        {"TRUST"},
        "_coordination/trust/000009.json.sig",
    ),
    "another trust.json": (
        edit("_coordination/trust.json", lambda data: data.replace(b'"mac"', b'"max"')),
        {"TRUST"},
        "_coordination/trust.json",
    ),
    "a request that is none": (
        put(f"_coordination/requests/nova.{'0' * 32}.json", b"{}"),
        {"REQUEST"},
        f"_coordination/requests/nova.{'0' * 32}.json",
    ),
    "a request for another wire": (lambda desk: ask_to_join(desk, wire="ab" * 16), {"REQUEST"}, ""),
    "a request under another name": (lambda desk: ask_to_join(desk, name="nina"), {"REQUEST"}, ""),
    "another's request removed": (remove_anothers_request, {"NOT_YOURS"}, ""),
    "the root's key": (root_key_as_a_file, {"PRIVATE_KEY", "SHAPE"}, "backup.txt"),
    "an agent's key inside a message": (agent_key_inside_something, {"PRIVATE_KEY"}, MINE),
    "an ssh key outside": (put("id_ed25519", PEM.encode()), {"PRIVATE_KEY", "SHAPE"}, "id_ed25519"),
    "a huge file": (put("big", bytes(9 << 20)), {"SIZE", "SHAPE"}, "big"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_it_refuses(desk: Desk, name: str) -> None:
    change, expected, path = CHANGES[name]
    change(desk)
    outcome = desk.judge_index() if name == "a submodule" else desk.judge()
    assert codes(outcome) == expected, [problem.text for problem in outcome.problems]
    if path:
        assert {problem.path.decode() for problem in outcome.problems} == {path}


def test_behind_a_flood_of_foreign_pieces_nothing_slips_in(desk: Desk) -> None:
    """The walk lists a thousand and counts the rest, so that junk in HEAD could hide new junk."""
    good = desk.read(MINE)
    desk.append(MINE, b"junk\n" * 1_200)
    desk.commit_unseen()
    desk.append(MINE, FOREIGN)
    assert codes(desk.judge()) == {"SIGNATURE"}
    desk.write(MINE, good + desk.next()[0])
    assert desk.judge().problems == ()


def test_half_of_an_accepted_line_is_not_carried(desk: Desk) -> None:
    good = desk.read(THEIRS)
    desk.write(THEIRS, b"")
    desk.commit_unseen()
    desk.write(THEIRS, good[:100])
    assert codes(desk.judge()) == {"NOT_YOURS"}


def test_a_removed_line_is_named_where_it_stood(desk: Desk) -> None:
    first, second, _ = desk.lines(MINE)
    desk.write(MINE, desk.read(MINE).replace(second, b""))
    (problem,) = desk.judge().problems
    assert (problem.line, problem.offset, problem.begins) == (2, len(first), second[:40])
    assert "mac/spark/2" in problem.why


def test_a_conflict_in_the_index_is_refused(desk: Desk) -> None:
    entry = desk.git("rev-parse", f"HEAD:{MINE}").decode().strip()
    staged = f"0 {'0' * len(entry)}\t{MINE}\n" + "".join(f"100644 {entry} {n}\t{MINE}\n" for n in (1, 2, 3))
    desk.git("update-index", "--index-info", input=staged.encode())
    assert "UNMERGED" in codes(desk.judge_index())


def test_every_problem_is_told(desk: Desk) -> None:
    desk.append(MINE, FOREIGN, FOREIGN, b"<<<<<<< HEAD\n")
    desk.append(THEIRS, FOREIGN)
    assert len(desk.judge().problems) == 4


def test_only_what_is_staged_is_judged(desk: Desk) -> None:
    """What lies in the work tree is somebody's unfinished business."""
    desk.append(MINE, *desk.next())
    desk.stage()
    desk.append(MINE, FOREIGN)
    assert desk.judge_index().problems == ()


def test_the_index_that_git_names_is_judged_and_not_touched(desk: Desk, tmp_path: Path) -> None:
    index = tmp_path / "index"
    shutil.copy(desk.clone / ".git/index", index)
    desk.append(MINE, FOREIGN)
    gitcmd.git(desk.clone, "add", "--all", env={"GIT_INDEX_FILE": str(index)})
    before = index.read_bytes(), os.stat(index).st_mtime_ns
    assert codes(desk.judge_index(GIT_INDEX_FILE=str(index))) == {"SIGNATURE"}
    assert desk.judge_index().problems == ()
    assert (index.read_bytes(), os.stat(index).st_mtime_ns) == before
    assert not list(tmp_path.glob("*.lock"))


# Failing closed


@pytest.fixture
def broken(desk: Desk) -> Iterator[Callable[[Path, bytes | None], None]]:
    kept: list[tuple[Path, bytes]] = []

    def harm(path: Path, data: bytes | None) -> None:
        kept.append((path, path.read_bytes()))
        path.unlink()
        if data is not None:
            path.write_bytes(data)

    yield harm
    for path, data in kept:
        path.write_bytes(data)


@pytest.mark.parametrize("what", ["pin.json", "trust/000002.json", "trust/000001.json.sig", "config"])
@pytest.mark.parametrize("data", [None, b"", b"\0\0\0", b"{}"], ids=["missing", "empty", "zeros", "other"])
def test_nothing_passes_where_pin_or_trust_cannot_be_used(
    desk: Desk, broken: Callable[[Path, bytes | None], None], what: str, data: bytes | None
) -> None:
    """Also not a commit that changes nothing."""
    broken(desk.mac.wire_home / "config.toml" if what == "config" else team.state(desk.mac) / what, data)
    with pytest.raises(WireError) as refused:
        desk.judge()
    assert refused.value.exit_status != 0


def test_nothing_passes_in_a_repository_that_is_no_clone_of_ours(desk: Desk, tmp_path: Path) -> None:
    gitcmd.git(tmp_path, "init", "--quiet", "stranger")
    settings = Settings.from_environ(desk.mac.env, "/")
    with pytest.raises(WireError) as refused:
        precommit.run(settings, str(tmp_path / "stranger"), joined=True)
    assert refused.value.reason == "hook-no-wire"
    with pytest.raises(WireError):
        precommit.run(settings, str(tmp_path), joined=True)


# Through the pre-commit framework, in any clone


def framework(desk: Desk, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run what .pre-commit-hooks.yaml names, as somebody who joined nothing."""
    home = folder.parent / "nobody"
    home.mkdir(exist_ok=True)
    env = {**desk.mac.env, "WIRE_HOME": str(home)}
    program = [str(desk.mac.program), "hooks", "run", "pre-commit"]
    return subprocess.run(program, cwd=folder, env=env, capture_output=True, text=True, timeout=60)


@pytest.fixture
def plain(desk: Desk, tmp_path: Path) -> Path:
    """A clone that git made, of somebody whom no machine knows."""
    gitcmd.git(tmp_path, "clone", "--quiet", desk.clone, "plain")
    return tmp_path / "plain"


def test_without_a_pin_the_trust_in_head_decides_and_that_is_said(desk: Desk, plain: Path) -> None:
    file = plain / MINE
    file.write_bytes(file.read_bytes() + desk.next()[0])
    gitcmd.git(plain, "add", "--all")
    done = framework(desk, plain)
    assert done.returncode == 0, done.stderr
    assert "there is no pin" in done.stderr
    assert desk.mac.json("trust", "show")["checkpoint"] in done.stderr


@pytest.mark.parametrize("name", ["unsigned", "out of sequence", "a copy of an accepted line", "signed by a stranger"])
def test_without_a_pin_bad_lines_are_refused(desk: Desk, plain: Path, name: str) -> None:
    make, code, _ = LINES[name]
    file = plain / MINE
    file.write_bytes(file.read_bytes() + make(desk))
    gitcmd.git(plain, "add", "--all")
    done = framework(desk, plain)
    assert done.returncode == 4
    assert f"{MINE}:4: byte" in done.stderr
    assert code in done.stderr


def test_without_a_pin_files_outside_are_left_alone(desk: Desk, plain: Path) -> None:
    """The framework's own configuration is one."""
    (plain / ".pre-commit-config.yaml").write_text("repos: []\n")
    gitcmd.git(plain, "add", "--all")
    assert framework(desk, plain).returncode == 0


def test_without_a_pin_removed_lines_and_unsigned_trust_are_refused(desk: Desk, plain: Path) -> None:
    (plain / MINE).write_bytes(b"")
    (plain / "_coordination/trust/000002.json").write_bytes(b"{}")
    gitcmd.git(plain, "add", "--all")
    done = framework(desk, plain)
    assert done.returncode == 4
    assert "PREFIX" in done.stderr
    assert "TRUST" in done.stderr


def test_a_repository_without_a_wire_is_only_looked_through_for_keys(desk: Desk, tmp_path: Path) -> None:
    gitcmd.git(tmp_path, "init", "--quiet", "project")
    project = tmp_path / "project"
    (project / "a").write_text("x")
    gitcmd.git(project, "add", "--all")
    done = framework(desk, project)
    assert done.returncode == 0
    assert "only private keys" in done.stderr
    (project / "id").write_text(PEM)
    gitcmd.git(project, "add", "--all")
    done = framework(desk, project)
    assert done.returncode == 4
    assert "id:1: byte 0: PRIVATE_KEY" in done.stderr


def test_lines_without_any_trust_are_refused(desk: Desk, tmp_path: Path) -> None:
    gitcmd.git(tmp_path, "init", "--quiet", "project")
    project = tmp_path / "project"
    (project / MINE).parent.mkdir(parents=True)
    (project / MINE).write_bytes(desk.read(MINE))
    gitcmd.git(project, "add", "--all")
    done = framework(desk, project)
    assert done.returncode == 5
    assert "no trust chain" in done.stderr


def test_a_trust_chain_in_head_that_does_not_hold_fails_closed(desk: Desk, plain: Path) -> None:
    (plain / "_coordination/trust/000001.json").write_bytes(b"{}")
    gitcmd.git(plain, "commit", "--quiet", "--no-verify", "-a", "-m", "x")
    assert framework(desk, plain).returncode == 5


def test_the_verdict_in_json(desk: Desk) -> None:
    desk.append(MINE, FOREIGN)
    desk.stage()
    done = desk.mac.wire("hooks", "run", "pre-commit", "--joined", "--json", cwd=desk.clone, check=False)
    assert done.status == 4
    said = json.loads(done.out)
    assert said["accepted"] is False
    (problem,) = said["problems"]
    assert (problem["code"], problem["path"], problem["line"]) == ("SIGNATURE", MINE, 4)
    assert problem["begins"] == "'a line that nobody signed'"
