"""`armdyn tables`: the papers' tables of operation counts, executed."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from armdyn.cli.common import AsJson, console, print_json, table

EXAMPLE = "Example: armdyn tables --joints 6"

Joints = Annotated[int, typer.Option("--joints", "-n", min=4, max=12, help="The number of joints to show.")]
KEYS = "VI, VII, VIII, 'LF 4', 'Lin I', 'Lin II', 'Lin H+b', 'Lin DH', 'GAH 1', 'GAH steps', 'Saha 7'"
Only = Annotated[str | None, typer.Option("--table", help=f"One table only: {KEYS}.")]
Fast = Annotated[bool, typer.Option("--no-compiled", help="Skip the compiled column, which takes some seconds.")]


def command(joints: Joints = 6, only: Only = None, no_compiled: Fast = False, as_json: AsJson = False) -> None:
    """Print the papers' tables: operations as printed, counted by execution, and compiled; differences are marked."""
    from armdyn.errors import choose
    from armdyn.studies.conclusions import verdicts
    from armdyn.studies.tables import TABLES, data

    wanted = [choose("table", only, TABLES)] if only else list(TABLES)
    found = data((joints,), not no_compiled, tuple(wanted))
    claims = [] if only else [_claim(verdict) for verdict in verdicts()]
    if as_json:
        print_json({"tables": found, "conclusions": claims})
        return
    out = console()
    for item in found:
        title = f"{item['source']}: {item['title']}"
        columns = ["row", "type", "printed", "counted", "", f"n = {joints}: printed", "counted", "compiled"]
        shown = len(columns) - no_compiled
        rows = [row[:shown] for row in _rows(item)]
        out.print(table(title, columns[:shown], rows, left=5, keys=2, prose=[2, 3], groups=[5]))
        if not no_compiled:
            out.print(f"  compiled: {item['compiled_column']}", style="dim")
        for row in item["rows"]:
            if row["note"]:
                out.print(f"  {row['label']}, type {row['type']}: {row['note']}", style="dim", markup=False)
    if claims:
        rows = [[c["source"], c["claim"], _verdict(c["as_printed"]), _verdict(c["as_counted"])] for c in claims]
        columns = ["paper", "claim", "as printed", "as counted"]
        out.print(table("The papers' conclusions", columns, rows, left=4, prose=range(4)))


def _rows(item: dict[str, Any]) -> list[list[Any]]:
    numbers = {(entry["label"], entry["type"]): entry for entry in item["entries"]}
    rows = []
    for row in item["rows"]:
        entry = numbers.get((row["label"], row["type"]), {})
        same = row["difference"] is None or row["difference"] == ["0", "0"]
        counted = _pair(row["counted"], ", ") or "not executed"
        marks = "" if same else "≠"
        cells = [_pair(entry.get(key), " ") for key in ("printed", "counted", "compiled")]
        rows.append([row["label"], row["type"], _pair(row["printed"], ", "), counted, marks, *cells])
    return rows


def _pair(pair: Any, between: str) -> str:
    if not pair:
        return ""
    mul, add = (f"{x:g}" if isinstance(x, int | float) else f"({x})" for x in pair)
    return f"{mul}M{between}{add}A"


def _claim(verdict: Any) -> dict[str, Any]:
    return {
        "source": verdict.claim.source,
        "claim": verdict.claim.text,
        "as_printed": list(verdict.printed),
        "as_counted": list(verdict.counted),
    }


def _verdict(failures: list[str]) -> str:
    return "holds" if not failures else f"fails: {failures[0]}" + (" …" if len(failures) > 1 else "")
