"""`armdyn check ARM`: what is physically implausible about an arm."""

from __future__ import annotations

import typer

from armdyn.cli.common import ArmName, AsJson, console, load, print_json, styled

EXAMPLE = "Example: armdyn check my_robot.urdf"

PANELS = {"": ("strict",)}  # here it is a common option


def command(
    arm: ArmName,
    strict: bool | None = typer.Option(
        None, "--strict/--no-strict", help="Exit with code 3 if there are only warnings; or take masses below zero."
    ),
    as_json: AsJson = False,
) -> None:
    """Check an arm link by link: masses, inertias, limits, angles, nearly parallel axes.

    The exit code is 1 if something makes results wrong (a moving link without inertia, a negative mass); warnings do
    not change it, except to 3 with --strict.
    """
    loaded = load(arm, strict=False if strict is False else None)
    found = loaded.check()
    findings = [str(finding) for finding in found]
    if as_json:
        print_json(findings)
    else:
        out = console()
        for finding in found:
            out.print(styled(("wrong:", "bold red") if finding.wrong else ("warning:", "yellow"), f" {finding}"))
        if loaded.snap_summary:
            out.print(loaded.snap_summary, style="dim", markup=False)
        if not findings:
            out.print("no problems found", style="green")
    if any(finding.wrong for finding in found):
        raise typer.Exit(1)
    if strict and findings:
        raise typer.Exit(3)
