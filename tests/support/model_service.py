"""A stand-in for the services of language models: it keeps every request, and answers by a script.

    with ModelService(net.listener) as service:
        service.script(Text("hello"), meanwhile, Shell("wire reply mac/spark/1 done"))
        ...                                         # a client is pointed at service.url
        assert service.turns[-1].count("the words") == 1

It speaks what the clients speak: Anthropic's messages, OpenAI's responses and chat completions, Gemini's
generateContent, all streamed as server-sent events. A request that offers tools is a turn of an agent and takes the
next step of the script; others (titles, token counts) are answered with a word and take none. A step is a reply, or a
function that is called with the request and returns one: what it does happens while the model "thinks". With the script
at its end every turn is answered with `done`.
"""

import itertools
import json
import re
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

_NUMBERS = itertools.count(1)

JSON = dict[str, Any]


class Text(NamedTuple):
    """The model says something, and its turn is over."""

    text: str


class Shell(NamedTuple):
    """The model runs a command by whichever tool for that the client offers."""

    command: str


class Tool(NamedTuple):
    """The model calls a tool of a server that the client was told of, whatever the client made of the two names."""

    server: str
    tool: str
    arguments: JSON


Reply = Text | Shell | Tool


@dataclass(frozen=True, slots=True)
class Asked:
    """One request of a client."""

    path: str
    body: JSON

    @property
    def tools(self) -> dict[str, JSON]:
        """The tools that the client offers, by name."""
        found: dict[str, JSON] = {}
        for tool in self.body.get("tools") or []:
            for one in tool.get("functionDeclarations") or [tool.get("function", tool)]:
                found[one.get("name") or one.get("type")] = one
        return found

    @property
    def text(self) -> str:
        """All strings of the request, of the oldest message before those of the newest, as the model reads them."""
        return "\n".join(_strings({name: value for name, value in self.body.items() if name != "tools"}))

    def count(self, words: str) -> int:
        """Return how often some words stand in what the model reads."""
        return self.text.count(words)


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner)


Step = Reply | Callable[[Asked], Reply]


