"""Signed messages between agents, carried by one git repository.

    from wire import Wire
    mac = Wire.open(as_="mac")
    mac.send("spark", "the build is green")

The public names are `Wire`, the verbs behind the command line, and the errors that they raise. They are looked up on
first use: `wire send` imports this package before anything else and must not pay for what it does not touch.
"""

TYPE_CHECKING = False  # `typing` costs milliseconds; type checkers go by the name

if TYPE_CHECKING:
    from wire.api import Wire
    from wire.errors import (
        Busy,
        Corrupt,
        DiskFull,
        IdentityError,
        IntegrityError,
        NotReached,
        RemoteError,
        StoreError,
        TrustError,
        UsageError,
        WireError,
    )

    __version__: str

__all__ = [
    "Busy",
    "Corrupt",
    "DiskFull",
    "IdentityError",
    "IntegrityError",
    "NotReached",
    "RemoteError",
    "StoreError",
    "TrustError",
    "UsageError",
    "Wire",
    "WireError",
    "__version__",
]


def __getattr__(name: str) -> object:
    """Import a public name at its first use (PEP 562)."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object
    if name == "__version__":
        from importlib.metadata import version

        value = version("git-wire")
    elif name == "Wire":
        from wire.api import Wire

        value = Wire
    else:
        from wire import errors

        value = getattr(errors, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
