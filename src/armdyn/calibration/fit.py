"""The robust fit: Gauss-Newton steps on weighted residuals, noise estimated axis by axis, outliers set aside.

Every pose has a distance, the length of its residual in units of the noise of each axis. While the fit converges, poses
beyond the 95 % quantile of that distance count less (Huber, or Tukey's biweight). Then poses so far out that one fit in
fifty would have one of them by chance are set aside as outliers, and the rest is fitted by weighted least squares,
whose covariance holds without further assumptions: (Jᵀ W J)⁻¹, W from the noise, each axis's variance divided by what
of its rows the fit leaves free, and widened for that estimate (Student's t).

Where more than 15 % of the poses would be set aside, "huber" sets none aside: a backlash or an arm that bends makes
whole groups of poses fit badly, and without them the rest would be fitted at their expense. "tukey" takes the group
that fits for the truth, however small.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from armdyn.calibration.closures import Closure, closure_of
from armdyn.calibration.measured import Array, Poses
from armdyn.calibration.model import ToolModel
from armdyn.errors import ComputationError, InputError, choose

ROBUST = ("huber", "tukey", "none")
CLOSE = 1e-6  # of the deviations: a step below it is the last one
ROUNDS = 8  # of noise and weights, before and after outliers are set aside
ITERATIONS = 100
FEW, MANY = 3, 0.15  # poses, or the share of them, that may be outliers; more are something that geometry does not tell
FALSE = 0.02  # the chance that a good pose is set aside among all of them
LEAST = 1e-9  # metres, radians: the noise of made-up data without any; no device comes near it
CLOSED = 1e-9  # metres from a plane or a distance: on it
DEPENDENT = 1e-7  # a unit column of which less is left beside the columns before it is not told by these poses


@dataclass(frozen=True, eq=False)
class Fit:
    """A fitted geometry with all that belongs to it."""

    geometry: Array
    free: tuple[int, ...]  # the constants that were fitted
    undetermined: tuple[int, ...]  # those that these poses do not tell from the others
    closure: Closure | None
    noise: Array  # (m,) standard deviation of each axis
    residual: Array  # (k, m)
    inliers: Any  # (k,) booleans
    covariance: Array  # of the free constants, those of the closure taken into account
    condition: float
    misfits: int = 0  # poses that do not fit the others, too many to be set aside


def fit(model: ToolModel, poses: Poses, start: Array, free: tuple[int, ...], robust: str = "huber") -> Fit:
    """The geometry nearest to the measurements, from `start`, with the constants `free` to be fitted."""
    found = _fit(model, poses, start, free, choose("robust estimator", robust, ROBUST))
    out = int((~found.inliers).sum())
    if robust != "huber" or out <= max(FEW, MANY * len(poses)):
        return found
    return replace(_fit(model, poses, start, free, "none"), misfits=out)


def _fit(model: ToolModel, poses: Poses, start: Array, free: tuple[int, ...], robust: str) -> Fit:
    closure = closure_of(poses, model.pose(poses.q, start)[:, :3, 3])
    free, undetermined = told(model, poses, start, closure, free)
    _enough(poses, len(free) + (closure.unknowns if closure else 0))
    state = _State(model, poses, free, start, closure)
    if state.unknowns == 0:
        noise, none = _robust_noise(state.residual, 0), np.zeros((0, 0))
        return Fit(start, free, undetermined, None, noise, state.residual, np.ones(len(poses), bool), none, 1.0)
    weigh = _WEIGHTS[robust]
    for _ in range(ROUNDS):
        state, _ = _converged(state, _robust_noise(state.residual, state.unknowns), weigh)
    noise = _robust_noise(state.residual, state.unknowns)
    inside = np.ones(len(poses), bool) if robust == "none" else _inside(state.residual / noise)
    for _ in range(ROUNDS):  # the covariance below holds where the weights of the fit are those of its noise
        state, settled = _converged(state, noise, _only(inside))
        before, noise = (inside, noise), _noise_by_leverage(state, inside)
        inside = _inside(state.residual / noise) if robust != "none" else inside
        if (inside == before[0]).all() and np.allclose(noise, before[1], rtol=0.01):
            break
    if not settled:
        raise ComputationError(
            f"the fit did not settle in {ITERATIONS} steps; check the units, the order of the joints and the tool"
        )
    A = _whitened(state, noise, inside)
    freedom = max(3.0, float((1 - _leverage(A, len(noise))).sum(axis=0).min()))
    student = freedom / (freedom - 2)  # the variance of Student's t: the noise is an estimate, too
    covariance = np.asarray(student * np.linalg.inv(A.T @ A)[: len(free), : len(free)], float)
    unit = A / np.linalg.norm(A, axis=0)
    return Fit(
        state.geometry, free, undetermined, state.closure, noise, state.residual, inside, covariance,
        float(np.linalg.cond(unit)),
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _State:
    """Where the fit stands."""

    model: ToolModel
    poses: Poses
    free: tuple[int, ...]
    geometry: Array
    closure: Closure | None

    def __post_init__(self) -> None:
        r, J = self.model.residual(self.poses, self.geometry, self.closure, list(self.free))
        object.__setattr__(self, "residual", r)
        object.__setattr__(self, "slopes", J)

    residual: Array = None  # type: ignore[assignment]
    slopes: Array = None  # type: ignore[assignment]

    @property
    def unknowns(self) -> int:
        return int(self.slopes.shape[2])

    def moved(self, step: Array) -> _State:
        """The state after a step of all unknowns."""
        geometry = self.geometry.copy()
        geometry[list(self.free)] += step[: len(self.free)]
        closure = self.closure.moved(step[len(self.free) :]) if self.closure else None
        return _State(self.model, self.poses, self.free, geometry, closure)


def _converged(state: _State, noise: Array, weigh: Callable[[Array, int], Array]) -> tuple[_State, bool]:
    """Damped Gauss-Newton steps, the weights taken anew at each, until nothing moves; whether that was reached."""
    damping = 0.0
    for _ in range(ITERATIONS):
        w = np.sqrt(weigh(np.linalg.norm(state.residual / noise, axis=1), len(noise)))[:, None]
        b = (w * state.residual / noise).ravel()
        A = (w[:, :, None] * state.slopes / noise[:, None]).reshape(len(b), -1)
        scale = np.linalg.norm(A, axis=0)
        scale[scale == 0] = 1.0
        while True:
            rows = np.vstack([A / scale, damping * np.eye(A.shape[1])])
            step = -np.linalg.lstsq(rows, np.concatenate([b, np.zeros(A.shape[1])]), rcond=None)[0]
            trial = state.moved(step / scale)
            if np.sum((w * trial.residual / noise) ** 2) <= b @ b * (1 + 1e-12):
                damping /= 5 if damping > 1e-6 else 1e9
                break
            if np.linalg.norm(step) <= CLOSE:
                return state, True
            damping = max(5 * damping, 1e-6)
        state = trial
        if np.linalg.norm(step) <= CLOSE:
            return state, True
    return state, False


def told(
    model: ToolModel, poses: Poses, geometry: Array, closure: Closure | None, free: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Those of the free constants that these poses tell from those before them, and those that they do not.

    With a closure the configurations are first moved onto it: what the loop cannot tell shows there only.
    """
    here = poses
    if closure is not None:
        here = replace(poses, q=on_closure(model, poses.q, geometry, closure))
        apart = np.abs(closure.residual(model.pose(here.q, geometry)[:, :3, 3])[0][:, 0])
        here = here.chosen(apart <= max(CLOSED, float(np.median(apart))))  # what is out of reach tells nothing here
        closure = closure.of(here)
    J = model.residual(here, geometry, closure, list(free))[1]
    A = J.reshape(-1, J.shape[2])
    n = len(free)
    basis: list[Array] = []
    kept: list[int] = []
    lost: list[int] = []
    for k in (*range(n, A.shape[1]), *range(n)):  # a closure's own unknowns first
        column = A[:, k]
        size = np.linalg.norm(column)
        rest = column / size if size > 0 else column
        for _ in range(2):  # twice is enough
            for unit in basis:
                rest = rest - (unit @ rest) * unit
        left = float(np.linalg.norm(rest))
        if left > DEPENDENT:
            basis.append(rest / left)
        if k < n:
            (kept if left > DEPENDENT else lost).append(free[k])
    return tuple(kept), tuple(lost)


