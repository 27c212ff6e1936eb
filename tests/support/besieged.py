"""Three honest machines on one wire, somebody hostile beside them, and what must hold in the end.

    def test_rewrite(siege):
        siege.host.rewrite("mac/spark", 2)
        siege.sync(siege.spark)
        siege.settle()
        siege.check(spark={"PREFIX mac/spark", …})

`mac` holds the root, `spark` and `lee` joined; each has sent something before the test begins. A `Siege` keeps what was
honestly sent (`sent`), because that and nothing else is what any reader may be shown, however the test goes on.

A sync is a cycle in this process, on a machine's home, as `wire sync` would make it; what is shown comes from
`wire tail` as a real process. Making the wire takes seconds, so a template is made once per worker and copied.
"""

import json
import shutil
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support import gitcmd, oracle
from support.hostile_host import TS, HostileHost, seq_of, trust_of
from support.machine import Machine, Result
from support.remote import BareRemote
from wire.api import Wire
from wire.daemon.report import Report
from wire.daemon.site import Site
from wire.keys import keyfile
from wire.keys.trust import Chain, prove, retire, sign_document
from wire.protocol.encoding import Signer
from wire.store import pin as pins
from wire.store.incidents import Incident, list_
from wire.store.pin import Pin

NAME = "hub"
"""The wire's local name on every machine."""
NEVER = 1 << 30
NAMES = ("mac", "spark", "lee")

FIRST_SAID = (
    ("mac", "spark", 4),
    ("spark", "mac", 3),
    ("lee", "spark", 2),
    ("mac", "all", 2),
    ("lee", "mac", 2),
)
"""Who sent how many lines to whom before a test begins."""


