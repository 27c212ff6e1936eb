"""Telling an agent that something came, where no hook of its runtime does; and files for who can only read and write.

    adapters    one way of notifying each: a line into a tmux pane, a command, a desktop notification
    notifying   what is delivered and not yet surfaced goes out by each way, and is tried again until it did
    drop        a folder: what is put into `outbox/` is sent, each message appears in `inbox/`
    beside      the thread beside a daemon's worker that does all this; the worker never waits for it

Only a pointer leaves this room, made of names and numbers that were checked: never a word that a peer wrote. Nothing
here makes a message read.
"""