def on_closure(model: ToolModel, q: Array, geometry: Array, closure: Closure) -> Array:
    """The configurations moved, each as little as possible, to where the tool's origin fulfils the closure."""
    jacobian = model.arm.with_geometry(geometry).kernel("jacobian", backend="numpy")
    for _ in range(30):
        r, by_point, _ = closure.residual(model.pose(q, geometry)[:, :3, 3])
        slope = np.einsum("kmi,kij->kmj", by_point, jacobian(q)[:, :3])[:, 0]
        q = q - slope * (r / np.maximum((slope**2).sum(axis=1, keepdims=True), 1e-6))
    return q


def _enough(poses: Poses, unknowns: int) -> None:
    rows = len(poses) * {"pose": 6, "point": 3}.get(poses.kind, 1)
    if rows < unknowns + max(3, unknowns // 4):
        raise InputError(
            f"{len(poses)} {poses.kind} measurements are {rows} equations for {unknowns} unknowns; measure more, or "
            "fit fewer constants (parameters=)"
        )


def _robust_noise(r: Array, unknowns: int) -> Array:
    """The noise of each axis from the median of its residuals' sizes."""
    spread = 1.4826 * np.median(np.abs(r), axis=0)
    free = max(0.2, 1 - unknowns / r.size)
    return _not_zero(spread / np.sqrt(free))


def _noise_by_leverage(state: _State, inside: Any) -> Array:
    """The noise of each axis: squares of its residuals over what of its rows the fit leaves free."""
    r = state.residual[inside]
    noise = _not_zero(np.sqrt((r**2).mean(axis=0)))
    for _ in range(20):
        leverage, before = _leverage(_whitened(state, noise, inside), len(noise)), noise
        noise = _not_zero(np.sqrt((r**2).sum(axis=0) / np.maximum((1 - leverage).sum(axis=0), 1e-3)))
        if np.allclose(noise, before, rtol=1e-4):
            break
    return noise


def _leverage(A: Array, m: int) -> Array:
    """(k, m): what of each measured number the fit follows, whatever it is."""
    return np.asarray((np.linalg.qr(A)[0] ** 2).sum(axis=1).reshape(-1, m))


def _not_zero(noise: Array) -> Array:
    return np.asarray(np.maximum(noise, LEAST))


def _whitened(state: _State, noise: Array, inside: Any) -> Array:
    J = state.slopes[inside] / noise[:, None]
    return np.asarray(J.reshape(-1, J.shape[2]))


def _quantile(share: float, m: int) -> float:
    from scipy.stats import chi2

    return float(np.sqrt(chi2.ppf(share, m)))


def _inside(whitened: Array) -> Any:
    return np.linalg.norm(whitened, axis=1) <= _quantile(1 - FALSE / len(whitened), whitened.shape[1])


def _huber(distance: Array, m: int) -> Array:
    return np.asarray(np.minimum(1.0, _quantile(0.95, m) / np.maximum(distance, 1e-300)))


def _tukey(distance: Array, m: int) -> Array:
    share = distance / (2 * _quantile(0.95, m))
    return np.asarray(np.where(share < 1, (1 - np.minimum(share, 1) ** 2) ** 2, 1e-6))


def _only(inside: Any) -> Callable[[Array, int], Array]:
    return lambda distance, m: np.asarray(inside, float)


def _all_alike(distance: Array, m: int) -> Array:
    return np.ones_like(distance)


_WEIGHTS = {"huber": _huber, "tukey": _tukey, "none": _all_alike}
