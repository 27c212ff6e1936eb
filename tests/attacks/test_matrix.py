"""Every attack against four kinds of machines: none shows what nobody honestly sent, each raises the right codes.

Who is concerned, besides `mac`, who owns the channel that most attacks are about:

- `spark`, a known clone, looks while the attack stands;
- `zoe`, a first clone, joins while it stands, and has nothing to compare it with;
- `lee` was offline, and sees what the owner (or who healed) published afterwards, and the commits on the way;
- `amy`, a newcomer, comes after the attack.

What a host shows to some alone stands until `zoe` is there; they look as often as it takes to be told of it.

In the end all of them hold the same accepted chains, and the remote carries them. A verifier that compared files, or
that took a longer file for an honest one, would part from the others here for ever.
"""

from typing import NamedTuple

import pytest

from support import hostile_host as hostile
from support.besieged import NEVER, Siege, accepted, pin, read, shown, state
from support.moves import MOVES
from support.moves_files import CHANNEL, FORKS, LOSSES, SQUATTED
from support.moves_shown import VIEWS
from support.moves_signed import PEERS
from wire.daemon.bounds import LOOKS

OF_THE_WIRE = ("SHAPE", "TRUST", "FORCED")
ALL_CHANNELS = ("lee/mac", "lee/spark", "mac/all", "mac/spark", "spark/mac")


class Raised(NamedTuple):
    """The codes that each kind of machine raises, and the reason for which the first clone cannot join, if any.

    A code stands for the channel of the attack, or the whole wire where it is one of `OF_THE_WIRE`; others name their
    scope: `PREFIX@mac/all`. What the owner raises is what was raised offline, unless it is given.
    """

    known: str = ""
    first: str = ""
    offline: str = ""
    after: str = ""
    owner: str | None = None
    refused: str = ""


def _everybody(codes: str, *, first: str | None = None, after: str = "") -> Raised:
    """Return what is raised where the commits on the way show the attack to who was offline."""
    return Raised(codes, codes if first is None else first, codes, after)


def _in_all(*codes: str) -> str:
    return " ".join(f"{code}@{channel}" for code in codes for channel in ALL_CHANNELS)


FOREIGN = _everybody("SIGNATURE")
"""Bytes that nobody signed, beside everything that was accepted."""
CHANGED = _everybody("PREFIX SIGNATURE", first="GAP SIGNATURE")
CHANGED_AT_THE_END = _everybody("PREFIX SIGNATURE", first="SIGNATURE")
CUT = _everybody("PREFIX", first="")
TAKEN = Raised("PREFIX SHAPE", "", "PREFIX")
"""Something that is no segment; it is left out of the next commit of whoever comes first."""
STAYS = _everybody("SHAPE", after="SHAPE")
"""What nobody but its owner takes away."""
TRUST_CHANGED = _everybody("TRUST", first="")
"""Who held the trust put it back before the others came; the first clone was one of them."""
UNLAWFUL = _everybody("TRUST", after="TRUST")
"""A version that nobody takes; it stands there until a root's own takes its place."""
NOTHING = Raised()
LAWFUL = Raised(owner="STATE_LOST")
"""Lines that a thief signed as the owner would, of which his machine knows nothing."""
_MACS_PRESENCE = "PRESENCE@refs/wire/presence/mac"
PRESENCE = Raised(_MACS_PRESENCE, _MACS_PRESENCE, owner=_MACS_PRESENCE)
"""Nobody's own presence: by the time that others look, it is back."""

SWALLOWED = ("one is shown yesterday, with the presences of today", "one is shown one channel of yesterday")
"""Moves by which spark's own line is lost that tells the others of the trouble; spark brings it back by a heal."""

