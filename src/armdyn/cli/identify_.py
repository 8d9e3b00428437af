"""`armdyn identify ARM LOG`: parameters from a robot's log."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from armdyn.cli.common import ArmName, AsJson, Quiet, console, load, print_json, progress, styled, table
from armdyn.cli.options import FIT_PANELS, LogOptions, with_records
from armdyn.options import Drivetrain, Filtering, Fitting, Terms

NOT_TRUSTED = 5  # exit code, as of `pipeline`
OF_THE_ARM = ("arm.srdf", "arm.toml", "arm.urdf")
EXAMPLE = "Example: armdyn identify ur10 log.csv --validate other.csv -o identified"


PANELS = FIT_PANELS


@with_records
def command(
    arm: ArmName,
    log: Annotated[Path, typer.Argument(metavar="LOG", help="The log: .csv, .txt, .npz, .mat, .parquet, rosbag2.")],
    logs: LogOptions,
    validate: Annotated[Path | None, typer.Option(help="A validation log, not used for the fit.")] = None,
    also: Annotated[list[Path] | None, typer.Option(help="A further log to fit together with LOG; repeatable.")] = None,
    terms: Terms = Terms(),
    filtering: Filtering = Filtering(),
    drivetrain: Drivetrain = Drivetrain(),
    fitting: Fitting = Fitting(),
    adapt: Annotated[
        Path | None, typer.Option(help="A log of another day, from which friction and offsets are taken.")
    ] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="A folder for arm, parameters, report.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Write arm and URDF even if they are not trusted.")] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Identify inertias, rotor inertias and friction from a log; writes an arm file, a URDF and a report.

    If the estimate is not to be trusted, neither arm nor URDF is written, and the exit code is 5.
    """
    from armdyn.identification import Log, identify

    loaded = load(arm)
    with progress("identifying", quiet or as_json) as update:
        update(0, 3, "reading the log")
        reading = {"joints": [joint.name for joint in loaded.joints], **logs.every}
        data = [Log.read(log, **reading, **logs.first), *(Log.read(more, **reading) for more in also or ())]
        other = Log.read(validate, **reading) if validate else None
        update(1, 3, "fitting")
        estimate = identify(
            loaded, data, validate=other, terms=terms, filtering=filtering, drivetrain=drivetrain, fitting=fitting
        )
        estimate = estimate.adapt(Log.read(adapt, **reading)) if adapt is not None else estimate
        update(2, 3, "writing")
        written = _write(estimate, output, estimate.trusted or force) if output is not None else []
    if as_json:
        print_json(_data(estimate))
    elif not quiet:
        _show(estimate, written)
    if not estimate.trusted and not force:
        raise typer.Exit(NOT_TRUSTED)


def _write(estimate: Any, folder: Path, whole: bool) -> list[Path]:
    """Write all files into the folder, or none; parameters and report alone if not `whole`."""
    import json
    from tempfile import TemporaryDirectory

    from armdyn.cli.common import plain
    from armdyn.files.text import write_files

    with TemporaryDirectory() as apart:
        parameters, report = Path(apart) / "parameters.json", Path(apart) / "report.html"
        if whole:
            estimate.save(Path(apart) / "arm.toml")
            estimate.to_urdf(Path(apart) / "arm.urdf", force=True)
        parameters.write_text(json.dumps(plain(_data(estimate)), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        estimate.report(report)
        return write_files(folder, {path.name: path.read_bytes() for path in sorted(Path(apart).iterdir())})


def _data(estimate: Any) -> dict[str, Any]:
    return {
        "arm": estimate.given.name,
        "estimator": estimate.estimator,
        "error": estimate.error,
        "left_out": estimate.folds,
        "selected": estimate.steps,
        "validation": None if estimate.validation is None else estimate.validation.error,
        "validation_r_squared": None if estimate.validation is None else estimate.validation.r_squared,
        "processing": asdict(estimate.processing),
        "rows": len(estimate.training.t),
        "condition": estimate.condition,
        "names": estimate.names,
        "values": estimate.values,
        "deviations": estimate.deviations,
        "r_squared": estimate.training.r_squared,
        "extras": estimate.extras,
        "base_tilt": estimate.base_tilt,
        "left_behind": estimate.left_behind,
        "beyond_urdf": estimate.beyond_urdf,
        "trusted": estimate.trusted,
        "doubts": estimate.doubts,
        "warnings": estimate.warnings,
        "notes": estimate.notes,
    }


def _show(estimate: Any, written: list[Path]) -> None:
    out = console()
    out.print(str(estimate), highlight=False, markup=False)
    for shown in (estimate.validation, estimate.training):  # validation comes first
        if shown is not None:
            numbers = zip(estimate.given.joint_names, shown.joint_errors, shown.r_squared, strict=True)
            rows = [[name, f"{100 * error:.2f} %", f"{fit:.4f}"] for name, error, fit in numbers]
            title = f"Torque per joint, {'fitted' if shown is estimate.training else 'not fitted'}: {shown.source}"
            out.print(table(title, ["joint", "relative error", "R²"], rows))
    rows = [
        [name, float(value), f"± {deviation:.2g}", estimate.model.kind(name, k)[1]]
        for k, (name, value, deviation) in enumerate(
            zip(estimate.names, estimate.values, estimate.deviations, strict=True)
        )
    ]
    out.print(table("Parameters", ["parameter", "value", "standard deviation", "unit"], rows))
    for text in (text for text in estimate.warnings if text not in estimate.doubts):  # these are among the first lines
        out.print(styled(("note:", "yellow"), f" {text}"))
    for text in estimate.notes:
        out.print(f"log: {text}", highlight=False, markup=False)
    names = {path.name for path in written}
    if "arm.urdf" in names:
        _show_remainder(estimate, out, "arm.srdf" in names)
    for path in written:
        out.print(f"wrote {path}", markup=False, highlight=False, soft_wrap=True)
    for path in (written[0].parent / name for name in OF_THE_ARM if written and name not in names):
        if path.exists():
            out.print(f"{path} is not of this log: it was there before", markup=False, highlight=False, soft_wrap=True)
    if not estimate.trusted:
        written_anyway = "arm.urdf" in names
        text = " the estimate is not trusted" + ("; arm and URDF were written" if written_anyway else "")
        advice = "" if written_anyway else "; no arm and no URDF are written. --force writes them with -o"
        out.print(styled(("forced:" if written_anyway else "refused:", "bold red"), text + advice))


def _show_remainder(estimate: Any, out: Any, rotors: bool) -> None:
    """How the files represent the base tilt, and which parameters they cannot represent."""
    if any(estimate.base_tilt):
        angle = math.degrees(math.hypot(*estimate.base_tilt))
        text = f"The base tilt of {angle:.2f} degrees changes the gravity of arm.toml and rotates the base of arm.urdf."
        out.print(text, highlight=False, markup=False)
    beyond = [name for name in estimate.beyond_urdf if name not in estimate.left_behind]
    if beyond:
        where = "; rotor inertias are in arm.srdf" if rotors else ""
        text = f"Programs other than armdyn do not read {', '.join(beyond)} from arm.urdf{where}."
        out.print(text, highlight=False, markup=False)
    if estimate.left_behind:
        names = ", ".join(estimate.left_behind)
        out.print(f"Only parameters.json has {names}: an arm cannot represent them.", highlight=False, markup=False)
