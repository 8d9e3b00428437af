"""`armdyn simulate ARM`: let an arm move."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from armdyn.cli.common import ArmName, AsJson, Quiet, console, load, print_json, progress, vector

EXAMPLE = "Example: armdyn simulate puma560 --q 0,0.5,0,0,0,0 --duration 2 -o fall.csv"


def command(
    arm: ArmName,
    q: Annotated[str, typer.Option(help="Initial positions, rad or m; zeros by default.")] = "",
    qd: Annotated[str, typer.Option(help="Initial velocities; zeros by default.")] = "",
    tau: Annotated[str, typer.Option(help="Constant joint forces, N m or N; none by default.")] = "",
    hold: Annotated[bool, typer.Option("--hold", help="Hold the posture: PD control with the gravity load.")] = False,
    duration: Annotated[float, typer.Option(help="Seconds.")] = 1.0,
    step: Annotated[float, typer.Option(help="Seconds; of fixed-step methods, and between stored rows.")] = 1e-3,
    method: Annotated[str, typer.Option(help="RK4, RK5, AB4, semi_implicit_euler, DOP853, LSODA, Radau…")] = "RK4",
    friction: Annotated[bool, typer.Option("--friction/--no-friction", help="The joints' friction acts.")] = True,
    limits: Annotated[bool, typer.Option("--limits/--no-limits", help="Stop at a joint's limit.")] = True,
    output: Annotated[Path | None, typer.Option("-o", "--output", help=".csv, .npz, .parquet, or .html.")] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:  # fmt: skip
    """Simulate an arm from a state, left alone, under constant forces, or holding its posture."""
    import numpy as np

    from armdyn.files.text import write_text
    from armdyn.simulation import PDGravity, simulate

    loaded = load(arm)
    q0 = vector(q, "q") if q else np.zeros(loaded.n)
    torque: Any = vector(tau, "tau") if tau else None
    if hold:  # critically damped at 20 rad/s, by each joint's own inertia
        inertia = np.diag(loaded.inertia_matrix(q0))
        torque = PDGravity(q0, 400.0 * inertia, 40.0 * inertia)
    with progress("simulating", quiet or as_json) as update:
        result = simulate(
            loaded, q0, vector(qd, "qd") if qd else None, torque=torque, duration=duration, step=step, method=method,
            friction=friction, limits=limits, progress=update,
        )  # fmt: skip
    if output is not None and output.suffix == ".html":
        write_text(output, result.plot().to_html(include_plotlyjs=True))
    elif output is not None:
        result.save(output)
    if as_json:
        names = ("t", "q", "qd", "qdd", "tau", "energy")
        print_json({"status": result.status, "message": result.message} | {n: getattr(result, n) for n in names})
    elif not quiet:
        out = console()
        out.print(f"[bold]{loaded.name}[/] by {method}: {result.status}; {result.message}", highlight=False)
        out.print(f"q  = {np.array2string(result.q[-1], precision=6)}", highlight=False, markup=False)
        out.print(f"qd = {np.array2string(result.qd[-1], precision=6)}", highlight=False, markup=False)
        drift = float(np.max(np.abs(result.energy - result.energy[0])))
        out.print(f"energy {result.energy[-1]:.6g} J, largest change {drift:.3g} J", highlight=False)
        if output is not None:
            out.print(f"wrote {output}", markup=False)
    if result.status in ("diverged", "stalled"):
        raise typer.Exit(4)
