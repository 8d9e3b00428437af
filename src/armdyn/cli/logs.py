"""The options of commands that identify an arm from a log: how the log is read, and what it means."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import typer

from armdyn.cli.common import vector


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
    ratios: Annotated[str, typer.Option(help="Gear ratios, one per joint, if the log is on the motor side.")] = ""
    gains: Annotated[str, typer.Option(help="Torque per unit of the logged effort, one per joint.")] = ""
    dead_zone: Annotated[float, typer.Option(help="Exclude a joint's torque below this speed, rad/s.")] = 0.0
    fix: Annotated[bool, typer.Option("--fix", help="Apply the proposed signs, order and units.")] = False

    @property
    def every(self) -> dict[str, Any]:
        """What `Log.read` takes for every log of the command."""
        reading = {"rate": self.rate, "clock": self.clock, "degrees": self.degrees}
        return reading | ({"columns": self.columns} if self.columns else {})

    @property
    def first(self) -> dict[str, Any]:
        """What `Log.read` takes for LOG alone."""
        return {"effort": self.effort, "start": self.start, "until": self.until}

    @property
    def identify(self) -> dict[str, Any]:
        """What `identify` takes."""
        return {
            "transmission": vector(self.ratios, "ratios") if self.ratios else None,
            "gains": vector(self.gains, "gains") if self.gains else None,
            "dead_zone": self.dead_zone,
            "fix": self.fix,
        }


def with_log_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """A command with these options in place of its parameter `logs`, which gets them as `LogOptions`."""
    types = inspect.get_annotations(LogOptions, eval_str=True)
    options = [
        inspect.Parameter(one.name, inspect.Parameter.KEYWORD_ONLY, default=one.default, annotation=types[one.name])
        for one in fields(LogOptions)
    ]

    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        given = {one.name: kwargs.pop(one.name) for one in fields(LogOptions)}
        return command(*args, logs=LogOptions(**given), **kwargs)

    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        own = parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        parameters += options if parameter.name == "logs" else [own]
    wrapped.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return wrapped
