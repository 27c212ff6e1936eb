"""The host's pre-receive hook refuses what a vandal pushes, move by move, with real pushes.

The vandal has a copy of the repository in which he does what he likes, and pushes it by force. What he pushes must be
refused with the code that a peer would give it, and the host must hold exactly what it held before.
"""

import itertools
import json
import re
import shutil
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from support import gitcmd
from support.besieged import Siege, Template, pin, signer, site
from support.hostile_host import TS, File, HostileHost, document, segment, signature_text, signed_part, spellings
from support.hostile_host import with_signature as signed_as
from support.machine import Machine
from support.remote import BareRemote
from wire.hooks import serverhook
from wire.hooks.prereceive import Rules
from wire.keys.trust import enroll, found, parse, prove, sign_document
from wire.protocol.encoding import Signer
from wire.protocol.presence import seal

MINE = "mac/spark"
THEIRS = "spark/mac"
LATER = 900_000_000_000_000
"""A counter that no clock has reached."""
_count = itertools.count()
NOBODY = Signer(sha256(b"nobody").digest())


class Stage:
    """A host with the hook, and a vandal's copy of it."""

    def __init__(self, siege: Siege, folder: Path) -> None:
        self.siege = siege
        self.host = siege.remote
        report = serverhook.install({}, str(self.host.path), Rules())
        assert report.active, report.why
        shutil.copytree(self.host.path, folder)
        (folder / "hooks" / "pre-receive").unlink()
        copy = BareRemote.__new__(BareRemote)
        copy.path, copy.url = folder, str(folder)
        self.vandal = HostileHost(copy)
        self.tip = self.vandal.tip

    def push(self, *refspecs: str) -> None:
        gitcmd.git(self.vandal.remote.path, "push", "--force", str(self.host.path), *refspecs)

    def refs(self) -> bytes:
        return self.host.git("for-each-ref")

    def reset(self) -> None:
        self.vandal.put_back(self.tip)

    def author(self, channel: str, name: str, seed: Signer | None = None):
        return self.vandal.author(channel, seed or signer(self.siege.machines[name]))


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("hosted")
    made: list[Machine] = []

    def machine(name: str) -> Machine:
        (folder / name).mkdir()
        made.append(Machine(name, folder / name))
        return made[-1]

    (folder / "siege").mkdir()
    siege = Template(folder / "template").copy(folder / "siege", BareRemote(folder / "hub.git"), machine)
    yield Stage(siege, folder / "vandal.git")
    for one in made:
        one.close()


# What vandals do to the branch


def _flash(stage: Stage) -> None:
    stage.vandal.flash(lambda: stage.vandal.delete(MINE, 2))


def _squash(stage: Stage) -> None:
    stage.vandal.squash()


def _merge_that_takes_away(stage: Stage) -> None:
    stage.vandal.evil_merge({segment(MINE): b"".join(line + b"\n" for line in stage.vandal.lines(MINE)[:-1])})


def _unknown_signer(stage: Stage) -> None:
    stage.vandal.append(MINE, stage.vandal.author(MINE, NOBODY).line())


def _peer_in_a_strange_folder(stage: Stage) -> None:
    stage.vandal.append(MINE, stage.author(MINE, "spark").line())


def _peer_who_signs_for_himself_there(stage: Stage) -> None:
    stage.vandal.append(MINE, stage.author(MINE, "spark").line(sender="spark", recipient="mac"))


def _gap(stage: Stage) -> None:
    author = stage.author(MINE, "mac")
    author.line()
    stage.vandal.append(MINE, author.line())


def _fork(stage: Stage) -> None:
    author = stage.author(MINE, "mac")
    author.last = stage.vandal.lines(MINE)[-2]
    stage.vandal.append(MINE, author.line("another last line"))


def _other_spelling(stage: Stage) -> None:
    raw = stage.author(MINE, "mac").line()
    stage.vandal.append(MINE, signed_as(signed_part(raw), spellings(signature_text(raw))[1]))


def _unreadable(stage: Stage) -> None:
    stage.vandal.append(MINE, stage.author(MINE, "mac").line(middle=b'"body":{"a":1,"a":2},'))


