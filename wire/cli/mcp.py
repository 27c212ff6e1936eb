"""mcp."""

import click

from wire.api import Wire
from wire.cli.common import choosing, wire_of
from wire.cli.console import taken
from wire.errors import WireError

_SDK = frozenset({"anyio", "mcp", "mcp_types"})


@click.command()
@choosing
@click.pass_context
def mcp(ctx: click.Context) -> None:
    """Serve the verbs as tools of an agent's harness: the Model Context Protocol on standard input and output.

    Needs the extra `git-wire[mcp]`. `--as` and `--wire`, the environment or the project's file say who is meant.
    """
    try:
        from wire.mcp import server
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _SDK:
            raise
        raise WireError(
            f"`wire mcp` needs the package {error.name!r}, which is not installed beside wire",
            reason="extra-missing",
            next_step="python -m pip install 'git-wire[mcp]', or pipx inject git-wire 'mcp>=2.3,<3'",
        ) from error
    from wire import __version__
    from wire.cli import internal

    def opened() -> Wire:
        return wire_of(ctx)

    server.serve(opened, version=__version__, taken=taken, internal=internal)
