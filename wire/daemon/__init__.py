"""The daemon's work: verify what came, publish what is ours, and say what is wrong.

A cycle, which works the same by `wire sync` and in the daemon:
    site        one wire on this machine, with everything that a cycle needs
    shape       what a path below `_coordination/` is                               (pure)
    accepted    the accepted bytes, kept as a commit of our own
    judged      what goes into the verifier and what comes out                      (data)
    verify      the steps of PROTOCOL.md over one tip; truststeps, contents and history are parts of it
    collect     our own new lines: from the journal, and appended by hand in the clone
    publish     our commit on the incoming tip                                      (pure but for one diff)
    views       the clone's files, and what no longer counts
    tidy        HEAD, branch and index of the clone, so that a person finds it in order
    cycle       all of that in order, under one lock
    findings, pending, conditions, report      what people are told
    rounds      one cycle and what belongs to it: announce (telling the others), stamp, upkeep

The process around it:
    service     serves every wire of the configuration: claim (one daemon per wire), worker (a thread per wire)
    cadence     when to look next                                                   (pure)
    lull        when that is done which waits for quiet                             (pure)
    eyes        what a worker sees: watch (events as hints), outbox (stats), transport (a remote on this machine)
    naps, network                              the machine slept, or the network came back
    telling, logs, notify                      what the log and a service manager are told
    status      how a wire stands                                                   (pure over a snapshot)

What people ask for by hand:
    trusting    a new trust version, pushed at once
    repair      a damaged clone is made anew
    reverify    everything is checked again, from the checkpoint
"""
