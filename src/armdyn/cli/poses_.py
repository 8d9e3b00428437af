"""`armdyn poses ARM`: the best configurations to measure for a calibration."""

from __future__ import annotations

from typing import Annotated

import typer

from armdyn.cli.common import ArmName, AsJson, Output, Page, Quiet, console, load, print_json, progress, table

EXAMPLE = "Example: armdyn poses ur5 --count 40 -o poses.csv"


def command(
    arm: ArmName,
    count: Annotated[int, typer.Option(help="Number of poses.")] = 40,
    measured: Annotated[str, typer.Option(help="What will be measured: pose, or point.")] = "pose",
    parameters: Annotated[str, typer.Option(help="Parameters to be corrected, as in `calibrate`.")] = "all",
    frame: Annotated[str | None, typer.Option(help="The frame to be measured; default: the tool.")] = None,
    candidates: Annotated[int, typer.Option(help="Number of random configurations to choose from.")] = 1000,
    above: Annotated[float | None, typer.Option(help="Keep the tool at least this high (z in the base), m.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the random configurations.")] = 0,
    output: Output = None,
    report: Page = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Choose configurations whose measurement calibrates an arm best."""
    from armdyn.calibration import calibration_poses

    loaded = load(arm, at_tool=frame is None)
    at = loaded.pose if frame is None else loaded.kernel("pose", frame=frame)
    with progress("choosing poses", quiet or as_json) as update:
        plan = calibration_poses(
            loaded, count, frame=frame, parameters=[word.strip() for word in parameters.split(",")], measured=measured,
            candidates=candidates, seed=seed, progress=update,
            accept=None if above is None else lambda q: at(q)[:, 2, 3] >= above,
        )  # fmt: skip
    names = [f"q{k + 1}" for k in range(loaded.n)]
    if output is not None:
        from armdyn.files.text import write_text

        rows = "".join(",".join(f"{x:.6f}" for x in q) + "\n" for q in plan.q)
        write_text(output, ",".join(names) + "\n" + rows)
    if report is not None:
        plan.plot().save(report)
    if as_json:
        data = {"q": plan.q, "names": plan.names, "deviations": plan.deviations, "gain": plan.gain}
        print_json(data)
    elif not quiet:
        out = console()
        out.print(table("Poses (rad, m)", ["pose", *names], [[k, *map(float, q)] for k, q in enumerate(plan.q, 1)]))
        text = f"Mean standard deviation {plan.gain:.2f} times smaller than that of the best of 50 random selections."
        out.print(text, highlight=False)
        if output is not None:
            out.print(f"wrote {output}", markup=False, highlight=False, soft_wrap=True)
