"""The host's pre-receive hook refuses what a vandal pushes, move by move, with real pushes.

The vandal has a copy of the repository in which he does what he likes, and pushes it by force. What he pushes must be
refused with the code that a peer would give it, and the host must hold exactly what it held before.
"""

import itertools
import json
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from support import gitcmd
from support.besieged import Siege, Template, pin, signer, site
from support.hostile_host import TS, File, HostileHost, document
from support.machine import Machine
from support.moves import ALL as MOVES
from support.remote import BareRemote
from wire.hooks import serverhook
from wire.hooks.prereceive import Rules
from wire.keys.trust import enroll, found, parse, prove, sign_document
from wire.protocol.encoding import Signer
from wire.protocol.presence import seal

MINE = "mac/spark"
LATER = 900_000_000_000_000
"""A counter that no clock has reached."""
_count = itertools.count()


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


def _a_key(siege: Siege) -> None:
    key = (siege.mac.wire_home / "keys").rglob("*.key")
    siege.host.append(MINE, next(iter(key)).read_bytes())


CODES: dict[str, str] = {
    "an old line is rewritten": "PREFIX",
    "the first line is rewritten": "PREFIX",
    "the last line is rewritten": "PREFIX",
    "a line gets a blank": "PREFIX",
    "a line is deleted": "PREFIX",
    "the last lines are cut": "PREFIX",
    "a channel is deleted": "PREFIX",
    "a channel is emptied": "PREFIX",
    "two lines change places": "PREFIX",
    "a line of his own is put between": "KEY_UNKNOWN",
    "carriage returns": "PREFIX",
    "a junk line": "SIGNATURE",
    "junk without a newline": "SIGNATURE",
    "empty lines": "SIGNATURE",
    "a copy of an old line": "REPLAY",
    "a line that he signed himself": "KEY_UNKNOWN",
    "junk between two lines": "SIGNATURE",
    "an extra segment far away": "SIGNATURE",
    "squatted with junk": "SIGNATURE",
    "squatted with lines of another channel": "MISPLACED",
    "an unsigned line": "SIGNATURE",
    "the other spellings of a signature": "SIGNATURE",
    "a line of another agent's key in mac's name": "SIGNATURE",
    "a line of another agent where mac speaks": "MISPLACED",
    "a line of the root's key": "KEY_UNKNOWN",
    "a line of another wire": "MISPLACED",
    "a line from the far future of its channel": "GAP",
    "the next line in a later segment": "MISPLACED",
    "a line that names another predecessor": "FORK",
    "another line with an old number": "FORK",
    "lines that nobody can read": "SCHEMA",
    "a line that is too long": "SIZE",
    "a link for a segment": "SHAPE",
    "a submodule for a segment": "SHAPE",
    "a segment made executable": "SHAPE",
    "a folder for a segment": "SHAPE",
    "a folder of an unknown name": "KEY_UNKNOWN",
    "names that no wire has": "SHAPE",
    "other attributes": "SHAPE",
    "files and workflows outside": "SHAPE",
    "junk among the requests": "REQUEST",
    "trust swapped": "TRUST",
    "trust deleted": "TRUST",
    "trust unsigned": "TRUST",
    "trust.json alone": "TRUST",
    "a next trust version signed by a stranger": "TRUST",
    "a next trust version that forgets somebody": "TRUST",
    "a line is deleted, for a second": "PREFIX",
    "the history is squashed": "FORCED",
    "a merge that neither side has": "PREFIX",
    "an older state is pushed by force": "FORCED",
    "an unrelated root": "FORCED",
}
"""What the hook calls the moves of the simulator that can be pushed."""

ITS_OWN: dict[str, tuple[Callable[[Siege], object], str]] = {
    "a huge segment": (lambda siege: siege.host.replace_segment(MINE, b"x" * (2 << 20)), "SIZE"),
    "a private key": (_a_key, "PRIVATE_KEY"),
}
"""What only the hook has a word for."""


@pytest.mark.parametrize("title", [*CODES, *ITS_OWN])
def test_what_a_vandal_pushes_is_refused(stage: Stage, title: str) -> None:
    move, code = ITS_OWN[title] if title in ITS_OWN else (MOVES[title], CODES[title])
    before = stage.refs()
    move(replace(stage.siege, host=stage.vandal, remote=stage.vandal.remote))
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
