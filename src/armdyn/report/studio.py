"""`armdyn studio`: the report page with a Python server behind it, reachable only from this machine.

The page can open another robot from a dropped file or the catalogue, identify the arm from a dropped log, generate C,
and download the report. An identified arm that can be trusted becomes the arm at once: the page, the C code and the
downloaded page follow it, until the user goes back to the file's. One with doubts stays a proposal, and becomes the arm
only when the user says so.

The server listens on 127.0.0.1. Every request must carry the token of the opened page and come from the server's own
origin, so other sites in the same browser can neither send requests nor read answers.
"""

from __future__ import annotations

import hmac
import io
import json
import secrets
import tempfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np

import armdyn
from armdyn.arm import Arm
from armdyn.chain.joint import NO_FORCES
from armdyn.errors import ArmdynError, InputError, choose
from armdyn.files.text import file_name
from armdyn.identification import Estimate, Log, identify
from armdyn.pages.meshes import found_shapes
from armdyn.pages.writer import BASE, POLICY, as_json, document, escape
from armdyn.references import citation
from armdyn.report.collect import Progress, collect
from armdyn.report.page import page

MAX_BYTES = 256 * 2**20  # bytes of a dropped file
MAX_DIGITS = 12  # of a length: many more cannot be converted
PATIENCE = 30.0  # seconds that a connection may be silent
CONNECTIONS = 32  # at a time; the page opens a handful
ROBOTS = (".urdf", ".xacro", ".xml", ".mjcf", ".toml")
LOGS = (".csv", ".npz", ".parquet")
SERVED = POLICY + "; connect-src 'self'"
NOTHING = "default-src 'none'"  # the policy of answers that are not pages
UNFRAMED = "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
BAR = """
<section id="studio" class="studio" aria-label="studio">
  <label class="button">Open…<input type="file" id="file" accept="%(kinds)s" class="unseen"></label>
  <button type="button" id="emit" disabled>Generate C</button>
  <button type="button" id="report" disabled>Save page</button>
  <span id="identified"></span>
  <span id="job" role="status">Drop a robot (%(robots)s) or a log of this one (%(logs)s) on the page.</span>
  <progress id="progress" max="1" value="0" aria-label="progress" hidden></progress>
</section>
"""


@dataclass(frozen=True)
class Identified:
    """An arm identified from a log, its report, how well it predicts, and what speaks against it."""

    source: str
    arm: Arm
    report: str
    error: float
    held_out: float
    doubts: tuple[str, ...]

    @property
    def words(self) -> str:
        """How far the model's torques are from the measured ones."""
        return f"torque error {100 * self.error:.2f} %, on held-out segments {100 * self.held_out:.2f} %"


