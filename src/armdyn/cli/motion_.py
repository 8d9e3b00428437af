"""`armdyn motion ARM`: the fastest motion through via points."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from armdyn.cli.common import ArmName, AsJson, Quiet, console, load, print_json, table, vector

if TYPE_CHECKING:
    from armdyn.motion import TimeOptimal

EXAMPLE = "Example: armdyn motion ur5 --via way.csv --payload 3 -o motion.csv --animate motion.html"
# Python's spelling of options in messages, and that of this command.
SPELLING = {"limits=MotionLimits(torque=...), acceleration= or tool_acceleration=": "--torque, --acceleration or "
            "--tool-acceleration"}  # fmt: skip
PANELS = {
    "Limits": (
        "torque",
        "velocity",
        "acceleration",
        "tool_speed",
        "tool_acceleration",
        "power",
        "jerk",
        "torque_rate",
        "grip",
    ),
    "The path": ("blend", "free", "clearance", "speeds", "grid", "friction"),
}


def command(
    arm: ArmName,
    via: Annotated[Path, typer.Option(help="CSV: q1 … qn or joints' names, or x, y, z and qx, qy, qz, qw.")],
    payload: Annotated[str, typer.Option(help="Masses at the tool, kg; it must work with each.")] = "",
    torque: Annotated[str, typer.Option(help="Torque limits, N m or N, one per joint; default: the file's.")] = "",
    velocity: Annotated[str, typer.Option(help="Speed limits, rad/s or m/s: one or n; default: the file's.")] = "",
    acceleration: Annotated[str, typer.Option(help="Acceleration limits, rad/s² or m/s²: one or n.")] = "",
    tool_speed: Annotated[float | None, typer.Option(help="Limit of the tool's speed, m/s.")] = None,
    tool_acceleration: Annotated[float | None, typer.Option(help="Limit of the tool's acceleration, m/s².")] = None,
    power: Annotated[float | None, typer.Option(help="Limit of the power of all motors together, W.")] = None,
    jerk: Annotated[str, typer.Option(help="Jerk limits, rad/s³ or m/s³: one or n.")] = "",
    torque_rate: Annotated[str, typer.Option(help="Limits of the torques' change, N m/s or N/s: one or n.")] = "",
    grip: Annotated[str, typer.Option(help="What must not slip: mass,force,friction in kg,N,-.")] = "",
    blend: Annotated[float | None, typer.Option(help="Straight lines, corners rounded by this, rad; 0: stop.")] = None,
    free: Annotated[int, typer.Option(help="Optimise the path too: its inner points; the file has two points.")] = 0,
    clearance: Annotated[
        float | None, typer.Option(help="Least distance of the arm's segments, m, with --free.")
    ] = None,
    speeds: Annotated[str, typer.Option(help="Path speeds at start and end, 1/s.")] = "0,0",
    grid: Annotated[int, typer.Option(help="Steps of the grid.")] = 200,
    friction: Annotated[bool, typer.Option("--friction/--no-friction", help="The motors overcome friction.")] = True,
    output: Annotated[Path | None, typer.Option("-o", "--output", help=".csv, .npz, .parquet, .html, .h (C).")] = None,
    animate: Annotated[Path | None, typer.Option(help="Write a page with the motion and its phase plane.")] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Compute the fastest motion through via points within all limits."""
    from armdyn.errors import InputError
    from armdyn.motion import Grip, MotionLimits, time_optimal

    loaded = load(arm, at_tool=True)
    held = vector(grip, "--grip") if grip else None
    if held is not None and len(held) != 3:
        raise InputError(f"--grip takes three numbers, mass,force,friction; got {grip!r}")
    limits = MotionLimits(
        torque=_one_or_all(torque, "--torque"), velocity=_one_or_all(velocity, "--velocity"),
        acceleration=_one_or_all(acceleration, "--acceleration"), tool_speed=tool_speed,
        tool_acceleration=tool_acceleration, power=power, jerk=_one_or_all(jerk, "--jerk"),
        torque_rate=_one_or_all(torque_rate, "--torque-rate"),
        grip=None if held is None else Grip(held[0], held[1], held[2]),
    )  # fmt: skip
    try:
        found = _free(loaded, via, free, clearance, payload, limits) if free else time_optimal(
            loaded, via, limits=limits, payload=vector(payload, "--payload") if payload else None, blend=blend,
            speeds=_pair(speeds, "--speeds"), grid=grid, friction=friction,
        )  # fmt: skip
    except InputError as error:
        raise InputError(_spelled(str(error))) from None
    if output is not None:
        found.save(output)
    if animate is not None:
        found.animate().save(animate)
    if as_json:
        names = ("t", "q", "qd", "qdd", "tau", "s", "speed", "fastest")
        told = {"arm": loaded.name, "duration": found.duration, "overrun": found.overrun, "binding": found.binding}
        print_json(told | {name: getattr(found, name) for name in names})
    elif not quiet:
        _print(found, [path for path in (output, animate) if path is not None])


def _free(arm: Any, via: Path, points: int, clearance: float | None, payload: str, limits: Any) -> TimeOptimal:
    """The fastest motion between the two points of the file."""
    from armdyn.errors import InputError
    from armdyn.motion import fastest_path
    from armdyn.motion.via import read_via

    ends = read_via(via, arm)
    if ends.shape != (2, arm.n):
        raise InputError(f"--free takes two configurations in {via}, a start and an end; got {len(ends)} points")
    masses = vector(payload, "--payload") if payload else None
    return fastest_path(arm, *ends, limits=limits, payload=masses, points=points, clearance=clearance)


def _pair(text: str, name: str) -> tuple[float, float]:
    from armdyn.errors import InputError

    values = vector(text, name)
    if len(values) != 2:
        raise InputError(f"{name} takes two numbers, got {text!r}")
    return values[0], values[1]


def _one_or_all(text: str, name: str) -> Any:
    """One number for all joints, or one per joint; None for the arm's own."""
    values = vector(text, name) if text else None
    return values[0] if values is not None and len(values) == 1 else values


def _spelled(message: str) -> str:
    for python, shell in SPELLING.items():
        message = message.replace(python, shell)
    return message


def _print(found: TimeOptimal, written: list[Path]) -> None:
    import numpy as np

    out, arm = console(), found.arm
    out.print(f"{arm.name}: {found.message}", highlight=False, markup=False)
    revolute = [joint.revolute for joint in arm.joints]
    rows = [
        [name, float(np.abs(found.qd[:, k]).max()), float(arm.velocity_limits[k]), "rad/s" if revolute[k] else "m/s",
         float(np.abs(found.tau[:, k]).max()), float(arm.effort_limits[k]), "N m" if revolute[k] else "N"]
        for k, name in enumerate(arm.joint_names)
    ]  # fmt: skip
    heads = ["joint", "largest speed", "limit of the file", "", "largest torque", "limit of the file", ""]
    out.print(table("What the motion takes", heads, rows))
    steps = np.diff(found.t)
    shares: dict[str, float] = {}
    for name, step in zip(found.binding, steps, strict=False):
        shares[name] = shares.get(name, 0.0) + float(step)
    ranked = sorted(shares.items(), key=lambda one: -one[1])
    rows = [[name, f"{100 * time / found.duration:.1f} %"] for name, time in ranked]
    out.print(table("What limits it", ["limit", "part of the time"], rows))
    for path in written:
        out.print(f"wrote {path}", markup=False, highlight=False, soft_wrap=True)
