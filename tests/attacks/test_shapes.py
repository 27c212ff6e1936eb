"""Things that are no files of a wire: links, submodules, modes, attributes, odd names, junk in any number.

None of it is ever read. What stands below `_coordination/` and has an illegal shape is left out of the next commit of
whoever publishes; what stands outside is ignored. Where an illegal thing took the place of a line or of the trust, it
is missed, and put back by who owns it.
"""

from collections.abc import Callable

import pytest

from support import gitcmd
from support import hostile_host as hostile
from support.besieged import Siege, accepted, all_incidents, pin, shown
from support.hostile_host import ROOT, File, HostileHost

CHANNEL = "mac/spark"
SEGMENT = hostile.segment(CHANNEL)
SHAPE = "SHAPE wire"
SOMEWHERE = b"1234567890123456789012345678901234567890"

Move = Callable[[HostileHost], object]


def _link(host: HostileHost) -> None:
    # To what a careless reader would follow: a private key, say.
    host.commit({SEGMENT: File(b"../../../../../keys/agent", "120000")})


def _submodule(host: HostileHost) -> None:
    host.commit({SEGMENT: File(SOMEWHERE, "160000")})


def _executable(host: HostileHost) -> None:
    host.commit({SEGMENT: File(host.read(SEGMENT) or b"", "100755")})


def _folder_in_place_of_the_file(host: HostileHost) -> None:
    host.commit({SEGMENT: None, f"{SEGMENT}/000001.jsonl": host.read(SEGMENT)})


def _file_in_place_of_the_folder(host: HostileHost) -> None:
    host.commit({f"{ROOT}/mac": b"a file\n"})


def _link_in_place_of_the_folder(host: HostileHost) -> None:
    host.commit({f"{ROOT}/mac/spark": File(b"lee", "120000")})


TAKEN: dict[str, Move] = {
    "a link": _link,
    "a submodule": _submodule,
    "an executable": _executable,
    "a folder": _folder_in_place_of_the_file,
    "a link for the folder": _link_in_place_of_the_folder,
}


@pytest.mark.parametrize("title", TAKEN)
def test_something_else_in_the_place_of_a_segment(siege: Siege, title: str) -> None:
    TAKEN[title](siege.host)
    # The owner puts it right without having anything to say.
    siege.sync(siege.mac)
    assert siege.host.lines(CHANNEL) == [siege.sent[f"{CHANNEL}/{seq}"] for seq in (1, 2, 3, 4)]
    siege.settle()
    siege.check(everyone={f"PREFIX {CHANNEL}"}, mac={f"PREFIX {CHANNEL}", SHAPE})


def test_file_in_the_place_of_an_agents_folder(siege: Siege) -> None:
    _file_in_place_of_the_folder(siege.host)
    siege.sync(siege.spark)
    siege.settle()
    lost = {f"PREFIX {CHANNEL}", "PREFIX mac/all"}
    siege.check(everyone=lost, spark=lost | {SHAPE})


def test_attributes_changed(siege: Siege) -> None:
    # Line endings and filters for whoever checks the wire out. Our own git never asks them; the file is put back.
    path = f"{ROOT}/.gitattributes"
    before = siege.host.read(path)
    siege.host.commit({path: b"* text eol=crlf filter=evil ident\n", f"{ROOT}/mac/.gitattributes": b"* eol=crlf\n"})
    siege.sync(siege.spark)
    assert siege.host.read(path) == before
    siege.settle()
    siege.flows(("mac", "spark"))
    siege.check(spark={SHAPE})
    assert siege.host.read(f"{ROOT}/mac/.gitattributes") is None


ODD_NAMES = [
    b"_coordination/mac/spark/1.jsonl",
    b"_coordination/mac/spark/0000001.jsonl",
    b"_coordination/mac/spark/000001.jsonl.bak",
    b"_coordination/mac/spark/000001.JSONL",
    b"_coordination/mac/spark/\xff\xfe.jsonl",
    b"_coordination/mac/spark/new\nline.jsonl",
    b'_coordination/mac/spark/tab\tand "quote" and \\.jsonl',
    b"_coordination/mac/spark/\x1b[2J\x1b]0;owned\x07.jsonl",
    b"_coordination/MAC/spark/000001.jsonl",
    b"_coordination/mac/con/000001.jsonl",
    b"_coordination/mac/mac/000001.jsonl",
    b"_coordination/all/mac/000001.jsonl",
    b"_coordination/trust/1.json",
    b"_coordination/trust/000001.json.bak",
    b"_coordination/requests/nothing",
    b"_coordination/.gitmodules",
    b"_coordination/" + b"d/" * 60 + b"deep",
    b"_coordination/" + b"n" * 250,
    b"_Coordination/mac/spark/000001.jsonl",
    "_coordination/mac/spаrk/000001.jsonl".encode(),  # a Cyrillic letter
    b"README.md",
    b".github/workflows/evil.yml",
    b".gitmodules",
    b"\xff\n",
]


