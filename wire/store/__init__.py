"""What a machine keeps on disk: configuration, pin, journal, cursors, incidents, and the files of the clone.

Rules of this room: it knows `wire.errors`, `wire.protocol` and `wire.keys`, and never git; every write is
either whole or not there; nothing that somebody could still need is deleted; a file that does not hold what
it must is named in the error or moved aside, and said once.

Import the modules by name (`from wire.store import files`); this file imports none of them, because sending
and reading pay for every module that they load.
"""
