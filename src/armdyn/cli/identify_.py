"""`armdyn identify ARM LOG`: parameters from a robot's log."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from armdyn.cli.common import ArmName, AsJson, Quiet, console, load, print_json, progress, styled, table, vector

EXAMPLE = "Example: armdyn identify ur10 log.csv --validate other.csv -o identified"


def command(
    arm: ArmName,
    log: Annotated[Path, typer.Argument(metavar="LOG", help="The log: .csv, .txt, .npz, .mat, .parquet, rosbag2.")],
    validate: Annotated[Path | None, typer.Option(help="A log to predict, never fitted.")] = None,
    estimator: Annotated[
        str, typer.Option(help="consistent, ordinary, weighted, huber or instrumental.")
    ] = "consistent",
    friction: Annotated[str, typer.Option(help="auto: as the log bears out; none, viscous, coulomb, …")] = "auto",
    rotor: Annotated[bool, typer.Option("--rotor/--no-rotor", help="Every joint has a rotor inertia.")] = True,
    offset: Annotated[bool, typer.Option("--offset/--no-offset", help="Every joint has a constant offset.")] = True,
    spring: Annotated[bool, typer.Option("--spring", help="Every joint has a stiffness.")] = False,
    tilt: Annotated[bool, typer.Option("--tilt", help="The base may be tilted.")] = False,
    ratios: Annotated[str, typer.Option(help="The log is of the motors: gear ratios, one per joint.")] = "",
    rate: Annotated[float | None, typer.Option(help="Sampling rate, Hz, where the log has no useful stamps.")] = None,
    degrees: Annotated[bool | None, typer.Option("--degrees/--radians", help="Unit of the positions.")] = None,
    effort: Annotated[Path | None, typer.Option(help="A second file with the efforts, one column per joint.")] = None,
    dead_zone: Annotated[float, typer.Option(help="Slower than this (rad/s) a joint's torque is not fitted.")] = 0.0,
    columns: Annotated[str, typer.Option(help="Names of a text file's columns: t,q1:q6,-,tau1:tau6 (- skips).")] = "",
    gains: Annotated[str, typer.Option(help="Torque per unit of the logged effort, one per joint.")] = "",
    fix: Annotated[bool, typer.Option("--fix", help="Read signs, order and units as the check proposes.")] = False,
    parallel: Annotated[float | None, typer.Option(help="Cut-off of the filter of the model, Hz; 0: none.")] = None,
    cutoff: Annotated[float | None, typer.Option(help="Cut-off of the positions' filter, Hz.")] = None,
    regularization: Annotated[
        float | None, typer.Option(help="Weight of the prior arm; unless given, by cross-validation.")
    ] = None,
    also: Annotated[list[Path] | None, typer.Option(help="A further log to fit together with LOG; repeatable.")] = None,
    friction_per_log: Annotated[
        bool, typer.Option("--friction-per-log", help="Friction is each log's own, inertias are shared.")
    ] = False,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="A folder for arm, parameters, report.")] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Identify inertias, rotors and friction from a log; an arm file, a URDF and a report go into a folder."""
    from armdyn.identification import Log, identify

    loaded = load(arm)
    with progress("identifying", quiet or as_json) as update:
        update(0, 3, "reading the log")
        reading: dict[str, Any] = {"joints": [j.name for j in loaded.joints], "rate": rate, "degrees": degrees}
        reading |= {"columns": columns} if columns else {}
        data = [Log.read(log, effort=effort, **reading), *(Log.read(more, **reading) for more in also or ())]
        other = Log.read(validate, **reading) if validate else None
        update(1, 3, "fitting")
        found = identify(
            loaded, data, estimator=estimator, friction=friction, rotor=rotor, offset=offset, spring=spring, tilt=tilt,
            transmission=vector(ratios, "ratios") if ratios else None, cutoff=cutoff, dead_zone=dead_zone,
            regularization=regularization, validate=other, friction_per_log=friction_per_log,
            gains=vector(gains, "gains") if gains else None, fix=fix, parallel=False if parallel == 0 else parallel,
        )  # fmt: skip
        update(2, 3, "writing")
        written = _write(found, output) if output is not None else []
    if as_json:
        print_json(_data(found))
    elif not quiet:
        _show(found, written)


def _write(found: Any, folder: Path) -> list[Path]:
    """Everything into the folder: the files are complete before the first takes its place."""
    import json
    from tempfile import TemporaryDirectory

    from armdyn.cli.common import plain
    from armdyn.files.text import write_files

    with TemporaryDirectory() as apart:
        names = "arm.toml", "arm.urdf", "parameters.json", "report.html"
        arm, urdf, parameters, report = (Path(apart) / name for name in names)
        found.save(arm)
        found.to_urdf(urdf)
        parameters.write_text(json.dumps(plain(_data(found)), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        found.report(report)
        return write_files(folder, {name: (Path(apart) / name).read_bytes() for name in names})


def _data(found: Any) -> dict[str, Any]:
    return {
        "arm": found.given.name,
        "estimator": found.estimator,
        "error": found.error,
        "left_out": found.folds,
        "selected": found.steps,
        "validation": None if found.validation is None else found.validation.error,
        "validation_r_squared": None if found.validation is None else found.validation.r_squared,
        "processing": asdict(found.processing),
        "rows": len(found.training.t),
        "condition": found.condition,
        "names": found.names,
        "values": found.values,
        "deviations": found.deviations,
        "r_squared": found.training.r_squared,
        "extras": found.extras,
        "base_tilt": found.base_tilt,
        "left_behind": found.left_behind,
        "warnings": found.warnings,
        "notes": found.notes,
    }


def _show(found: Any, written: list[Path]) -> None:
    out = console()
    out.print(str(found), highlight=False, markup=False)
    names = [joint.name or f"joint {k}" for k, joint in enumerate(found.given.joints, 1)]
    for shown in (found.validation, found.training):  # what was never fitted comes first
        if shown is not None:
            numbers = zip(names, shown.joint_errors, shown.r_squared, strict=True)
            rows = [[name, f"{100 * error:.2f} %", f"{fit:.4f}"] for name, error, fit in numbers]
            title = f"Torque by joint, {'fitted' if shown is found.training else 'not fitted'}: {shown.source}"
            out.print(table(title, ["joint", "relative error", "R²"], rows))
    rows = [
        [name, float(value), f"± {deviation:.2g}"]
        for name, value, deviation in zip(found.names, found.values, found.deviations, strict=True)
    ]
    out.print(table("Parameters (SI)", ["parameter", "value", "standard deviation"], rows))
    for text in found.warnings:
        out.print(styled(("note:", "yellow"), f" {text}"))
    for text in found.notes:
        out.print(f"log: {text}", highlight=False, markup=False)
    if written:
        _say_where(found, out)
    for path in written:
        out.print(f"wrote {path}", markup=False, highlight=False)


def _say_where(found: Any, out: Any) -> None:
    """Where the base tilt went, and what the files have no place for."""
    if any(found.base_tilt):
        angle = math.degrees(math.hypot(*found.base_tilt))
        said = f"The base tilt of {angle:.2f} degrees is in arm.toml's gravity and turns the base of arm.urdf."
        out.print(said, highlight=False, markup=False)
    if found.left_behind:
        names = ", ".join(found.left_behind)
        out.print(f"Only parameters.json has {names}: no arm has a place for them.", highlight=False, markup=False)