@dataclass(slots=True)
class Siege:
    """See the module's text."""

    folder: Path
    remote: BareRemote
    host: HostileHost
    machines: dict[str, Machine]
    new_machine: Callable[[str], Machine]
    sent: dict[str, bytes] = field(default_factory=dict)
    """The lines that honest machines sent, without newline, by id."""
    enrolled: dict[str, int] = field(default_factory=dict)
    """The trust version that enrolled each newcomer: what went to all before is not for it."""
    held: dict[str, oracle.Accepted] = field(default_factory=dict)
    """What each machine had accepted when it was last looked at."""

    @property
    def mac(self) -> Machine:
        return self.machines["mac"]

    @property
    def spark(self) -> Machine:
        return self.machines["spark"]

    @property
    def lee(self) -> Machine:
        return self.machines["lee"]

    @property
    def chain(self) -> Chain:
        """The trust that `mac` holds."""
        return site(self.mac).trust(pin(self.mac))

    # What honest people do

    def send(self, sender: str | Machine, to: str, body: str = "honestly", **members: Any) -> str:
        """Let a machine's agent send a message, and return its id."""
        machine = sender if isinstance(sender, Machine) else self.machines[sender]
        sent = api(machine).send(to, body, **members)
        self.sent[sent.id] = journal(machine, sent.id)
        return sent.id

    def sync(self, *machines: Machine, failing: bool = False) -> Report:
        """Let machines (all, unless named) sync in turn, and return the last report.

        Args:
            failing: a report with a failure is no failure of the test.
        """
        for machine in machines or self.machines.values():
            with self.host.asked_by(machine.name):
                report = Wire.open(environ=machine.env).sync()
            assert failing or report.failure is None, f"{machine.name}: {report.failure!r}"
        return report

    def settle(self, rounds: int = 2, *, without: Collection[Machine] = ()) -> None:
        """Let all machines sync until everything that can arrive has arrived."""
        for _ in range(rounds):
            self.sync(*[machine for machine in self.machines.values() if machine not in without])

    def heal(self, machine: Machine) -> Report:
        """Let a machine put back what a forced history lacks."""
        report = api(machine).heal()
        assert report.failure is None, repr(report.failure)
        return report

    def retire(
        self,
        name: str,
        positions: Mapping[str, tuple[int, str]],
        *,
        status: str = "revoked",
        replacement: Signer | None = None,
        key_id: str | None = None,
    ) -> None:
        """Let the root retire or revoke a key by a new trust version; see `wire.keys.build.retire`."""
        chain = self.chain
        agent = chain.newest.agents[name]
        raw = retire(
            chain.newest,
            chain.wire,
            name=name,
            key_id=key_id or (agent.active_key or agent.keys[0]).id,
            status=status,
            positions=positions,
            created=TS,
            replacement=None
            if replacement is None
            else (replacement.public, prove(replacement, wire=chain.wire, name=name, role=agent.role)),
        )
        self.host.put_trust(chain.newest.version + 1, raw, sign_document(raw, signer(self.mac, "root")))

    def ends(self, sender: str, **earlier: tuple[int, str]) -> dict[str, tuple[int, str]]:
        """Return (seq, head) of all channels that an agent writes, as `mac` knows them; others for some recipients."""
        return {
            channel: earlier.get(channel.partition("/")[2], (end.seq, end.head))
            for channel, end in pin(self.mac).accepted.items()
            if channel.startswith(f"{sender}/")
        }

    def newcomer(self, name: str, *, approved: bool = True) -> Machine:
        """Let one more machine join, and (unless it is to wait) be approved by `mac`."""
        machine = self.new_machine(name)
        with self.host.asked_by(name):
            joined = machine.json("join", self.remote.url, "--as", name, "--trust", self.chain.newest.checkpoint)
        self.machines[name] = machine
        self.enrolled[name] = NEVER
        if approved:
            self.mac.wire("trust", "approve", name, "--fingerprint", joined["fingerprint"])
            self.enrolled[name] = pin(self.mac).trust_version
            self.sync(machine)
        return machine

    def remember(self) -> None:
        """Take down what every machine has accepted: from now on that must not get less."""
        self.held = {name: oracle.Accepted(machine) for name, machine in self.machines.items()}

    # What must hold

    def check(
        self,
        *,
        everyone: Collection[str] = (),
        frozen: Collection[str] = (),
        lost: Collection[str] = (),
        shorter: Collection[Machine] = (),
        at_tip: bool = True,
        **codes: Collection[str],
    ) -> None:
        """Fail unless all machines hold and show exactly what was honestly sent, and raised exactly these incidents.

        Args:
            everyone: what all machines raised that is an incident of integrity: `"SIGNATURE mac/spark"`.
            frozen: channels that stand still, and of which machines may hold different parts.
            lost: ids that were honestly sent and do not count any more (their key was revoked before them).
            shorter: machines that had accepted what does not count any more.
            at_tip: whether the remote carries everything again, too.
            codes: by machine, what it raised instead of what everyone did.
        """
        wanted = {identity: raw for identity, raw in self.sent.items() if identity not in lost}
        told = _told(self.machines.values())
        for name, machine in self.machines.items():
            found, expected = incidents(machine), set(codes.get(name, everyone))
            assert found == expected, f"{name} raised {sorted(found)}, expected {sorted(expected)}"
            held = pin(machine)
            assert held.frozen is None, f"{name} is frozen: {held.frozen}"
            assert set(held.forks) == set(frozen), f"{name}: forks {held.forks}"
            got = accepted(machine)
            _same(f"accepted by {name}", _moving(got, frozen), _moving(wanted, frozen), told)
            seen = shown(machine) if name == "spark" else read(machine)
            _same(f"shown to {name}", seen, {i: r for i, r in got.items() if self._is_for(i, r, name)}, {})
        if not lost:
            self.only_grew(without=shorter)
        if at_tip:
            # Folders of names that nobody knows are never read, and stay where they are.
            there = {
                i: raw
                for i, raw in lines_in(self.remote.path, self.host.tip).items()
                if i.split("/")[0] in self.machines
            }
            _same("at the remote", _moving(there, frozen), _moving(wanted, frozen), told)
        oracle.check(list(self.machines.values()), self.remote, sent=(), attacked=True, rules=(4,))

    def only_honest(self, found: Mapping[str, bytes]) -> None:
        """Fail when lines by id are not what was honestly sent, or told by a machine of its own accord."""
        known = {**_told(self.machines.values()), **self.sent}
        foreign = [identity for identity, raw in found.items() if known.get(identity) != raw]
        assert not foreign, f"nobody honestly sent {foreign}"

    def only_grew(self, *, without: Collection[Machine] = ()) -> None:
        """Fail unless every machine holds what it held when it was last looked at, and more."""
        for name, held in self.held.items():
            if self.machines[name] not in without:
                held.still_held()

    def flows(self, *pairs: tuple[str, str]) -> None:
        """Let lines flow between all machines, or the named pairs, and fail when one does not arrive."""
        names = list(self.machines)
        between = pairs or tuple((a, b) for a in names for b in names if a != b)
        ids = {self.send(a, b, "does it flow?"): b for a, b in between}
        self.settle()
        for identity, to in ids.items():
            assert identity in shown(self.machines[to]), f"{identity} did not arrive"

    def _is_for(self, identity: str, raw: bytes, reader: str) -> bool:
        sender, recipient, _ = identity.split("/")
        return sender != reader and (
            recipient == reader or (recipient == "all" and trust_of(raw) >= self.enrolled.get(reader, 0))
        )


