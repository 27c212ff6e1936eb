"""Things that are no files of a wire: links, submodules, modes, attributes, odd names, junk in any number.

None of it is ever read. What stands below `_coordination/` and has an illegal shape is left out of the next commit of
whoever publishes; what stands outside is ignored. Where an illegal thing took the place of a line or of the trust, it
is missed, and put back by who owns it.
"""

from support.besieged import Siege, accepted, all_incidents, shown
from support.hostile_host import ROOT
from support.moves import MOVES

SHAPE = "SHAPE wire"


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


def test_names_that_no_wire_has(siege: Siege) -> None:
    # Odd bytes, newlines, other cases, other alphabets, other folders, all at once.
    good = {path: siege.remote.show(path) for path in siege.remote.files()}
    MOVES["names that no wire has"](siege)
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
    MOVES["trees that no checkout may have"](siege)
    siege.sync(siege.spark)
    siege.send("mac", "spark", "going on")
    siege.settle()
    siege.check(everyone={SHAPE})
    assert not [path for path in siege.remote.files() if "sub/" in path and path.startswith(ROOT)], "mac left them out"
    assert [path for path in siege.remote.files() if "sub/" in path], "and nobody deletes what stands outside"
    for machine in siege.machines.values():
        assert not all_incidents(machine, "CLONE_STATE", "CORRUPT", "UNKNOWN")


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
