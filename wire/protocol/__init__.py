"""The wire protocol: bytes in, verdicts out.

Pure: nothing here touches a disk, a clock, a network or git, and nothing here imports another room than `wire.errors`.
`PROTOCOL.md` is the normative text of what these modules do.
"""
