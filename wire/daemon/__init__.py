"""The daemon's work: verify what came, publish what is ours, and say what is wrong.

site       one wire on this machine, with everything that a cycle needs
shape      what a path below `_coordination/` is                              (pure)
accepted   the accepted bytes, kept as a commit of our own
history    the commits between two tips, and rewrites that were undone
verify     the steps of PROTOCOL.md over one tip
collect    our own new lines: from the journal, and appended by hand in the clone
publish    our commit on the incoming tip, pushed
tidy       HEAD, branch and index of the clone, so that a person finds it in order
cycle      all of that in order, under one lock
"""
