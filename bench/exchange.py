"""A live exchange over ssh, and a burst of messages: what two agents feel that answer each other at once."""

import os
import signal
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

from daemons import Follower, PlainGit
from figures import Figure, ms, percentile
from world import BODY, World, making

from support.sshd import Sshd
from wire.store import pin as pins

TURNS = 10
"""Messages of an exchange, each the answer to the one before it."""
EXCHANGES = 3
BURST = 200
BURSTS = 5
ARRIVES_SECONDS = 30.0


def over_ssh() -> Iterator[Figure]:
    """Measure an exchange over ssh against a plain push and a plain fetch over the same kind of connection."""
    with making("mac", "spark") as here, Sshd(here.folder / "sshd") as server:
        for machine in here.machines.values():
            machine.env = server.environ(machine.env)
            _reach_by(here, machine.name, server.url(here.remote.path))
        shared = f"ssh -o ControlMaster=auto -o ControlPath={here.folder}/c -o ControlPersist=30"
        floor = PlainGit(here.folder / "plain", here["mac"], reach=server.url, ssh=shared)
        names = ("mac", "spark")
        daemons = {name: here[name].start_daemon() for name in names}
        arrivals, floors = [], []
        with Follower(here["mac"]) as at_mac, Follower(here["spark"]) as at_spark:
            followers = {"mac": at_mac, "spark": at_spark}
            for exchange in range(-1, EXCHANGES):
                for turn in range(TURNS):
                    if exchange >= 0:
                        floors.append(floor.push() + floor.fetch())
                    sender, receiver = names[turn % 2], names[1 - turn % 2]
                    sent = here[sender].json("send", receiver, f"{BODY} ({exchange}, {turn})")["id"]
                    returned = time.perf_counter()
                    if exchange < 0:
                        # An exchange begins at the pace of the tier; what is measured is the one that goes on.
                        time.sleep(1)
                        os.kill(daemons[receiver].pid, signal.SIGUSR1)
                    arrived = followers[receiver].wait_for(sent)
                    if exchange >= 0:
                        arrivals.append(arrived - returned)
    base = statistics.median(floors)
    told = f"a plain `git push` and a plain `git fetch` of one commit over ssh, by a shared connection, {ms(base)}"
    how = (
        f"two daemons, default configuration, a real sshd on loopback; {EXCHANGES} exchanges of {TURNS} turns, "
        "from the return of `wire send` to the line out of the peer's `wire tail -f --json`"
    )
    for name, part, target in (("ssh-p50", 0.5, 2.5), ("ssh-p95", 0.95, 5)):
        value = percentile(tuple(arrivals), part)
        yield Figure(
            name,
            f"a live exchange over ssh, from the return of `wire send` to the peer's `wire tail -f`, {name[-3:]}",
            value / base,
            target,
            "x",
            told,
            how,
            beside={"ours": ms(value), "all": " ".join(ms(one) for one in sorted(arrivals)[:: max(1, TURNS // 2)])},
        )


def _reach_by(here: World, name: str, url: str) -> None:
    for file in (here[name].wire_home / "config.toml", Path(here.site(name).places.pin_file)):
        file.write_text(file.read_text("utf-8").replace(here.remote.url, url), "utf-8")


def burst() -> Iterator[Figure]:
    """Measure how fast messages reach a remote on this machine that are sent one by one, each durable on its own."""
    rates, commits = [], []
    with making("mac", "spark") as here:
        here["mac"].start_daemon()
        mac = here.api("mac")
        pin_file = here.site("mac").places.pin_file
        for number in range(BURSTS):
            before = len(here.remote.commits())
            began = time.perf_counter()
            for line in range(BURST):
                sent = mac.send("spark", f"{BODY} ({number}, {line})")
            last = int(sent.id.rpartition("/")[2])
            while pins.load(pin_file).remote_seq.get("mac/spark", 0) < last:
                if time.perf_counter() - began > ARRIVES_SECONDS:
                    raise RuntimeError(f"{sent.id} did not reach the remote within {ARRIVES_SECONDS:g} s")
                time.sleep(0.002)
            rates.append(BURST / (time.perf_counter() - began))
            commits.append(len(here.remote.commits()) - before)
            time.sleep(1.5)
    how = f"one daemon, default configuration; the median of {BURSTS} bursts of {BURST} calls of `Wire.send`"
    rate = statistics.median(rates)
    yield Figure(
        "burst-rate",
        "messages a second, from the first call to the last one known to be at the remote",
        rate,
        200,
        "messages/s",
        "none",
        how,
        at_most=False,
        beside={"all": ", ".join(f"{one:.0f}" for one in rates)},
    )
    yield Figure(
        "burst-commits",
        f"commits that carry a burst of {BURST}",
        max(commits),
        5,
        "commits",
        "none",
        how,
        beside={"all": ", ".join(map(str, commits))},
    )