@dataclass(slots=True)
class _Book:
    """What is known of the requests so far; `lock` guards it."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    asked: list[Asked] = field(default_factory=list)
    turns: list[Asked] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    calls: dict[str, Callable[[], None]] = field(default_factory=dict)
    failures: list[BaseException] = field(default_factory=list)


class ModelService:
    """One service, in threads of its own.

    Args:
        listener: a listening TCP socket; the service closes its own copy of it.
    """

    def __init__(self, listener: socket.socket) -> None:
        self._book = _Book()
        self._server = _Server(listener, self._book)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), name="models", daemon=True)
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"

    def __enter__(self) -> "ModelService":
        self._thread.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)
        if kind is None and self._book.failures:
            raise self._book.failures[0]

    def script(self, *steps: Step) -> None:
        """Say how the next turns are answered, after those that were said before."""
        with self._book.lock:
            self._book.steps += steps

    def on(self, path: str, call: Callable[[], None]) -> None:
        """Have something done when a path is posted to, before that is answered: for a hook of the test's own."""
        self._book.calls[path] = call

    @property
    def turns(self) -> list[Asked]:
        """The agents' turns so far."""
        with self._book.lock:
            return list(self._book.turns)

    @property
    def asked(self) -> list[Asked]:
        """All requests so far, those beside the turns too."""
        with self._book.lock:
            return list(self._book.asked)

    def told(self) -> str:
        """Return what happened here, for a failure's text."""
        lines = [f"{len(self.turns)} turns, {len(self.asked)} requests, failures: {self._book.failures}"]
        for one in self.asked:
            said = one.body.get("messages") or one.body.get("input") or one.body.get("contents")
            lines.append(f"--- {one.path} tools={sorted(one.tools)}\n{json.dumps(said, indent=1)[-4000:]}")
        return "\n".join(lines)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, listener: socket.socket, book: _Book) -> None:
        super().__init__(listener.getsockname()[:2], _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener.dup()
        self.book = book

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: a client that ends cuts its connections."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, format: str, *args: object) -> None:
        """Keep the tests' output clean."""

    def do_HEAD(self) -> None:
        self._send(200, "application/json", b"")

    def do_GET(self) -> None:
        self._note(Asked(self.path, {}))
        self._send(200, "application/json", b'{"object":"list","data":[],"models":[]}')

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if call := self.server.book.calls.get(self.path):
            if self._attempt(call):
                self._send(200, "application/json", b"{}")
            return
        try:
            asked = Asked(self.path, json.loads(body))
        except ValueError:
            self._send(400, "application/json", b'{"error":{"message":"no JSON"}}')
            return
        self._note(asked)
        path = self.path.partition("?")[0]
        if path.endswith(("/count_tokens", ":countTokens")):
            self._send(200, "application/json", b'{"input_tokens":100,"totalTokens":100}')
            return
        dialect = next((one for end, one in _DIALECTS.items() if path.endswith(end)), None)
        if dialect is None:
            self._send(404, "application/json", b'{"error":{"message":"nothing is here"}}')
            return
        events: Events = []
        if not self._attempt(lambda: events.extend(dialect(asked, self._reply(asked)))):
            return
        if asked.body.get("stream") is False or path.endswith(":generateContent"):
            self._send(200, "application/json", json.dumps(events[-1][1]).encode())
            return
        lines = [(f"event: {kind}\n" if kind else "") + f"data: {_encoded(data)}\n\n" for kind, data in events]
        self._send(200, "text/event-stream", "".join(lines).encode())

    def _attempt(self, call: Callable[[], None]) -> bool:
        """Do what a test wants done here; where that fails, keep it for the test and answer with an error."""
        try:
            call()
        except Exception as failure:  # noqa: BLE001 - whatever it is, it is the test's
            with self.server.book.lock:
                self.server.book.failures.append(failure)
            self._send(400, "application/json", b'{"error":{"message":"the script failed"}}')
            return False
        return True

    def _note(self, asked: Asked) -> None:
        with self.server.book.lock:
            self.server.book.asked.append(asked)

    def _reply(self, asked: Asked) -> Reply:
        if _shell(asked) is None:
            return Text("ok")
        with self.server.book.lock:
            self.server.book.turns.append(asked)
            step = self.server.book.steps.pop(0) if self.server.book.steps else Text("done")
        return step(asked) if callable(step) else step

    def _send(self, status: int, kind: str, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def _encoded(data: JSON | str) -> str:
    return data if isinstance(data, str) else json.dumps(data)


# Tools that run a command: how the clients call theirs, and what it is given

_SHELLS: dict[str, Callable[[str], JSON]] = {
    "Bash": lambda command: {"command": command, "description": "answer the message"},
    "bash": lambda command: {"command": command, "description": "answer the message"},
    "run_shell_command": lambda command: {"command": command},
    "exec_command": lambda command: {"cmd": command},
    "shell_command": lambda command: {"command": command},
    "shell": lambda command: {"command": ["bash", "-c", command]},
}


def _shell(asked: Asked) -> str | None:
    return next((name for name in _SHELLS if name in asked.tools), None)


def _call(asked: Asked, reply: Shell | Tool) -> tuple[str, JSON]:
    if isinstance(reply, Tool):
        named = re.compile(rf"(?:mcp_+)?{reply.server}[_.-]+{reply.tool}")
        fits = [name for name in asked.tools if named.fullmatch(name)]
        assert len(fits) == 1, f"no one tool {reply.tool} of {reply.server} among {sorted(asked.tools)}"
        return fits[0], reply.arguments
    name = _shell(asked)
    assert name is not None
    return name, _SHELLS[name](reply.command)


# Dialects: the events of one answer, each with its kind (or none)

Events = list[tuple[str, JSON]]


def _messages(asked: Asked, reply: Reply) -> Events:
    """Anthropic's messages."""
    number = next(_NUMBERS)
    empty: JSON
    if isinstance(reply, Text):
        reason, empty = "end_turn", {"type": "text", "text": ""}
        delta = {"type": "text_delta", "text": reply.text}
    else:
        name, arguments = _call(asked, reply)
        reason, empty = "tool_use", {"type": "tool_use", "id": f"toolu_{number:024}", "name": name, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(arguments)}
    message = {
        "id": f"msg_{number:024}",
        "type": "message",
        "role": "assistant",
        "model": asked.body.get("model", "m"),
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 100, "output_tokens": 1},
    }
    events: Events = [
        ("message_start", {"message": message}),
        ("content_block_start", {"index": 0, "content_block": empty}),
        ("content_block_delta", {"index": 0, "delta": delta}),
        ("content_block_stop", {"index": 0}),
        ("message_delta", {"delta": {"stop_reason": reason, "stop_sequence": None}, "usage": {"output_tokens": 9}}),
        ("message_stop", {}),
    ]
    events = [(kind, {"type": kind, **data}) for kind, data in events]
    if asked.body.get("stream"):
        return events
    content = {**empty, "text": reply.text} if isinstance(reply, Text) else {**empty, "input": arguments}
    return [("", {**message, "content": [content], "stop_reason": reason})]


def _responses(asked: Asked, reply: Reply) -> Events:
    """OpenAI's responses."""
    number = next(_NUMBERS)
    item: JSON
    if isinstance(reply, Text):
        content = [{"type": "output_text", "text": reply.text, "annotations": []}]
        item = {"type": "message", "id": f"msg_{number}", "role": "assistant", "content": content}
    else:
        name, arguments = _call(asked, reply)
        call = {"id": f"fc_{number}", "call_id": f"call_{number}", "name": name, "arguments": json.dumps(arguments)}
        item = {"type": "function_call", **call}
    item["status"] = "completed"
    usage = {
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 9,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 109,
    }
    response = {"id": f"resp_{number}", "object": "response", "model": asked.body.get("model", "m"), "output": []}
    events: Events = [
        ("response.created", {"response": {**response, "status": "in_progress"}}),
        ("response.output_item.added", {"output_index": 0, "item": {**item, "status": "in_progress"}}),
        ("response.output_item.done", {"output_index": 0, "item": item}),
        ("response.completed", {"response": {**response, "status": "completed", "output": [item], "usage": usage}}),
    ]
    return [(kind, {"type": kind, "sequence_number": at, **data}) for at, (kind, data) in enumerate(events)]


def _chat(asked: Asked, reply: Reply) -> Events:
    """OpenAI's chat completions."""
    number = next(_NUMBERS)
    message: JSON = {"role": "assistant"}
    if isinstance(reply, Text):
        reason, message["content"] = "stop", reply.text
    else:
        name, arguments = _call(asked, reply)
        call = {"id": f"call_{number}", "function": {"name": name, "arguments": json.dumps(arguments)}}
        reason, message["tool_calls"] = "tool_calls", [{"index": 0, "type": "function", **call}]
    chunk = {"id": f"chatcmpl-{number}", "created": 1, "model": asked.body.get("model", "m")}
    usage = {"prompt_tokens": 100, "completion_tokens": 9, "total_tokens": 109}
    if not asked.body.get("stream"):
        choice: JSON = {"index": 0, "message": message, "finish_reason": reason}
        return [("", {**chunk, "object": "chat.completion", "choices": [choice], "usage": usage})]
    chunk["object"] = "chat.completion.chunk"
    said: JSON = {"index": 0, "delta": message, "finish_reason": None}
    ended: JSON = {"index": 0, "delta": {}, "finish_reason": reason}
    return [
        ("", {**chunk, "choices": [said]}),
        ("", {**chunk, "choices": [ended], "usage": usage}),
        ("", "[DONE]"),  # type: ignore[list-item]  # the one event that is no JSON
    ]


def _generate(asked: Asked, reply: Reply) -> Events:
    """Gemini's generateContent."""
    part: JSON
    if isinstance(reply, Text):
        part = {"text": reply.text}
    else:
        name, arguments = _call(asked, reply)
        part = {"functionCall": {"name": name, "args": arguments}}
    candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
    usage = {"promptTokenCount": 100, "candidatesTokenCount": 9, "totalTokenCount": 109}
    return [("", {"candidates": [candidate], "usageMetadata": usage, "responseId": f"r{next(_NUMBERS)}"})]


_DIALECTS: dict[str, Callable[[Asked, Reply], Events]] = {
    "/messages": _messages,
    "/responses": _responses,
    "/chat/completions": _chat,
    ":streamGenerateContent": _generate,
    ":generateContent": _generate,
}