def _too_long(stage: Stage) -> None:
    stage.vandal.append(MINE, stage.author(MINE, "mac").line("x" * 70_000))


def _next_line_in_a_later_segment(stage: Stage) -> None:
    stage.vandal.append(MINE, stage.author(MINE, "mac").line(), number=2)


def _a_key(stage: Stage) -> None:
    key = (stage.siege.mac.wire_home / "keys").rglob("*.key")
    stage.vandal.append(MINE, next(iter(key)).read_bytes())


def _new_trust_by_nobody(stage: Stage) -> None:
    version, raw, _ = stage.vandal.trust
    grown = json.loads(raw) | {"version": version + 1, "prev": sha256(raw).hexdigest()}
    made = json.dumps(grown, indent=1).encode() + b"\n"
    stage.vandal.put_trust(version + 1, made, sign_document(made, NOBODY))


def _trust_changed(stage: Stage) -> None:
    version, raw, signatures = stage.vandal.trust
    stage.vandal.put_trust(version, raw.replace(b'"role": "agent"', b'"role": "human"', 1), signatures)


def _request_of_nothing(stage: Stage) -> None:
    stage.vandal.commit({f"_coordination/requests/zoe.{'0' * 32}.json": b"{}\n"})


MOVES: dict[str, tuple[Callable[[Stage], object], str]] = {
    "another body in an old line": (lambda s: s.vandal.rewrite(MINE, 2), "PREFIX"),
    "a line taken out": (lambda s: s.vandal.delete(MINE, 2), "PREFIX"),
    "cut off": (lambda s: s.vandal.truncate(MINE, 2), "PREFIX"),
    "in another order": (lambda s: s.vandal.reorder(MINE, 1), "PREFIX"),
    "a line put in between": (lambda s: s.vandal.insert(MINE, 2, b"junk"), "SIGNATURE"),
    "junk behind the end": (lambda s: s.vandal.append(MINE, b"junk\n"), "SIGNATURE"),
    "junk without a newline": (lambda s: s.vandal.append(MINE, b"junk"), "SIGNATURE"),
    "an old line again": (lambda s: s.vandal.append(MINE, s.vandal.lines(MINE)[1] + b"\n"), "REPLAY"),
    "a line of another channel": (lambda s: s.vandal.append(MINE, s.vandal.lines(THEIRS)[0] + b"\n"), "MISPLACED"),
    "a line of the owner's for somebody else": (
        lambda s: s.vandal.append("mac/lee", s.vandal.lines(MINE)[0] + b"\n"), "MISPLACED",
    ),
    "a segment gone": (lambda s: s.vandal.replace_segment(MINE, None), "PREFIX"),
    "a segment that is a link": (lambda s: s.vandal.replace_segment(MINE, File(b"/etc/passwd", "120000")), "SHAPE"),
    "a segment that is a program": (
        lambda s: s.vandal.replace_segment(MINE, File(s.vandal.read(segment(MINE)) or b"", "100755")), "SHAPE",
    ),
    "a segment that is a submodule": (
        lambda s: s.vandal.replace_segment(MINE, File(s.tip.encode(), "160000")), "SHAPE",
    ),
    "a segment far away": (lambda s: s.vandal.append(MINE, b"junk\n", number=999), "SIGNATURE"),
    "a huge segment": (lambda s: s.vandal.replace_segment(MINE, b"x" * (2 << 20)), "SIZE"),
    "a folder of a name that nobody knows": (
        lambda s: s.vandal.append("eve/mac", s.vandal.author("eve/mac", NOBODY).line()), "KEY_UNKNOWN",
    ),
    "a line signed by nobody": (_unknown_signer, "KEY_UNKNOWN"),
    "a peer's signature in the owner's name": (_peer_in_a_strange_folder, "SIGNATURE"),
    "a peer's own line in the owner's folder": (_peer_who_signs_for_himself_there, "MISPLACED"),
    "a line after a gap": (_gap, "GAP"),
    "a second line of one number": (_fork, "FORK"),
    "a signature spelled otherwise": (_other_spelling, "SIGNATURE"),
    "content that nobody can read": (_unreadable, "SCHEMA"),
    "a line that is too long": (_too_long, "SIZE"),
    "the next line in a later segment": (_next_line_in_a_later_segment, "MISPLACED"),
    "a private key": (_a_key, "PRIVATE_KEY"),
    "undone in the next commit": (_flash, "PREFIX"),
    "the same files without history": (_squash, "FORCED"),
    "an older state": (lambda s: s.vandal.roll_back(2), "FORCED"),
    "a history of something else": (lambda s: s.vandal.unrelated({"README.md": b"mine now\n"}), "FORCED"),
    "a merge that takes a line away": (_merge_that_takes_away, "PREFIX"),
    "a file that is none of the wire's": (lambda s: s.vandal.commit({"README.md": b"hello\n"}), "SHAPE"),
    "a path that no wire has": (lambda s: s.vandal.commit({"_coordination/mac/notes.txt": b"hello\n"}), "SHAPE"),
    "attributes that filter": (lambda s: s.vandal.commit({"_coordination/.gitattributes": b"* text\n"}), "SHAPE"),
    "a trust version by nobody": (_new_trust_by_nobody, "TRUST"),
    "a trust version changed": (_trust_changed, "TRUST"),
    "a trust version gone": (lambda s: s.vandal.commit({document(2): None}), "TRUST"),
    "its signatures gone": (lambda s: s.vandal.commit({f"{document(2)}.sig": None}), "TRUST"),
    "a copy of the trust that is none": (lambda s: s.vandal.commit({"_coordination/trust.json": b"{}"}), "TRUST"),
    "a request that is none": (_request_of_nothing, "REQUEST"),
}  # fmt: skip


