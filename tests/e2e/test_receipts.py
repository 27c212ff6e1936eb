"""A sender sees its message climb, by two daemons alone."""

import threading
import time

from support.heard import places
from support.waiting import eventually
from wire import Wire
from wire.store import outlook
from wire.verbs.states import STATES


def test_a_sender_sees_delivered_read_and_acked_climb(team):
    for machine in team.machines:
        machine.start_daemon()
    mac = Wire.open(environ=team.mac.environ())
    one = team.mac.send("spark", "hello", "--ack-required")
    seen, done = [], threading.Event()

    def watch():
        watcher = Wire.open(environ=team.mac.environ())
        while not done.wait(0.02):
            state = watcher.trace(one).state
            if not seen or seen[-1] != state:
                seen.append(state)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        assert [sent.state for sent in mac.wait([one], "delivered", 30)] == ["delivered"]
        # Nobody read it yet, however long that takes.
        time.sleep(0.5)
        assert mac.trace(one).missing("read") == ("spark",)
        team.spark.wire("tail")
        mac.wait([one], "read", 30)
        assert [late.id for late in mac.sent(unacked=True)] == [one]
        answer = team.spark.json("ack", one, "got it")["id"]
        mac.wait([one], "acked", 30)
        eventually(lambda: seen[-1] == "acked", what=lambda: f"the climb to its end, not {seen}")
    finally:
        done.set()
        thread.join(10)
    # Whoever looks all the time sees it rise and never fall.
    assert seen == sorted(seen, key=STATES.index)
    (recipient,) = mac.trace(one).recipients
    assert [reached.state for reached in recipient.reached] == list(STATES)
    assert [reached.how for reached in recipient.reached][-3:-1] == ["presence", "presence"]
    assert recipient.reached[-1].how == answer
    since = [reached.since for reached in recipient.reached]
    assert None not in since
    assert mac.overdue() == []
    for machine in team.machines:
        machine.stop_daemon()
    team.check()


def test_a_state_that_was_declared_reaches_the_others(team):
    for machine in team.machines:
        machine.start_daemon()
    team.spark.wire("state", "busy", "the parser", "--eta", "2h")

    def told():
        (spark,) = (one for one in team.mac.jsonl("agents") if one["name"] == "spark")
        return (spark["state"], spark["note"], spark["stale"]) == ("busy", "the parser", False)

    eventually(told, timeout=30, what="spark's state at mac")
    # What the next sender should know was written down by the daemon, before anybody asked.
    known = outlook.load(places(team.mac))
    assert known is not None
    assert known.agents["spark"].interval > 0
    assert team.mac.wire("send", "spark", "when you can").stderr == ""
    for machine in team.machines:
        machine.stop_daemon()
