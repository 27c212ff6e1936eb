"""What commands share: the chosen wire, and the options that all of them have."""

import os
from collections.abc import Callable
from typing import Any

import click

from wire.api import Wire
from wire.errors import UsageError
from wire.store.paths import Settings
from wire.verbs.here import Here

Command = Callable[..., Any]


def settings_of(ctx: click.Context) -> Settings:
    """Return what the environment and the options in front of the command say."""
    chosen = ctx.find_root().obj
    return Settings.from_environ(os.environ, os.getcwd()).choosing(wire=chosen["wire"], agent=chosen["agent"])


def here_of(ctx: click.Context) -> Here:
    """Return the wire that is meant; raises UsageError."""
    return Here.find(settings_of(ctx))


def wire_of(ctx: click.Context) -> Wire:
    """Return the wire that is meant, with its verbs; raises UsageError."""
    return Wire(here_of(ctx))


def choosing(command: Command) -> Command:
    """Let `--wire` and `--as` stand behind the command, too."""
    for flag, key, what in (
        ("--as", "agent", "The local agent that is meant."),
        ("--wire", "wire", "The wire that is meant."),
    ):
        command = click.option(flag, f"_{key}", metavar="NAME", expose_value=False, callback=_remember(key), help=what)(
            command
        )
    return command


def json_option(command: Command) -> Command:
    """Add `--json`: output for programs."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")(command)


def for_a_wire(command: Command) -> Command:
    """Give a command its context, and the options `--json`, `--as` and `--wire`."""
    return json_option(choosing(click.pass_context(command)))


def reader_option(command: Command) -> Command:
    """Add `--reader`: whose place counts and moves."""
    return click.option("--reader", metavar="NAME", help="Whose place; else WIRE_READER, or the agent's own (tail).")(
        command
    )


def asking(
    show: Callable[[Any], None], question: str, *, yes: bool, as_json: bool, program: str
) -> Callable[[Any], bool]:
    """Return what shows a person what is about to be done, and asks.

    Args:
        program: what is said to a program that did not say yes.
    """

    def confirm(one: Any) -> bool:
        if not as_json:
            show(one)
        if yes:
            return True
        if as_json:
            raise UsageError(program, reason="usage")
        return click.confirm(question, err=True)

    return confirm


def _remember(key: str) -> Callable[[click.Context, click.Parameter, str | None], None]:
    def callback(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
        if value is not None:
            ctx.find_root().obj[key] = value

    return callback
