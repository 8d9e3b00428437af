"""`armdyn studio ARM`: the report page served with Python behind it."""

from __future__ import annotations

from typing import Annotated

import typer

from armdyn.cli.common import ROBOT, Quiet, console, load

EXAMPLE = "Example: armdyn studio puma560"


def command(
    arm: Annotated[
        str | None,
        typer.Argument(metavar="[ARM]", help="A catalogue name or a file; without it the page offers both."),
        ROBOT,
    ] = None,
    port: Annotated[int, typer.Option(help="The port on 127.0.0.1; 0 takes a free one.")] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")] = True,
    quiet: Quiet = False,
) -> None:
    """Serve an arm's page on this machine: open a robot, identify it from a log, generate C, save the page."""
    import webbrowser

    from armdyn.report.studio import Server

    server = Server(load(arm) if arm else None, port, arm or "")
    if not quiet:
        console().print(f"studio: {server.url}", markup=False, soft_wrap=True)
        console().print("Press Ctrl-C to stop.")
    if browser:
        webbrowser.open(server.url)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        server.server_close()