@pytest.mark.parametrize("title", MOVES)
def test_what_a_vandal_pushes_is_refused(stage: Stage, title: str) -> None:
    move, code = MOVES[title]
    before = stage.refs()
    move(stage)
    try:
        with pytest.raises(gitcmd.GitFailed) as refused:
            stage.push("main")
    finally:
        stage.reset()
    told = re.search(r"wire: refused by the host's hook: (.*) in refs/heads/main", refused.value.stderr)
    assert told is not None, refused.value.stderr
    assert code in told[1].split(", ")
    assert "pre-receive hook declined" in refused.value.stderr
    assert stage.refs() == before


def test_the_branch_is_never_deleted(stage: Stage) -> None:
    with pytest.raises(gitcmd.GitFailed, match="FORCED in refs/heads/main"):
        stage.push(":main")


@pytest.mark.parametrize("ref", ["refs/wire/accepted", "refs/wire/presence/eve", f"refs/replace/{'1' * 40}"])
def test_refs_that_no_wire_has(stage: Stage, ref: str) -> None:
    with pytest.raises(gitcmd.GitFailed, match="REF in refs/"):
        stage.push(f"main:{ref}")


def test_other_branches_are_not_the_wires(stage: Stage) -> None:
    other = stage.vandal.commit({"notes.txt": b"of something else\n"}, parents=[])
    stage.reset()
    stage.push(f"{other}:refs/heads/notes")
    stage.push(":refs/heads/notes")


# Presences: they alone are replaced, by their agent, and never by an older one.


def _presence(
    stage: Stage, agent: str, counter: int, by: Signer | None = None, *, parents: tuple[str, ...] = ()
) -> str:
    """Return a commit with a presence, by default of the agent's own; its counter is above those of its machine."""
    machine = stage.siege.machines[agent]
    held = pin(machine)
    raw = seal(
        by or signer(machine), wire=held.wire, agent=agent, instance="0" * 32, counter=LATER + counter,
        ts=TS, trust=f"{held.trust_version}:{held.trust_hash[:16]}", state="idle", tier="T0",
        interval=60.0, channels={},
    )  # fmt: skip
    # Never twice the same commit, which git would not push.
    made = stage.vandal.commit({"presence.json": raw}, parents=list(parents), message=f"presence {next(_count)}")
    stage.reset()
    return made


