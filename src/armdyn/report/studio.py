"""`armdyn studio`: the report page with a Python server behind it, reachable only from this machine.

The page can load another robot from a dropped file, identify the arm from a dropped log, generate C, and download the
report. The server listens on 127.0.0.1. Every request must carry the token of the opened page and come from the
server's own origin, so other sites in the same browser can neither send requests nor read answers.
"""

from __future__ import annotations

import hmac
import io
import json
import secrets
import tempfile
import threading
import zipfile
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import armdyn
from armdyn.arm import Arm
from armdyn.errors import ArmdynError, InputError, choose
from armdyn.identification import Log, identify
from armdyn.pages.writer import BASE, POLICY, as_json, document, escape
from armdyn.references import citation
from armdyn.report.collect import Progress, collect
from armdyn.report.page import page

MAX_BYTES = 256 * 2**20  # bytes of a dropped file
ROBOTS = (".urdf", ".xml", ".mjcf", ".toml")
LOGS = (".csv", ".npz", ".parquet")
SERVED = POLICY + "; connect-src 'self'"
BAR = """
<section id="studio" class="studio">
  <div class="row">
    <b>Studio</b>
    <label class="button">Open a robot or a log<input type="file" id="file" accept="%(kinds)s" hidden></label>
    <button type="button" id="emit">Generate C</button>
    <button type="button" id="report">Download this page</button>
    <span id="identified"></span>
  </div>
  <p class="muted small" id="job" role="status">Drop a robot (%(robots)s) or a log of this one (%(logs)s) anywhere on the page.</p>
  <progress id="progress" max="1" value="0" hidden></progress>
</section>
"""  # noqa: E501


class Studio:
    """The current arm, its report, and at most one running job."""

    def __init__(self, arm: Arm) -> None:
        self.arm = arm
        self.data: dict[str, Any] | None = None
        self.identified: str | None = None  # the page of the last identification
        self.job: dict[str, Any] = {"state": "idle", "text": "", "part": 0.0}
        self._busy = threading.Lock()
        self.start(lambda progress: self._take(arm, progress))

    def start(self, work: Callable[[Progress], None]) -> None:
        """Run a job in a new thread; an error if another one is running."""
        if not self._busy.acquire(blocking=False):
            raise InputError("another job is running; wait for it to end")
        self.job = {"state": "running", "text": "starting", "part": 0.0}

        def progress(done: float, total: float, text: str) -> None:
            self.job = {"state": "running", "text": text, "part": done / total if total else 0.0}

        def run() -> None:
            try:
                work(progress)
                self.job = {"state": "done", "text": self.job["text"], "part": 1.0}
            except (ArmdynError, OSError) as error:
                self.job = {"state": "failed", "text": str(error), "part": 0.0}
            except Exception as error:
                self.job = {"state": "failed", "text": f"{type(error).__name__}: {error}", "part": 0.0}
                raise
            finally:
                self._busy.release()

        threading.Thread(target=run, daemon=True).start()

    def _take(self, arm: Arm, progress: Progress) -> None:
        self.arm, self.data, self.identified = arm, collect(arm, progress), None

    def load(self, name: str, content: bytes) -> None:
        """Load a robot from the content of a file, and compute its report."""
        choose("file", Path(name).suffix.lower(), ROBOTS)

        def work(progress: Progress) -> None:
            progress(0, 1, f"reading {name}")
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / f"robot{Path(name).suffix.lower()}"
                path.write_bytes(content)
                arm = armdyn.load(path)
            self._take(arm, progress)

        self.start(work)

    def identify(self, name: str, content: bytes) -> None:
        """Identify the arm's parameters from the content of a log."""
        choose("log", Path(name).suffix.lower(), LOGS)
        arm = self.arm

        def work(progress: Progress) -> None:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / f"log{Path(name).suffix.lower()}"
                path.write_bytes(content)
                progress(0, 3, "reading the log")
                log = Log.read(path, joints=[joint.name for joint in arm.joints])
                progress(1, 3, "fitting the model")
                found = identify(arm, log)
                progress(2, 3, "writing the page")
                found.report(Path(folder) / "report.html")
                self.identified = (Path(folder) / "report.html").read_text(encoding="utf-8")
            progress(3, 3, f"identified: the model explains the torques to {100 * found.error:.2f} %")

        self.start(work)

    def emit(self) -> bytes:
        """The arm's C files in a zip archive."""
        out = io.BytesIO()
        with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in self.arm.emit_c(folder):
                archive.write(path, path.name)
        return out.getvalue()

    def report(self) -> str:
        """The report without the studio's toolbar."""
        return page(self._ready(), citation())

    def page(self, token: str) -> str:
        """The report with the studio's toolbar, or only the toolbar until the report is computed."""
        texts = {"kinds": ",".join((*ROBOTS, *LOGS)), "robots": ", ".join(ROBOTS), "logs": ", ".join(LOGS)}
        bar = f"{BAR % texts}<script type='application/json' id='token'>{as_json(token)}</script>"
        if self.data is None:
            body = f"<main><header><h1>{escape(self.arm.name)}</h1></header>{bar}</main>"
            return document(self.arm.name, body, scripts=(*BASE, "studio.js"), policy=SERVED)
        return page(self.data, citation(), bar, ("studio.js",), SERVED)

    def _ready(self) -> dict[str, Any]:
        if self.data is None:
            raise InputError("the report is still being computed")
        return self.data


