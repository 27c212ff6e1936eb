"""A git host over HTTP on a loopback port, real down to `git http-backend`, that fails as hosts do.

    with HttpGit(tmp_path) as host:              # serves the bare repositories below that folder
        host.credentials = ("mac", "token")      # ask everybody for them
        host.refuse_pushes = True                # known, and allowed to read
        host.lose_answers = True                 # pushes are taken, and who pushed never learns of it
        host.fault = "429"                       # from now on; None for no more
        git.fetch(host.url("hub.git"), …)

Faults: `401 403 404 413 429 500` answer with that status (`retry_after` goes with 429), `login` is a page with status
200, `redirect` leads to one, `silent` accepts and never answers, `cut` ends every answer in its middle.
"""

import base64
import os
import shutil
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Literal, NamedTuple

from support import gitcmd

Fault = Literal["401", "403", "404", "413", "429", "500", "login", "redirect", "silent", "cut"]

_LOGIN_PAGE = b"<!DOCTYPE html><html><title>Sign in</title><form method=post><input name=password></form></html>\n"


class Request(NamedTuple):
    """One request as the host saw it; `user` from its credentials, if it had any."""

    method: str
    path: str
    user: str | None


class HttpGit:
    """One host, in a thread of its own.

    Args:
        root: the folder whose bare repositories it serves, for reading and writing.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.fault: Fault | None = None
        self.retry_after: str | None = None
        self.credentials: tuple[str, str] | None = None
        self.refuse_pushes = False
        self.lose_answers = False
        self.requests: list[Request] = []
        self.closing = threading.Event()
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), name="http-git", daemon=True)

    def __enter__(self) -> "HttpGit":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)

    def url(self, name: str, userinfo: str = "") -> str:
        """Return the URL of a repository; `userinfo` as in `user:password`."""
        return f"http://{userinfo + '@' if userinfo else ''}127.0.0.1:{self._server.server_port}/{name}"

    @property
    def port(self) -> int:
        return self._server.server_port


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, host: HttpGit) -> None:
        self.host = host
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: clients that are killed in the middle are what this is for."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, format: str, *args: object) -> None:
        """Keep the test's output clean."""

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def _answer(self) -> None:
        host = self.server.host
        body = self._body()
        user, password = self._credentials()
        host.requests.append(Request(self.command, self.path, user))
        fault = host.fault
        if fault == "silent":
            host.closing.wait(60)
            self.close_connection = True
        elif fault == "login" or (fault == "redirect" and self.path.startswith("/login")):
            self._send(200, _LOGIN_PAGE, {"Content-Type": "text/html"})
        elif fault == "redirect":
            self._send(302, b"", {"Location": f"http://127.0.0.1:{host.port}/login?next=/"})
        elif fault is not None and fault.isdigit():
            headers = {"WWW-Authenticate": 'Basic realm="git"'} if fault == "401" else {}
            if host.retry_after is not None:
                headers["Retry-After"] = host.retry_after
            self._send(int(fault), b"no\n", headers)
        elif host.credentials is not None and (user, password) != host.credentials:
            self._send(401, b"who are you?\n", {"WWW-Authenticate": 'Basic realm="git"'})
        elif host.refuse_pushes and "git-receive-pack" in self.path:
            self._send(403, b"read only\n", {})
        else:
            lost = host.lose_answers and self.command == "POST" and "git-receive-pack" in self.path
            self._serve(body, user, cut=fault == "cut" or lost)

    def _credentials(self) -> tuple[str | None, str | None]:
        kind, _, encoded = self.headers.get("Authorization", "").partition(" ")
        if kind.lower() != "basic":
            return None, None
        user, _, password = base64.b64decode(encoded).decode().partition(":")
        return user, password

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            parts = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _serve(self, body: bytes, user: str | None, *, cut: bool) -> None:
        path, _, query = self.path.partition("?")
        environ = gitcmd.clean_environ(
            {
                "GIT_PROJECT_ROOT": str(self.server.host.root),
                "GIT_HTTP_EXPORT_ALL": "1",
                "GIT_CONFIG_COUNT": "1",
                "GIT_CONFIG_KEY_0": "http.receivepack",
                "GIT_CONFIG_VALUE_0": "true",
                "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
                "REQUEST_METHOD": self.command,
                "PATH_INFO": path,
                "QUERY_STRING": query,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "CONTENT_LENGTH": str(len(body)),
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                "REMOTE_USER": user or "anybody",
                "REMOTE_ADDR": "127.0.0.1",
            }
        )
        git = shutil.which("git") or "git"
        done = subprocess.run([git, "http-backend"], input=body, capture_output=True, env=environ, cwd=os.sep)
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.decode().split(": ", 1) for line in head.split(b"\r\n") if b": " in line)
        status = int(headers.pop("Status", "200").split(" ")[0])
        self._send(status, content, headers, cut=cut)

    def _send(self, status: int, content: bytes, headers: dict[str, str], *, cut: bool = False) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[: len(content) // 2] if cut else content)
        if cut:
            self.close_connection = True