EXPECTED: dict[str, Raised] = {
    "an old line is rewritten": CHANGED,
    "the first line is rewritten": CHANGED,
    "the last line is rewritten": CHANGED_AT_THE_END,
    "a line gets a blank": CHANGED,
    "a line is deleted": _everybody("PREFIX", first="GAP"),
    "the last lines are cut": CUT,
    "a channel is deleted": CUT,
    "a channel is emptied": CUT,
    "two lines change places": _everybody("PREFIX REPLAY", first="GAP"),
    # A key that nobody knows may be in a trust version that is on its way: it is told when it lasts.
    "a line of his own is put between": NOTHING,
    "carriage returns": CHANGED_AT_THE_END,
    "a junk line": FOREIGN,
    "junk without a newline": FOREIGN,
    "empty lines": FOREIGN,
    "a megabyte without a newline": _everybody("PREFIX SIZE", first="SIZE"),
    "the beginning of a line": FOREIGN,
    "a copy of an old line": _everybody("REPLAY"),
    "a copy of the last line": _everybody("REPLAY"),
    "a line that he signed himself": NOTHING,
    "junk in front of the first line": FOREIGN,
    "junk between two lines": FOREIGN,
    "an extra segment": FOREIGN,
    "an extra segment far away": FOREIGN,
    "an extra segment with a copy": _everybody("REPLAY"),
    "squatted with junk": FOREIGN,
    "squatted without a newline": FOREIGN,
    "squatted with lines of another channel": _everybody("MISPLACED"),
    "squatted in the second segment": FOREIGN,
    "an unsigned line": FOREIGN,
    "signatures that are none": FOREIGN,
    "signatures of other lengths": FOREIGN,
    "the signature of another line": FOREIGN,
    "the other spellings of a signature": CHANGED_AT_THE_END,
    "a line of another agent's key in mac's name": FOREIGN,
    "a line of another agent where mac speaks": _everybody("MISPLACED"),
    "a line of the root's key": NOTHING,
    "a line of another wire": _everybody("MISPLACED"),
    "a line of another version of the format": FOREIGN,
    "a line from the far future of its channel": _everybody("GAP"),
    "a line that names another predecessor": _everybody("FORK", after="FORK"),
    "another line with an old number": Raised("FORK", "FORK", "FORK", "FORK", owner="FORK PREFIX"),
    "a link for a segment": TAKEN,
    "a submodule for a segment": TAKEN,
    "a segment made executable": TAKEN,
    "a folder for a segment": TAKEN,
    "a link for a channel's folder": TAKEN,
    "a file for an agent's folder": Raised("PREFIX PREFIX@mac/all SHAPE", "", "PREFIX PREFIX@mac/all"),
    "names that no wire has": STAYS,
    "trees that no checkout may have": STAYS,
    "other attributes": Raised("SHAPE"),
    "a folder of an unknown name": STAYS,
    "a folder of an unknown name, signed by a peer": STAYS,
    "files and workflows outside": STAYS,
    "junk among the requests": Raised("SHAPE"),
    "a genuine request of a taken name": NOTHING,
    "trust swapped": TRUST_CHANGED,
    "trust swapped under the old signature": TRUST_CHANGED,
    "trust reformatted": TRUST_CHANGED,
    "trust rolled back": TRUST_CHANGED,
    "trust deleted": TRUST_CHANGED,
    "trust unsigned": TRUST_CHANGED,
    "trust signatures emptied": TRUST_CHANGED,
    "trust signatures broken": TRUST_CHANGED,
    "trust.json alone": Raised("TRUST"),
    "trust.json deleted": Raised("TRUST"),
    "a link for a trust version": Raised("TRUST SHAPE", "", "TRUST"),
    "a next trust version signed by nobody": _everybody("TRUST SHAPE", after="TRUST SHAPE"),
    "a next trust version signed by a stranger": _everybody("TRUST SHAPE", after="TRUST SHAPE"),
    "a next trust version signed by an agent": _everybody("TRUST SHAPE", after="TRUST SHAPE"),
    "a next trust version that forgets somebody": UNLAWFUL,
    "a thousand trust versions of the far future": UNLAWFUL,
    "an old line is rewritten, for a second": _everybody("PREFIX SIGNATURE", first=""),
    "a line is deleted, for a second": CUT,
    "a junk line, for a second": _everybody("SIGNATURE", first=""),
    "a link for a segment, for a second": CUT,
    "a trust version is removed, for a second": TRUST_CHANGED,
    "a trust version is unsigned, for a second": TRUST_CHANGED,
    "the history is squashed": _everybody("FORCED", first=""),
    "a merge that neither side has": CUT,
    "a replaced commit": NOTHING,
    # Who heals puts everything back in a commit that descends from what the others know: they have nothing to tell.
    "an older state is pushed by force": Raised(f"FORCED {_in_all('PREFIX')}"),
    "an older mirror is restored": Raised("FORCED PREFIX@lee/mac PREFIX@lee/spark"),
    "an older mirror goes on": Raised(
        "FORCED SHAPE PREFIX@lee/mac PREFIX@lee/spark PREFIX@spark/mac", "SHAPE", "SHAPE", "SHAPE"
    ),
    "an unrelated root": Raised(
        f"FORCED SHAPE TRUST {_in_all('PREFIX')}", "", "SHAPE", "SHAPE", refused="no-wire-there"
    ),
    "history without a channel": Raised("FORCED PREFIX"),
    "history without a line": Raised("FORCED PREFIX@lee/spark"),
    "history with a line rewritten": Raised("FORCED PREFIX SIGNATURE", "GAP SIGNATURE", "SIGNATURE"),
    "history with every line rewritten": Raised(
        f"FORCED {_in_all('PREFIX', 'SIGNATURE')}", _in_all("SIGNATURE"), _in_all("SIGNATURE")
    ),
    "history without the last line of every channel": Raised(f"FORCED {_in_all('PREFIX')}"),
    "history without a trust version": Raised("FORCED TRUST", refused="no-wire-there"),
    "history with another wire's trust": Raised("FORCED TRUST", "", "TRUST", refused="checkpoint"),
    "history with a link for a channel": Raised("FORCED PREFIX SHAPE", "SHAPE"),
    "history without anything": Raised(f"FORCED SHAPE TRUST {_in_all('PREFIX')}", refused="no-wire-there"),
    "the branch is deleted": Raised("FORCED", refused="no-wire-there"),
    "the repository is created again, empty": Raised("FORCED", refused="no-wire-there"),
    "junk for a presence": PRESENCE,
    "a line for a presence": PRESENCE,
    "the presence of another": PRESENCE,
    "a presence of nobody": NOTHING,
    "all presences deleted": NOTHING,
    "a new line is held back, and the next one shown": Raised("GAP PREFIX", "GAP", "PREFIX"),
    "two new lines change places": Raised("GAP", "GAP", "PREFIX REPLAY"),
    "a new line is spelled otherwise": CHANGED_AT_THE_END,
    "a new line is shown to nobody": CUT,
    "a new trust version is held back": Raised("TRUST_WITHHELD@wire", "TRUST_WITHHELD@wire", "TRUST"),
    "lines are cut that somebody acknowledged": _everybody("PREFIX", first="GAP"),
    "an old presence is put back": Raised(_MACS_PRESENCE, owner=_MACS_PRESENCE),
    # What the one pushed meanwhile was never shown to the others: from its side that is a replaced history.
    "one is shown yesterday, with the presences of today": Raised(
        "FORCED GAP@mac/all GAP@mac/lee PREFIX@spark/all", "FORCED GAP@mac/all GAP@mac/lee"
    ),
    "one is shown yesterday for ever": Raised("", "FORCED"),
    "one is shown one channel of yesterday": Raised(
        "FORCED GAP@mac/all PREFIX@mac/all PREFIX@spark/all", "PREFIX@mac/all", "PREFIX@mac/all"
    ),
    "a newcomer is shown channels that are cut short": Raised(first="FORCED GAP"),
    "a newcomer is shown an older trust": Raised(refused="checkpoint"),
    "a newcomer is shown another wire": Raised(refused="checkpoint"),
    # For mac what a thief signed with its key is what its own state had lost.
    "lines that nobody can read": Raised(*["SCHEMA"] * 4, owner="SCHEMA STATE_LOST"),
    "lines of other times": LAWFUL,
    "a line of an older trust": Raised(*["SCHEMA"] * 4, owner="SCHEMA STATE_LOST"),
    "a line that is too long": _everybody("SIZE"),
    "texts that mean harm": LAWFUL,
    "an ack of lines that never were": Raised(
        "STATE_LOST@spark/lee", "GAP@spark/lee", "GAP@spark/lee STATE_LOST@lee/spark", "GAP@spark/lee",
        owner="GAP@spark/lee",
    ),
    "letters that are closed wrongly": LAWFUL,
    "lines of a retired key": _everybody("KEY_RETIRED KEY_RETIRED@mac/lee"),
    "a second machine under one key": Raised(owner="CLONED@wire"),
    "a presence that says to have another line": Raised(
        "SPLIT_VIEW@mac/all", "SPLIT_VIEW@mac/all", owner="SPLIT_VIEW@mac/all"
    ),
    "a request of a name like another": NOTHING,
    "requests that somebody changed": NOTHING,
    "a huge line": FOREIGN,
    "huge files": Raised(*["SHAPE SIZE@lee/mac TRUST"] * 3, "SHAPE TRUST"),
    "nothing but lines": _everybody("SIGNATURE SIGNATURE@mac/lee"),
    "segments without end": FOREIGN,
    "files without end": _everybody("SHAPE TRUST", after="SHAPE TRUST"),
    "commits without end": _everybody("PREFIX SIGNATURE", first=""),
    "requests without end": NOTHING,
    "refs without end": NOTHING,
}  # fmt: skip


