"""Writer for all HTML pages: self-contained, offline, with light and dark themes, for phones and for print.

A page is a title, sections of markup, data for its scripts, and the names of the scripts. Everything is inlined into
one file, the scripts compressed; its content security policy forbids all network requests. Text from files goes through
`escape` and data through `as_json`, so that no name can become markup or script.
"""

from __future__ import annotations

import base64
import html
import json
import math
import re
import zlib
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

# Scripts in order of their dependencies.
BASE = ("base.js",)
ARM = (*BASE, "paint.js", "robot.js", "viewer.js", "dynamics.js", "live.js", "charts.js", "panels.js", "joints.js")
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'wasm-unsafe-eval'; style-src 'unsafe-inline'; img-src data: blob:"
)

escape = html.escape


@cache
def asset(name: str) -> str:
    """The text of a script or style sheet of the pages, without what only its readers need.

    Scripts lose indentation and lines that are comments, style sheets comments and spaces around punctuation.
    """
    lines = files("armdyn.pages").joinpath("assets", name).read_text(encoding="utf-8").splitlines()
    kept = (line.strip() for line in lines)
    text = "".join(f"{line}\n" for line in kept if line and not line.startswith("//"))
    if name.endswith(".css"):
        text = re.sub(r"\s*([{};,])\s*", r"\1", re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)).replace(": ", ":")
    return text


def document(
    title: str, body: str, data: Any = None, scripts: Sequence[str] = (), policy: str = POLICY, head: str = ""
) -> str:
    """The whole page; the scripts read `data` from the element with the id `data`."""
    inlined = _started("".join(map(asset, scripts))) if scripts else ""
    payload = f'<script type="application/json" id="data">{as_json(data)}</script>' if data is not None else ""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">'
        f"<title>{escape(title)}</title>"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        '<link rel="icon" href="data:,">'
        f"{head}<style>{asset('page.css')}</style></head><body>{body}\n{payload}\n{inlined}</body></html>\n"
    )


# Scripts are most of a page: they are unpacked when it is opened, which takes milliseconds.
STARTER = """<script>"use strict";
(async () => {
  const packed = Uint8Array.from(atob("%s"), (c) => c.charCodeAt(0)), script = document.createElement("script");
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  script.textContent = await new Response(stream).text();
  document.body.append(script); document.dispatchEvent(new Event("started"));
})().catch((error) => {
  document.body.dataset.ready = "failed";
  document.body.prepend(`This page could not start; it needs a browser of 2023 or later: ${error.message}`);
});
</script>"""


def _started(scripts: str) -> str:
    """The markup that unpacks the scripts and runs them as one."""
    return STARTER % packed(scripts.encode())


def as_json(data: Any) -> str:
    """Compact JSON that is safe inside a script element; numbers that are not finite become null."""
    text = json.dumps(_plain(data), separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def packed(content: bytes) -> str:
    """Compressed (raw deflate) and in base64; `Page.unpacked` reads it."""
    squeezer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return base64.b64encode(squeezer.compress(content) + squeezer.flush()).decode()


def _plain(x: Any) -> Any:
    if isinstance(x, dict):
        return {str(key): _plain(value) for key, value in x.items()}
    if isinstance(x, list | tuple):
        return [_plain(value) for value in x]
    if hasattr(x, "tolist"):
        return _plain(x.tolist())
    if isinstance(x, float):
        return x if math.isfinite(x) else None
    return x


def section(key: str, title: str, content: str, kind: str = "") -> str:
    """A section with its heading."""
    shape = f' class="{kind}"' if kind else ""
    return f'<section id="{key}"{shape}><h2>{escape(title)}</h2>{content}</section>'


def navigation(sections: Iterable[tuple[str, str]]) -> str:
    """Links to the sections: key and title of each."""
    links = "".join(f'<a href="#{key}">{escape(title)}</a>' for key, title in sections)
    return f'<nav aria-label="sections">{links}</nav>'


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Boxes, each with a large number and a small text."""
    boxes = (f'<div class="fact"><b>{escape(a)}</b><span>{escape(b)}</span></div>' for a, b in pairs)
    return f'<div class="facts">{"".join(boxes)}</div>'


def table(caption: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], marks: Iterable[bool] = ()) -> str:
    """A table; cells are text or numbers, `marks` flags the rows to highlight."""
    head = "".join(f"<th>{escape(c)}</th>" for c in columns)
    flags = list(marks)
    body = []
    for k, row in enumerate(rows):
        cells = "".join(f"<td>{_cell(cell)}</td>" for cell in row)
        body.append(f'<tr class="best">{cells}</tr>' if k < len(flags) and flags[k] else f"<tr>{cells}</tr>")
    kind = ' class="two"' if len(columns) > 1 and columns[1] in ("kind", "formulation") else ""
    label = f"<caption>{escape(caption)}</caption>" if caption else ""
    return (
        f'<div class="scroll" tabindex="0" role="group" aria-label="{escape(caption[:80] or columns[0])}">'
        f"<table{kind}>{label}<thead><tr>{head}</tr></thead>"
        f"<tbody>{''.join(body)}</tbody></table></div>"
    )


def _cell(x: Any) -> str:
    if x is None:
        return ""
    return f"{x:.6g}" if isinstance(x, float) else escape(str(x))
