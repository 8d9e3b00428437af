"""What the commands share: loading an arm, tables, JSON, progress, plain errors."""

from __future__ import annotations

import functools
import inspect
import json
import os
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from armdyn.html import number, visible

if TYPE_CHECKING:
    from armdyn.arm import Arm


@dataclass
class State:
    """The values of the global options, and of the options that select a part of a robot file."""

    debug: bool = False
    cut: dict[str, Any] = field(default_factory=dict)


STATE = State()


class Robot:
    """Marks an argument that names a robot: its command takes the options that select a part of a robot's file."""


ROBOT = Robot()
ArmName = Annotated[
    str,
    typer.Argument(
        metavar="ARM", help="A catalogue name (see `armdyn list`), a .toml, .urdf, .xacro or MJCF .xml file."
    ),
    ROBOT,
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the data as JSON.")]
Degrees = Annotated[
    bool, typer.Option("--degrees", help="Angles in --q, --qd and --qdd are in degrees; results stay in SI units.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
Page = Annotated[Path | None, typer.Option("--report", help="Write a page with charts (.html).")]
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
    """The terminal; plain where the output goes to a file or a pipe, and as wide as COLUMNS says or 160 characters."""
    if sys.stdout.isatty():
        return PlainConsole()
    columns = os.environ.get("COLUMNS", "")
    return PlainConsole(width=int(columns) if columns.isdigit() else 160, no_color=True, highlight=False)


def fail(message: str, code: int = 1) -> NoReturn:
    """Print an error in one or two plain lines on standard error, and exit."""
    _print_aside("error:", "bold red", message)
    raise SystemExit(code)


def note(text: str) -> None:
    """Print a note on standard error."""
    _print_aside("note:", "yellow", text)


def _print_aside(label: str, style: str, text: str) -> None:
    """Print on standard error: in a terminal wrapped between words and indented below the label, else on one line.

    A word that is longer than a line, such as a path, stays whole, so that it can be copied.
    """
    terminal, indent = PlainConsole(stderr=True, highlight=False), " " * (len(label) + 1)
    words = visible(text)
    if sys.stderr.isatty():
        shape = textwrap.TextWrapper(terminal.width, initial_indent=indent, subsequent_indent=indent)
        shape.break_long_words = shape.break_on_hyphens = False
        words = "\n".join(map(shape.fill, words.splitlines())).lstrip()
    terminal.print(styled((label, style), f" {words}"), soft_wrap=True)


CUT = {
    "base": (str | None, "The fixed link or frame; default: the root."),
    "tip": (str | None, "Extract the chain from the base to this link or frame."),
    "tool": (str | None, "The frame that is the tool; default: see `armdyn show`."),
    "lock": (list[str] | None, "Lock a joint, NAME=VALUE; `rest`: all beside the chain. Repeatable."),
    "floating": (bool | None, "A floating or a fixed base."),
    "allow_outside": (bool, "MJCF: allow files outside the model's folder."),
    "xacro": (list[str] | None, "An argument of a .xacro file, NAME=VALUE. Repeatable."),
    "strict": (bool | None, "Impossible or missing inertias are errors; --no-strict: not even masses below zero."),
    "package_dirs": (list[str] | None, "A folder of ROS packages for xacro and meshes. Repeatable."),
}


def with_robot_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """A command with the options that select a part of a robot's file, if it has an argument that names one.

    `load` reads the options, which are in force while the command runs.
    """
    signature = inspect.signature(command, eval_str=True)
    if not any(ROBOT in getattr(p.annotation, "__metadata__", ()) for p in signature.parameters.values()):
        return command
    options = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=False if kind is bool else None,
            annotation=Annotated[kind, typer.Option(help=text)],
        )
        for name, (kind, text) in CUT.items()
        if name not in signature.parameters
    ]

    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        chosen = {name: kwargs.pop(name, None) for name in CUT if name not in signature.parameters}
        before, STATE.cut = STATE.cut, chosen
        try:
            return command(*args, **kwargs)
        finally:
            STATE.cut = before

    wrapped.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[*(p.replace(kind=p.KEYWORD_ONLY) for p in signature.parameters.values()), *options]
    )
    return wrapped


