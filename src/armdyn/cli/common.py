"""What the commands share: loading an arm, tables, JSON, progress, plain errors."""

from __future__ import annotations

import functools
import inspect
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from armdyn.files.text import visible

if TYPE_CHECKING:
    from armdyn.arm import Arm


@dataclass
class State:
    """The values of the global options, and of the options that select a part of a robot file."""

    debug: bool = False
    cut: dict[str, Any] = field(default_factory=dict)


STATE = State()

ArmName = Annotated[
    str, typer.Argument(metavar="ARM", help="A catalogue name (see `armdyn list`), a .toml, .urdf or MJCF .xml file.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the data as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
Output = Annotated[Path | None, typer.Option("-o", "--output", help="Where to write.")]


class PlainConsole(Console):
    """A terminal that prints every string literally: no markup, and control characters escaped.

    Names come from files that may be hostile; this is the one place where they reach the terminal. Colours are given
    with `styled`.
    """

    def render_str(self, text: str, **options: Any) -> Text:
        """A string as text, as the base class renders it but without markup."""
        return super().render_str(visible(text), **(options | {"markup": False, "emoji": False}))


def styled(*parts: str | tuple[str, str]) -> Text:
    """Text in several styles: plain strings, and (string, style) pairs."""
    return Text.assemble(*((visible(p), "") if isinstance(p, str) else (visible(p[0]), p[1]) for p in parts))


def console() -> Console:
    """The terminal; wide and plain where the output goes to a file or a pipe."""
    return PlainConsole() if sys.stdout.isatty() else PlainConsole(width=160, no_color=True, highlight=False)


def fail(message: str, code: int = 1) -> NoReturn:
    """Print an error in one or two plain lines on standard error, and exit."""
    out = PlainConsole(stderr=True, highlight=False, soft_wrap=True)
    out.print(styled(("error:", "bold red"), f" {message}"))
    raise SystemExit(code)


CUT = {
    "base": (str | None, "The fixed link or frame; default: the root."),
    "tip": (str | None, "Extract the chain from the base to this link or frame."),
    "lock": (list[str] | None, "Lock a joint, NAME=VALUE; `rest`: all beside the chain. Repeatable."),
    "floating": (bool | None, "A floating or a fixed base."),
    "allow_outside": (bool, "MJCF: allow files outside the model's folder."),
}


def with_cut(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that select a part of a robot file to a command; `load` reads them."""
    signature = inspect.signature(command, eval_str=True)
    options = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=False if kind is bool else None,
            annotation=Annotated[kind, typer.Option(help=text)],
        )
        for name, (kind, text) in CUT.items()
    ]

    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        STATE.cut = {name: kwargs.pop(name, None) for name in CUT}
        return command(*args, **kwargs)

    wrapped.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[*(p.replace(kind=p.KEYWORD_ONLY) for p in signature.parameters.values()), *options]
    )
    return wrapped


def load(name: str, **options: Any) -> Arm:
    """Load the arm that the command line selects; print the notes of the file's reader on standard error."""
    import armdyn

    cut = dict(STATE.cut)
    cut["lock"] = locks(cut.get("lock") or [])
    cut["allow_outside"] = bool(cut.get("allow_outside"))
    arm = armdyn.load(name, **cut, **options)
    out = PlainConsole(stderr=True, highlight=False, soft_wrap=True)
    for note in arm.notes:
        out.print(styled(("note:", "yellow"), f" {note}"))
    return arm


def locks(words: Sequence[str]) -> dict[str, float | str] | None:
    """The words NAME=VALUE, NAME (at rest) and `rest` (every joint beside the chain) as `armdyn.load` takes them."""
    from armdyn.errors import InputError
    from armdyn.files.cutting import EVERY, REST

    out: dict[str, float | str] = {}
    for word in words:
        name, _, value = word.rpartition("=") if "=" in word else (word, "", REST)
        try:
            out[EVERY if word == REST else name] = REST if value == REST else float(value)
        except ValueError:
            raise InputError(f"--lock {word!r}: expected NAME=VALUE with a number, or rest") from None
    return out or None


def print_json(data: Any) -> None:
    """Print data as JSON: UTF-8, numbers as numbers, NaN as null."""
    typer.echo(json.dumps(plain(data), indent=2, ensure_ascii=False, allow_nan=False))


def plain(x: Any) -> Any:
    """The same data as dicts, lists, strings, numbers and None only."""
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
    """A table; the first `left` columns are left-aligned text, the others right-aligned numbers."""
    from rich import box

    out = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", title_style="bold", pad_edge=False)
    for k, column in enumerate(columns):
        out.add_column(column, justify="left" if k < left else "right", overflow="fold")
    for row in rows:
        out.add_row(*(number(cell) for cell in row))
    return out


def number(cell: Any) -> str:
    """A cell as text: six significant digits; empty for None."""
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
    """A progress bar on standard error; call the yielded function with (done, total[, text])."""
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
