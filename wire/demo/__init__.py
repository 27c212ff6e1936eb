"""Two machines, a vandal, and what `wire` makes of it: a play of half a minute, in a temporary folder.

    with Stage(program, environ) as stage:
        play(stage, teller)

stage      the folder, the hub, the machines; ends every process and removes everything, also on Ctrl-C
story      the acts, and what is checked after each step

Rules that it keeps: it imports nothing of the product but its errors. Machines are homes of their own in which the
installed program runs as real processes, and every claim is checked from the outside: in the bytes of the bare
repository and of files, and in what another machine's commands print. What did not happen is a `WireError` that says so
in one sentence (reason `demo-failed`).
"""

from wire.demo.stage import Stage
from wire.demo.story import Teller, play

__all__ = ["Stage", "Teller", "play"]