def test_names_that_no_wire_has(siege: Siege) -> None:
    # Odd bytes, newlines, other cases, other alphabets, other folders, all at once.
    good = {path: siege.remote.show(path) for path in siege.remote.files()}
    siege.host.commit(dict.fromkeys(ODD_NAMES, b'[submodule "x"]\n\tpath = ../../x\n\turl = ext::sh\n'))
    siege.sync(siege.spark, siege.lee)
    siege.send("mac", "spark", "going on")
    siege.settle()
    left = [path for path in siege.remote.files() if path.startswith(f"{ROOT}/") and path not in good]
    assert [path for path in left if not path.endswith("/all/000001.jsonl")] == [], "left out of mac's commit"
    assert "README.md" in siege.remote.files(), "nobody deletes what stands outside"
    siege.check(everyone={SHAPE})
    for machine in siege.machines.values():
        result = machine.wire("incidents", "show", all_incidents(machine, "SHAPE")[0].id, check=False)
        assert b"\x1b" not in result.out, "a stranger's path moves the cursor of a terminal"


def test_tree_that_no_checkout_may_have(siege: Siege) -> None:
    # `.git`, `.` and `..` as names in trees, outside and below `_coordination/`: git's own checks refuse them, but a
    # commit may hold them. Whoever pushed one must not be able to stop the wire for ever, since history keeps it.
    evil = _tree(siege, {b".git": b"[core]\n\tfsmonitor = evil\n", b"..": b"up\n", b".": b"here\n", b"GIT~1": b"x\n"})
    siege.host.put_back(_commit(siege, {b"_coordination/mac": evil, b"_coordination": evil, b"": evil}))
    siege.sync(siege.spark)
    siege.send("mac", "spark", "going on")
    siege.settle()
    siege.check(everyone={SHAPE})
    assert not [path for path in siege.remote.files() if "sub/" in path and path.startswith(ROOT)], "mac left them out"
    assert [path for path in siege.remote.files() if "sub/" in path], "and nobody deletes what stands outside"
    for machine in siege.machines.values():
        assert not all_incidents(machine, "CLONE_STATE", "CORRUPT", "UNKNOWN")


def _tree(siege: Siege, files: dict[bytes, bytes]) -> bytes:
    """Return a tree of files; `mktree` checks no names."""
    made = b""
    for name, data in files.items():
        blob = gitcmd.git(siege.remote.path, "hash-object", "-w", "--stdin", input=data).strip()
        made += b"100644 blob " + blob + b"\t" + name + b"\0"
    return gitcmd.git(siege.remote.path, "mktree", "-z", input=made).strip()


def _commit(siege: Siege, subtrees: dict[bytes, bytes]) -> str:
    """Return a commit like the tip's, with a tree called `sub` in some of its folders; the deeper folders first."""
    put: dict[bytes, bytes] = {}
    tree = b""
    for folder, sub in subtrees.items():
        at = f"{siege.host.tip}:{folder.decode()}"
        listed = gitcmd.git(siege.remote.path, "ls-tree", "-z", at).split(b"\0")[:-1]
        entries = [entry for entry in listed if entry.partition(b"\t")[2] not in put]
        entries += [b"040000 tree %s\t%s" % (oid, name) for name, oid in put.items()] + [b"040000 tree %s\tsub" % sub]
        tree = gitcmd.git(siege.remote.path, "mktree", "-z", input=b"\0".join(entries) + b"\0").strip()
        put = {folder.rpartition(b"/")[2]: tree}
    return gitcmd.line(siege.remote.path, "commit-tree", tree.decode(), "-p", siege.host.tip, "-m", "names")


def test_folder_of_an_unknown_name(siege: Siege) -> None:
    # A newcomer that nobody approved, or a vandal, writes below a name of his own: counted, never read.
    siege.host.append("mallory/mac", siege.host.author("mallory/mac").line("hello mac"))
    siege.settle()
    siege.flows(("mac", "spark"))
    assert "mallory/mac" not in pin(siege.mac).accepted
    siege.check(everyone={SHAPE})


def test_known_name_that_comes_with_its_first_lines(siege: Siege) -> None:
    # No attack: somebody was away while a newcomer was approved and spoke. Nothing is wrong with that.
    siege.newcomer("zoe")
    siege.send("zoe", "lee", "hello")
    siege.sync(siege.machines["zoe"])
    siege.sync(siege.lee)
    assert "zoe/lee/1" in shown(siege.lee)
    siege.settle()
    siege.check()
    assert accepted(siege.lee).keys() == accepted(siege.mac).keys()