def test_every_move_has_its_row() -> None:
    assert EXPECTED.keys() == MOVES.keys()
    assert len(MOVES) >= 60


@pytest.mark.parametrize("title", EXPECTED)
def test_attack(siege: Siege, title: str) -> None:
    raised, checkpoint = EXPECTED[title], siege.chain.newest.checkpoint
    channel = SQUATTED if title.startswith("squatted") else CHANNEL
    looks = LOOKS if title in VIEWS else 1
    MOVES[title](siege)
    _the_known_clone_looks(siege, looks, lost=title in LOSSES)
    assert _the_first_clone_joins(siege, looks, checkpoint) == raised.refused
    siege.host.views.clear()
    if title in LOSSES:
        siege.heal(siege.spark)
    # The owner and who was offline come back, and everybody goes on. (An owner who says something before it looks may
    # sign a second line for a place that a thief took: that is told in test_honest_trouble.py.)
    if title in PEERS:
        siege.sync(siege.mac)
    siege.send("mac", channel.partition("/")[2], "the owner goes on")
    siege.send("spark", "lee", "and so does everybody else")
    siege.sync(siege.mac, siege.lee, siege.spark)
    assert (pin(siege.spark).frozen is not None) == (title in SWALLOWED)
    if title in SWALLOWED:
        siege.heal(siege.spark)
        siege.sync(siege.spark)
    # Who joins now has seen everything, and spark came last.
    late = [machine for name, machine in siege.machines.items() if name != "spark"]
    siege.newcomer("amy", approved=False)
    siege.sync(*late)
    by = {
        "spark": raised.known,
        "lee": raised.offline,
        "zoe": raised.first,
        "amy": raised.after,
        "mac": raised.offline if raised.owner is None else raised.owner,
    }
    siege.check(
        frozen={channel} if title in FORKS else set(),
        **{name: {_with_scope(code, channel) for code in codes.split()} for name, codes in by.items()},
    )
    trust = siege.chain
    paths = [hostile.document(document.version) for document in trust.documents]
    assert siege.host.read_all(paths) == [document.raw for document in trust.documents]
    assert siege.host.read_all([f"{path}.sig" for path in paths]) == list(trust.signatures)


