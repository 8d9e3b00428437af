"""What the commands share: loading an arm, tables, JSON, progress, plain errors."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from armdyn.arm import Arm


@dataclass
class State:
    """What the global options set."""

    debug: bool = False


STATE = State()

ArmName = Annotated[
    str, typer.Argument(metavar="ARM", help="A catalogue name (see `armdyn list`), a .toml, .urdf or MJCF .xml file.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the data as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
Output = Annotated[Path | None, typer.Option("-o", "--output", help="Where to write.")]


def console() -> Console:
    """The terminal; wide and plain where the output goes to a file or a pipe."""
    return Console() if sys.stdout.isatty() else Console(width=160, no_color=True, highlight=False)


def fail(message: str, code: int = 1) -> NoReturn:
    """One or two plain lines on standard error, then out."""
    Console(stderr=True, highlight=False, soft_wrap=True).print(f"[bold red]error:[/] {_escape(message)}")
    raise SystemExit(code)


def _escape(text: str) -> str:
    return text.replace("[", r"\[")


def load(name: str, **options: Any) -> Arm:
    """The arm a user named."""
    import armdyn

    return armdyn.load(name, **options)


def print_json(data: Any) -> None:
    """Data for other programs: UTF-8, numbers as numbers, NaN as null."""
    typer.echo(json.dumps(plain(data), indent=2, ensure_ascii=False, allow_nan=False))


def plain(x: Any) -> Any:
    """The same data with nothing but dicts, lists, strings, numbers and null."""
    from fractions import Fraction

    if isinstance(x, dict):
        return {str(k): plain(v) for k, v in x.items()}
    if hasattr(x, "tolist"):
        return plain(x.tolist())
    if isinstance(x, list | tuple):
        return [plain(v) for v in x]
    if isinstance(x, Fraction):
        return plain(float(x))
    if isinstance(x, float):
        return x if x == x and abs(x) != float("inf") else None
    return x if x is None or isinstance(x, bool | int | str) else str(x)


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], left: int = 1) -> Table:
    """A table; the first `left` columns are text, the rest numbers on the right."""
    from rich import box

    out = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", title_style="bold", pad_edge=False)
    for k, column in enumerate(columns):
        out.add_column(_escape(column), justify="left" if k < left else "right", overflow="fold")
    for row in rows:
        out.add_row(*(number(cell) for cell in row))
    return out


def number(cell: Any) -> str:
    """A cell as text: six significant digits, nothing for None."""
    if cell is None:
        return ""
    if isinstance(cell, float):
        return f"{cell:.6g}"
    return str(cell)


def vector(text: str, name: str) -> list[float]:
    """Numbers separated by commas or spaces; `0.1,0.2` or `pi/2,0`."""
    import math

    from armdyn.errors import InputError

    values = []
    for word in text.replace(",", " ").split():
        body, _, divisor = word.partition("/")
        sign = -1.0 if body.startswith("-") else 1.0
        body = body.lstrip("+-")
        try:
            head = math.pi if body == "pi" else float(body)
            values.append(sign * head / (float(divisor) if divisor else 1.0))
        except (ValueError, ZeroDivisionError):
            raise InputError(f"{name}: {word!r} is not a number (expected e.g. 0.1,-1.2,pi/2)") from None
    return values


@contextmanager
def progress(what: str, quiet: bool = False) -> Iterator[Any]:
    """A bar on standard error for anything over a second; call the yielded function with (done, total[, text])."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=quiet or not sys.stderr.isatty(),
    )
    with bar:
        task = bar.add_task(what, total=None)

        def update(done: float, total: float, text: str | None = None) -> None:
            bar.update(task, completed=done, total=total, description=text or what)

        yield update
