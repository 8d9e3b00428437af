"""An arm under position servos, in steps of a millisecond, with its exact sensitivities.

One step of h from (q, v, w), positions, velocities and the firmware's estimates of them, is Moreau's midpoint rule:

    q_m = q + h/2 v,    M(q_m) a + b(q_m, v) = τ - viscous v_m - dry friction,    v⁺ = v + h a,    q⁺ = q_m + h/2 v⁺

with v_m = (v + v⁺)/2 and the servo's τ at q_m and v_m. Dry friction is what brings v⁺ to 0 where it can, else its
largest value against v⁺; the torque limit clips τ. Both are modes per joint (stick or slide, saturated or not), found
by an active set for the velocities v⁺, which exist and are unique because all these laws are monotone (Moreau 1988).
The map is continuous in state and parameters and smooth where no mode changes: its derivative, by the implicit function
theorem from the kernels of inverse dynamics and of the regressor, is exact there. A firmware that computes torques once
per period and holds them sees positions and velocities half a period late (`hold`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armdyn.arm import Arm
from armdyn.chain.joint import NO_FORCES
from armdyn.codegen.compile import load_or_compile
from armdyn.formulations.elimination import solve_with_locks
from armdyn.formulations.registry import Options
from armdyn.graph.program import trace
from armdyn.kernels.kernel import Kernel
from armdyn.programs.assemble import assemble
from armdyn.values import cached_property

Array = NDArray[np.float64]
AT_RUN_TIME = Options(parameters="runtime")
PASSES = 8  # changes of modes within one step
CHUNK = 4000  # rows of sensitivities at a time
# Of each joint, in this order: the servo's, its torque limit, and what its motor and gear add.
FIELDS = (
    "kp",
    "kd",
    "delay",
    "dead_band",
    "lag",
    "limit",
    "armature",
    "viscous",
    "coulomb",
    "static",
    "stribeck",
    "load",
)


@dataclass(frozen=True)
class Values:
    """The parameters: (n,) of the joints by the names of FIELDS, and (p,) minimal inertial parameters.

    `static` is what static friction has above Coulomb friction, at the Stribeck speed `stribeck` half of it is left.
    """

    joints: dict[str, Array]
    inertial: Array

    def __getattr__(self, name: str) -> Any:
        if name not in FIELDS:
            raise AttributeError(name)
        return self.joints[name]


@dataclass(frozen=True)
class Shots:
    """Parts of logs that are simulated side by side, each from a state of its own.

    Lanes are parts; `measured` and `weights` are (samples, lanes, n), weights being 0 for samples that another part
    has. `command` (samples + lead, lanes, n) begins `lead` samples earlier, so that delayed commands are known;
    `added` (lanes, p) is what a known load adds to the inertial parameters.
    """

    measured: Array
    weights: Array
    command: Array
    lead: int
    period: float
    steps: int  # of integration per sample
    added: Array
    hold: float = 0.0  # s: half the period of the firmware

    @property
    def h(self) -> float:
        """The step of the integration."""
        return self.period / self.steps

    def acting(self, delay: Array) -> tuple[Array, Array]:
        """The held commands that act on average over each step (steps, lanes, n), and their slopes in the delay."""
        count = (len(self.measured) - 1) * self.steps
        total = np.concatenate([np.zeros((1, *self.command.shape[1:])), np.cumsum(self.command, axis=0)])
        ends, found = np.arange(count + 1) / self.steps + self.lead, []
        held = []
        for i, late in enumerate(delay):
            at = np.clip(ends - late / self.period, 0.0, len(self.command) - 1e-9)
            k = at.astype(int)
            now = self.command[k, :, i]
            found.append(total[k, :, i] + (at - k)[:, None] * now)
            held.append(now)
        integral, now = np.stack(found, -1), np.stack(held, -1)
        return np.diff(integral, axis=0) * self.steps, -np.diff(now, axis=0) / self.h


@dataclass(frozen=True)
class Run:
    """A simulation of shots: states (steps + 1, lanes, n) and the modes of each step (steps, lanes, n)."""

    q: Array
    v: Array
    w: Array
    slide: Array  # -1, 0 (sticks), 1
    saturated: Array  # -1, 0, 1
    pulled: Array  # the sign of the load
    command: Array
    command_slope: Array

    @property
    def finite(self) -> bool:
        """Whether the simulation stayed finite."""
        return bool(np.isfinite(self.q[-1]).all() and np.isfinite(self.v[-1]).all())


class ServoModel:
    """The arm without motors and friction, and the programs of its steps."""

    def __init__(self, arm: Arm) -> None:
        bare = tuple(
            replace(j, rotor_inertia=0, viscous=0, coulomb=0, static=0, stribeck=0, forces=NO_FORCES, servo=None)
            for j in arm.given.joints
        )
        self.arm = replace(arm, given=replace(arm.given, joints=bare))
        self.n = arm.n

    @cached_property
    def torques(self) -> Kernel:
        """Inverse dynamics with the inertial parameters as an input."""
        return self.arm.kernel("inverse_dynamics", parameters="runtime")

    @cached_property
    def slopes(self) -> Kernel:
        """Its derivatives in q and qd, and the inertia matrix."""
        wrt = ("q", "qd", "qdd")
        return self.arm.kernel("inverse_dynamics", parameters="runtime", derivatives=wrt)

    @cached_property
    def regressor(self) -> Kernel:
        """Its derivatives in the inertial parameters."""
        return self.arm.kernel("regressor")

    @cached_property
    def step(self) -> Callable[..., tuple[Array, Array]]:
        """(q_m, v, h, τ, damping, part, friction, armature, free, inertial) -> v⁺ and what holds a joint that sticks.

        Joints that are not free keep v⁺ = 0. `part` of a force moves the load, the rest is lost in the gear.
        """
        chain, n = self.arm.chain, self.n
        inertia, bias = (
            assemble(chain, name, Kernel(chain, name, options=AT_RUN_TIME).method, AT_RUN_TIME).function
            for name in ("inertia_matrix", "bias")
        )

        def function(
            q: Any, v: Any, h: Any, tau: Any, damping: Any, part: Any, dry: Any, motor: Any, free: Any, p: Any
        ) -> Any:
            H, b = [list(row) for row in inertia(q, p)], bias(q, v, p)
            right = []
            for i in range(n):
                H[i][i] = H[i][i] + motor[i]
                momentum = sum((x * y for x, y in zip(H[i], v, strict=True)), 0)
                slowed = part[i] * damping[i] * h[0] / 2
                right.append(momentum + h[0] * (part[i] * (tau[i] - dry[i]) - b[i]) - slowed * v[i])
            for i in range(n):
                H[i][i] = H[i][i] + part[i] * damping[i] * h[0] / 2
            x, left = solve_with_locks(H, right, free, [0] * n)
            return x, [rest / h[0] for rest in left]

        sizes = {"q": n, "v": n, "h": 1, "tau": n, "damping": n, "part": n, "dry": n, "motor": n, "free": n}
        inputs = {name: (size,) for name, size in sizes.items()} | {"p": (len(self.arm.minimal_parameters.names),)}
        make = partial(trace, "servo_step", function, inputs, [("v", (n,)), ("left", (n,))])
        made: Any = load_or_compile(("servo_step", chain), make, uniform=("h", "motor"))
        return made  # type: ignore[no-any-return]

    def run(self, values: Values, shots: Shots, q: Array, v: Array) -> Run:
        """Simulate the shots from states (lanes, n)."""
        command, slope = shots.acting(values.delay)
        count, h = len(command), shots.h
        inertial = values.inertial + shots.added
        states = [np.empty((count + 1, *q.shape)) for _ in range(3)]
        modes = [np.zeros((count, *q.shape), dtype=np.int8) for _ in range(3)]
        w = v
        states[0][0], states[1][0], states[2][0] = q, v, w
        now = _Modes(np.sign(v), np.zeros_like(v), np.zeros_like(v))
        step = _Step(self, values, h, inertial, shots.hold)
        with np.errstate(all="ignore"):
            for k in range(count):
                middle = q + h / 2 * v
                ahead, w, now = step.taken(middle, v, w, command[k], now)
                q, v = middle + h / 2 * ahead, ahead
                for array, value in zip(states, (q, v, w), strict=True):
                    array[k + 1] = value
                for array, value in zip(modes, (now.slide, now.saturated, now.pulled), strict=True):
                    array[k] = value
                if k % 200 == 0 and not np.isfinite(v).all():
                    for array in states:
                        array[k + 1 :] = np.nan
                    break
        (q_all, v_all, w_all), (slide, saturated, pulled) = states, modes
        return Run(q_all, v_all, w_all, slide, saturated, pulled, command, slope)


@dataclass(frozen=True)
class _Modes:
    slide: Array
    saturated: Array
    pulled: Array


class _Step:
    """One step for all lanes."""

    kp: Array
    kd: Array
    dead_band: Array
    limit: Array
    armature: Array
    viscous: Array
    coulomb: Array
    static: Array
    stribeck: Array
    load: Array

    def __init__(self, model: ServoModel, values: Values, h: float, inertial: Array, hold: float) -> None:
        self.program, self.h, self.inertial, self.hold = model.step, h, inertial, hold
        for name, numbers in values.joints.items():
            setattr(self, name, numbers)
        self.late = values.lag + hold
        self.share = self.late / (self.late + h / 2)  # of w in the estimate at the middle of a step
        self.keep = self.late / (self.late + h)  # of w at the end of it
        self.span = np.array([h])
        self.damped = values.kd * (1 - self.share)
        self.banded, self.gears = bool(values.dead_band.any()), bool(values.load.any())
        self.falls, self.limited = bool(values.static.any()), bool(np.isfinite(values.limit).any())
        self.rubs = (values.coulomb + values.static + values.load) > 0

    def taken(self, q: Array, v: Array, w: Array, command: Array, modes: _Modes) -> tuple[Array, Array, _Modes]:
        """(v⁺, w⁺, modes) for positions at the middle of the step."""
        error = command - q + self.hold * v
        if self.banded:
            error = error - np.clip(error, -self.dead_band, self.dead_band)
        push = self.kp * error - self.kd * self.share * w
        most = self.coulomb + (self.static / (1 + (v / self.stribeck) ** 2) if self.falls else np.zeros_like(v))
        slide, saturated, pulled = modes.slide, modes.saturated, modes.pulled
        tau, damping, part = push, np.broadcast_to(self.viscous + self.damped, v.shape), np.ones_like(v)
        for _ in range(PASSES):
            if self.limited:
                linear = saturated == 0
                tau = np.where(linear, push, np.where(linear, 0.0, saturated) * np.where(linear, 1.0, self.limit))
                damping = self.viscous + linear * self.damped
            if self.gears:
                part = 1 / (1 + self.load * slide * pulled)
            ahead, left = self.program(
                q, v, self.span, tau, damping, part, slide * most, self.armature, np.abs(slide), self.inertial
            )
            stuck = slide == 0
            holds = most
            side, clipped = pulled, saturated
            if self.gears:
                force = tau - damping * (v + ahead) / 2 - slide * most
                load = np.where(stuck, force - left, force)
                holds, side = most + self.load * np.abs(load), np.sign(load)
            if self.limited:
                wanted = push - self.damped * (v + ahead) / 2
                clipped = (wanted > self.limit) * 1.0 - (wanted < -self.limit)
            turned = np.where(stuck, np.where(np.abs(left) > holds, np.sign(left), 0.0), slide * (ahead * slide >= 0))
            turned = np.where(self.rubs, turned, 1.0)
            same = (turned == slide).all() and (clipped is saturated or (clipped == saturated).all())
            if same and (side is pulled or (side == pulled).all()):
                break
            slide, saturated, pulled = turned, clipped, side
        return ahead, self.keep * w + (1 - self.keep) * ahead, _Modes(slide, saturated, pulled)


@dataclass(frozen=True)
class SensitivityColumns:
    """The parameters of joints by field and joint, and directions of inertial parameters.

    `slopes` (parameters, coordinates) are those of the joints' parameters in what is free.
    """

    fields: tuple[str, ...]
    joints: NDArray[np.intp]
    slopes: Array
    directions: Array

    def __len__(self) -> int:
        return int(self.slopes.shape[1]) + int(self.directions.shape[1])


def sensitivities(
    model: ServoModel,
    values: Values,
    shots: Shots,
    run: Run,
    columns: SensitivityColumns,
    see: Callable[[int, Array], None],
) -> None:
    """Call `see(sample, S)` with S (lanes, n, 2n + columns): the slopes of q in initial q and v and the parameters."""
    n, h, lanes = model.n, shots.h, run.q.shape[1]
    late = values.lag + shots.hold
    lagged = bool(late.any()) or "lag" in columns.fields
    S = np.zeros((lanes, 3 * n if lagged else 2 * n, 2 * n + len(columns)))
    S[:, : 2 * n, : 2 * n] = np.eye(2 * n)
    if lagged:
        S[:, 2 * n :, n : 2 * n] = np.eye(n)
    see(0, S[:, :n])
    count = len(run.command)
    chunk = max(CHUNK // lanes, 1)
    keep = (late / (late + h))[:, None]
    lag = [k for k, name in enumerate(columns.fields) if name == "lag"]
    for first in range(0, count, chunk):
        part = slice(first, min(first + chunk, count))
        by_state, by_parameter = _slopes(model, values, shots, run, columns, part, lagged)
        for j, k in enumerate(range(part.start, part.stop)):
            ahead = by_state[j] @ S
            ahead[..., 2 * n :] += by_parameter[j]
            S_v = S[:, n : 2 * n]
            if lagged:
                S[:, 2 * n :] = keep * S[:, 2 * n :] + (1 - keep) * ahead
                for c in lag:
                    i = columns.joints[c]
                    slope = (run.w[k][:, i] - run.w[k + 1][:, i]) / (late[i] + h)
                    S[:, 2 * n + i, 2 * n : 2 * n + columns.slopes.shape[1]] += slope[:, None] * columns.slopes[c]
            S[:, :n] += h / 2 * (S_v + ahead)
            S[:, n : 2 * n] = ahead
            if (k + 1) % shots.steps == 0:
                see((k + 1) // shots.steps, S[:, :n])


def _slopes(
    model: ServoModel, values: Values, shots: Shots, run: Run, columns: SensitivityColumns, part: slice, lagged: bool
) -> tuple[Array, Array]:
    """∂v⁺/∂(q, v, w) (steps, lanes, n, 3n) and ∂v⁺/∂parameters (steps, lanes, n, columns) by implicit functions."""
    x, h = values, shots.h
    v, ahead = run.v[part], run.v[part.start + 1 : part.stop + 1]
    q, a, middle = run.q[part] + h / 2 * v, (ahead - v) / h, (v + ahead) / 2
    slide, linear = run.slide[part].astype(float), (run.saturated[part] == 0).astype(float)
    lost = 1 + x.load * slide * run.pulled[part]
    inertial = np.broadcast_to(x.inertial + shots.added, (*q.shape[:-1], len(x.inertial)))
    by_q, by_v, H = model.slopes(q, v, a, inertial)
    late = x.lag + shots.hold
    share = late / (late + h / 2)
    error = run.command[part] - q + shots.hold * v
    live = linear * (np.abs(error) > x.dead_band)
    ratio = 1 + (v / x.stribeck) ** 2
    damping = (x.viscous + linear * x.kd * (1 - share)) / 2
    G_q, G_v, A = lost[..., None] * by_q, lost[..., None] * by_v, lost[..., None] * H / h
    d = np.arange(model.n)
    G_q[..., d, d] += live * x.kp
    A[..., d, d] += lost * x.armature / h
    G_v -= A
    A[..., d, d] += damping
    G_v[..., d, d] += damping - slide * 2 * x.static * v / (x.stribeck * ratio) ** 2
    G_v[..., d, d] -= live * x.kp * shots.hold
    moves = (run.slide[part] != 0).astype(float)[..., None]
    A = moves * A
    A[..., d, d] += 1 - moves[..., 0]
    inverse = -np.linalg.inv(A) * np.swapaxes(moves, -1, -2)
    G_v = G_v + h / 2 * G_q
    G = [G_q, G_v]
    w_m = share * run.w[part] + (1 - share) * middle
    if lagged:
        G_w = np.zeros_like(G_q)
        G_w[..., d, d] = linear * x.kd * share
        G.append(G_w)
    load = model.torques(q, v, a, inertial) + x.armature * a if "load" in columns.fields else 0.0
    own: dict[str, Callable[[], Any]] = {
        "kp": lambda: -linear * (error - np.clip(error, -x.dead_band, x.dead_band)),
        "kd": lambda: linear * w_m,
        "delay": lambda: -live * x.kp * run.command_slope[part],
        "dead_band": lambda: live * x.kp * np.sign(error),
        "lag": lambda: linear * x.kd * (run.w[part] - w_m) / (late + h / 2),
        "limit": lambda: -run.saturated[part].astype(float),
        "armature": lambda: lost * a,
        "viscous": lambda: middle,
        "coulomb": lambda: slide,
        "static": lambda: slide / ratio,
        "stribeck": lambda: slide * x.static * 2 * v**2 / (x.stribeck**3 * ratio**2),
        "load": lambda: slide * run.pulled[part] * load,
    }
    slopes = {name: own[name]() for name in dict.fromkeys(columns.fields)}
    by_parameter = [np.zeros((*q.shape, 0))]
    if columns.fields:
        pairs = zip(columns.fields, columns.joints, strict=True)
        each = np.stack([slopes[name][..., i] for name, i in pairs], -1)
        by_parameter = [(inverse[..., columns.joints] * each[..., None, :]) @ columns.slopes]
    if columns.directions.shape[1]:
        Y = lost[..., None] * model.regressor(q, v, a)
        by_parameter.append(inverse @ (Y @ columns.directions))
    return inverse @ np.concatenate(G, -1), np.concatenate(by_parameter, -1)