def load(name: str, *, at_tool: bool = False, **options: Any) -> Arm:
    """Load the arm that the command line selects; print the notes of the file's reader on standard error.

    Which frame was taken as the tool is said by commands whose results refer to it, `at_tool`.
    """
    import armdyn
    from armdyn.files.description import OTHER_TOOL

    cut = dict(STATE.cut)
    cut["lock"] = locks(cut.get("lock") or [])
    cut["allow_outside"] = bool(cut.get("allow_outside"))
    cut["xacro"] = xacro_arguments(cut.get("xacro") or [])
    cut["package_dirs"] = cut.get("package_dirs") or ()
    arm = armdyn.load(name, **(cut | options))
    for text in arm.notes:
        explained = name in armdyn.catalogue() and "no body can have" in text  # in the catalogue's own files
        if not explained and (at_tool or OTHER_TOOL not in text):
            note(text)
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


def xacro_arguments(words: Sequence[str]) -> dict[str, str] | None:
    """The words NAME=VALUE (or NAME:=VALUE, as ROS has it) as `armdyn.load` takes them."""
    from armdyn.errors import InputError

    for word in words:
        if "=" not in word:
            raise InputError(f"--xacro {word!r}: expected NAME=VALUE")
    pairs = (word.split("=", 1) for word in words)
    return {name.removesuffix(":"): value for name, value in pairs} or None


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


GAP, EDGES = 3, 2  # the characters between two columns of a table, and at its two edges
PROSE = 24  # a column of text may be wrapped between words, down to this width


