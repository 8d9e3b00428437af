"""`armdyn simulate ARM`: simulate an arm."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from armdyn.cli.common import ArmName, AsJson, Degrees, Quiet, console, load, print_json, progress, table, vector
from armdyn.cli.options import names, with_records
from armdyn.cli.values import joint_numbers, state_table
from armdyn.options import Conditions, Integration

if TYPE_CHECKING:
    from armdyn.simulation import Trajectory

EXAMPLE = "Example: armdyn simulate puma560 --q 0,0.5,0,0,0,0 --duration 2 -o fall.csv"
LAW = "A control law or an observer (repeatable); a wrong name lists them."
# Python's spelling of options in messages, and that of this command.
SPELLING = {
    "limits=False": "--no-limits",
    "limits=0.0": "--restitution 0",
    'method="ARK4"': "--method ARK4",
    "give times= to store fewer, or a longer step": "give a longer --step",
    "q0": "--q",
    "qd0": "--qd",
    "actuators= need": "--control-period, --delay, --torque-rate, --encoder, --noise and --controller need",
}

PANELS = {
    "Integration and model": (*names(Integration, "step"), *names(Conditions), "restitution"),
    "The controller's hardware": ("control_period", "delay", "torque_rate", "encoder", "noise"),
}


@with_records
def command(
    arm: ArmName,
    q: Annotated[str, typer.Option(help="Initial positions, rad or m, or -90deg; default: at rest.")] = "",
    qd: Annotated[str, typer.Option(help="Initial velocities; zeros by default.")] = "",
    degrees: Degrees = False,
    tau: Annotated[str, typer.Option(help="Constant joint forces, N m or N; none by default.")] = "",
    hold: Annotated[bool, typer.Option("--hold", help="Hold the position, with gains for the control period.")] = False,
    controller: Annotated[list[str] | None, typer.Option("--controller", help=LAW)] = None,
    frame: Annotated[str | None, typer.Option(help="The frame of the control laws; default: the tool.")] = None,
    to: Annotated[str, typer.Option(help="Target of the control law's motion; default: hold the position.")] = "",
    duration: Annotated[float, typer.Option(help="Seconds.")] = 1.0,
    integration: Integration = Integration(),
    conditions: Conditions = Conditions(),
    limits: Annotated[bool, typer.Option("--limits/--no-limits", help="Stop at a joint limit.")] = True,
    restitution: Annotated[float | None, typer.Option(help="Limits are stops with this restitution, 0 to 1.")] = None,
    control_period: Annotated[float | None, typer.Option(help="Period of the controller, s.")] = None,
    delay: Annotated[float, typer.Option(help="Seconds until the controller's torques act.")] = 0.0,
    torque_rate: Annotated[float | None, typer.Option(help="Torque rate limit, N m/s or N/s.")] = None,
    encoder: Annotated[float | None, typer.Option(help="Encoder resolution, rad or m.")] = None,
    noise: Annotated[str, typer.Option(help="Standard deviations of measured q,qd,tau.")] = "",
    output: Annotated[Path | None, typer.Option("-o", "--output", help=".csv, .npz, .parquet, animated .html.")] = None,
    animate: Annotated[Path | None, typer.Option(help="Write an HTML page with an animation.")] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:  # fmt: skip
    """Simulate an arm from an initial state: passive, with constant forces, or with control laws."""
    from armdyn.errors import InputError
    from armdyn.simulation import Actuators, simulate

    loaded = load(arm, at_tool=bool(controller) and frame is None)
    q0 = joint_numbers(loaded, q, "q", degrees) if q else loaded.rest
    qd0 = joint_numbers(loaded, qd, "qd", degrees) if qd else None
    torque: Any = vector(tau, "--tau") if tau else None
    ideal = control_period is None and torque_rate is None and encoder is None and not delay and not noise
    actuators = None if ideal else Actuators(control_period, delay, torque_rate, encoder, **_noise(noise))
    if hold:
        sampled = actuators or (Actuators() if controller else None)
        torque = _holding(loaded, q0, sampled, integration.step, conditions.saturate is not False)
    if controller:
        target = joint_numbers(loaded, to, "q", degrees, "--to") if to else None
        torque = _digital(loaded, controller, frame, torque, q0, target, duration, conditions.friction)
    elif to or frame:
        raise InputError(f"--{'to' if to else 'frame'} needs a --controller that moves the joints")
    try:
        with progress("simulating", quiet or as_json) as update:
            result = simulate(
                loaded, q0, qd0, torque=torque, duration=duration, actuators=actuators, progress=update,
                integration=integration,
                conditions=replace(conditions, limits=limits if restitution is None else restitution),
            )  # fmt: skip
    except InputError as error:
        raise InputError(spelled(str(error))) from None
    _write(result, output, animate)
    if as_json:
        names = ("t", "q", "qd", "qdd", "tau", "energy")
        state = {"status": result.status, "message": spelled(result.message), "method": result.method}
        print_json(state | {name: getattr(result, name) for name in names} | {"signals": result.signals})
    elif not quiet:
        _print(result, [path for path in (output, animate) if path is not None])
    if result.status in ("diverged", "stalled", "unstable step", "unstable loop"):
        raise typer.Exit(4)


def _holding(loaded: Any, q0: Any, actuators: Any, step: Any, saturate: bool) -> Any:
    """The controller of --hold, with gains for the period at which it will be called."""
    from armdyn.simulation import holding

    if actuators is None:
        return holding(loaded, q0, saturate=saturate)
    called = 1e-3 if step == "auto" else step  # without a control period, at every step
    period = called if actuators.period is None else actuators.period
    sensors = {"delay": actuators.delay, "encoder": actuators.encoder is not None}
    return holding(loaded, q0, period=period, saturate=saturate, **sensors)


def _digital(
    loaded: Any, names: list[str], frame: str | None, torque: Any, q0: Any, to: Any, duration: float, friction: bool
) -> Any:
    """The control laws in the loop: at most one controller (or `torque`), and any number of observers."""
    from armdyn.control import controller
    from armdyn.errors import InputError
    from armdyn.simulation import Digital, quintic

    laws = [controller(loaded, name, friction=friction, frame=frame) for name in dict.fromkeys(names)]
    driving = [law for law in laws if not law.law.observes]
    if len(driving) > 1 or (driving and torque is not None):
        others = [] if torque is None else ["--hold or --tau"]
        names_given = ", ".join([*(law.law.name for law in driving), *others])
        raise InputError(f"only one of these can drive the joints: {names_given}")
    motion = quintic(q0, to, 0.8 * duration) if to is not None else q0
    return Digital(driving[0] if driving else torque, motion, [law for law in laws if law.law.observes])


def _noise(text: str) -> dict[str, Any]:
    from armdyn.errors import InputError

    if not text:
        return {}
    values = vector(text, "--noise")
    if len(values) != 3:
        raise InputError(f"--noise takes three numbers, of positions, velocities and torques; got {text!r}")
    names = ("position_noise", "velocity_noise", "torque_noise")
    return {name: float(x) or None for name, x in zip(names, values, strict=True)}


def spelled(message: str) -> str:
    """A message with Python's spelling of options turned into the command line's."""
    import re

    for python, shell in SPELLING.items():
        message = re.sub(rf"(?<!\w){re.escape(python)}(?!\w)", shell, message)
    return message


def _write(result: Trajectory, output: Path | None, animate: Path | None) -> None:
    if output is not None:
        result.save(output)
    if animate is not None:
        result.animate().save(animate)


def _print_outputs(result: Trajectory, name: str) -> None:
    """The last outputs of a control law: those of the joints in one table, the others line by line."""
    import numpy as np

    from armdyn.control import CONTROLLERS
    from armdyn.html import number

    out, outputs = console(), CONTROLLERS[name].outputs
    last = {entry.name: np.asarray(result.signals[name][entry.name][-1], float) for entry in outputs}
    own = [entry for entry in outputs if entry.shape == ("nv",)]
    if own:
        forces = ["N m" if joint.revolute else "N" for joint in result.arm.joints]
        rows = [
            [joint, *(float(last[entry.name][k]) for entry in own), forces[k]]
            for k, joint in enumerate(result.arm.joint_names)
        ]
        out.print(table(f"{name}: {'; '.join(entry.words for entry in own)}",
                        ["joint", *(entry.name for entry in own), "unit of forces"], rows))  # fmt: skip
    for entry in outputs:
        if entry not in own:
            values = ", ".join(number(float(x)) for x in last[entry.name].ravel())
            out.print(f"{name} {entry.name} = {values} ({entry.words})", highlight=False, markup=False)


def _print(result: Trajectory, written: list[Path]) -> None:
    import numpy as np

    out = console()
    head = f"{result.arm.name} by {result.method}: {result.status}; {spelled(result.message)}"
    out.print(head, highlight=False, markup=False)
    out.print(state_table(result.arm, result.t[-1], result.q[-1], result.qd[-1]))
    drift = float(np.max(np.abs(result.energy - result.energy[0])))
    out.print(f"energy {result.energy[-1]:.6g} J, largest change {drift:.3g} J", highlight=False)
    saturated = (np.abs(result.tau[..., -result.arm.n :]) >= (1 - 1e-9) * result.arm.effort_limits).any(axis=0)
    if saturated.any():
        names = ", ".join(joint.name for joint, full in zip(result.arm.joints, saturated, strict=True) if full)
        out.print(f"reached their torque limit: {names}", highlight=False, markup=False)
    for name in result.signals:
        _print_outputs(result, name)
    for path in written:
        out.print(f"wrote {path}", markup=False, highlight=False, soft_wrap=True)
