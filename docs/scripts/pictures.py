"""Makes the screenshots of README and documentation of the page: python docs/scripts/pictures.py (needs Chromium)."""

from __future__ import annotations

import struct
import sys
import tempfile
import zlib
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

import armdyn  # noqa: E402
from armdyn.references import citation  # noqa: E402
from armdyn.report.collect import collect  # noqa: E402
from armdyn.report.page import page  # noqa: E402
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
            browser.size(1190, 760)
            browser.open(path.as_uri() + POSTURE)
            browser.wait(
                "armdyn.run('hold'); setTimeout(() => { armdyn.play(false); setTimeout(arguments[0], 300); }, 2500)"
            )
            browser.screenshot(ROOT / "docs" / "images" / "report.png")
            squeeze(ROOT / "docs" / "images" / "report.png")
        finally:
            browser.close()


def squeeze(path: Path) -> None:
    """Compress a PNG's image data again; the browser's are compressed quickly rather than well."""
    content, at, pixels, others = path.read_bytes(), 8, b"", []
    while at < len(content):
        (size,) = struct.unpack(">I", content[at : at + 4])
        kind, data = content[at + 4 : at + 8], content[at + 8 : at + 8 + size]
        at += 12 + size
        if kind == b"IDAT":
            pixels += data
        else:
            others.append((kind, data))
    chunks = [*others[:-1], (b"IDAT", zlib.compress(zlib.decompress(pixels), 9)), others[-1]]
    whole = (struct.pack(">I", len(d)) + k + d + struct.pack(">I", zlib.crc32(k + d)) for k, d in chunks)
    path.write_bytes(content[:8] + b"".join(whole))


if __name__ == "__main__":
    main()