class Studio:
    """The current arm, its report, and at most one running job."""

    def __init__(self, arm: Arm | None, spec: str = "") -> None:
        self.arm = arm
        self.file = arm  # as opened, whatever was identified since
        self.spec = spec or (arm.name if arm is not None else "")  # for the Python that the page exports
        self._on_disk = spec  # where meshes are found; a dropped file has none
        self.data: dict[str, Any] | None = None
        self.identified: Identified | None = None
        self.job: dict[str, Any] = {"state": "idle", "text": "", "part": 0.0}
        self._busy = threading.Lock()
        if arm is not None:
            self.start(lambda progress: self._take(arm, progress))

    def _opened(self) -> Arm:
        if self.arm is None:
            raise InputError("no robot is open; open a file or choose one of the catalogue")
        return self.arm

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
        """Show this arm; the page's data are complete before anything changes."""
        shapes, _ = found_shapes(self._on_disk, arm) if self._on_disk else ([], [])
        data = collect(arm, progress, shapes, self.spec)
        self.arm, self.data = arm, data

    def load(self, name: str, content: bytes) -> None:
        """Open a robot from the content of a file, and compute its report."""
        choose("file", Path(name).suffix.lower(), ROBOTS)

        def work(progress: Progress) -> None:
            progress(0, 1, f"reading {name}")
            with kept_name(name, content) as path:
                arm = armdyn.load(path)
            self._open(arm, Path(name).name, progress)

        self.start(work)

    def choose(self, name: str) -> None:
        """Open a robot of the catalogue."""
        arm = armdyn.load(choose("robot of the catalogue", name, armdyn.catalogue()))
        self.start(lambda progress: self._open(arm, name, progress))

    def _open(self, arm: Arm, spec: str, progress: Progress) -> None:
        before = self.spec, self._on_disk
        self.spec, self._on_disk = spec, ""
        try:
            self._take(arm, progress)
        except BaseException:
            self.spec, self._on_disk = before
            raise
        self.file, self.identified = arm, None

    def identify(self, name: str, content: bytes) -> None:
        """Identify the arm's parameters from the content of a log; what can be trusted becomes the arm."""
        choose("log", Path(name).suffix.lower(), LOGS)
        self._opened()
        arm = self.file
        assert arm is not None

        def work(progress: Progress) -> None:
            with kept_name(name, content) as path:
                progress(0, 4, f"reading {name}")
                log = Log.read(path, joints=[joint.name for joint in arm.joints])
                progress(1, 4, "fitting the model")
                estimate = identify(arm, log)
                progress(2, 4, "writing the identification report")
                estimate.report(path.with_name("report.html"))
                text = path.with_name("report.html").read_text(encoding="utf-8")
            held_out = float(np.sqrt(np.mean(estimate.folds**2)))
            result = Identified(Path(name).name, estimate.arm, text, float(estimate.error), held_out, _doubts(estimate))
            if result.doubts:
                self.identified = result
                progress(4, 4, f"identified from {result.source} with doubts: {result.words}; {arm.name} stays the arm")
                return
            self._take(result.arm, progress)
            self.identified = result
            progress(4, 4, f"identified from {result.source}: {result.words}")

        self.start(work)

    def adopt(self) -> None:
        """Make a proposal with doubts the arm, because the user said so."""
        estimate = self.identified
        if estimate is None:
            raise InputError("nothing was identified; drop a log on the page first")
        self.start(lambda progress: self._take(estimate.arm, progress))

    def back(self) -> None:
        """Back to the arm as in the file."""
        arm = self._opened() if self.file is None else self.file
        if self.arm is arm:  # what was identified was only a proposal
            self.identified, self.job = None, {"state": "done", "text": f"{self.spec} as in the file", "part": 1.0}
            return

        def work(progress: Progress) -> None:
            self._take(arm, progress)
            self.identified = None
            progress(1, 1, f"back to {self.spec}")

        self.start(work)

    def state(self) -> dict[str, Any]:
        """The job, and what was identified: its source, figures and doubts, and whether it is the arm."""
        estimate = self.identified
        told = None
        if estimate is not None:
            told = {
                "source": estimate.source,
                "words": estimate.words,
                "doubts": estimate.doubts,
                "adopted": self.arm is estimate.arm,
            }
        return {**self.job, "ready": self.data is not None, "identified": told}

    def emit(self) -> bytes:
        """The arm's C files in a zip archive; with the joints' friction if any was identified or given."""
        out, arm = io.BytesIO(), self._opened()
        friction = arm.chain.coupled or any(
            joint.viscous != 0 or joint.breakaway > 0 or joint.forces != NO_FORCES for joint in arm.joints
        )
        with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in arm.emit_c(folder, friction=friction):
                archive.writestr(zipfile.ZipInfo(path.name), path.read_bytes(), zipfile.ZIP_DEFLATED)
        return out.getvalue()

    def report(self) -> str:
        """The report without the studio's toolbar."""
        return page(self._ready(), citation())

    def page(self, token: str) -> str:
        """The report with the studio's toolbar, or only the toolbar until the report is computed."""
        texts = {"kinds": ",".join((*ROBOTS, *LOGS)), "robots": ", ".join(ROBOTS), "logs": ", ".join(LOGS)}
        bar = f"{BAR % texts}<script type='application/json' id='token'>{as_json(token)}</script>"
        if self.data is None:
            title = "armdyn studio" if self.arm is None else self.arm.name
            body = (
                f"<header class='top'><h1>{escape(title)}</h1></header>{bar}<main>{self._catalogue()}</main>"
                "<script>document.body.dataset.tab = 'open'</script>"
            )
            return document(title, body, scripts=(*BASE, "studio.js"), policy=SERVED)
        return page(self.data, citation(), bar, ("studio.js",), SERVED)

    def _catalogue(self) -> str:
        if self.arm is not None:
            return ""
        names = "".join(
            f'<button type="button" data-robot="{escape(name)}">{escape(name)}</button>' for name in armdyn.catalogue()
        )
        text = "<h2>Open a robot</h2><p>Drop a file anywhere, or choose:</p>"
        return f'<section>{text}<div class="row">{names}</div></section>'

    def _ready(self) -> dict[str, Any]:
        if self.data is None:
            raise InputError("the report is still being computed")
        return self.data


def _doubts(estimate: Estimate) -> tuple[str, ...]:
    """What speaks against using an estimate as the arm."""
    return estimate.doubts