# Making one


class Template:
    """A wire with a past that nobody uses, to be copied."""

    def __init__(self, folder: Path, *, object_format: str = "sha1") -> None:
        folder.mkdir(exist_ok=True)
        self._folder = folder
        self._remote = BareRemote(folder / "hub.git", object_format=object_format)
        machines = {name: _machine(folder, name) for name in NAMES}
        mac = machines["mac"]
        checkpoint = mac.json("init", self._remote.url, "--as", "mac")["checkpoint"]
        for name in NAMES[1:]:
            joined = machines[name].json("join", self._remote.url, "--as", name, "--trust", checkpoint)
            mac.wire("trust", "approve", name, "--fingerprint", joined["fingerprint"])
        siege = Siege(folder, self._remote, HostileHost(self._remote), machines, _refused)
        siege.sync()
        for sender, to, count in FIRST_SAID:
            for number in range(1, count + 1):
                siege.send(sender, to, f"{sender} to {to}, number {number}")
        siege.settle()
        self._sent = siege.sent
        siege.remember()
        self._held = {name: held.segments for name, held in siege.held.items()}
        for machine in machines.values():
            machine.close()

    def copy(self, folder: Path, remote: BareRemote, new_machine: Callable[[str], Machine]) -> Siege:
        """Bring the wire into a folder, where the remote is new and empty."""
        shutil.copytree(self._remote.path, remote.path, symlinks=True, dirs_exist_ok=True)
        machines = {}
        for name in NAMES:
            machine = machines[name] = new_machine(name)
            shutil.copytree(self._folder / name / "wire", machine.wire_home, symlinks=True)
            moved(machine, {str(self._remote.path): str(remote.path), str(self._folder / name): str(machine.root)})
        siege = Siege(folder, remote, HostileHost(remote), machines, new_machine, dict(self._sent))
        siege.held = {name: oracle.Accepted(machines[name], known=held) for name, held in self._held.items()}
        return siege


def moved(machine: Machine, paths: dict[str, str]) -> None:
    """Write new paths into the files of a machine's home that hold absolute ones."""
    for file in (machine.wire_home / "config.toml", state(machine) / "pin.json", machine.clone() / ".git" / "config"):
        text = file.read_text("utf-8")
        for old, new in paths.items():
            text = text.replace(old, new)
        file.write_text(text, "utf-8")


def _machine(folder: Path, name: str) -> Machine:
    (folder / name).mkdir()
    return Machine(name, folder / name)


def _refused(name: str) -> Machine:
    raise AssertionError(f"nobody joins a template: {name}")


# Looking at a machine


def site(machine: Machine) -> Site:
    """Return a machine's wire as a process on it would open it."""
    here = api(machine).here
    return Site.open(here.settings, here.config)


def api(machine: Machine) -> Wire:
    """Return a machine's wire as the command line opens it."""
    return Wire.open(as_=machine.name, environ=machine.env)


def state(machine: Machine) -> Path:
    """Return the state folder of a machine's wire."""
    return machine.wire_home / "state" / NAME


def pin(machine: Machine) -> Pin:
    """Return the pin as it is on disk."""
    return pins.load(str(state(machine) / "pin.json"))


def signer(machine: Machine, kind: str = "agent") -> Signer:
    """Return the private key of a machine's agent, or (kind `root`) the root key that it holds."""
    owner = "root" if kind == "root" else machine.name
    path = keyfile.key_path(str(machine.wire_home / "keys"), wire=pin(machine).wire, kind=kind, name=owner)
    return keyfile.load_for(path, name=owner, kind=kind, wire=pin(machine).wire)


def incidents(machine: Machine) -> set[str]:
    """Return code and scope of the incidents about bytes that do not hold: `"PREFIX mac/spark"`."""
    return {f"{one.code} {one.scope}" for one in all_incidents(machine) if one.integrity}


