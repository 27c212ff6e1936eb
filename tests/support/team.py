"""A wire that is there already: `mac` (who holds the root) and `spark`, approved and in sync, over a bare repository.

    def test_hello(team):
        team.mac.send("spark", "hello")
        team.settle()
        team.check()

Making one takes seconds, so that it is made once per worker and copied: `Template.copy` brings remote, homes and clones
into a test's own folder. What a copy shares with others is its keys.
"""

import itertools
import json
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support import oracle
from support.machine import Machine, Result
from support.remote import BareRemote, VandalClone
from wire.keys import keyfile
from wire.protocol.chain import Position
from wire.protocol.encoding import LINE_TYPE, Signer, b64
from wire.protocol.line import head, parse, seal
from wire.store import pin as pins
from wire.store.files import utc_now
from wire.store.pin import Pin

NAME = "hub"
"""The wire's local name on both machines."""


@dataclass(slots=True)
class Team:
    """Two machines, or more, and what they share."""

    folder: Path
    remote: BareRemote
    mac: Machine
    spark: Machine
    machines: list[Machine]
    new_machine: Callable[[str], Machine]

    def settle(self, *machines: Machine, rounds: int = 2) -> None:
        """Let every machine sync, in turn, so that all have everything; fails when one of them does not succeed.

        In later rounds those that have verified the remote's tip have nothing to do.
        """
        for number in range(rounds):
            for machine in machines or self.machines:
                if number == 0 or pin(machine).verified != self.remote.tip(pin(machine).branch):
                    machine.wire("sync")

    def check(self, **rest: Any) -> None:
        """Ask the oracle about all machines."""
        oracle.check(self.machines, self.remote, **rest)

    def sync_and_check(self, **rest: Any) -> None:
        """Settle, then ask the oracle."""
        self.settle()
        self.check(**rest)

    def join(self, name: str) -> Machine:
        """Let one more machine join and be approved."""
        machine = self.new_machine(name)
        join(self.mac, machine, self.remote)
        self.machines.append(machine)
        return machine

    def two_of_three(self) -> Machine:
        """Let `lee` join; two of three roots must sign from now on: mac's, `sam` on spark, `lea` on lee."""
        lee = self.join("lee")
        for machine, name in ((self.spark, "sam"), (lee, "lea")):
            line = machine.json("keys", "root", "new", name)["line"]
            self.mac.wire("trust", "root", "add", name, line, "--yes")
        waits = self.mac.json("trust", "root", "threshold", "2", "--yes")["proposal"]
        self.spark.wire("trust", "sign", waits["id"], "--yes")
        return lee

    def reach_by(self, url: str) -> None:
        """Let every machine reach the remote by another URL from now on, as one that had joined by it."""
        for machine in self.machines:
            for told in (machine.wire_home / "config.toml", state(machine) / "pin.json"):
                text = told.read_text("utf-8")
                assert text.count(self.remote.url) == 1
                told.write_text(text.replace(self.remote.url, url), "utf-8")
        self.remote.url = url

    def vandal(self, name: str = "vera") -> VandalClone:
        """Clone the remote as somebody who may push and owns no key."""
        return self.remote.clone_as_vandal(self.folder / name)


def begin(mac: Machine, remote: BareRemote) -> str:
    """Let a machine begin the wire, and return the checkpoint."""
    checkpoint: str = mac.json("init", remote.url, "--as", mac.name)["checkpoint"]
    return checkpoint


def join(root: Machine, newcomer: Machine, remote: BareRemote) -> None:
    """Let a machine join, be approved by the one that holds the root, and know it."""
    checkpoint = root.json("trust", "show")["checkpoint"]
    joined = newcomer.json("join", remote.url, "--as", newcomer.name, "--trust", checkpoint)
    root.wire("trust", "approve", newcomer.name, "--fingerprint", joined["fingerprint"])
    newcomer.wire("sync")


