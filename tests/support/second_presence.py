"""Presences for the second implementation of PROTOCOL.md, written from its section alone; see `second`."""

import re
from typing import Any

from support.second_forms import TIME, H, is_channel, is_name, matches, need, refusal, signed_by, strict, unb64

TRAILER = re.compile(rf',"key":"{H}{{32}}","sig":"([A-Za-z0-9+/]{{86}}==)"\}}'.encode())
OPTIONAL = ("note", "eta")
ORDER = (
    "v", "wire", "agent", "instance", "counter", "ts", "trust", "state", "tier", "interval_ms", *OPTIONAL, "channels",
    "key", "sig",
)  # fmt: skip


def presence(raw: bytes, public: bytes) -> str:
    """Return `ok`, `SIZE`, `SIGNATURE` or `SCHEMA` for the bytes without the newline."""
    if len(raw) + 1 > 65_536:
        return "SIZE"
    trailer = TRAILER.fullmatch(raw[-139:])
    try:
        signature = unb64(trailer[1].decode(), 64) if trailer else b""
    except ValueError:
        return "SIGNATURE"
    if not signed_by(public, signature, "presence", raw[:-98] + b"}"):
        return "SIGNATURE"
    return "SCHEMA" if refusal(lambda: _form(strict(raw, None), raw)) else "ok"


def _form(said: dict[str, Any], raw: bytes) -> None:
    need([name for name in ORDER if name in said or name not in OPTIONAL] == list(said), "members")
    need(said["v"] == 1 and said["v"] is not True and is_name(said["agent"]), "who")
    need(matches(said["wire"], f"{H}{{32}}") and matches(said["instance"], f"{H}{{32}}"), "ids")
    need(_number(said["counter"], 1, 10**15 - 1) and _number(said["interval_ms"], 1, 86_400_000), "numbers")
    need(matches(said["ts"], TIME) and matches(said.get("eta", said["ts"]), TIME), "times")
    need(matches(said["trust"], f"[1-9][0-9]{{0,8}}:{H}{{16}}"), "trust")
    need(said["state"] in ("idle", "busy", "blocked", "paused"), "state")
    need(said["tier"] in ("hot", "T0", "T1", "T2", "T3", "-"), "tier")
    note = said.get("note", "")
    need(isinstance(note, str) and len(note) <= 200, "note")
    need(isinstance(said["channels"], dict), "channels")
    for channel, place in said["channels"].items():
        need(is_channel(channel) and not channel.startswith(f"{said['agent']}/"), "channel")
        need(isinstance(place, list) and len(place) == 3, "place")
        seq, head, read = place
        need(_number(seq, 1, 2**53) and matches(head, f"{H}{{64}}") and _number(read, 0, seq), "place")


def _number(value: Any, least: int, most: int) -> bool:
    return type(value) is int and least <= value <= most
