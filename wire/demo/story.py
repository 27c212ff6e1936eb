"""The demo's story: five acts, each step followed by a look from the outside at whether it happened.

The two machines talk through `hub.git`. mac is the founder and the owner of the channel that is tampered with, spark
its peer, vera a person who can push to the repository and is nobody on the wire.
"""

import os
import shlex
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from wire.demo.stage import Machine, Stage, eventually, failed

HUB = "hub.git"
WIRE = "hub"
FORWARD, BACK = "mac/spark", "spark/mac"
REQUEST = "Please merge the parser branch, then tag it."
FORGED = REQUEST.replace("merge", "erase")
REPLY = "Merged and tagged."
MEANWHILE = "Somebody changed what you said on the hub. I still have the original."
AFTERWARDS = "Thanks. Nothing was lost."
_SEGMENT = "_coordination/{}/000001.jsonl"
_HOLD_TENTHS = 150


class Teller(Protocol):
    """Who shows the play to people."""

    def act(self, number: int, title: str) -> None:
        """Begin an act."""

    def ran(self, who: str, command: str) -> None:
        """Show a command that is about to run."""

    def said(self, text: str) -> None:
        """Show what came of it, or what happens off the stage."""

    def held(self, text: str) -> None:
        """Show a check that passed."""


def play(stage: Stage, teller: Teller) -> int:
    """Play all acts and return how many checks held.

    Raises:
        WireError: reason `demo-failed`; the first thing that did not happen.
    """
    story = _Story(stage, teller)
    story.begin()
    story.join()
    story.talk()
    story.tamper()
    story.recover()
    return story.checks


