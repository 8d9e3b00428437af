"""`armdyn calibrate ARM POSES`: geometry from measured poses."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from armdyn.cli.common import STATE, ArmName, AsJson, Quiet, console, load, locks, print_json, progress, styled, table

EXAMPLE = "Example: armdyn calibrate ur5.urdf poses.csv -o calibrated"


def command(
    arm: ArmName,
    poses: Annotated[
        Path,
        typer.Argument(
            metavar="POSES",
            help="A table: q1 … qn or joint names, then x y z (and qx qy qz qw), or plane, or distance.",
        ),
    ],
    frame: Annotated[str | None, typer.Option(help="The frame that was measured; default: the tool.")] = None,
    parameters: Annotated[
        str, typer.Option(help="Parameters to correct: all, or base,tool,theta,d,b,beta,gamma,turn,shift,theta_2 …")
    ] = "all",
    robust: Annotated[
        str, typer.Option(help="Outliers are excluded by: huber (at most 15 %), tukey, none (keep all).")
    ] = "huber",
    held_out: Annotated[float, typer.Option(help="Fraction of the poses held out for validation.")] = 0.2,
    degrees: Annotated[bool, typer.Option("--degrees", help="Joint angles are in degrees.")] = False,
    millimetres: Annotated[bool, typer.Option("--millimetres", help="Positions and distances are in mm.")] = False,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="A folder for arm, URDF, data, report.")] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Correct an arm's geometry from measured tool poses; writes an arm file, a URDF and a report."""
    from armdyn.calibration import Poses, calibrate

    loaded = load(arm, at_tool=frame is None)
    with progress("calibrating", quiet or as_json) as update:
        names = [joint.name for joint in loaded.joints]
        data = Poses.read(poses, names, loaded.n, degrees, millimetres)
        calibrated = calibrate(
            loaded, data, frame=frame, parameters=[word.strip() for word in parameters.split(",")], robust=robust,
            held_out=held_out, progress=update,
        )  # fmt: skip
        written = _write(calibrated, arm, output) if output is not None else []
    if as_json:
        print_json(calibrated.as_dict())
    elif not quiet:
        _show(calibrated, written)


def _write(calibrated: Any, arm: str, folder: Path) -> list[Path]:
    """Write all files into the folder, or none."""
    import json
    from tempfile import TemporaryDirectory

    from armdyn.cli.common import plain
    from armdyn.files.text import write_files

    with TemporaryDirectory() as apart:
        names = "arm.toml", "arm.urdf", "corrections.json", "report.html"
        file, urdf, corrections, report = (Path(apart) / name for name in names)
        calibrated.save(file)
        if arm.lower().endswith(".urdf"):  # the user's own file, with corrected joint origins
            cut = STATE.cut
            lock = locks(cut.get("lock") or [])
            calibrated.update_urdf(arm, urdf, base=cut.get("base"), tip=cut.get("tip"), lock=lock)
        else:
            calibrated.to_urdf(urdf)
        data = json.dumps(plain(calibrated.as_dict()), indent=2, ensure_ascii=False)
        corrections.write_text(data + "\n", encoding="utf-8")
        calibrated.report(report)
        return write_files(folder, {name: (Path(apart) / name).read_bytes() for name in names})


def _show(calibrated: Any, written: list[Path]) -> None:
    from armdyn.calibration.report import COLUMNS, correction_rows

    out = console()
    first, *others = calibrated.lines()
    out.print(first, highlight=False)
    for line in others:
        out.print(styled(("note:", "yellow"), f" {line}") if line in calibrated.notes else line, highlight=False)
    out.print(table("Corrections", COLUMNS, correction_rows(calibrated)))
    rows = [[axis, f"{1e3 * x:.4g}", "mrad" if "about" in axis else "mm"] for axis, x in calibrated.noise.items()]
    out.print(table("Noise of the measurement", ["axis", "σ", "unit"], rows))
    for path in written:
        out.print(f"wrote {path}", markup=False, highlight=False, soft_wrap=True)
