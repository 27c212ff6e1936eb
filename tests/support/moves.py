"""The repertoire of a hostile host, a vandal, a peer, a thief and an uninvited newcomer.

    MOVES["an old line is rewritten"](siege)

`MOVES` are those after which all honest machines end with the same accepted chains by themselves, or by one heal:
`tests/attacks/test_matrix.py` plays each of them. `ELSEWHERE` are those that need more: people who decide, channels of
several segments, a machine that comes from a backup, or a host that answers nobody.
"""

from support import moves_files as files
from support import moves_many as many
from support import moves_shown as shown
from support import moves_signed as signed
from support.moves_files import Move

TABLES = (
    files.LINES, files.FORKS, files.SHAPES, files.TRUST, files.FLASHES, files.HARMLESS, files.LOSSES, files.PRESENCES,
    shown.HELD_BACK, shown.VIEWS, signed.PEERS, signed.THIEVES, signed.NEWCOMERS, many.FLOODS,
)  # fmt: skip

MOVES: dict[str, Move] = {title: move for table in TABLES for title, move in table.items()}
ELSEWHERE: dict[str, Move] = {**many.DEEP, **signed.DECIDED_BY_PEOPLE, **shown.OUTSIDE}
ALL = {**MOVES, **ELSEWHERE}
"""All of them, by their titles."""