def new_key(machine: Machine, seed: bytes) -> Signer:
    """Put another key in the place of an agent's, as a rotation does, and return it; the old file stays beside it."""
    wire = pin(machine).wire
    path = keyfile.key_path(str(machine.wire_home / "keys"), wire=wire, kind="agent", name=machine.name)
    Path(path).rename(f"{path}.retired")
    return keyfile.create(path, name=machine.name, kind="agent", wire=wire, seed=seed)


def all_incidents(machine: Machine, *codes: str) -> list[Incident]:
    """Return all incidents of a machine, or those of some codes, open or not."""
    found = list_(str(state(machine) / "incidents"))
    return [one for one in found if not codes or one.code in codes]


def tail(machine: Machine, *args: str) -> Result:
    """Run `wire tail --all --json`."""
    return machine.wire("tail", "--all", "--json", *args, check=False)


def shown(machine: Machine) -> dict[str, bytes]:
    """Return the bytes of what `wire tail --all --json` shows, by id."""
    result = tail(machine)
    assert result.status in (0, 4), str(result)
    found: dict[str, bytes] = {}
    for out in result.out.split(b"\n"):
        about = json.loads(out) if out else {}
        if "id" in about:
            assert about["id"] not in found, f"{about['id']} is shown twice"
            raw = out.partition(b',"line":')[2][:-1] if "line" in about else about["raw"].encode()
            found[about["id"]] = raw
    return found


def read(machine: Machine) -> dict[str, bytes]:
    """Return what `shown` does, through the Python API."""
    items = list(api(machine).tail(everything=True).items)
    assert len({item.id for item in items}) == len(items)
    return {item.id: item.line.raw for item in items}


def accepted(machine: Machine) -> dict[str, bytes]:
    """Return the lines that a machine has accepted, by id, from its accepted commit."""
    commit = pin(machine).accepted_commit
    return lines_in(machine.clone(), commit) if commit else {}


def lines_in(repository: Path, commit: str) -> dict[str, bytes]:
    """Return everything that stands as a line in the segments of a commit, by the id that its place gives it."""
    found = {}
    for path, data in oracle.segments(repository, commit).items():
        channel = "/".join(path.split("/")[-3:-1])
        for raw in data.split(b"\n")[:-1]:
            if raw.startswith(b'{"v":1,'):
                found[f"{channel}/{seq_of(raw)}"] = raw
    return found


def journal(machine: Machine, identity: str) -> bytes:
    """Return the line of an id from the journal of the machine that sent it."""
    channel, _, number = identity.rpartition("/")
    for file in sorted((state(machine) / "journal" / channel).glob("*.jsonl")):
        for raw in file.read_bytes().split(b"\n")[:-1]:
            if seq_of(raw) == int(number):
                return raw
    raise AssertionError(f"{machine.name} has no {identity} in its journal")


def git(machine: Machine, *args: str) -> bytes:
    """Run git in a machine's clone, as a person there does."""
    return gitcmd.git(machine.clone(), *args)


def _told(machines: Iterable[Machine]) -> dict[str, bytes]:
    """Return the lines by which machines tell each other of their incidents; nobody sent them by hand."""
    return {
        "/".join([*file.parts[-3:-1], str(seq_of(raw))]): raw
        for machine in machines
        for file in (state(machine) / "journal").glob("*/all/*.jsonl")
        for raw in file.read_bytes().split(b"\n")[:-1]
        if b'"type":"incident",' in raw
    }


def _moving(lines: Mapping[str, bytes], frozen: Collection[str]) -> dict[str, bytes]:
    """Return the lines of the channels that do not stand still."""
    return {identity: raw for identity, raw in lines.items() if identity.rpartition("/")[0] not in frozen}


def _same(what: str, found: Mapping[str, bytes], wanted: Mapping[str, bytes], more: Mapping[str, bytes]) -> None:
    surplus, missing = found.keys() - wanted.keys() - more.keys(), wanted.keys() - found.keys()
    assert not surplus | missing, f"{what}: {sorted(surplus)} too many, {sorted(missing)} missing"
    wrong = [identity for identity in found if found[identity] != {**more, **wanted}[identity]]
    assert not wrong, f"{what}: other bytes in {wrong}"
