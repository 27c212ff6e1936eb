"""More bytes than a fetch may have, by blobs that are nothing on a wire: it goes on where the host can leave them out.

The cap is lowered in two ways: real commands run under a limit of the system for the size of a file, which is what the
cap is made of; the syncs in this process get a smaller number.
"""

import json
import os
import resource
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support import gitcmd
from support import hostile_host as hostile
from support.besieged import NEVER, Siege, incidents, pin, site
from support.machine import Machine
from support.moves_many import huge_files
from wire.api import Wire
from wire.daemon import hearing, repair

MB = 1 << 20
CAP = 2 * MB
CHANNEL = "mac/spark"


@pytest.fixture(autouse=True)
def _low_cap(monkeypatch):
    for module in (hearing, repair):
        monkeypatch.setattr(module, "FETCH_MAX_BYTES", CAP)
    monkeypatch.setattr(hearing, "BOTH_MAX_BYTES", CAP)


def _limited(machine: Machine, *args: str) -> tuple[int, dict[str, Any]]:
    """Run a real command under the limit; return its exit status and what it told."""
    done = subprocess.run(
        [str(machine.program), *args, "--json"],
        env=machine.env,
        cwd=machine.home,
        capture_output=True,
        timeout=120,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (CAP, CAP)),
    )
    return done.returncode, json.loads(done.stdout or done.stderr)


FOUND = {"TRUST wire", "SHAPE wire", "SIZE lee/mac"}


def test_the_wire_goes_on_without_the_huge_blobs(siege: Siege) -> None:
    gitcmd.git(siege.remote.path, "config", "uploadpack.allowFilter", "true")
    config = (siege.spark.clone() / ".git" / "config").read_bytes()
    siege.send("mac", "spark", "before the flood")
    siege.sync(siege.mac)
    siege.remote.compress_nothing()
    huge_files(siege, 3)
    status, told = _limited(siege.spark, "sync")
    assert status == 4, json.dumps(told)
    assert pin(siege.spark).accepted[CHANNEL].seq == 5
    siege.settle()
    siege.flows(("mac", "spark"), ("lee", "mac"))
    # What a stranger put on top of accepted lines is left out as well, and its owner puts the lines back.
    siege.host.commit({hostile.segment(CHANNEL): siege.host.read(hostile.segment(CHANNEL)) + os.urandom(3 * MB)})
    siege.settle()
    # A newcomer gets the same, by a real command.
    zoe = siege.new_machine("zoe")
    checkpoint = siege.mac.json("trust", "show")["checkpoint"]
    status, joined = _limited(zoe, "join", siege.remote.url, "--as", "zoe", "--trust", checkpoint)
    assert status == 0, joined
    siege.mac.wire("trust", "approve", "zoe", "--fingerprint", joined["fingerprint"])
    siege.machines["zoe"], siege.enrolled["zoe"] = zoe, NEVER
    # Packing and making the repository anew go on.
    for full in (False, True):
        site(siege.lee).git.pack(full=full)
    assert Wire.open(environ=siege.spark.env).repair().remote_reached
    siege.flows(("mac", "spark"), ("lee", "mac"))
    assert (siege.lee.clone() / ".git" / "config").read_bytes() == config
    assert not list(Path(siege.lee.clone(), ".git").rglob("*.promisor"))
    more = {f"PREFIX {CHANNEL}", f"SIZE {CHANNEL}"}
    siege.check(everyone=FOUND | more, zoe=FOUND - {"SIZE lee/mac"})


def test_a_host_that_leaves_nothing_out_is_told_how(siege: Siege) -> None:
    siege.remote.compress_nothing()
    huge_files(siege, 3)
    status, told = _limited(siege.spark, "sync")
    assert status == 6, json.dumps(told)
    told = told["failure"]
    assert told["reason"] == "git-too-large"
    assert "git config uploadpack.allowFilter true" in told["next_step"]
    gitcmd.git(siege.remote.path, "config", "uploadpack.allowFilter", "true")
    siege.flows(("mac", "spark"), ("lee", "mac"))
    siege.check(everyone=FOUND)


@pytest.mark.parametrize("loss", ["before the flood", "created again, empty"])
def test_who_left_something_out_heals_all_the_same(siege: Siege, loss: str) -> None:
    gitcmd.git(siege.remote.path, "config", "uploadpack.allowFilter", "true")
    before = siege.host.tip
    siege.host.commit({hostile.segment("lee/mac", 2): os.urandom(3 * MB)})
    siege.settle()
    siege.flows(("mac", "spark"), ("lee", "mac"))
    if loss == "before the flood":
        siege.host.put_back(before)
    else:
        siege.host.recreate()
    siege.sync(siege.spark, siege.lee)
    assert pin(siege.spark).frozen is not None
    report = siege.heal(siege.spark)
    assert report.failure is None
    siege.settle()
    siege.flows(("mac", "spark"), ("lee", "mac"), ("spark", "lee"))
    siege.check(**{name: incidents(machine) for name, machine in siege.machines.items()})
