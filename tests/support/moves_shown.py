"""What a host holds back, shows again, or shows to some and not to others.

What is held back must first be said, so that these begin with something honest; whoever looks when such a move is over
meets what it left. `Siege.host.views` says who is shown something else than the others, until they are cleared.
"""

import shutil

from support import hostile_host as hostile
from support import moves_files
from support.besieged import Siege
from support.hostile_host import presence_ref, segment
from support.moves_files import CHANNEL, Move


def acknowledged(siege: Siege) -> None:
    """Let spark say in a line what it has of mac's, and everybody have it."""
    siege.send("spark", "mac", "with what spark has of mac's")
    siege.settle()


def _two_more(siege: Siege) -> None:
    for body in ("five", "six"):
        siege.send("mac", "spark", body)
    siege.sync(siege.mac)


# Held back from all


def line_held_back(siege: Siege) -> None:
    """Let mac send two lines, and the first of them vanish before anybody sees it."""
    _two_more(siege)
    siege.host.delete(CHANNEL, 5)


def _in_the_wrong_order(siege: Siege) -> None:
    _two_more(siege)
    siege.host.reorder(CHANNEL, 5)


def _spelled_otherwise(siege: Siege) -> None:
    siege.send("mac", "spark", "five")
    siege.sync(siege.mac)
    raw = moves_files.newest(siege)
    other = hostile.spellings(hostile.signature_text(raw))[7]
    siege.host.rewrite(CHANNEL, 5, lambda _: hostile.with_signature(hostile.signed_part(raw), other)[:-1])


def _withdrawn(siege: Siege) -> None:
    siege.send("mac", "spark", "five")
    siege.sync(siege.mac)
    siege.host.truncate(CHANNEL, 4)


def trust_held_back(siege: Siege) -> None:
    """Let mac speak by a trust version that nobody is shown."""
    siege.mac.wire("group", "set", "both", "mac", "spark")
    siege.send("mac", "spark", "by the rules of the next version")
    siege.sync(siege.mac)
    moves_files.rolled_back(siege.host)


def acknowledged_lines_cut(siege: Siege) -> None:
    """Cut a channel behind line 2, when somebody said to have line 4."""
    acknowledged(siege)
    siege.host.truncate(CHANNEL, 2)


def forgotten_line_held_back(siege: Siege) -> None:
    """Let mac's state go back to a backup, and the remote show what suits that."""
    backup = siege.folder / "backup"
    shutil.copytree(siege.mac.wire_home, backup, symlinks=True)
    siege.send("mac", "spark", "five")
    siege.sync(siege.mac, siege.spark)
    siege.send("spark", "mac", "I have your five")
    siege.sync(siege.spark)
    siege.mac.close()
    shutil.rmtree(siege.mac.wire_home)
    shutil.copytree(backup, siege.mac.wire_home, symlinks=True)
    siege.host.truncate(CHANNEL, 4)


def old_presence(siege: Siege) -> None:
    """Put mac's presence back to one that all have seen a later one of."""
    old = siege.host.presence("mac")
    siege.send("lee", "mac", "so that mac has something new to say")
    siege.sync(siege.lee, siege.mac, siege.spark)
    siege.host.set_refs({presence_ref("mac"): old})


HELD_BACK: dict[str, Move] = {
    "a new line is held back, and the next one shown": line_held_back,
    "two new lines change places": _in_the_wrong_order,
    "a new line is spelled otherwise": _spelled_otherwise,
    "a new line is shown to nobody": _withdrawn,
    "a new trust version is held back": trust_held_back,
    "lines are cut that somebody acknowledged": acknowledged_lines_cut,
    "an old presence is put back": old_presence,
}


# Shown to one alone


def yesterday(siege: Siege, *readers: str, presences: bool = False) -> None:
    """Let mac say something to all, which lee has, and show some readers what was there before.

    Args:
        presences: whether they are shown the presences of then, too; those of newcomers are always there.
    """
    before = siege.host.refs()
    siege.send("mac", "all", "said to all")
    siege.send("mac", "lee", "said to lee")
    siege.sync(siege.mac, siege.lee, siege.mac)
    branch = siege.host.at(before[f"refs/heads/{siege.host.branch}"] or "")
    for reader in readers:
        siege.host.views[reader] = dict(before) if presences else dict(branch)


def _one_channel_of_yesterday(siege: Siege) -> None:
    # Everything of today, but for one channel: no commit that anybody else knows.
    old = siege.host.read(segment("mac/all"))
    yesterday(siege)
    now = siege.host.tip
    siege.host.views["spark"] = siege.host.at(siege.host.commit({segment("mac/all"): old}))
    siege.host.put_back(now)


def _newcomer_is_shown(siege: Siege, move: Move) -> None:
    """Make a move on a history that the newcomer alone is shown."""
    now = siege.host.tip
    move(siege)
    siege.host.views["zoe"] = siege.host.at(siege.host.tip)
    siege.host.put_back(now)


def _cut_for_a_newcomer(siege: Siege) -> None:
    acknowledged(siege)
    _newcomer_is_shown(siege, lambda siege: siege.host.truncate(CHANNEL, 2))


VIEWS: dict[str, Move] = {
    "one is shown yesterday, with the presences of today": lambda siege: yesterday(siege, "spark", "zoe"),
    "one is shown yesterday for ever": lambda siege: yesterday(siege, "spark", "zoe", presences=True),
    "one is shown one channel of yesterday": _one_channel_of_yesterday,
    "a newcomer is shown channels that are cut short": _cut_for_a_newcomer,
    "a newcomer is shown an older trust": lambda siege: _newcomer_is_shown(
        siege, lambda siege: moves_files.rolled_back(siege.host)
    ),
    "a newcomer is shown another wire": lambda siege: _newcomer_is_shown(siege, moves_files.a_wire_of_his_own),
}  # fmt: skip
"""Moves that a host plays on some alone; they stand for three looks."""


def objects_that_are_none(siege: Siege) -> None:
    """Put a commit there whose tree has two files of one name, which a host takes that does not look."""
    git = siege.remote.git
    blob = bytes.fromhex(git("hash-object", "-w", "--stdin", input=b"x").decode())
    twice = (b"100644 README.md\0" + blob) * 2
    tree = git("hash-object", "-t", "tree", "-w", "--literally", "--stdin", input=twice).decode().strip()
    siege.host.put_back(git("commit-tree", "-p", siege.host.tip, "-m", "x", tree).decode().strip())


OUTSIDE: dict[str, Move] = {
    "what a machine forgot is held back": forgotten_line_held_back,
    "objects that are none": objects_that_are_none,
    "everything is read": lambda siege: siege.host.everything(),
    "nobody is answered": lambda siege: siege.host.take_away(),
}
"""Moves that need a machine's help, that change nothing, or that last until they are taken back."""
