"""Keys and trust: key files on this machine, the signed chain of who may sign what, requests to join.

`trust` and `requests` are pure: bytes and state in, a new state or `TrustError` out. `keyfile` alone touches the
user's disk.
This package knows `wire.errors` and `wire.protocol`, and nobody else.
"""
