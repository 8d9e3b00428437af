"""`armdyn check ARM`: what is physically implausible about an arm."""

from __future__ import annotations

import typer

from armdyn.cli.common import ArmName, AsJson, console, load, print_json, styled

EXAMPLE = "Example: armdyn check my_robot.urdf"


def command(
    arm: ArmName,
    strict: bool | None = typer.Option(
        None, "--strict/--no-strict", help="Exit with code 3 if there are warnings; or take masses below zero."
    ),
    as_json: AsJson = False,
) -> None:
    """Check an arm link by link: masses, inertias, limits, angles, nearly parallel axes."""
    findings = [str(finding) for finding in load(arm, strict=False if strict is False else None).check()]
    if as_json:
        print_json(findings)
    else:
        out = console()
        for finding in findings:
            out.print(styled(("warning:", "yellow"), f" {finding}"))
        if not findings:
            out.print("no problems found", style="green")
    if strict and findings:
        raise typer.Exit(3)
