"""A harness on a machine: `wire mcp` as a real process, spoken to by the SDK's own client over its pipes.

with harness(team.spark) as spark:
    spark.call("inbox")                 what the agent sees
"""

import queue
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import anyio
import mcp_types as types
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from support.machine import Machine

SECONDS = 60.0


class Refused(Exception):
    """A tool answered with an error; `told` is what it says."""

    def __init__(self, told: dict[str, Any]) -> None:
        super().__init__(str(told))
        self.told = told


class Harness:
    """One client, whose calls block."""

    def __init__(self, portal: BlockingPortal, client: Client, notices: "queue.Queue[Any]") -> None:
        self.portal = portal
        self.client = client
        self.notices = notices
        """What the server said by itself."""

    def run(self, function: Callable[..., Any], *args: Any) -> Any:
        return self.portal.call(function, *args)

    def result(self, tool: str, arguments: Mapping[str, Any] | None = None) -> types.CallToolResult:
        found = self.portal.call(lambda: self.client.call_tool(tool, dict(arguments or {})))
        assert isinstance(found, types.CallToolResult)
        return found

    def call(self, tool: str, **arguments: Any) -> str:
        """Call a tool and return its text."""
        found = self.result(tool, arguments)
        if found.is_error:
            raise Refused(found.structured_content)
        (content,) = found.content
        assert isinstance(content, types.TextContent)
        return content.text

    def data(self, tool: str, **arguments: Any) -> Any:
        """Call a tool and return what it answers as data."""
        found = self.result(tool, arguments)
        if found.is_error:
            raise Refused(found.structured_content)
        return found.structured_content

    def read(self, uri: str) -> str:
        """Return a resource's text."""
        found = self.portal.call(self.client.read_resource, uri)
        (content,) = found.contents
        assert isinstance(content, types.TextResourceContents)
        return content.text


@contextmanager
def harness(
    machine: Machine, *args: str, mode: str = "auto", env: Mapping[str, str | None] | None = None
) -> Iterator[Harness]:
    """Start `wire mcp` on a machine and talk to it.

    Args:
        mode: of `mcp.Client`; "legacy" begins with the handshake of older clients.
        env: changes to the machine's environment.
    """
    notices: queue.Queue[Any] = queue.Queue()

    async def heard(message: Any) -> None:
        notices.put(message)
        await anyio.lowlevel.checkpoint()

    with machine.log_file.with_name("mcp.log").open("a") as log, start_blocking_portal() as portal:
        command = StdioServerParameters(
            command=str(machine.program), args=["mcp", *args], env=machine.environ(env), cwd=machine.home
        )
        transport = stdio_client(command, errlog=log)
        client = Client(transport, mode=mode, message_handler=heard, read_timeout_seconds=SECONDS)
        with portal.wrap_async_context_manager(client):
            yield Harness(portal, client, notices)