def test_presences_are_replaced_by_newer_ones_of_their_agent_alone(stage: Stage) -> None:
    ref = "refs/wire/presence/spark"
    stage.push(f"{_presence(stage, 'spark', 5)}:{ref}")
    stage.push(f"{_presence(stage, 'spark', 6)}:{ref}")
    held = stage.refs()
    for made, why in (
        (_presence(stage, "spark", 6), f"its counter {LATER + 6} is not above {LATER + 6}"),
        (_presence(stage, "mac", 9), "it was signed for 'mac'"),
        (_presence(stage, "spark", 9, signer(stage.siege.mac)), "not signed by the active key of 'spark'"),
        (_presence(stage, "spark", 9, parents=(stage.tip,)), "a commit without parents"),
        (stage.vandal.commit({"presence.json": b"{}\n"}, parents=[]), "it does not end in a key"),
    ):
        stage.reset()
        with pytest.raises(gitcmd.GitFailed) as refused:
            stage.push(f"{made}:{ref}")
        assert f"REF in {ref}" in refused.value.stderr
        assert why in refused.value.stderr
    with pytest.raises(gitcmd.GitFailed, match="is replaced and not deleted"):
        stage.push(f":{ref}")
    assert stage.refs() == held


def test_a_wire_of_the_vandals_own_takes_no_names(stage: Stage) -> None:
    """He may push a branch with a trust of his own; that gives him no presence of somebody else's."""
    stage.push(f"{_presence(stage, 'lee', 5)}:refs/wire/presence/lee")
    root, lee = (Signer(sha256(word).digest()) for word in (b"root", b"another lee"))
    first = found(roots=[root.public], created=TS, nonce="0" * 32)
    wire = sha256(first).hexdigest()[:32]
    second = enroll(
        parse(first), wire, name="lee", role="agent", public=lee.public,
        proof=prove(lee, wire=wire, name="lee", role="agent"), created=TS,
    )  # fmt: skip
    files: dict[str | bytes, bytes | File | None] = {}
    for version, raw in ((1, first), (2, second)):
        files |= {document(version): raw, f"{document(version)}.sig": sign_document(raw, root)}
    made = stage.vandal.commit(files, parents=[])
    stage.reset()
    stage.push(f"{made}:refs/heads/another")
    raw = seal(
        lee, wire=wire, agent="lee", instance="0" * 32, counter=LATER + 9, ts=TS, trust="2:" + "0" * 16, state="idle",
        tier="T0", interval=60.0, channels={},
    )  # fmt: skip
    made = stage.vandal.commit({"presence.json": raw}, parents=[])
    stage.reset()
    with pytest.raises(gitcmd.GitFailed, match="the name is taken by an agent of the wire"):
        stage.push(f"{made}:refs/wire/presence/lee")
    with pytest.raises(gitcmd.GitFailed, match="FORCED in refs/heads/another"):
        stage.push(":refs/heads/another")
    stage.host.git("update-ref", "-d", "refs/heads/another")


# A thief with the root's key is no vandal: what is lawful passes.


def test_lawful_pushes_pass_and_are_remembered(siege: Siege, tmp_path: Path) -> None:
    stage = Stage(siege, tmp_path / "vandal.git")
    author = stage.author(MINE, "mac")
    stage.vandal.append(MINE, author.line("one"))
    stage.vandal.append(MINE, author.line("two"))
    stage.push("main")
    version, _, _ = stage.vandal.trust
    zoe = Signer(sha256(b"zoe").digest())
    grown = enroll(
        site(siege.mac).trust(pin(siege.mac)).newest, stage.vandal.wire, name="zoe", role="agent", public=zoe.public,
        proof=prove(zoe, wire=stage.vandal.wire, name="zoe", role="agent"), created=TS,
    )  # fmt: skip
    stage.vandal.put_trust(version + 1, grown, sign_document(grown, signer(siege.mac, "root")))
    stage.vandal.append("zoe/mac", stage.vandal.author("zoe/mac", zoe).line("hello"))
    stage.push("main")
    known = json.loads((siege.remote.path / "wire-pre-receive.json").read_bytes())
    assert known["channels"][MINE][-1][2] == 6
    assert known["channels"]["zoe/mac"][-1][2] == 1
    assert siege.remote.tip() == stage.vandal.tip
