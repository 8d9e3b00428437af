"""The report's summary for the terminal."""

from __future__ import annotations

from typing import Any

from rich import box
from rich.console import Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from armdyn.files.text import visible
from armdyn.report.page import QUANTITY, operations


def summary(data: dict[str, Any]) -> Group:
    """A short summary of the data of `collect`."""
    card = data["card"]
    head = Text()
    head.append(visible(card["name"]), style="bold cyan")
    head.append(f"   {card['n']} joints ({card['kinds']}), {card['mass_kg']:.2f} kg, ")
    head.append(f"{len(data['parameters']['names'])} minimal parameters of {10 * len(card['links'])}\n")
    if card["source"]:
        head.append(visible(card["source"]) + "\n", style="dim")
    for finding in card["checks"]:
        head.append(f"warning: {visible(str(finding))}\n", style="yellow")
    head.append(data["fall"]["text"], style="dim")
    return Group(Panel(head, box=box.ROUNDED, expand=False), _formulations(data), _speed(data))


def _formulations(data: dict[str, Any]) -> Table:
    errors = {(row["quantity"], row["method"]): row["error"] for row in data["accuracy"]}
    out = Table(
        title="Formulations (M multiplications, A additions, D divisions)", box=box.SIMPLE_HEAD, title_justify="left"
    )
    out.add_column("quantity")
    out.add_column("formulation")
    out.add_column("executed", justify="right")
    out.add_column("compiled", justify="right")
    out.add_column("relative error", justify="right")
    last = ""
    for row in data["costs"]:
        error = errors.get((row["quantity"], row["method"]))
        out.add_row(
            QUANTITY[row["quantity"]] if row["quantity"] != last else "",
            row["method"] + (" ◀" if row["best"] else ""),
            operations(row["published"]),
            operations(row["compiled"]),
            f"{error:.0e}" if error is not None else "",
            style="bold green" if row["best"] else "",
        )
        last = row["quantity"]
    return out


def _speed(data: dict[str, Any]) -> Table:
    out = Table(title="Speed, measured now (best of several, one thread)", box=box.SIMPLE_HEAD, title_justify="left")
    out.add_column("quantity")
    for name in ("batch [ns per configuration]", "copying the result [ns]", "one call [ns]", "first call [ms]"):
        out.add_column(Text(name), justify="right")
    for row in data["speed"]:
        out.add_row(
            QUANTITY[row["quantity"]],
            f"{row['batch_ns']:.1f}",
            f"{row['copy_ns']:.1f}",
            f"{row['single_ns']:.0f}",
            f"{row['first_call_ms']:.0f}",
        )
    return out
