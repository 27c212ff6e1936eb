"""When it matters: a burst of messages, and many agents that talk at once."""

import threading
import time

from support.sizes import size
from support.team import bodies, incidents, pin
from support.waiting import eventually
from wire.api import Wire
from wire.verbs.sending import Draft


def api(machine, agent=None):
    return Wire.open(as_=agent, environ=machine.environ())


def accepted(machine):
    """Return how many lines a machine has accepted, in all channels."""
    return sum(end.seq for end in pin(machine).accepted.values())


def test_a_burst_arrives_whole_in_few_commits(team):
    """Two hundred sends as fast as an agent can make them, each durable on its own."""
    for machine in team.machines:
        machine.start_daemon()
    before = len(team.remote.commits())
    mac = api(team.mac)
    team.mac.sent += [mac.send("spark", f"burst {number}").id for number in range(200)]
    eventually(lambda: pin(team.mac).remote_seq.get("mac/spark") == 200, timeout=30, what="all at the remote")
    assert len(team.remote.commits()) - before <= 5
    eventually(lambda: accepted(team.spark) == 200, timeout=30, what="all at the peer")
    assert bodies(team.spark.wire("tail", "--json")) == [f"burst {number}" for number in range(200)]
    team.check()


def test_many_agents_on_four_machines(team):
    """Everybody sends to everybody, to all, and answers; all daemons push against each other all the time."""
    each, seconds = size(2, 5, "agents on each of four machines"), size(6, 120, "seconds that they talk")
    homes = [team.mac, team.spark, team.join("lee"), team.join("ada")]
    agents = {machine.name: machine for machine in homes}
    for machine in homes:
        for number in range(2, each + 1):
            name = f"{machine.name}-{number}"
            joined = machine.json(
                "join", team.remote.url, "--as", name, "--trust", team.mac.json("trust", "show")["checkpoint"]
            )
            team.mac.wire("trust", "approve", name, "--fingerprint", joined["fingerprint"])
            agents[name] = machine
    team.settle(*homes)
    commits = len(team.remote.commits())
    for machine in homes:
        machine.start_daemon()
    until = time.monotonic() + seconds
    sent = {name: [] for name in agents}

    def talk(name, number):
        mine, others = api(agents[name], name), [other for other in agents if other != name]
        turn = number
        while time.monotonic() < until:
            to = "all" if turn % 7 == 0 else others[turn % len(others)]
            sent[name] += [one.id for one in mine.send_all([Draft(to, body=f"{name} {turn}")]).sent]
            turn += 1
            time.sleep(0.2)

    threads = [threading.Thread(target=talk, args=(name, number)) for number, name in enumerate(agents)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name, machine in agents.items():
        assert sent[name]
        machine.sent += sent[name]
    everything = sum(map(len, sent.values()))
    # A machine that pushes all it has each time makes at most one commit for every look, however many agents it has.
    assert len(team.remote.commits()) - commits <= len(homes) * (4 * seconds + 10)
    for machine in homes:
        eventually(
            lambda m=machine: accepted(m) == everything, timeout=60, what=f"{everything} lines at {machine.name}"
        )
    for machine in homes:
        assert incidents(machine) == []
        assert machine.stop_daemon() == 0
    team.check()