class _Story:
    def __init__(self, stage: Stage, teller: Teller) -> None:
        self._stage = stage
        self._tell = teller
        self._hub = os.path.join(stage.folder, HUB)
        self._released = os.path.join(stage.folder, "released")
        self._branch = ""
        self._checkpoint = ""
        self._original = b""
        self.mac = stage.machine("mac")
        self.spark = stage.machine("spark")
        self.checks = 0

    # Act 1.

    def begin(self) -> None:
        """Mac makes the hub's empty repository a wire."""
        self._tell.act(1, "A wire begins in an empty repository")
        self._stage.git("init", "--quiet", "--bare", "--initial-branch=main", HUB)
        # A receiving git tidies up in the background otherwise, and would outlive the demo.
        self._stage.git("-C", HUB, "config", "receive.autogc", "false")
        made = self._json(self.mac, "init", HUB, "--as", "mac")[0]
        self._branch, self._checkpoint = str(made["branch"]), str(made["checkpoint"])
        self._tell.said(f"checkpoint {self._checkpoint}")
        paths = self._stage.git("-C", HUB, "ls-tree", "-r", "--name-only", self._branch).decode().split()
        trust = [path for path in paths if path.startswith("_coordination/trust")]
        self._check(bool(trust) and len(paths) == len(trust) + 1, "the hub has the signed trust chain and nothing else")

    # Act 2.

    def join(self) -> None:
        """Spark joins by the checkpoint; mac approves its key."""
        self._tell.act(2, "A second machine joins")
        joined = self._json(self.spark, "join", HUB, "--as", "spark", "--trust", self._checkpoint)[0]
        print_ = str(joined["fingerprint"])
        self._tell.said(f"spark's key is {print_}: its owner reads that out to mac's")
        asked = self._json(self.mac, "trust", "requests")
        self._check(
            [one.get("fingerprint") for one in asked] == [print_], "mac sees one request, with the same fingerprint"
        )
        self._json(self.mac, "trust", "approve", "spark", "--fingerprint", print_)
        newest = self._stage.blob(HUB, f"{self._branch}:_coordination/trust.json")
        self._check(b'"spark"' in newest, "the hub's trust now names spark")

    # Act 3.

    def talk(self) -> None:
        """A request climbs from stored to pushed, and a reply comes back."""
        self._tell.act(3, "A request and a reply, carried by two daemons")
        for machine in (self.mac, self.spark):
            self._ran(machine, "daemon", "run")
            machine.start_daemon()
        self._held("`wire status` finds both alive")
        held = self._hold_pushes()
        sent = self._json(self.mac, "send", "spark", REQUEST, "--type", "request")[0]
        name = str(sent["id"])
        self._equal(name, f"{FORWARD}/1", "the id of the first message")
        text = REQUEST.encode()
        self._check(text in self.mac.journal(WIRE, FORWARD), "stored: it is on mac's disk, signed")
        wanted = {"committed"} if held else {"committed", "pushed"}
        eventually(f"mac's daemon commits {name}", lambda: self._state(name) in wanted)
        self._check(text in self.mac.accepted(WIRE, FORWARD), "committed: mac's own git holds it, verified")
        if held:
            self._check(text not in self._on_hub(FORWARD), "and nothing said pushed: the hub does not have it yet")
            self._release_pushes()
        eventually(f"mac's daemon pushes {name}", lambda: self._state(name) == "pushed")
        self._original = self._on_hub(FORWARD)
        self._check(
            text in self._original and self._original == self.mac.journal(WIRE, FORWARD),
            "pushed: the hub has mac's line, byte for byte",
        )
        self._arrives(self.spark, name, REQUEST)
        reply = self._json(self.spark, "reply", name, REPLY, "--wait", "pushed")[-1]
        self._equal(reply.get("state"), "pushed", "the state of the reply")
        answer = self._arrives(self.mac, str(reply["id"]), REPLY)
        self._check(answer.get("re") == name, f"and it says that it answers {name}")

    # Act 4.

    def tamper(self) -> None:
        """Vera rewrites mac's line on the hub while mac's daemon is stopped; spark notices."""
        self._tell.act(4, "Somebody rewrites a line on the hub while its owner is away")
        self._tell.said("mac's daemon is stopped")
        self.mac.stop_daemon()
        self._vandalise()
        self._check(FORGED.encode() in self._on_hub(FORWARD), f'the hub now says that mac wrote: "{FORGED}"')
        self._incidents(self.spark)
        shown = self._json(self.spark, "tail", "--all", expect=(0, 4))
        bodies = [one["line"].get("body") for one in shown if one.get("from") == "mac" and one.get("to") == "spark"]
        self._equal(bodies, [REQUEST], "what spark shows of mac's messages")
        self._held("spark still shows what mac wrote, and nothing of what vera wrote")
        sent = self._json(self.spark, "send", "mac", MEANWHILE, "--wait", "pushed")[-1]
        self._equal(sent.get("state"), "pushed", "the state of spark's next message")
        carried = MEANWHILE.encode() in self._on_hub(BACK)
        self._check(carried, "the other direction goes on: the hub has spark's next message")

    # Act 5.

    def recover(self) -> None:
        """Mac comes back, notices, and restores its line; both are well again."""
        self._tell.act(5, "The owner comes back")
        self._ran(self.mac, "daemon", "run")
        self.mac.start_daemon()
        self._incidents(self.mac)
        eventually("mac's line is restored on the hub", lambda: self._on_hub(FORWARD) == self._original)
        self._held("mac's push restored the line: the hub has the original, byte for byte")
        self._arrives(self.mac, f"{BACK}/2", MEANWHILE)
        thanks = str(self._json(self.mac, "send", "spark", AFTERWARDS)[0]["id"])
        self._arrives(self.spark, thanks, AFTERWARDS)
        self._tell.said("both owners have read the incidents, and say so")
        for machine in (self.mac, self.spark):
            self._acknowledge(machine)
            self._well(machine)
        for machine in (self.mac, self.spark):
            machine.stop_daemon()

    # What the acts are made of.

    def _arrives(self, machine: Machine, name: str, body: str) -> dict[str, Any]:
        """Wait until `wire tail` shows a message, and check that it is what the hub carries; return its line."""
        self._ran(machine, "tail", "--json")

        def look() -> dict[str, Any]:
            # 4: an incident concerns the channel, which is told beside what is shown.
            found = machine.json("tail", expect=(0, 4, 6))
            return next((one for one in found if one.get("id") == name), {})

        shown = eventually(f"`wire tail` on {machine.name} shows {name}", look)
        line = shown.get("line")
        if shown.get("verdict") != "verified" or not isinstance(line, dict) or line.get("body") != body:
            raise failed(f"{machine.name} was to be shown {name} with the text {body!r}, and was shown {shown}")
        self._tell.said(f'{name} {line["type"]} "{body}"')
        channel = name.rpartition("/")[0]
        carried = f'"sig":"{line["sig"]}"}}\n'.encode() in self._on_hub(channel)
        self._check(carried, f"{machine.name} was shown {name}, verified: the very line that the hub carries")
        return line

    def _incidents(self, machine: Machine) -> None:
        """Wait for the incidents of the rewritten line, and for nothing else."""
        self._ran(machine, "incidents")
        wanted = {("PREFIX", FORWARD), ("SIGNATURE", FORWARD)}
        found: dict[tuple[str, str], str] = {}

        def look() -> bool:
            found.update({(one["code"], one["scope"]): one["message"] for one in machine.json("incidents")})
            return wanted <= found.keys()

        eventually(
            f"{machine.name} reports that its copy of mac's line is missing on the hub (PREFIX), and that what stands "
            "there is not signed by mac (SIGNATURE)",
            look,
            instead=lambda: f"it reports {_listed(found)}",
        )
        self._equal(_listed(found), _listed(wanted), f"the incidents of {machine.name}")
        for (code, _), message in found.items():
            self._tell.said(f"{code}: {message}")
        self._held(f"{machine.name} noticed: mac's line is missing on the hub, and what stands there is not mac's")

    def _acknowledge(self, machine: Machine) -> None:
        def over() -> bool:
            return all(one["ended"] for one in machine.json("incidents") if one["code"] == "PREFIX")

        eventually(f"{machine.name} finds that nothing is missing any more", over)
        for one in machine.json("incidents"):
            self._ran(machine, "incidents", "ack", str(one["id"]))
            machine.wire("incidents", "ack", str(one["id"]))

    def _well(self, machine: Machine) -> None:
        self._ran(machine, "verify", "--full")
        verified = machine.json("verify", "--full")[0]
        self._equal(verified.get("problems"), [], f"what `wire verify --full` found on {machine.name}")
        self._ran(machine, "status")
        eventually(f"`wire status` on {machine.name} exits 0", lambda: machine.status("status") == 0)
        self._held(f"{machine.name} is well: {verified['lines']} lines hold, and `wire status` exits 0")

    def _vandalise(self) -> None:
        """Change one word of an old line on the hub, by an ordinary commit and push."""
        work = os.path.join(self._stage.folder, "vera")
        path = _SEGMENT.format(FORWARD)
        self._vera("clone", "--quiet", HUB, "vera")
        file = os.path.join(work, path)
        self._tell.ran("vera", f"edit {path}: merge becomes erase")
        with open(file, "rb") as source:
            data = source.read()
        with open(file, "wb") as target:
            target.write(data.replace(b"merge", b"erase"))
        self._vera("commit", "--quiet", "--all", "-m", "mac: 1 line to spark", cwd=work)
        self._vera("push", "--quiet", "origin", self._branch, cwd=work)

    def _vera(self, *args: str, cwd: str | None = None) -> None:
        self._tell.ran("vera", f"git {shlex.join(args)}")
        self._stage.git(*args, cwd=cwd, who="vera")

    def _hold_pushes(self) -> bool:
        """Make the hub wait with each push until it is released; otherwise all would be over before anybody could look.

        Returns False where the temporary folder is mounted so that no program may run from it, a hook neither.
        """
        hook = os.path.join(self._hub, "hooks", "pre-receive")
        os.makedirs(os.path.dirname(hook), exist_ok=True)
        with open(hook, "w", encoding="utf-8") as file:
            # An end in any case: a push that nobody releases must not outlive the demo.
            file.write(
                f"#!/bin/sh\nn=0\nwhile [ ! -e {shlex.quote(self._released)} ] && [ $n -lt {_HOLD_TENTHS} ]\n"
                "do sleep 0.1; n=$((n + 1)); done\n"
            )
        os.chmod(hook, 0o700)
        if not os.access(hook, os.X_OK):
            os.remove(hook)
            return False
        self._tell.said("the hub is made slow for a moment, so that the states can be seen")
        return True

    def _release_pushes(self) -> None:
        with open(self._released, "wb"):
            pass

    def _state(self, name: str) -> str:
        return str(self.mac.json("show", name)[0].get("state"))

    def _on_hub(self, channel: str) -> bytes:
        """Return what the hub's branch holds of a channel."""
        return self._stage.blob(HUB, f"{self._branch}:{_SEGMENT.format(channel)}")

    def _json(self, machine: Machine, *args: str, expect: Sequence[int] = (0,)) -> list[dict[str, Any]]:
        self._ran(machine, *args)
        found = machine.json(*args, expect=expect)
        if not found:
            raise failed(f"`wire {' '.join(args)} --json` on {machine.name} printed nothing")
        return found

    def _ran(self, machine: Machine, *args: str) -> None:
        self._tell.ran(machine.name, f"wire {shlex.join(args)}")

    def _equal(self, found: object, wanted: object, what: str) -> None:
        if found != wanted:
            raise failed(f"{what}: {wanted!r} was expected, {found!r} was found")

    def _check(self, holds: bool, what: str) -> None:
        if not holds:
            raise failed(f"this did not hold: {what}")
        self._held(what)

    def _held(self, what: str) -> None:
        self.checks += 1
        self._tell.held(what)


def _listed(incidents: Iterable[tuple[str, str]]) -> str:
    return ", ".join(f"{code} in {scope}" for code, scope in sorted(incidents)) or "nothing"