class Fitted:
    """A table laid out for the terminal's width, in which no word is ever cut.

    It is printed whole where it fits; otherwise its columns of prose, or else cells that are wider than the line, are
    wrapped between words; otherwise it is transposed; otherwise its columns are printed in blocks below one another,
    each beginning with the first `keys`.
    """

    def __init__(
        self,
        title: str,
        columns: Sequence[str],
        left: int = 1,
        keys: int = 1,
        prose: Sequence[int] = (),
        groups: Sequence[int] = (),
    ) -> None:
        self.title, self.columns, self.left, self.keys = title, list(columns), left, keys
        self.prose, self.groups = set(prose), set(groups)
        self.rows: list[list[str]] = []
        self.styles: list[str] = []

    def add_row(self, *cells: Any, style: str = "") -> None:
        """One row more, printed in `style`."""
        self.rows.append([visible(number(cell)) for cell in cells])
        self.styles.append(style)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The tables that this one becomes at the width of `options`."""
        width, every = options.max_width, range(len(self.columns))
        if self.title:
            yield styled((self.title, "bold"))
        if not self.prose:  # what is wider than the line beside the keys is wrapped between words
            beside = [*map(self._narrowest, range(self.keys))]
            self.prose = {k for k in every if k >= self.keys and _total([*beside, self._narrowest(k)]) > width}
        turned = self._transposed()
        if _total(map(self._narrowest, every)) <= width:
            yield self._table(every, width)
        elif turned and _total(map(turned._narrowest, range(len(turned.columns)))) <= width:
            yield turned._table(range(len(turned.columns)), width)
        else:
            for block in self._blocks(width):
                yield self._table(block, width)

    def _table(self, columns: Sequence[int], width: int) -> Table:
        from rich import box

        out = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for k, wide in zip(columns, self._widths(columns, width), strict=True):
            side: Any = "left" if k < self.left or k in self.prose else "right"
            head = visible(self.columns[k])
            if cell_len(head) > wide:
                head = head.replace(" [", "\n[")  # a unit stays on one line
            out.add_column(Text(head), justify=side, overflow="fold", width=wide)
        for row, style in zip(self.rows, self.styles, strict=True):
            out.add_row(*(Text(row[k]) for k in columns), style=style)
        return out

    def _widths(self, columns: Sequence[int], width: int) -> list[int]:
        """The width of each column: as narrow as possible, and the rest of the line to those that need more."""
        widths = [self._narrowest(k) for k in columns]
        wanted = [max(map(cell_len, (self.columns[k], *self._cells(k)))) for k in columns]
        rest = width - _total(widths)
        while rest > 0 and widths != wanted:
            for place, most in enumerate(wanted):
                if widths[place] < most and rest > 0:
                    widths[place] += 1
                    rest -= 1
        return widths

    def _narrowest(self, k: int) -> int:
        """The width of a column below which a word of its header, or a cell that is not prose, would be cut."""
        words = re.findall(r"\[.*?\]|\S+", self.columns[k])  # a unit in brackets counts as a word
        words += [word for text in self._cells(k) for word in text.split()]
        longest = max(map(cell_len, words), default=0)
        if k not in self.prose:
            return max([longest, *map(cell_len, self._cells(k))])
        return max(longest, min(PROSE, max(map(cell_len, self._cells(k)), default=0)))

    def _cells(self, k: int) -> list[str]:
        return [row[k] for row in self.rows]

    def _transposed(self) -> Fitted | None:
        """The same table with one column per row, named by the first cell; None if there is prose or several keys."""
        if self.prose or self.keys > 1 or not self.rows:
            return None
        heads = [self.columns[0], *self._cells(0)]
        out = Fitted(self.title, heads)
        for k in range(1, len(self.columns)):
            out.add_row(self.columns[k], *self._cells(k))
        return out

    def _blocks(self, width: int) -> list[list[int]]:
        """The columns in blocks that fit into the width, each beginning with the keys; groups stay together."""
        keys = list(range(self.keys))

        def fits(columns: Sequence[int]) -> bool:
            return _total(map(self._narrowest, columns)) <= width

        groups: list[list[int]] = []
        for k in range(self.keys, len(self.columns)):
            if not groups or k in self.groups or not (self.groups and fits([*keys, *groups[-1], k])):
                groups.append([])
            groups[-1].append(k)
        blocks = [keys]
        for group in groups:
            if len(blocks[-1]) > len(keys) and not fits([*blocks[-1], *group]):
                blocks.append(keys)
            blocks[-1] = [*blocks[-1], *group]
        return blocks


def _total(widths: Iterable[int]) -> int:
    """The width of a table with columns of these widths."""
    known = list(widths)
    return sum(known) + GAP * (len(known) - 1) + EDGES


def table(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    left: int = 1,
    keys: int = 1,
    prose: Sequence[int] = (),
    groups: Sequence[int] = (),
) -> Fitted:
    """A table that fits the terminal.

    The first `left` columns are text, to the left; the others numbers, to the right. The first `keys` columns say what
    a row is about. `prose` are the indices of columns whose text may be wrapped between words, `groups` those of the
    columns before which a wide table is rather divided.
    """
    out = Fitted(title, columns, left, keys, prose, groups)
    for row in rows:
        out.add_row(*row)
    return out


UNITS = {"deg": "deg", "°": "deg", "rad": "rad"}  # suffixes of angles


def vector(text: str, name: str) -> list[float]:
    """Numbers separated by commas or spaces: `0.1,0.2`, `pi/2,0` or `-90deg,0`."""
    import math

    return [math.radians(value) if unit == "deg" else value for value, unit in with_units(text, name)]


def with_units(text: str, name: str) -> list[tuple[float, str]]:
    """Numbers separated by commas or spaces, each with the unit that was typed: "deg", "rad" or ""."""
    import math

    from armdyn.errors import InputError

    values = []
    for word in text.replace(",", " ").split():
        suffix = next((s for s in UNITS if word.endswith(s)), "")
        body, _, divisor = word.removesuffix(suffix).partition("/")
        sign = -1.0 if body.startswith("-") else 1.0
        body = body.lstrip("+-")
        try:
            head = math.pi if body == "pi" else float(body)
            values.append((sign * head / (float(divisor) if divisor else 1.0), UNITS.get(suffix, "")))
        except (ValueError, ZeroDivisionError):
            raise InputError(f"{name}: {word!r} is not a number (expected e.g. 0.1,-1.2,pi/2,-90deg)") from None
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