def _the_known_clone_looks(siege: Siege, looks: int, *, lost: bool) -> None:
    before = siege.remote.tip()
    siege.sync(*[siege.spark] * looks)
    siege.only_honest(shown(siege.spark))
    assert (pin(siege.spark).frozen is not None) == lost
    if lost:
        assert siege.remote.tip() == before, "it put something there without being asked"
        siege.only_grew()


def _the_first_clone_joins(siege: Siege, looks: int, checkpoint: str) -> str:
    """Let `zoe` join while the attack stands, and return the reason for which she could not."""
    zoe = siege.new_machine("zoe")
    with siege.host.asked_by("zoe"):
        joined = zoe.wire("join", siege.remote.url, "--as", "zoe", "--trust", checkpoint, "--json", check=False)
    if joined.status not in (0, 4):
        assert not zoe.clones
        assert not state(zoe).exists()
        return str(joined.json()["reason"])
    siege.machines["zoe"], siege.enrolled["zoe"] = zoe, NEVER
    for _ in range(looks - 1):
        siege.sync(zoe)
    siege.only_honest(accepted(zoe))
    siege.only_honest(read(zoe))
    return ""


def _with_scope(code: str, channel: str) -> str:
    code, _, scope = code.partition("@")
    return f"{code} {scope or ('wire' if code in OF_THE_WIRE else channel)}"