class Template:
    """A team that nobody uses, to be copied."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._remote = BareRemote(folder / "hub.git")
        machines = [_machine(folder, name) for name in ("mac", "spark")]
        begin(machines[0], self._remote)
        join(machines[0], machines[1], self._remote)
        for machine in machines:
            machine.wire("sync")
            machine.close()

    def copy(self, folder: Path, remote: BareRemote, new_machine: Callable[[str], Machine]) -> Team:
        """Bring the team into a folder, where the remote is new and empty."""
        shutil.copytree(self._remote.path, remote.path, symlinks=True, dirs_exist_ok=True)
        machines = []
        for name in ("mac", "spark"):
            machine = new_machine(name)
            shutil.copytree(self._folder / f"machine-{name}" / "wire", machine.wire_home, symlinks=True)
            for told in (machine.wire_home / "config.toml", machine.wire_home / "state" / NAME / "pin.json"):
                text = told.read_text("utf-8")
                assert str(self._remote.path) in text
                told.write_text(text.replace(str(self._remote.path), str(remote.path)), "utf-8")
            machines.append(machine)
        return Team(folder, remote, machines[0], machines[1], machines, new_machine)


def _machine(folder: Path, name: str) -> Machine:
    root = folder / f"machine-{name}"
    root.mkdir()
    return Machine(name, root)


# A machine's state, for tests that look at it or harm it


def state(machine: Machine, name: str = NAME) -> Path:
    """Return the state folder of a wire."""
    return machine.wire_home / "state" / name


def pin(machine: Machine, name: str = NAME) -> Pin:
    """Return the pin as it is on disk."""
    return pins.load(str(state(machine, name) / "pin.json"))


def signer(machine: Machine, name: str | None = None, kind: str = "agent") -> Signer:
    """Return a private key of a machine: its agent's unless named, or (kind `root`) the root's."""
    wire = pin(machine).wire
    owner = "root" if kind == "root" else name or machine.name
    path = keyfile.key_path(str(machine.wire_home / "keys"), wire=wire, kind=kind, name=owner)
    return keyfile.load_for(path, name=owner, kind=kind, wire=wire)


def end(machine: Machine, channel: str) -> Position:
    """Return where a channel ends for a machine."""
    held = pin(machine)
    return held.accepted.get(channel) or Position.start(held.wire, channel)


def write(
    machine: Machine, channel: str, *bodies: Any, after: Position | None = None, by: Signer | None = None, **rest: Any
) -> list[bytes]:
    """Return lines, newline included, that follow the end which a machine knows of a channel.

    Args:
        after: the position that they follow instead.
        by: the key that signs; the machine's own agent's unless given.
        rest: other values of a line's members (`ts`, `trust`, `type`, …); `sender` and `recipient` for lies.
    """
    held = pin(machine)
    position = after or end(machine, channel)
    sender, _, recipient = channel.partition("/")
    lines = []
    for body in bodies:
        members: dict[str, Any] = {
            "wire": held.wire,
            "sender": sender,
            "recipient": recipient,
            "seq": position.seq + 1,
            "prev": position.head,
            "ts": utc_now(),
            "trust": f"{held.trust_version}:{held.trust_hash[:16]}",
            "type": "message",
            "body": body,
            **rest,
        }
        lines.append(seal(by or signer(machine), **members))
        position = position.after(len(lines[-1]), head(lines[-1][:-1]))
    return lines


def forge(
    machine: Machine, channel: str, middle: bytes, *, after: Position | None = None, by: Signer | None = None
) -> bytes:
    """Return a line whose optional members are any bytes, signed and in its right place: what `seal` would refuse."""
    key = by or signer(machine)
    (honest,) = write(machine, channel, "", after=after, by=key)
    signed = honest[: parse(honest[:-1]).middle_at] + middle + b',"key":"%s"}' % key.key_id.encode()
    return signed[:-1] + b',"sig":"%s"}\n' % b64(key.sign(LINE_TYPE, signed)).encode()


def path(channel: str, number: int = 1) -> str:
    """Return the path of a segment in the repository."""
    return f"_coordination/{channel}/{number:06}.jsonl"


def bodies(tail: Result | Sequence[Any]) -> list[Any]:
    """Return the bodies of the messages that `tail --json` printed, None for one that could not be shown.

    What the machines tell each other of incidents, and that they are alive, is left out.
    """
    items = tail.jsonl() if isinstance(tail, Result) else tail
    lines = [item.get("line", {}) for item in items if "id" in item]
    return [line.get("body") for line in lines if line.get("type") not in ("incident", "heartbeat")]


def read(machine: Machine, *args: str | Path, status: int | None = 0, **rest: Any) -> list[Any]:
    """Return the bodies of what `wire tail` shows as new; `status` is what it must exit with (None: whatever)."""
    result = machine.wire("tail", "--json", *args, check=False, **rest)
    assert status is None or result.status == status, str(result)
    return bodies(result)


def incidents(machine: Machine, *codes: str, everything: bool = False) -> list[dict[str, Any]]:
    """Return the open incidents of some codes, or of all."""
    result = machine.wire("incidents", "--json", *(["--all"] if everything else []))
    found = [json.loads(line) for line in result.out.split(b"\n") if line]
    return [one for one in found if not codes or one["code"] in codes]


_counter = itertools.count()


def replace_file(file: Path, data: bytes) -> None:
    """Put a new file in the place of another, as git and editors do."""
    fresh = file.with_name(f".fresh-{os.getpid()}-{next(_counter)}")
    fresh.write_bytes(data)
    fresh.rename(file)
