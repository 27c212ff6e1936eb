"""keys rotate, keys reissue, trust revoke."""

import click

from wire.cli.common import choosing, json_option, wire_of
from wire.cli.console import flush, leave, safe, say, say_json, warn


@click.command("rotate")
@json_option
@choosing
@click.pass_context
def rotate(ctx: click.Context, as_json: bool) -> None:
    """Give an agent of this machine a fresh key; sending goes on meanwhile, also offline.

    The old key is closed at the last line that it signed, and stays beside the new one. Where this machine holds the
    root key, all is done at once; elsewhere a request is published, and `wire trust approve` puts it into the trust.
    """
    done = wire_of(ctx).rotate_key()
    if as_json:
        shown = {"name": done.name, "fingerprint": done.fingerprint, "former": done.former, "state": done.state}
        told = {"failure": done.failure.reason} if done.failure is not None else {}
        say_json({**shown, "checkpoint": done.checkpoint, **told})
    elif done.state == "active":
        say(f"{done.name} signs with {done.fingerprint} from now on; checkpoint {done.checkpoint}")
    else:
        say(f"{done.name} signs with {done.fingerprint} from now on")
        say("what it sends waits here until the trust names that key; who holds a root key runs:")
        say(f"  wire trust approve {done.name} --fingerprint {done.fingerprint}")
    if done.failure is not None:
        warn(f"nobody else knows of it yet, this goes on with the next look: {safe(done.failure.message)}")
        flush()
        leave(done.failure.exit_status)
