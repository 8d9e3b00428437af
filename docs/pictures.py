"""Makes the screenshots of README and documentation from the current page: python docs/pictures.py (needs Chromium)."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

import armdyn  # noqa: E402
from armdyn.references import citation  # noqa: E402
from armdyn.report import collect, page  # noqa: E402
from browser import Browser  # noqa: E402

POSTURE = "#q=0.5,-0.6,2.4,0.3,0.6,0&payload=2,0,0,0.08&mode=hold"


def main() -> None:
    """docs/images/report.png: a Puma 560 that holds 2 kg, after half a second."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "puma560.html"
        path.write_text(page(collect(armdyn.load("puma560")), citation()), encoding="utf-8")
        browser = Browser(Path(folder) / "profile")
        try:
            browser.theme("light")
            browser.size(1280, 800)
            browser.open(path.as_uri() + POSTURE)
            browser.wait(
                "armdyn.run('hold'); setTimeout(() => { armdyn.play(false); setTimeout(arguments[0], 300); }, 2500)"
            )
            browser.screenshot(ROOT / "docs" / "images" / "report.png")
        finally:
            browser.close()


if __name__ == "__main__":
    main()