@contextmanager
def kept_name(name: str, content: bytes) -> Iterator[Path]:
    """A temporary file of this name, so that messages speak of the user's file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / file_name(Path(name).stem, Path(name).suffix.lower())
        path.write_bytes(content)
        yield path


class _Handler(BaseHTTPRequestHandler):
    """Handles the page's requests; refuses those without the token or from another origin."""

    server: Server
    protocol_version = "HTTP/1.1"
    timeout = PATIENCE
    disable_nagle_algorithm = True  # an answer is written in two parts; the second would wait 40 ms for the first

    def log_message(self, format: str, *arguments: Any) -> None:
        """Do not log requests to the terminal."""

    def parse_request(self) -> bool:
        """Refuse an address that is none before anything looks at it."""
        if not super().parse_request():
            return False
        try:
            urlsplit(self.path)
        except ValueError as error:
            self.send_error(HTTPStatus.BAD_REQUEST, str(error))
            return False
        return True

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer what `http.server` refuses with the headers of every other answer."""
        status = HTTPStatus(code)
        self._send(status, (message or status.phrase).encode(), "text/plain; charset=utf-8", None)

    def do_GET(self) -> None:
        """Serve the page, the state of the job, and downloads."""
        studio = self.server.studio
        routes: dict[str, Callable[[], tuple[bytes | str, str, str | None]]] = {
            "/": lambda: (studio.page(self.server.token), "text/html; charset=utf-8", None),
            "/job": lambda: (
                json.dumps(studio.state()),
                "application/json",
                None,
            ),
            "/report": lambda: (studio.report(), "text/html; charset=utf-8", f"{self._file()}.html"),
            "/identified": lambda: (
                studio.identified.report if studio.identified else "",
                "text/html; charset=utf-8",
                None,
            ),
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

        def done(work: Callable[[], None]) -> Callable[[], tuple[bytes | str, str, str | None]]:
            return lambda: (work(), ("{}", "application/json", None))[1]  # type: ignore[func-returns-value]

        self._answer(
            {
                "/load": taken(studio.load),
                "/identify": taken(studio.identify),
                "/catalogue": done(lambda: studio.choose(name)),
                "/adopt": done(studio.adopt),
                "/back": done(studio.back),
            }
        )

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
        return (
            own
            and self.headers.get("Host") in hosts
            and hmac.compare_digest(token.encode("utf-8", "replace"), self.server.token.encode())
        )

    def _query(self) -> dict[str, list[str]]:
        return parse_qs(urlsplit(self.path).query)

    def _file(self) -> str:
        return str(self.server.studio._ready()["robot"]["file"])

    def _body(self) -> bytes:
        text = ", ".join(self.headers.get_all("Content-Length") or ["none"])
        if not (text.isascii() and text.isdigit()) or len(text) > MAX_DIGITS or "Transfer-Encoding" in self.headers:
            raise InputError(f"expected one Content-Length, a number of bytes up to {MAX_BYTES}; got {text[:40]!r}")
        if (length := int(text)) > MAX_BYTES:
            raise InputError(f"the file has {length} bytes, expected at most {MAX_BYTES}")
        content = self.rfile.read(length)
        if len(content) != length:
            raise InputError(f"the file has {length} bytes, but only {len(content)} were sent")
        return content

    def _send(self, status: HTTPStatus, content: bytes, kind: str, name: str | None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-store")
        policy = SERVED if kind.startswith("text/html") else NOTHING
        self.send_header("Content-Security-Policy", f"{policy}; {UNFRAMED}")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        if name is not None:
            self.send_header("Content-Disposition", f'attachment; filename="{name}"')
        if status is not HTTPStatus.OK:
            self.close_connection = True  # so that an unread request body is not parsed as the next request
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


class Server(ThreadingHTTPServer):
    """The studio's server, reachable only from this machine; `url` is the address to open."""

    daemon_threads = True

    def __init__(self, arm: Arm | None = None, port: int = 0, spec: str = "") -> None:
        self.free = threading.BoundedSemaphore(CONNECTIONS)
        self.token = secrets.token_urlsafe(24)
        super().__init__(("127.0.0.1", port), _Handler)
        self.studio = Studio(arm, spec)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start a thread for a connection, or refuse it if there are too many."""
        if not self.free.acquire(blocking=False):
            with suppress(OSError):
                request.sendall(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self.free.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a connection until it is closed."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.free.release()

    @property
    def url(self) -> str:
        """The address to open, including the secret token."""
        return f"http://127.0.0.1:{self.server_port}/?token={self.token}"
