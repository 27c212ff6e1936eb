"""The pin: what this machine holds against everybody who can push (PROTOCOL.md, section "Trust").

Rules that it keeps: it stands outside the clone; it is written whole and durably or not at all; whatever is odd about
it on loading is refused, because a verifier that guesses its own lower bounds can be rolled back. A missing pin is an
error of its own and never a first contact.

    pin = load(places.pin_file)
    save(places.pin_file, replace(pin, verified=commit))

What it does not do: decide anything. Its caller holds the wire's lock when saving; loading takes none.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from wire.errors import Corrupt, IdentityError
from wire.protocol.chain import Position
from wire.protocol.encoding import parse_checkpoint
from wire.protocol.names import valid_channel, valid_name
from wire.protocol.strictjson import StrictError, dumps, loads
from wire.store.files import atomic_write, read_bytes

__all__ = ["Frozen", "Names", "Pin", "decode", "encode", "load", "replace", "save"]

VERSION = 1
_HEX = frozenset("0123456789abcdef")


class Frozen(NamedTuple):
    """Why nothing is published or accepted on a wire, and since when (UTC text)."""

    code: str
    since: str


class Names(NamedTuple):
    """Who is who in the trust held, so that sending and reading need not parse it.

    Attributes:
        agents: active agents.
        groups: members per active group.
        keys: ids of the active keys per active agent.
        sealed: whether the policy asks senders to close their letters; None in a pin that does not say.
    """

    agents: tuple[str, ...] = ()
    groups: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    keys: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    sealed: bool | None = None


class Pin(NamedTuple):
    """The security state of one wire on this machine.

    Attributes:
        wire: the wire id, 32 hex.
        wire_hash: SHA-256 of trust version 1, 64 hex; begins with `wire`.
        remote: where it was pinned; may carry a token.
        branch: the wire's branch.
        checkpoint: `<version>:SHA256:…`, through which the trust chain must pass.
        trust_version: number of the newest trust version held; not below the checkpoint's.
        trust_hash: its hash, 64 hex.
        names: who is active in it.
        accepted: the end of the accepted chain per channel.
        remote_seq: last line per channel that the verified remote tip carries.
        verified: the last verified commit of the remote, or None before the first.
        tidied: the commit that the clone's HEAD was last set to, or None.
        frozen: the freeze of the whole wire that is in force, or None.
        accepted_commit: the local commit that holds the accepted bytes, or None before the first.
        judged_trust: the trust version with which `verified` was judged; 0 when it must be judged again.
        restore: the verified tip does not carry our folders and the trust as it must.
        forks: channels that accept nothing because two valid lines claim one place, with the id of the key.
        instance: random id of this state folder, 32 hex.
    """

    wire: str
    wire_hash: str
    remote: str
    branch: str
    checkpoint: str
    trust_version: int
    trust_hash: str
    instance: str
    names: Names = Names()
    accepted: Mapping[str, Position] = MappingProxyType({})
    remote_seq: Mapping[str, int] = MappingProxyType({})
    verified: str | None = None
    tidied: str | None = None
    frozen: Frozen | None = None
    accepted_commit: str | None = None
    judged_trust: int = 0
    restore: bool = False
    forks: Mapping[str, str] = MappingProxyType({})


def replace(pin: Pin, **changes: Any) -> Pin:
    """Return a pin with other values of the named members."""
    return pin._replace(**changes)


def load(path: str) -> Pin:
    """Read a pin.

    Raises:
        IdentityError: reason `pin-missing`, there is no such file.
        Corrupt: reason `pin-corrupt`, it is not a complete pin; nothing was changed.
        StoreError: it cannot be read.
    """
    data = read_bytes(path)
    if data is None:
        raise IdentityError(
            f"no pin at {path}: this machine never joined the wire, or its state was lost",
            reason="pin-missing",
            next_step="if it never joined: `wire join REMOTE --as NAME --trust CHECKPOINT`;"
            " if it did: `wire trust repin --checkpoint CHECKPOINT`, with the checkpoint from a person",
        )
    try:
        return decode(data)
    except ValueError as error:
        raise Corrupt(
            f"the pin {path} is damaged: {error}. Without it nothing can be verified, so nothing was read, accepted"
            " or published",
            reason="pin-corrupt",
            next_step="restore the file, or rebuild it: `wire trust repin --checkpoint CHECKPOINT`,"
            " with the checkpoint from a person",
        ) from error


def save(path: str, pin: Pin) -> None:
    """Write a pin, durably; raises DiskFull or StoreError and leaves the old one then."""
    atomic_write(path, encode(pin))


def encode(pin: Pin) -> bytes:
    """Return the bytes of a pin: one line of JSON."""
    return (
        dumps(
            {
                "v": VERSION,
                "wire": pin.wire,
                "wire_hash": pin.wire_hash,
                "remote": pin.remote,
                "branch": pin.branch,
                "checkpoint": pin.checkpoint,
                "trust_version": pin.trust_version,
                "trust_hash": pin.trust_hash,
                "names": {
                    "agents": pin.names.agents,
                    "groups": dict(pin.names.groups),
                    "keys": dict(pin.names.keys),
                    **({} if pin.names.sealed is None else {"sealed": pin.names.sealed}),
                },
                "accepted": dict(pin.accepted),
                "remote_seq": dict(pin.remote_seq),
                "verified": pin.verified,
                "tidied": pin.tidied,
                "frozen": pin.frozen and {"code": pin.frozen.code, "since": pin.frozen.since},
                "accepted_commit": pin.accepted_commit,
                "judged_trust": pin.judged_trust,
                "restore": pin.restore,
                "forks": dict(pin.forks),
                "instance": pin.instance,
            }
        )
        + b"\n"
    )


def decode(data: bytes) -> Pin:
    """Return the pin that `encode` wrote.

    Raises:
        ValueError: saying what is wrong with it.
    """
    if not data:
        raise ValueError("0 bytes")
    if not data.strip(b"\0"):
        raise ValueError(f"{len(data)} NUL bytes")
    try:
        found = loads(data, floats_below=None)
    except StrictError as error:
        raise ValueError(str(error)) from error
    if found.get("v") != VERSION:
        raise ValueError(f"version {str(found.get('v'))[:24]} where {VERSION} was expected")
    missing = sorted(_MEMBERS - found.keys())
    unknown = sorted(found.keys() - _MEMBERS)
    if missing or unknown:
        raise ValueError("members missing: " + ", ".join(missing) if missing else f"unknown member {unknown[0][:64]!r}")
    names = _object(found, "names")
    if names.keys() - {"sealed"} != {"agents", "groups", "keys"}:
        raise ValueError("`names` must hold agents, groups and keys")
    pin = Pin(
        wire=_hex(found, "wire", 32),
        wire_hash=_hex(found, "wire_hash", 64),
        remote=_text(found, "remote"),
        branch=_text(found, "branch"),
        checkpoint=_text(found, "checkpoint"),
        trust_version=_count(found["trust_version"], "trust_version", 1),
        trust_hash=_hex(found, "trust_hash", 64),
        instance=_hex(found, "instance", 32),
        names=Names(
            _list(names["agents"], "names.agents", valid_name),
            _lists(names, "groups", valid_name),
            _lists(names, "keys", lambda text: len(text) == 32 and _HEX.issuperset(text)),
            _flag(names["sealed"], "names.sealed") if "sealed" in names else None,
        ),
        accepted={
            _channel(channel): position(entry, f"accepted {channel}")
            for channel, entry in _object(found, "accepted").items()
        },
        remote_seq={
            _channel(channel): _count(entry, f"remote_seq {channel}", 0)
            for channel, entry in _object(found, "remote_seq").items()
        },
        verified=_commit(found, "verified"),
        tidied=_commit(found, "tidied"),
        frozen=_frozen(found["frozen"]),
        accepted_commit=_commit(found, "accepted_commit"),
        judged_trust=_count(found["judged_trust"], "judged_trust", 0),
        restore=_flag(found["restore"], "restore"),
        forks={_channel(channel): _key_id(key) for channel, key in _object(found, "forks").items()},
    )
    if not pin.wire_hash.startswith(pin.wire):
        raise ValueError("`wire` is not the beginning of `wire_hash`")
    version, _ = parse_checkpoint(pin.checkpoint)
    if pin.trust_version < version:
        raise ValueError(f"trust version {pin.trust_version} is older than the checkpoint {version}")
    return pin


def position(entry: object, what: str) -> Position:
    """Return the position that is written as `[seq, head, segment, size]`; raises ValueError."""
    if not isinstance(entry, list) or len(entry) != 4:
        raise ValueError(f"{what}: not [seq, head, segment, size]")
    seq, head, segment, size = entry
    if not isinstance(head, str) or len(head) != 64 or not _HEX.issuperset(head):
        raise ValueError(f"{what}: its head is not 64 hex digits")
    return Position(_count(seq, what, 0), head, _count(segment, what, 1), _count(size, what, 0))


_MEMBERS = frozenset(
    {"v", "wire", "wire_hash", "remote", "branch", "checkpoint", "trust_version", "trust_hash", "instance"}
    | {"names", "accepted", "remote_seq", "verified", "tidied", "frozen"}
    | {"accepted_commit", "judged_trust", "restore", "forks"}
)


def _object(found: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = found[key]
    if not isinstance(value, dict):
        raise ValueError(f"`{key}` is not an object")
    return value


def _text(found: Mapping[str, Any], key: str) -> str:
    value = found[key]
    if not isinstance(value, str) or not value:
        raise ValueError(f"`{key}` is not a text")
    return value


def _hex(found: Mapping[str, Any], key: str, length: int) -> str:
    value = _text(found, key)
    if len(value) != length or not _HEX.issuperset(value):
        raise ValueError(f"`{key}` is not {length} hex digits")
    return value


def _commit(found: Mapping[str, Any], key: str) -> str | None:
    value = found[key]
    if value is None:
        return None
    if not isinstance(value, str) or len(value) not in (40, 64) or not _HEX.issuperset(value):
        raise ValueError(f"`{key}` is not a commit's id")
    return value


def _key_id(value: object) -> str:
    if not isinstance(value, str) or len(value) != 32 or not _HEX.issuperset(value):
        raise ValueError("`forks` holds something else than key ids")
    return value


def _flag(value: object, what: str) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"`{what}` is neither true nor false")
    return value


def _count(value: object, what: str, least: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ValueError(f"{what}: {str(value)[:24]} where a number from {least} was expected")
    return value


def _channel(channel: str) -> str:
    if not valid_channel(*channel.partition("/")[::2]):
        raise ValueError(f"{channel[:80]!r} is not a channel")
    return channel


def _list(value: object, what: str, valid: Callable[[str], bool]) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) and valid(item) for item in value):
        raise ValueError(f"`{what}` holds something else than it must")
    return tuple(value)


def _lists(names: Mapping[str, Any], key: str, valid: Callable[[str], bool]) -> dict[str, tuple[str, ...]]:
    lists: dict[str, tuple[str, ...]] = {}
    for name, value in _object(names, key).items():
        if not valid_name(name):
            raise ValueError(f"`names.{key}`: {name[:64]!r} is not a name")
        lists[name] = _list(value, f"names.{key}.{name}", valid)
    return lists


def _frozen(value: object) -> Frozen | None:
    if value is None:
        return None
    if not isinstance(value, dict) or value.keys() != {"code", "since"}:
        raise ValueError("`frozen` is not {code, since}")
    return Frozen(_text(value, "code"), _text(value, "since"))
