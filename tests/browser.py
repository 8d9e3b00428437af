"""A browser for the tests: Chromium driven through chromedriver by plain HTTP requests (the WebDriver protocol)."""

from __future__ import annotations

import base64
import importlib.util
import json
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
needs_browser = pytest.mark.skipif(
    CHROMIUM is None or DRIVER is None, reason="no Chromium with chromedriver on this machine"
)
FLAGS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *(
        "--disable-background-networking",
        "--disable-component-update",
        "--hide-scrollbars",
        "--enable-unsafe-swiftshader",
    ),
]


class Browser:
    """One window; `logs` tells what the console said, `requests` what left the page."""

    def __init__(self, profile: Path, flags: Sequence[str] = ()) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        assert DRIVER is not None
        self.process = subprocess.Popen(
            [DRIVER, f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self.url = f"http://127.0.0.1:{port}"
        self._wait()
        options = {
            "binary": CHROMIUM,
            "args": [*FLAGS, *flags, f"--user-data-dir={profile}"],
            "perfLoggingPrefs": {"enableNetwork": True, "enablePage": False},
        }
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}
        made = self._send("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self.url += f"/session/{made['sessionId']}"
        self._send("POST", "/timeouts", {"script": 60000, "pageLoad": 60000})

    def _wait(self) -> None:
        for _ in range(200):
            try:
                if self._send("GET", "/status")["ready"]:
                    return
            except OSError:
                time.sleep(0.05)
        raise RuntimeError("chromedriver does not answer")

    def _send(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=90) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(json.load(error)["value"]["message"]) from None

    def size(self, width: int, height: int, scale: float = 1.0) -> None:
        """The viewport in CSS pixels, a phone's too, which is narrower than a window may be."""
        self.devtools(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=scale,
            mobile=width < 600,
        )

    def theme(self, name: str) -> None:
        """What the system prefers: "light" or "dark"."""
        self.devtools("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def devtools(self, command: str, **parameters: Any) -> Any:
        return self._send("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def open(self, address: str) -> None:
        """Load a page and wait until its scripts say that they are ready."""
        self._send("POST", "/url", {"url": address})
        for _ in range(300):
            state = self.run("return document.body ? document.body.dataset.ready : null")
            if state is not None:
                assert state == "yes", state
                return
            time.sleep(0.05)
        raise AssertionError("the page did not become ready")

    def leave(self) -> None:
        """Go to an empty page: an address that differs only in its fragment would not load a page again."""
        self._send("POST", "/url", {"url": "about:blank"})

    def run(self, script: str, *arguments: Any) -> Any:
        """The value of a function body in the page."""
        return self._send("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def wait(self, script: str, *arguments: Any) -> Any:
        """The value that a function body gives to its last argument, a callback."""
        return self._send("POST", "/execute/async", {"script": script, "args": list(arguments)})

    def drag(self, x: float, y: float, dx: float, dy: float) -> None:
        """The mouse pressed at (x, y) of the viewport, moved in a few steps, and let go."""
        move = [
            {"type": "pointerMove", "duration": 20, "x": round(x + dx * k / 6), "y": round(y + dy * k / 6)}
            for k in range(7)
        ]
        actions = [move[0], {"type": "pointerDown", "button": 0}, *move[1:], {"type": "pointerUp", "button": 0}]
        mouse = {"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": actions}
        self._send("POST", "/actions", {"actions": [mouse]})

    def screenshot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self._send("GET", "/screenshot")))

    def violations(self) -> list[Any]:
        """What axe-core finds in the page: rule, and the first elements."""
        found = importlib.util.find_spec("axe_core_python")
        if found is None or found.origin is None:
            pytest.skip("axe-core-python is not installed")
        self.run((Path(found.origin).parent / "axe.min.js").read_text(encoding="utf-8"))
        return self.wait(
            """const done = arguments[0], short = (node) => node.html.slice(0, 120);
            axe.run(document).then((all) => done(all.violations.map((v) => [v.id, v.nodes.slice(0, 3).map(short)])));"""
        )

    def errors(self) -> list[str]:
        """What the console complained about."""
        entries = self._send("POST", "/se/log", {"type": "browser"})
        return [entry["message"] for entry in entries if entry["level"] == "SEVERE"]

    def requests(self) -> list[str]:
        """The addresses that were asked for, without the page's own data."""
        entries = self._send("POST", "/se/log", {"type": "performance"})
        messages = [json.loads(entry["message"])["message"] for entry in entries]
        asked = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
        return [url for url in asked if not url.startswith(("data:", "blob:"))]

    def close(self) -> None:
        try:
            self._send("DELETE", "")
        finally:
            self.process.terminate()
            self.process.wait(timeout=20)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """A browser for the tests of one file."""
    made = Browser(tmp_path_factory.mktemp("profile"))
    yield made
    made.close()
