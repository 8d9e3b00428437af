"""`armdyn servo ARM LOG`: servos, motors and friction from logged commands and positions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from armdyn.cli.common import ArmName, AsJson, Quiet, console, load, print_json, progress, styled

NOT_TRUSTED = 5  # exit code, as of `identify`
EXAMPLE = "Example: armdyn servo ur5 commands.csv --validate other.csv -o servos"


def command(
    arm: ArmName,
    log: Annotated[Path, typer.Argument(metavar="LOG", help="The log: t, positions q1 …, commands command1 …")],
    also: Annotated[list[Path] | None, typer.Option(help="A further log to fit together with LOG; repeatable.")] = None,
    payloads: Annotated[str, typer.Option(help="Known masses at the tool, kg, one per log: 0,0.5 (0: none).")] = "",
    validate: Annotated[Path | None, typer.Option(help="A log whose positions are predicted, not fitted.")] = None,
    friction: Annotated[
        str, typer.Option(help="auto (kept where the log shows it), coulomb, stribeck, load or full.")
    ] = "auto",
    firmware: Annotated[float, typer.Option(help="Period of the servos' own control loops, s.")] = 1e-3,
    lag: Annotated[bool, typer.Option("--lag", help="Identify the firmware's velocity filter.")] = False,
    prior: Annotated[float, typer.Option(help="Relative uncertainty of the arm's masses; 0: exact.")] = 0.1,
    degrees: Annotated[bool | None, typer.Option("--degrees/--radians", help="Unit of positions, commands.")] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="A folder for TOML, URDF, MJCF, JSON.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Write the arm even if it is not trusted.")] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Identify position servos from commands and positions, without torques; writes arm file, URDF and MJCF.

    If the estimate is not to be trusted, nothing is written, and the exit code is 5.
    """
    from armdyn.cli.common import vector
    from armdyn.identification import Log
    from armdyn.identification.servo import identify_servo

    loaded = load(arm)
    reading: dict[str, Any] = {"joints": [joint.name for joint in loaded.joints], "degrees": degrees}
    held = [x or None for x in vector(payloads, "payloads")] if payloads else None
    with progress("identifying", quiet or as_json) as update:
        logs = [Log.read(path, **reading) for path in (log, *(also or ()))]
        estimate = identify_servo(
            loaded, logs, loads=held, friction=friction, firmware=firmware, lag=lag, prior=prior, progress=update
        )
    errors = None if validate is None else estimate.errors(Log.read(validate, **reading))
    written = estimate.save(output) if output is not None and (estimate.trusted or force) else []
    if as_json:
        print_json(estimate.data | {"validation": errors})
    elif not quiet:
        out = console()
        out.print(str(estimate), highlight=False, markup=False)
        if errors is not None:
            named = zip(loaded.joint_names, errors, strict=True)
            shown = ", ".join(f"{name} {1e3 * error:.3g}" for name, error in named)
            out.print(f"predicted positions of {validate}: off by {shown} mrad or mm (root mean square)", markup=False)
        for text in estimate.notes:
            out.print(f"note: {text}", highlight=False, markup=False)
        for path in written:
            out.print(f"wrote {path}", markup=False, highlight=False, soft_wrap=True)
        if not estimate.trusted and not force:
            out.print(styled(("refused:", "bold red"), " the estimate is not trusted; no arm is written"))
    if not estimate.trusted and not force:
        raise typer.Exit(NOT_TRUSTED)
