"""The command line: `armdyn COMMAND`, one file per command."""

from __future__ import annotations

import sys
from importlib import import_module

import typer

from armdyn.cli.common import STATE, fail, with_cut

COMMANDS = (
    "list",
    "show",
    "check",
    "convert",
    "parameters",
    "cost",
    "tables",
    "eval",
    "bound",
    "emit",
    "deploy",
    "bench",
    "simulate",
    "study",
    "sweep",
    "excite",
    "identify",
    "pipeline",
    "poses",
    "calibrate",
    "report",
    "studio",
    "cache",
)

app = typer.Typer(
    name="armdyn",
    help="Exact, minimal and fast dynamics for robot arms.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
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


for _name in COMMANDS:
    _module = import_module(f"armdyn.cli.{_name}_")
    if hasattr(_module, "app"):
        app.add_typer(_module.app, name=_name)
    else:
        _takes_an_arm = "arm" in _module.command.__annotations__
        _command = with_cut(_module.command) if _takes_an_arm else _module.command
        app.command(_name, epilog=_module.EXAMPLE)(_command)


def main() -> None:
    """Run the command line; errors in plain words, exit code 1 (2 for wrong usage, 130 for Ctrl-C)."""
    from armdyn.errors import ArmdynError

    try:
        app()
    except (ArmdynError, OSError) as error:
        if STATE.debug or "--debug" in sys.argv:
            raise
        fail(str(error))
    except KeyboardInterrupt:
        fail("interrupted", code=130)
