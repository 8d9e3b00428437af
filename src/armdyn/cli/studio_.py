"""`armdyn studio ARM`: the report page served with Python behind it."""

from __future__ import annotations

from typing import Annotated

import typer

from armdyn.cli.common import ArmName, Quiet, console, load

EXAMPLE = "Example: armdyn studio puma560"


def command(
    arm: ArmName,
    port: Annotated[int, typer.Option(help="The port on 127.0.0.1; 0 takes a free one.")] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")] = True,
    quiet: Quiet = False,
) -> None:
    """Serve an arm's page on this machine: drop another robot or a log on it, generate C, download the report."""
    import webbrowser

    from armdyn.report.studio import Server

    server = Server(load(arm), port)
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
