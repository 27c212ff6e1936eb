"""hook, skill: what runtimes run, and what an agent reads to know the verbs."""

import os
import sys
from collections.abc import Sequence

import click

from wire.cli.common import choosing
from wire.cli.console import hand_over, leave, prepare, reader_gone, say
from wire.hooks.runner import Surroundings, run
from wire.hooks.runtimes import NAMES, Said


@click.command(epilog=f"Runtimes: {', '.join(NAMES)}.")
@click.argument("runtime")
@click.argument("event")
@choosing
@click.pass_context
def hook(ctx: click.Context, runtime: str, event: str) -> None:
    """Run one hook of an agent runtime: the event on standard input, what the agent is told on standard output.

    It is written into a runtime's settings by `wire hooks install`, and ends with 0 whatever happens, except for the
    waiter of Claude Code, which wakes the session with 2.
    """
    chosen = ctx.find_root().obj
    around = Surroundings(os.environ, os.getcwd(), chosen["wire"], chosen["agent"])
    leave(run((runtime, event), around, sys.stdin.buffer.read(), _hand_over, _pause))


@click.command()
def skill() -> None:
    """Print the text that teaches an agent to use wire."""
    from wire.hooks.skill import skill as text

    say(text().rstrip("\n"))


def answer_hook(words: Sequence[str], stdin: bytes) -> int:
    """Run a hook with what the process was given, and return its exit status; the way around the command line."""
    prepare()
    return run(words, Surroundings(os.environ, os.getcwd()), stdin, _hand_over, _pause)


def _hand_over(said: Said) -> None:
    if said.err:
        sys.stderr.write(said.err)
        sys.stderr.flush()
    if said.out:
        sys.stdout.write(said.out)
    hand_over()


def _pause(seconds: float) -> None:
    """Wait, and notice that the runtime went away."""
    if reader_gone(seconds):
        raise BrokenPipeError
