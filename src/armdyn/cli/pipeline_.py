"""`armdyn pipeline LOG --urdf ARM`: from a log to code for a controller."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from armdyn.cli.common import STATE, AsJson, Quiet, console, load, locks, print_json, progress, styled, table, vector

EXAMPLE = "Example: armdyn pipeline log.csv --urdf ur5 -o ur5_controller"
REFUSED = 5  # exit code


def command(
    log: Annotated[Path, typer.Argument(metavar="LOG", help="The log: .csv, .txt, .npz, .mat, .parquet, rosbag2.")],
    arm: Annotated[str, typer.Option("--urdf", metavar="ARM", help="The robot: .urdf, .toml or a catalogue name.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder to write, new or empty.")],
    validate: Annotated[Path | None, typer.Option(help="A log to predict, never fitted.")] = None,
    held_out: Annotated[float, typer.Option(help="Without one: the part of the log that is not fitted.")] = 0.3,
    target: Annotated[
        list[str] | None, typer.Option(help="c, cpp, fmu, object (repeatable); c and cpp unless given.")
    ] = None,
    quantity: Annotated[list[str] | None, typer.Option("--quantity", help="A quantity (repeatable).")] = None,
    dtype: Annotated[str, typer.Option(help="double or float (float64, float32).")] = "double",
    parameters: Annotated[str, typer.Option(help="runtime: given at each call; or baked.")] = "runtime",
    ratios: Annotated[str, typer.Option(help="The log is of the motors: gear ratios, one per joint.")] = "",
    gains: Annotated[str, typer.Option(help="Torque per unit of the logged effort, one per joint.")] = "",
    rate: Annotated[float | None, typer.Option(help="Sampling rate, Hz, where the log has no useful stamps.")] = None,
    degrees: Annotated[bool | None, typer.Option("--degrees/--radians", help="Unit of the positions.")] = None,
    columns: Annotated[str, typer.Option(help="Names of a text file's columns: t,q1:q6,-,tau1:tau6 (- skips).")] = "",
    friction: Annotated[str, typer.Option(help="auto: as the log bears out; none, viscous, coulomb, …")] = "auto",
    tilt: Annotated[bool, typer.Option("--tilt", help="The base may be tilted.")] = False,
    fix: Annotated[bool, typer.Option("--fix", help="Read signs, order and units as the check proposes.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Write code even if the model does not carry over.")] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Identify an arm from a log, validate it, and write arm, URDF, report, code and a manifest.

    Where the model does not carry over to what was held out no code is written, and the exit code is 5.
    """
    import armdyn

    loaded = load(arm)
    from_urdf = Path(arm).suffix.lower() == ".urdf" and Path(arm).is_file()
    cut = {key: STATE.cut.get(key) for key in ("base", "tip", "floating")}
    reading: dict[str, Any] = {"rate": rate, "degrees": degrees} | ({"columns": columns} if columns else {})
    with progress("pipeline", quiet or as_json) as update:
        done = armdyn.pipeline(
            log,
            loaded,
            output,
            urdf=arm if from_urdf else None,
            cut=cut | {"lock": locks(STATE.cut.get("lock") or [])},
            validate=validate,
            held_out=held_out,
            targets=target or ("c", "cpp"),
            quantities=quantity,
            dtype=dtype,
            parameters=parameters,
            force=force,
            reading=reading,
            progress=update,
            transmission=vector(ratios, "ratios") if ratios else None,
            gains=vector(gains, "gains") if gains else None,
            friction=friction,
            tilt=tilt,
            fix=fix,
        )
    if as_json:
        print_json(done.manifest)
    elif not quiet:
        _show(done)
    if not done.deployed:
        raise typer.Exit(REFUSED)


def _show(done: Any) -> None:
    from armdyn.deployment.pipeline import left_behind

    out = console()
    rows = [[check.name, "passed" if check.passed else "failed", check.words] for check in done.verdict.checks]
    out.print(table("Does the model carry over?", ["check", "", "what was found"], rows, left=3))
    for text in (*done.estimate.warnings, *left_behind(done.estimate)):
        out.print(styled(("note:", "yellow"), f" {text}"))
    for path in done.files:
        out.print(f"wrote {path}", markup=False, highlight=False)
    if not done.deployed:
        reason = "no code was written: the model does not carry over to what was held out; --force writes it anyway"
        out.print(styled(("refused:", "bold red"), f" {reason}"))
    elif not done.verdict.carries_over:
        out.print(styled(("forced:", "bold red"), " code was written though the model does not carry over"))
