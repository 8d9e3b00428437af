"""`armdyn cache`: the cache of machine code on disk."""

from __future__ import annotations

import typer

from armdyn.cli.common import AsJson, console, print_json
from armdyn.cli.help import HelpfulCommand, HelpfulGroup

app = typer.Typer(
    cls=HelpfulGroup,
    add_completion=False,
    help="Show or clear the cache of machine code (ARMDYN_CACHE names the folder; `off` disables it).",
    no_args_is_help=True,
)


@app.command("show", cls=HelpfulCommand, epilog="Example: armdyn cache show")
def show(as_json: AsJson = False) -> None:
    """Show the location and size of the cache."""
    from armdyn.codegen import cache

    _print(cache.show(), as_json)


@app.command("clear", cls=HelpfulCommand, epilog="Example: armdyn cache clear")
def clear(as_json: AsJson = False) -> None:
    """Remove everything from the cache."""
    from armdyn.codegen import cache

    found = cache.clear()
    _print(found, as_json, "removed " if found.folder else "")


def _print(summary: object, as_json: bool, before: str = "") -> None:
    from dataclasses import asdict, is_dataclass

    if as_json and is_dataclass(summary) and not isinstance(summary, type):
        print_json(asdict(summary))
    else:
        console().print(f"{before}{summary}", markup=False)
