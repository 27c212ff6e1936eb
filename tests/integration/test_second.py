"""The second implementation on repositories: it sees what is there, and what should not be."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from support import gitcmd
from support.second import Verified, verify_repository
from vectors.forge import Author, Key, compact, middle, segment
from vectors.make_trust import NEW, request
from vectors.world import CHAIN, MAC, MAC_NEXT, SPARK, TRUST_REF, WIRE, checkpoint

ATTRIBUTES = b"* -text -filter -ident -merge -working-tree-encoding -export-subst\n"
Files = dict[str, bytes]


def lines(key: Key, channel: str, count: int) -> list[bytes]:
    author = Author(key, WIRE, channel, TRUST_REF)
    return [author.write(middle(body=f"line {number}")) for number in range(count)]


FROM_SPARK, TO_ALL = lines(SPARK, "spark/mac", 3), lines(MAC_NEXT, "mac/all", 2)


def honest() -> Files:
    """Return an honest wire's files below `_coordination/`."""
    files = {".gitattributes": ATTRIBUTES, "trust.json": CHAIN[-1][0]}
    for version, (raw, signatures) in enumerate(CHAIN, 1):
        files |= {f"trust/{version:06d}.json": raw, f"trust/{version:06d}.json.sig": signatures}
    files["spark/mac/000001.jsonl"] = segment(*FROM_SPARK)
    files["mac/all/000001.jsonl"] = segment(*TO_ALL)
    return files


@pytest.fixture
def verify(tmp_path: Path) -> Callable[..., Verified]:
    def commit(files: Files, *, given: str = checkpoint(1, CHAIN[0][0]), link: str = "", outside: str = "") -> Verified:
        gitcmd.git(tmp_path, "init", "-q", "-b", "wire", "work")
        for name, data in files.items():
            path = tmp_path / "work" / "_coordination" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        if link:
            os.symlink("000001.jsonl", tmp_path / "work" / "_coordination" / link)
        if outside:
            (tmp_path / "work" / outside).write_text("x")
        gitcmd.git(tmp_path / "work", "add", "-A")
        gitcmd.git(tmp_path / "work", "commit", "-q", "-m", "all")
        gitcmd.git(tmp_path, "clone", "-q", "--bare", "work", "hub.git")
        return verify_repository(tmp_path / "hub.git", given, branch="wire")

    return commit


def heads(found: Verified) -> dict[str, int]:
    return {channel: seq for channel, (seq, _) in found.channels.items()}


def test_an_honest_wire(verify: Callable[..., Verified]) -> None:
    found = verify(
        honest() | {f"requests/new.{NEW.id}.json": compact(request()).encode() + b"\n"},
        given=checkpoint(6, CHAIN[5][0]),
    )
    assert found.problem is None
    assert (found.wire, found.trust, heads(found)) == (WIRE, 7, {"spark/mac": 3, "mac/all": 2})


def test_vandalism_is_a_problem_and_hides_nothing(verify: Callable[..., Verified]) -> None:
    files = honest()
    files["spark/mac/000001.jsonl"] = segment(b"junk", *FROM_SPARK)
    found = verify(files)
    assert heads(found) == {"spark/mac": 3, "mac/all": 2}
    assert found.problem == "SIGNATURE spark/mac segment 1 byte 0"


def test_a_key_that_was_retired_counts_no_more(verify: Callable[..., Verified]) -> None:
    found = verify(honest() | {"mac/ana/000001.jsonl": segment(*lines(MAC, "mac/ana", 1))})
    assert found.channels["mac/ana"][0] == 0
    assert found.problem == "KEY_RETIRED mac/ana segment 1 byte 0"


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("trust.json", CHAIN[-2][0]),
        ("trust/000009.json", CHAIN[-1][0]),
        ("spark/mac/1.jsonl", b""),
        ("spark/spark/000001.jsonl", b""),
        ("requests/new.json", b"{}"),
        ("README.md", b"hello"),
    ],
)
def test_files_that_do_not_belong(verify: Callable[..., Verified], name: str, data: bytes) -> None:
    assert verify(honest() | {name: data}).problem == f"SHAPE {name}"


def test_symbolic_links(verify: Callable[..., Verified]) -> None:
    assert verify(honest(), link="spark/mac/000002.jsonl").problem == "SHAPE _coordination/spark/mac/000002.jsonl"


def test_paths_outside(verify: Callable[..., Verified]) -> None:
    assert verify(honest(), outside="setup.py").problem == "SHAPE setup.py"


def test_the_chain_must_hold(verify: Callable[..., Verified]) -> None:
    files = honest()
    files["trust/000004.json.sig"] = files["trust/000003.json.sig"]
    with pytest.raises(ValueError, match="too-few-old-signatures"):
        verify(files)


def test_the_chain_must_pass_through_the_checkpoint(verify: Callable[..., Verified]) -> None:
    with pytest.raises(ValueError, match="checkpoint"):
        verify(honest(), given=checkpoint(2, CHAIN[2][0]))


def test_a_shorter_chain_than_the_checkpoint(verify: Callable[..., Verified]) -> None:
    files = {name: data for name, data in honest().items() if not name.startswith("trust/000007")}
    with pytest.raises(ValueError, match="checkpoint"):
        verify(files, given=checkpoint(7, CHAIN[6][0]))
