"""Simulation beside MuJoCo: the same arm, the same fourth-order Runge-Kutta, steps a second in one run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from armdyn.arm import Arm
from armdyn.programs.assemble import Options
from armdyn.simulation.drives import drive
from armdyn.simulation.request import Span
from armdyn.simulation.stepper import LawTorques, Stepper

STEP = 1e-4  # seconds; short enough that no arm leaves the numbers
FRICTION_STEP = 1e-3  # seconds, with friction: joints come to rest and break away within the run


@dataclass(frozen=True)
class Row:
    """Nanoseconds a step and state, ours and MuJoCo's."""

    arm: str
    states: int
    ours: float
    mujoco: float

    @property
    def ratio(self) -> float:
        """How many times more steps a second."""
        return self.mujoco / self.ours


def model(arm: Arm, step: float = STEP, friction: bool = False) -> Any:
    """The arm as MuJoCo's model: no contacts, no limits, RK4; friction only if asked for.

    MuJoCo refuses some measured inertias when it reads a file (the Puma's link 3 breaks the triangle
    inequality, its link 1 has no mass), so the links are put in afterwards, number by number.
    """
    mj: Any = import_module("mujoco")
    made = mj.MjModel.from_xml_string(_frames(arm, friction))
    for body, link in enumerate(arm.links, start=made.nbody - arm.n):
        moments, axes = np.linalg.eigh(_array(link.inertia_about_com.full.rows))
        axes = axes * np.sign(np.linalg.det(axes))
        made.body_mass[body] = float(link.mass)
        made.body_ipos[body] = [float(x) for x in link.com]
        made.body_inertia[body] = moments
        mj.mju_mat2Quat(made.body_iquat[body], axes.ravel())
    made.dof_armature[:] = arm.rotor_inertias
    if friction:
        made.dof_damping[:] = [float(joint.viscous) for joint in arm.joints]
        made.dof_frictionloss[:] = [float(joint.coulomb) for joint in arm.joints]
    made.opt.gravity[:] = arm.gravity
    made.opt.timestep = step
    mj.mj_setConst(made, mj.MjData(made))
    return made


def _frames(arm: Arm, friction: bool) -> str:
    """MJCF of the joints' frames, with unit balls for links."""
    text, standing = "", arm.chain.base
    for joint in arm.joints:
        R, p = joint.placement(0)
        rows, at = _array((standing.R @ R.matrix()).rows), _array(standing.p + standing.R @ p)
        standing = type(standing)()
        axes = " ".join(repr(float(x)) for x in (*rows[:, 0], *rows[:, 1]))
        kind = "hinge" if joint.revolute else "slide"
        text += (
            f'<body pos="{" ".join(repr(float(x)) for x in at)}" xyaxes="{axes}"><joint type="{kind}" axis="0 0 1"/>'
        )
        text += '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'
    constraint = "enable" if friction else "disable"
    flags = f'<option integrator="RK4"><flag constraint="{constraint}" contact="disable" limit="disable"/></option>'
    return f"<mujoco>{flags}<worldbody>{text}{'</body>' * arm.n}</worldbody></mujoco>"


def _array(values: Any) -> np.ndarray:
    rows = [[float(x) for x in row] if hasattr(row, "__iter__") else float(row) for row in values]
    return np.array(rows)


def ours(arm: Arm, q: np.ndarray, steps: int, step: float = STEP, friction: bool = False) -> Callable[[], np.ndarray]:
    """A run of the compiled loop: (states, steps, 2n), every step stored."""
    idle = drive(arm.chain, None)
    assert idle is not None
    stepper = Stepper(arm.chain, LawTorques(idle), Options(friction=friction), None, "RK4")
    state = np.hstack([q, np.zeros_like(q)])
    return lambda: np.concatenate([rows for rows, _ in stepper.run(state, Span(0.0, step, 1, steps))], axis=1)


def theirs(arm: Arm, q: np.ndarray, steps: int, step: float = STEP, friction: bool = False) -> Callable[[], np.ndarray]:
    """The same by `mujoco.rollout` on one thread."""
    mj: Any = import_module("mujoco")
    rollout: Any = import_module("mujoco.rollout")
    made = model(arm, step, friction)
    data = mj.MjData(made)
    state = np.zeros((len(q), mj.mj_stateSize(made, mj.mjtState.mjSTATE_FULLPHYSICS)))
    state[:, 1 : 1 + arm.n] = q  # after the time

    def run() -> np.ndarray:
        states, _ = rollout.rollout(made, data, initial_state=state, nstep=steps)
        return np.asarray(states)[..., 1 : 1 + 2 * arm.n]

    return run


def measure(
    arms: Iterable[Arm], states: Iterable[int], work: int, repeats: int = 5, friction: bool = False
) -> list[Row]:
    """Nanoseconds a step: the best of `repeats` turns, ours and theirs by turns; `work` steps of one state each."""
    rows = []
    for arm in arms:
        for count in states:
            q = np.random.default_rng(0).uniform(-1, 1, (count, arm.n))
            steps = max(1, work // count)
            step = FRICTION_STEP if friction else STEP
            runs = ours(arm, q, steps, step, friction), theirs(arm, q, steps, step, friction)
            for run in runs:
                run()
            turns = [[_seconds(run) for run in runs] for _ in range(repeats)]
            best = [min(seconds) for seconds in zip(*turns, strict=True)]
            rows.append(Row(arm.name, count, *(1e9 * seconds / (count * steps) for seconds in best)))
    return rows


def _seconds(run: Callable[[], Any]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start
