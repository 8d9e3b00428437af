"""Options of commands, made from records: those of `armdyn.options`, and how a log is read."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import typer

from armdyn.cli.common import vector
from armdyn.errors import InputError
from armdyn.options import About, Drivetrain, Filtering, Fitting, Record, Terms


@dataclass(frozen=True)
class LogOptions:
    """Options about a log; the fields are the options of the command line, in the order of `--help`."""

    rate: Annotated[float | None, typer.Option(help="Sampling rate, Hz, if the log has no usable time stamps.")] = None
    clock: Annotated[
        str, typer.Option(help="When rows were taken: stamps, even (stamps jitter) or auto (what is smoother).")
    ] = "auto"
    degrees: Annotated[bool | None, typer.Option("--degrees/--radians", help="Unit of the positions.")] = None
    columns: Annotated[str, typer.Option(help="Names of a text file's columns: t,q1:q6,-,tau1:tau6 (- skips).")] = ""
    effort: Annotated[Path | None, typer.Option(help="A file with LOG's efforts: a column per joint, or also t.")] = (
        None
    )
    start: Annotated[float | None, typer.Option("--from", help="Use LOG from this time on, s after its start.")] = None
    until: Annotated[float | None, typer.Option(help="Use LOG up to this time, s after its start.")] = None

    @property
    def every(self) -> dict[str, Any]:
        """What `Log.read` takes for every log of the command."""
        reading = {"rate": self.rate, "clock": self.clock, "degrees": self.degrees}
        return reading | ({"columns": self.columns} if self.columns else {})

    @property
    def first(self) -> dict[str, Any]:
        """What `Log.read` takes for LOG alone."""
        return {"effort": self.effort, "start": self.start, "until": self.until}


def names(record: type[Any], *without: str) -> tuple[str, ...]:
    """The options of a record, for `PANELS`."""
    return tuple(one.name for one in fields(record) if one.name not in without)


FIT_PANELS = {  # of commands that identify
    "The log": names(LogOptions, "rate", "degrees", "columns"),
    "The model": names(Terms, "friction"),
    "Filters and the motors' side": names(Filtering) + names(Drivetrain),
    "The fit": names(Fitting, "fix"),
}


def with_records(command: Callable[..., Any]) -> Callable[..., Any]:
    """A command with the options of its parameters that are records; it gets them as records.

    A name that two records have belongs to the first of them, as in `armdyn.options.flat_keywords`.
    """
    signature = inspect.signature(command, eval_str=True)
    records: dict[str, type[Any]] = {}
    parameters: list[inspect.Parameter] = []
    home: dict[str, str] = {}
    for parameter in signature.parameters.values():
        record = parameter.annotation
        if isinstance(record, type) and issubclass(record, Record | LogOptions):
            records[parameter.name] = record
            for option in _options(record):
                if home.setdefault(option.name, parameter.name) == parameter.name:
                    parameters.append(option)
        else:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))

    @functools.wraps(command)
    def wrapped(**typed: Any) -> Any:
        for name, record in records.items():
            given = {one.name: typed.pop(one.name) for one in fields(record) if home.get(one.name) == name}
            typed[name] = _record(record, given)
        return command(**typed)

    wrapped.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return wrapped


def _options(record: type[Any]) -> list[inspect.Parameter]:
    """The fields of a record as options of a command."""
    hints = get_type_hints(record, include_extras=True)
    made = []
    for one in fields(record):
        about = one.metadata.get("about")
        if about is not None and about.flag == "-":
            continue
        annotation = hints[one.name] if about is None else _typed(hints[one.name], about, one.name, one.default)
        default = one.default
        if about is not None and _kind(hints[one.name]) not in (bool, int, float, str):  # typed as text
            default = str(default) if isinstance(default, float) else None
        made.append(inspect.Parameter(one.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation))
    return made


def _kind(hint: Any) -> Any:
    """How an option of this type is typed: bool, int, float, list[str], or str; Any for text that is parsed."""
    kinds = {one for one in get_args(hint) or (hint,) if one is not NoneType}
    if get_origin(hint) is Sequence:
        return list[str]
    if Sequence[str] in kinds:
        return list[str]
    if kinds == {float, bool}:
        return float
    if bool in kinds:
        return bool
    return kinds.pop() if len(kinds) == 1 and kinds <= {int, float, str} else Any


def _typed(hint: Any, about: About, name: str, default: Any) -> Any:
    """The annotation of an option."""
    kind = _kind(hint)
    flag = about.flag or f"--{name.replace('_', '-')}"
    if kind is bool and (default is not False):
        flag = f"{flag}/--no-{flag.removeprefix('--')}"
    text = about.help[0].upper() + about.help[1:] + (f" [{about.unit}]" if about.unit else "")
    text += "; repeatable." if kind == list[str] else "; 0: none." if kind is float and bool in get_args(hint) else "."
    optional = kind in (int, float, str, bool) and default is not None
    shown = str if kind is Any else kind
    return Annotated[shown if optional else shown | None, typer.Option(flag, help=text)]


def _record(record: type[Any], typed: dict[str, Any]) -> Any:
    """The record of what was typed."""
    if record is LogOptions:
        return record(**typed)
    hints, about = get_type_hints(record), record.about()
    given = {}
    for name, value in typed.items():
        kind, flag = _kind(hints[name]), about[name].flag or f"--{name.replace('_', '-')}"
        if value is None or (kind == list[str] and not value):
            continue
        if kind is Any:
            value = _parsed(value, hints[name], flag, about[name].numbers)
        elif kind is float and bool in get_args(hints[name]) and value == 0:
            value = False
        given[name] = value
    return replace(record(), **given)


def _parsed(text: str, hint: Any, flag: str, numbers: bool) -> Any:
    """Text as the type says: a word of those allowed, a number, a list of numbers, or the text itself."""
    words = [word for one in get_args(hint) if get_origin(one) is Literal for word in get_args(one)]
    if text in words:
        return text
    if hint is Any and not numbers:
        return text
    try:
        values = vector(text, flag)
    except InputError:
        if words:
            raise InputError(f"{flag} takes a number or {', '.join(words)}, got {text!r}") from None
        raise
    return values[0] if len(values) == 1 and not numbers else values
