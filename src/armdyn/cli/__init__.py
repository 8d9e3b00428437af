"""The command line: `armdyn COMMAND`, one file per command, imported when the command is run."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

import typer

from armdyn.cli.common import STATE, fail, with_robot_options
from armdyn.cli.encoding import transliterate_what_cannot_be_encoded
from armdyn.cli.help import HelpfulCommand, HelpfulGroup

GROUPS = {
    "Look at a robot": ("list", "show", "check", "parameters", "convert", "compare", "report", "studio"),
    "Compute": ("eval", "cost", "bound", "sweep", "bench"),
    "Simulate and move": ("simulate", "motion"),
    "Identify and calibrate": ("excite", "identify", "servo", "pipeline", "poses", "calibrate"),
    "Deploy": ("deploy", "emit"),
    "Papers": ("tables", "study"),
    "This program": ("selftest", "cache"),
}
COMMANDS = tuple(name for names in GROUPS.values() for name in names)
SETTINGS = {"help_option_names": ["-h", "--help"]}


@functools.cache
def command(name: str) -> Any:
    """A command (or a group of commands) from its file."""
    module = import_module(f"armdyn.cli.{name}_")
    if hasattr(module, "app"):
        made: Any = typer.main.get_command(module.app)
    else:
        single = typer.Typer(add_completion=False, rich_markup_mode=None)
        function = with_robot_options(module.command)
        single.command(name, epilog=module.EXAMPLE, cls=HelpfulCommand, context_settings=SETTINGS)(function)
        made = typer.main.get_command(single)
        made.spelling = getattr(module, "SPELLING", {})
        made.panels = getattr(module, "PANELS", {})
    made.name = name
    return made


class _Commands(Mapping[str, Any]):
    """The commands by name, each imported when it is asked for."""

    def __getitem__(self, name: str) -> Any:
        if name not in COMMANDS:
            raise KeyError(name)
        return command(name)

    def __contains__(self, name: object) -> bool:
        return name in COMMANDS

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class _Program(HelpfulGroup):
    """`armdyn` itself."""

    groups = GROUPS

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = _Commands()  # type: ignore[assignment]

    def list_commands(self, ctx: Any) -> list[str]:
        """The names, without importing the commands."""
        return list(COMMANDS)


app = typer.Typer(
    name="armdyn",
    cls=_Program,
    help="Exact, minimal and fast dynamics for robot arms.",
    epilog="`armdyn COMMAND --help` explains a command.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings=SETTINGS,
)


def _version(wanted: bool) -> None:
    if wanted:
        import armdyn

        typer.echo(f"armdyn {armdyn.__version__}")
        raise typer.Exit


@app.callback()
def options(
    debug: bool = typer.Option(False, "--debug", help="Show the whole traceback of an error."),
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    """Exact, minimal and fast dynamics for robot arms."""
    STATE.debug = debug


def main() -> None:
    """Run the command line; errors in plain words, exit code 1 (2 for wrong usage, 130 for Ctrl-C)."""
    from armdyn.errors import ArmdynError

    transliterate_what_cannot_be_encoded()
    try:
        app()
    except BrokenPipeError:  # the reader has seen enough, as in `armdyn list | head -3`
        sys.stderr.close()
        raise SystemExit(141) from None
    except (ArmdynError, OSError) as error:
        if STATE.debug or "--debug" in sys.argv:
            raise
        fail(str(error))
    except KeyboardInterrupt:
        fail("interrupted", code=130)
