"""`armdyn pipeline LOG --urdf ARM`: from a log to code for a controller."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from armdyn.cli.common import ROBOT, STATE, AsJson, Quiet, console, load, locks, print_json, progress, styled, table
from armdyn.cli.options import FIT_PANELS, LogOptions, names, with_records
from armdyn.options import CodeOptions, Delivery, Drivetrain, Filtering, Fitting, Origin, Terms

EXAMPLE = "Example: armdyn pipeline log.csv --urdf ur5 -o ur5_controller"
REFUSED = 5  # exit code


PANELS = FIT_PANELS | {"The code": ("quantities", *names(CodeOptions, "friction"))}


@with_records
def command(
    log: Annotated[Path, typer.Argument(metavar="LOG", help="The log: .csv, .txt, .npz, .mat, .parquet, rosbag2.")],
    arm: Annotated[
        str, typer.Option("--urdf", metavar="ARM", help="The robot: .urdf, .toml or a catalogue name."), ROBOT
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder to write.")],
    logs: LogOptions,
    validate: Annotated[Path | None, typer.Option(help="A validation log, not used for the fit.")] = None,
    held_out: Annotated[float, typer.Option(help="Fraction held out if there is no validation log.")] = 0.3,
    terms: Terms = Terms(),
    filtering: Filtering = Filtering(),
    drivetrain: Drivetrain = Drivetrain(),
    fitting: Fitting = Fitting(),
    delivery: Delivery = Delivery(),
    code: CodeOptions = CodeOptions(),
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Identify an arm from a log, validate it, and write arm, URDF, report, code and a manifest.

    If validation fails, no code is written, and the exit code is 5.
    """
    import armdyn

    loaded = load(arm, at_tool=True)
    from_urdf = Path(arm).suffix.lower() == ".urdf" and Path(arm).is_file()
    cut = {key: STATE.cut.get(key) for key in ("base", "tip", "floating")}
    with progress("pipeline", quiet or as_json) as update:
        done = armdyn.pipeline(
            log,
            loaded,
            output,
            validate=validate,
            held_out=held_out,
            reading=logs.every | logs.first,
            progress=update,
            terms=terms,
            filtering=filtering,
            drivetrain=drivetrain,
            fitting=fitting,
            code=code,
            origin=Origin(arm if from_urdf else None, cut | {"lock": locks(STATE.cut.get("lock") or [])}),
            delivery=delivery,
        )
    if as_json:
        print_json(done.manifest)
    elif not quiet:
        _show(done)
    if not done.deployed:
        raise typer.Exit(REFUSED)


def _show(done: Any) -> None:
    from armdyn.deployment.pipeline import PipelineResult, left_behind

    out = console()
    with_torques = isinstance(done, PipelineResult)
    warnings = (*done.estimate.warnings, *left_behind(done.estimate)) if with_torques else done.estimate.doubts
    rows = [[check.name, "passed" if check.passed else "failed", check.words] for check in done.verdict.checks]
    out.print(table("Validation", ["check", "", "result"], rows, left=3, prose=[2]))
    for text in (*done.verdict.notes, *warnings):
        out.print(styled(("note:", "yellow"), f" {text}"))
    for path in done.files:
        out.print(f"wrote {path}", markup=False, highlight=False, soft_wrap=True)
    if not done.deployed:
        reason = "no code was written: the model does not predict the held-out data; --force writes it anyway"
        out.print(styled(("refused:", "bold red"), f" {reason}"))
    elif not done.verdict.carries_over:
        out.print(styled(("forced:", "bold red"), " code was written although validation failed"))
