"""Studies ready for use.

- `Bootstrap`: moving-block bootstrap of an identification, the scatter of its parameters under resampling of the log
- `Capability`: the payload and force that an arm can sustain in each posture of its workspace
- `Design`: link lengths and masses, compiled once: both are run-time inputs of the programs
- `DataSet`: (q, qd, qdd, tau) for machine learning, in shards
- `Robustness`: Monte Carlo tracking performance of a controlled motion under model errors
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armdyn.algebra import exact
from armdyn.arm import Arm
from armdyn.chain import Link
from armdyn.errors import InputError, choose
from armdyn.files import arrays
from armdyn.formulations.payload import held
from armdyn.formulations.registry import Options, entry_units
from armdyn.identification import Estimate, Log
from armdyn.identification.fit import ESTIMATORS, Setting, correlation_time
from armdyn.identification.model import Model, Rows, rows
from armdyn.identification.preflight import changed
from armdyn.identification.processing import joint_side, motions
from armdyn.simulation import PD, ComputedTorque, PDGravity, quintic
from armdyn.simulation.programs import Varying, plant_program
from armdyn.uncertainty import Samples
from armdyn.uncertainty.distributions import unit_points

Array = NDArray[np.float64]
MAX_BLOCK_SHARE = 0.1  # of the log: with longer blocks all resamples would be alike


@dataclass(frozen=True, eq=False)
class Bootstrap:
    """Sample i is a fit to blocks of `block` rows, drawn with replacement in the i-th resample of the seed.

    Blocks preserve the correlation of neighbouring residuals (moving-block bootstrap, Künsch 1989). The regularization
    weight stays that of the estimate. Returns `values` by parameter, and the relative torque error of each fit.
    """

    model: Model
    prior: Arm
    estimator: str
    regularization: float | None
    Y: Array
    tau: Array
    kept: NDArray[np.bool_]
    block: int
    seed: int = 0

    @classmethod
    def of(cls, estimate: Estimate, log: Log, block: int | None = None, seed: int = 0) -> Bootstrap:
        """The bootstrap of an estimate, with the log that it was identified from."""
        if estimate.estimator not in ESTIMATORS:
            raise InputError(f"no bootstrap for the estimator {estimate.estimator}; available: {', '.join(ESTIMATORS)}")
        side = changed(joint_side(log, estimate.transmission, estimate.zero, estimate.gains), estimate.changes)
        found = rows(estimate.model, motions(side, estimate.processing), estimate.processing)
        if found.Y.shape[-1] != len(estimate.names):
            raise InputError("the log is not the one that the estimate was identified from")
        residual = found.tau - found.Y @ estimate.values
        longest = max(1, int(MAX_BLOCK_SHARE * len(found)))
        usual = int(np.ceil(2 * max(correlation_time(residual[:, j]) for j in range(residual.shape[1]))))
        chosen = min(usual, longest) if block is None else block
        if not 1 <= chosen <= len(found):
            raise InputError(f"block must be from 1 to the {len(found)} rows of the log, got {block!r}")
        fixed = (estimate.model, estimate.prior, estimate.estimator, estimate.regularization)
        return cls(*fixed, found.Y, found.tau, found.kept, chosen, seed)

    def __call__(self, arm: Arm, samples: range) -> dict[str, Any]:
        """The fits of some resamples."""
        fits = [self._fit(index) for index in samples]
        return {
            "values": (("sample", "parameter"), np.array([values for values, _ in fits])),
            "error": ("sample", np.array([error for _, error in fits])),
            "parameter": ("parameter", np.array(self.model.names)),
        }

    def _fit(self, index: int) -> tuple[Array, float]:
        count = len(self.Y)
        blocks = -(-count // self.block)
        start = np.floor(unit_points("random", self.seed, index, 1, blocks)[0] * count).astype(int)
        chosen = ((start[:, None] + np.arange(self.block)) % count).ravel()[:count]
        chosen = np.sort(chosen)  # keeps the segments of cross-validation and residuals in time order
        t = np.arange(count, dtype=float)
        drawn = Rows(self.Y[chosen], self.tau[chosen], t, np.zeros(count, dtype=np.int64), self.kept[chosen])
        setting = Setting(self.model, self.prior, regularization=self.regularization)
        values = ESTIMATORS[self.estimator](drawn, setting).values
        left = self.tau - self.Y @ values
        return values, float(np.sqrt((left**2).sum() / (self.tau**2).sum()))


AXES = np.array(["x", "y", "z"])
UNITS = {
    "position": "m",
    "load_share": "1",
    "payload": "kg",
    "force": "N",
    "limiting_joint": "1",
    "reach": "m",
    "mass": "kg",
    "length": "1",
    "mass_factor": "1",
    "tool_error": "m",
}
PORTS = {  # of one value per joint: the port whose units they have
    "gravity_load": "tau",
    "torque": "tau",
    "largest_torque": "tau",
    "tracking_error": "q",
    "final_error": "q",
    "q": "q",
    "qd": "qd",
    "qdd": "qdd",
    "tau": "tau",
}


def units(arm: Arm) -> dict[str, tuple[str, ...]]:
    """The units of the variables of these studies by name: one, or one per joint."""
    return {name: (unit,) for name, unit in UNITS.items()} | {
        name: entry_units(arm.chain, port) for name, port in PORTS.items()
    }


def postures(arm: Arm, seed: int, first: int, count: int, kind: str = "sobol") -> np.ndarray:
    """Configurations (count, n) within `Arm.working_range`, addressed by index."""
    low, high = arm.working_range.T
    return np.asarray(low + (high - low) * unit_points(kind, seed, first, count, arm.n))


@dataclass(frozen=True)
class Capability:
    """Capability at postures within the joint limits; `effort` overrides the arm's effort limits, N m or N.

    Per posture: `position` of the tool; `load_share`, the gravity load divided by the effort limit; `payload`, the
    largest point mass at the tool that the motors hold, kg; `force`, the largest force that the tool can exert in every
    direction, N; `limiting_joint`, the joint (from 1) that limits the payload.
    """

    effort: tuple[float, ...] | None = None
    seed: int = 0

    def __call__(self, arm: Arm, samples: range) -> dict[str, Any]:
        """The results for some postures."""
        effort = np.array(arm.effort_limits if self.effort is None else self.effort, dtype=float)
        if effort.shape != (arm.n,) or not np.isfinite(effort).all():
            raise InputError(f"{arm.name}: expected {arm.n} finite effort limits, got {effort.tolist()}; give effort")
        q = postures(arm, self.seed, samples.start, len(samples))
        g, J = np.asarray(arm.gravity_load(q)), np.asarray(arm.jacobian(q))[:, :3]
        per_kg = -np.einsum("kxj,x->kj", J, np.array(arm.gravity))
        with np.errstate(all="ignore"):
            room = (effort - np.sign(per_kg) * g) / np.abs(per_kg)
            reach = (effort - np.abs(g)) / np.sqrt((J**2).sum(axis=1))
        room = np.where(np.abs(per_kg) > 1e-12, room, np.inf)
        holds = (np.abs(g) <= effort).all(axis=1)
        return {
            "q": (("sample", "joint"), q),
            "position": (("sample", "axis"), np.asarray(arm.pose(q))[:, :3, 3]),
            "load_share": (("sample", "joint"), np.abs(g) / effort),
            "payload": ("sample", np.where(holds, np.maximum(room.min(axis=1), 0.0), 0.0)),
            "force": ("sample", np.where(holds, np.maximum(np.nanmin(reach, axis=1), 0.0), 0.0)),
            "limiting_joint": ("sample", room.argmin(axis=1) + 1),
            "axis": ("axis", AXES),
        }


Motions = tuple[np.ndarray, np.ndarray, np.ndarray]  # q, qd, qdd


def designs(lengths: Sequence[Sequence[float]], masses: Sequence[Sequence[float]]) -> np.ndarray:
    """All combinations of factors, (k, 2 n): on the lengths of the n links, then on their masses.

    `lengths` and `masses` list the factors to try for each link. Lengths vary slowest, so that a chunk has few
    geometries.
    """
    if len(lengths) != len(masses):
        raise InputError(f"expected factors for as many lengths as masses, got {len(lengths)} and {len(masses)}")
    rows = [(*a, *b) for a in product(*lengths) for b in product(*masses)]
    table = np.array(rows, dtype=float)
    if not (table > 0).all():
        raise InputError("factors on lengths and masses must be positive")
    return table


@dataclass(frozen=True)
class Design:
    """Evaluates rows of `designs`, each an arm with links scaled in length and mass.

    A length factor ℓ scales a link in all directions: the next joint and the mass distribution are ℓ times as far away,
    and the mass grows with ℓ, as that of a tube does, in addition to its own factor. Over `count` postures and motions
    with accelerations up to `acceleration`, the results are the reach of the tool, the arm's mass, and for each joint
    the largest gravity load and the largest torque with `payload` kg at the tool.
    """

    count: int = 512
    acceleration: float = 5.0
    payload: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        arrays.payload(self.payload, (0, 0, 0), None)  # raises an error about an impossible payload at once

    def __call__(self, arm: Arm, samples: np.ndarray) -> dict[str, Any]:
        """The results for some designs."""
        rows, n = np.asarray(samples, dtype=float), arm.n
        if rows.ndim != 2 or rows.shape[1] != 2 * n or not arm.chain.plain or not arm.chain.serial:
            raise InputError(f"expected designs (k, {2 * n}) of a serial arm with {n} joints, got shape {rows.shape}")
        found = {name: np.zeros((len(rows), n)) for name in ("gravity_load", "torque")}
        reach, mass = np.zeros(len(rows)), np.zeros(len(rows))
        motions, pose = self._motions(arm), arm.kernel("pose", parameters="geometry")
        for lengths in np.unique(rows[:, :n], axis=0):
            own = np.flatnonzero((rows[:, :n] == lengths).all(axis=1))
            built = stretched(arm, tuple(lengths.tolist()))
            geometry = np.array(built.geometry)
            at = np.asarray(pose(motions[0], geometry))[:, :3, 3]
            reach[own] = np.sqrt((at**2).sum(axis=1)).max()
            natural = self._natural(built, rows[own, n:])
            mass[own] = natural[:, :, 0].sum(axis=1) - self.payload
            for name, values in _torques(arm, geometry, natural, motions).items():
                found[name][own] = values
        per_joint = {name: (("sample", "joint"), x) for name, x in found.items()}
        factors = {"length": rows[:, :n], "mass_factor": rows[:, n:]}
        return {"reach": ("sample", reach), "mass": ("sample", mass), **per_joint} | {
            name: (("sample", "joint"), x) for name, x in factors.items()
        }

    def _motions(self, arm: Arm) -> Motions:
        q, other = postures(arm, self.seed, 0, self.count), postures(arm, self.seed + 1, 0, self.count)
        span = np.maximum(arm.working_range[:, 1], 1e-9)
        return q, np.zeros_like(q), self.acceleration * np.clip(other / span, -1, 1)

    def _natural(self, arm: Arm, factors: np.ndarray) -> np.ndarray:
        """Natural parameters (k, n, 10), including the payload on the last link."""
        own = np.array([[float(x) for x in link.natural] for link in arm.links])
        natural = own * factors[:, :, None]
        natural[:, arm.chain.tool_carrier - 1] += np.array(held(arm.chain.floats.tool, self.payload, (0, 0, 0)).natural)
        return np.asarray(natural)


def _torques(arm: Arm, geometry: np.ndarray, natural: np.ndarray, motions: Motions) -> dict[str, np.ndarray]:
    """The largest magnitudes over the motions, (k, n), for links (k, n, 10) with one geometry."""
    rows = natural.reshape(len(natural), -1)
    constants = np.hstack([rows, np.tile(geometry, (len(rows), 1))])[:, None]

    def largest(quantity: str, *inputs: np.ndarray) -> np.ndarray:
        program = plant_program(arm.chain, quantity, Options(), Varying(geometry=True))
        assert program is not None  # an arm has joints
        return np.asarray(np.abs(program(*inputs, constants)).max(axis=1))

    return {"gravity_load": largest("gravity_load", motions[0]), "torque": largest("inverse_dynamics", *motions)}


@lru_cache(maxsize=32)
def stretched(arm: Arm, factors: tuple[float, ...]) -> Arm:
    """The arm with its links scaled in length by these factors."""
    exactly = [exact(x) for x in factors]
    joints, links = list(arm.given.joints), list(arm.given.links)
    for i, x in enumerate(exactly):
        m, h, S = links[i].mass * x, links[i].moment * (x * x), links[i].inertia * (x * x * x)
        links[i] = Link(m, h, S)
        if i + 1 < len(joints):
            joints[i + 1] = replace(joints[i + 1], b=joints[i + 1].b * x, d=joints[i + 1].d * x)
    tool = replace(arm.given.tool, p=arm.given.tool.p * exactly[-1])
    given = replace(arm.given, joints=tuple(joints), links=tuple(links), tool=tool)
    return replace(arm, name=f"{arm.name} stretched", given=given, frames=())


KINDS = ("float32", "float64")


@dataclass(frozen=True)
class DataSet:
    """Random motions within the limits and their torques; every chunk is a shard.

    `velocity` and `acceleration` are the largest magnitudes, one number or one per joint; by default the arm's velocity
    limits (1 for joints without one) and 5. With samples of an `Uncertain` arm every row has its own arm, and the
    uncertain parameters are columns too. With `friction` the torques include friction.
    """

    velocity: float | tuple[float, ...] | None = None
    acceleration: float | tuple[float, ...] = 5.0
    friction: bool = False
    dtype: str = "float64"
    seed: int = 0

    def __post_init__(self) -> None:
        choose("dtype", self.dtype, KINDS)

    def __call__(self, arm: Arm, samples: Any) -> dict[str, Any]:
        """One shard."""
        varied = isinstance(samples, Samples)
        if not varied and not isinstance(samples, range):
            raise InputError(f"samples must be a number of rows, or samples of an Uncertain arm; got {samples!r}")
        first = samples.first if isinstance(samples, Samples) else samples.start
        limit = np.where(np.isfinite(arm.velocity_limits), arm.velocity_limits, 1.0)
        speed = limit if self.velocity is None else np.array(self.velocity)
        u = unit_points("random", self.seed + 1, first, len(samples), 2 * arm.n)
        q = postures(arm, self.seed, first, len(samples), "random")
        qd, qdd = (2 * u[:, : arm.n] - 1) * speed, (2 * u[:, arm.n :] - 1) * np.array(self.acceleration)
        if isinstance(samples, Samples):
            plants = samples.plants
            true = q if plants.offsets is None else q + plants.offsets
            tau = plants.quantity("inverse_dynamics", true, qd, qdd, options=Options(friction=self.friction))
            tau = tau + samples.more_friction(qd) if self.friction else tau
        else:
            tau = arm.inverse_dynamics(q, qd, qdd, friction=True) if self.friction else arm.inverse_dynamics(q, qd, qdd)
        columns: dict[str, Any] = {"q": q, "qd": qd, "qdd": qdd, "tau": np.asarray(tau)}
        found: dict[str, Any] = {k: (("sample", "joint"), x.astype(self.dtype)) for k, x in columns.items()}
        if isinstance(samples, Samples):
            found["variables"] = (("sample", "variable"), samples.values.astype(self.dtype))
            found["variable"] = ("variable", np.array([v.name for v in samples.uncertain.variables]))
        return found


CONTROLLERS = {"computed_torque": ComputedTorque, "pd_gravity": PDGravity, "pd": PD}


@dataclass(frozen=True)
class Robustness:
    """A motion from rest at `start` to rest at `end` (rad or m) in `duration` seconds, then `settle` seconds more.

    `controller` is "computed_torque", "pd_gravity" or "pd", with gains `kp` and `kd`: one number or one per joint. The
    results per sample are the largest tracking error and torque of each joint, the largest distance of the tool from
    its reference, and the final error; NaN if the simulation failed. With `trajectories` they include q and tau every
    `every` seconds.
    """

    start: tuple[float, ...]
    end: tuple[float, ...]
    duration: float = 1.0
    settle: float = 0.2
    controller: str = "computed_torque"
    kp: float | tuple[float, ...] = 100.0
    kd: float | tuple[float, ...] = 20.0
    step: float = 1e-3
    every: float = 0.01
    trajectories: bool = False

    def __post_init__(self) -> None:
        choose("controller", self.controller, CONTROLLERS)

    def __call__(self, arm: Arm, samples: Samples) -> dict[str, Any]:
        """The results for some samples."""
        if not isinstance(samples, Samples):
            raise InputError("Robustness needs samples of an Uncertain arm: give samples=Uncertain(...).sample(k)")
        motion = quintic(self.start, self.end, self.duration)
        rows = max(1, round((self.duration + self.settle) / self.every))
        t = (self.duration + self.settle) / rows * np.arange(rows + 1)
        control = CONTROLLERS[self.controller](motion, _gain(self.kp), _gain(self.kd))
        run = samples.simulate(np.array(self.start), torque=control, times=t, step=self.step)
        q, tau = _filled(run.q, len(t)), _filled(run.tau, len(t))
        wanted = motion(t)[0]
        error = np.abs(q - wanted)
        with np.errstate(all="ignore"):
            apart = np.asarray(arm.pose(q))[..., :3, 3] - np.asarray(arm.pose(wanted))[..., :3, 3]
        found: dict[str, Any] = {
            "tracking_error": (("sample", "joint"), error.max(axis=1)),
            "final_error": (("sample", "joint"), error[:, -1]),
            "largest_torque": (("sample", "joint"), np.abs(tau).max(axis=1)),
            "tool_error": ("sample", np.sqrt((apart**2).sum(axis=-1)).max(axis=1)),
        }
        if self.trajectories:
            found |= {"q": (("sample", "time", "joint"), q), "tau": (("sample", "time", "joint"), tau)}
            found["time"] = ("time", t)
        return found


def _gain(value: Any) -> Any:
    return value if isinstance(value, int | float) else np.array(value, dtype=float)


def _filled(values: np.ndarray, rows: int) -> np.ndarray:
    """Pad with NaN: unlike in a batch, a single simulation that ended early has fewer rows."""
    missing = rows - values.shape[1]
    return np.pad(values, ((0, 0), (0, max(missing, 0)), (0, 0)), constant_values=np.nan)[:, :rows]