class _Handler(BaseHTTPRequestHandler):
    """Handles the page's requests; refuses those without the token or from another origin."""

    server: Server
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *arguments: Any) -> None:
        """Do not log requests to the terminal."""

    def do_GET(self) -> None:
        """Serve the page, the state of the job, and downloads."""
        studio = self.server.studio
        routes: dict[str, Callable[[], tuple[bytes | str, str, str | None]]] = {
            "/": lambda: (studio.page(self.server.token), "text/html; charset=utf-8", None),
            "/job": lambda: (
                json.dumps({**studio.job, "identified": studio.identified is not None}),
                "application/json",
                None,
            ),
            "/report": lambda: (studio.report(), "text/html; charset=utf-8", f"{self._file()}.html"),
            "/identified": lambda: (studio.identified or "", "text/html; charset=utf-8", None),
            "/emit": lambda: (studio.emit(), "application/zip", f"{self._file()}_c.zip"),
        }
        self._answer(routes)

    def do_POST(self) -> None:
        """Accept a dropped file."""
        studio, name = self.server.studio, self._query().get("name", [""])[0]

        def taken(work: Callable[[str, bytes], None]) -> Callable[[], tuple[bytes | str, str, str | None]]:
            def run() -> tuple[bytes | str, str, str | None]:
                work(name, self._body())
                return "{}", "application/json", None

            return run

        self._answer({"/load": taken(studio.load), "/identify": taken(studio.identify)})

    def _answer(self, routes: dict[str, Callable[[], tuple[bytes | str, str, str | None]]]) -> None:
        if not self._allowed():
            self._send(
                HTTPStatus.FORBIDDEN, b"refused: open the address that `armdyn studio` printed", "text/plain", None
            )
            return
        route = routes.get(urlsplit(self.path).path)
        if route is None:
            self._send(HTTPStatus.NOT_FOUND, b"not found", "text/plain", None)
            return
        try:
            content, kind, name = route()
        except (ArmdynError, OSError) as error:
            self._send(HTTPStatus.BAD_REQUEST, str(error).encode(), "text/plain; charset=utf-8", None)
            return
        self._send(HTTPStatus.OK, content.encode() if isinstance(content, str) else content, kind, name)

    def _allowed(self) -> bool:
        """Whether token, origin and host are right; checking the host prevents DNS rebinding."""
        token = self.headers.get("X-Token") or self._query().get("token", [""])[0]
        origin = self.headers.get("Origin")
        hosts = (f"127.0.0.1:{self.server.server_port}", f"localhost:{self.server.server_port}")
        own = origin is None or origin in [f"http://{host}" for host in hosts]
        return own and self.headers.get("Host") in hosts and hmac.compare_digest(token, self.server.token)

    def _query(self) -> dict[str, list[str]]:
        return parse_qs(urlsplit(self.path).query)

    def _file(self) -> str:
        return str(self.server.studio._ready()["robot"]["file"])

    def _body(self) -> bytes:
        length = int(self.headers.get("Content-Length") or 0)
        if length > MAX_BYTES:
            raise InputError(f"the file has {length} bytes, expected at most {MAX_BYTES}")
        return self.rfile.read(length)

    def _send(self, status: HTTPStatus, content: bytes, kind: str, name: str | None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        if name is not None:
            self.send_header("Content-Disposition", f'attachment; filename="{name}"')
        if status is not HTTPStatus.OK:
            self.close_connection = True  # so that an unread request body is not parsed as the next request
        self.end_headers()
        self.wfile.write(content)


class Server(ThreadingHTTPServer):
    """The studio's server, reachable only from this machine; `url` is the address to open."""

    daemon_threads = True

    def __init__(self, arm: Arm, port: int = 0) -> None:
        self.token = secrets.token_urlsafe(24)
        super().__init__(("127.0.0.1", port), _Handler)
        self.studio = Studio(arm)

    @property
    def url(self) -> str:
        """The address to open, including the secret token."""
        return f"http://127.0.0.1:{self.server_port}/?token={self.token}"
