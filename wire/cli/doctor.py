"""doctor: what keeps wire from working here."""

import click

from wire.cli.common import json_option, settings_of
from wire.cli.console import flush, leave, safe, say, say_json, styled
from wire.errors import DONE, FAILED

_COLOURS = {"ok": "green", "note": "yellow", "wrong": "red"}


@click.command()
@json_option
@click.pass_context
def doctor(ctx: click.Context, as_json: bool) -> None:
    """Look at everything that wire needs on this machine; exit 1 when something is wrong."""
    from wire.doctor import examine

    wrong = 0
    for check in examine(settings_of(ctx)):
        wrong += check.verdict == "wrong"
        if as_json:
            shown = {"check": check.name, "verdict": check.verdict, "found": check.found, "next_step": check.next_step}
            say_json(shown)
        else:
            say(f"{styled(f'{check.verdict:5}', fg=_COLOURS[check.verdict])} {check.name}: {safe(check.found)}")
            if check.verdict != "ok" and check.next_step:
                say(f"      next: {safe(check.next_step)}")
        flush()
    leave(FAILED if wrong else DONE)
