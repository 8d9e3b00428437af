"""Robust fit: Gauss-Newton on weighted residuals, noise estimated per axis, outliers set aside.

The distance of a pose is the norm of its residual, each axis in units of its noise. During the first iterations, poses
beyond the 95 % quantile of that distance get less weight (Huber, or Tukey's biweight). Then poses so far out that only
one fit in fifty would contain one by chance are set aside as outliers, and the rest are fitted by weighted least
squares. The covariance is (Jᵀ W J)⁻¹ with W from the noise. The noise variance of an axis is its sum of squared
residuals divided by its degrees of freedom (rows minus leverage); the factor of Student's t accounts for the
uncertainty of that estimate.

If more than 15 % of the poses (and more than three) would be set aside, "huber" keeps all of them: backlash or link
compliance makes whole groups of poses fit badly, and excluding them would bias the fit towards the rest. "tukey" always
excludes the poses that do not fit, however many they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from armdyn.calibration.closures import Closure, closure_of
from armdyn.calibration.measured import Array, Poses
from armdyn.calibration.model import ToolModel
from armdyn.errors import ComputationError, InputError, choose, required

ROBUST = ("huber", "tukey", "none")
STEP_TOLERANCE = 1e-6  # in standard deviations: smaller steps end the iteration
REWEIGHTINGS = 8  # updates of noise and weights, before and after outliers are set aside
ITERATIONS = 100  # Gauss-Newton steps per update
MAX_OUTLIERS, MAX_OUTLIER_SHARE = 3, 0.15  # more misfits than the larger of the two are not outliers, but a model error
FALSE_ALARM = 0.02  # probability that a fit sets aside any good pose
NOISE_FLOOR = 1e-9  # metres, radians: for synthetic data without noise; below that of any measuring device
ON_CLOSURE = 1e-9  # metres: a tool origin this close to its plane or sphere is on it
DEPENDENCE = 1e-7  # a normalised column whose part orthogonal to the previous ones is smaller is linearly dependent


@dataclass(frozen=True, eq=False)
class GeometryFit:
    """A fitted geometry with its residuals, noise, outliers and covariance."""

    geometry: Array
    free: tuple[int, ...]  # the constants that were fitted
    undetermined: tuple[int, ...]  # those that these poses cannot distinguish from the others
    closure: Closure | None
    noise: Array  # (m,) standard deviation of each axis
    residual: Array  # (k, m)
    inliers: Any  # (k,) booleans
    covariance: Array  # of the free constants, with the closure's unknowns marginalised
    condition: float  # of the Jacobian with normalised columns
    misfits: int = 0  # poses that do not fit the others but were too many to set aside


def fit(model: ToolModel, poses: Poses, start: Array, free: tuple[int, ...], robust: str = "huber") -> GeometryFit:
    """Fit the constants `free` to the measurements, starting from the geometry `start`."""
    found = _fit(model, poses, start, free, choose("robust estimator", robust, ROBUST))
    out = int((~found.inliers).sum())
    if robust != "huber" or out <= max(MAX_OUTLIERS, MAX_OUTLIER_SHARE * len(poses)):
        return found
    return replace(_fit(model, poses, start, free, "none"), misfits=out)


def _fit(model: ToolModel, poses: Poses, start: Array, free: tuple[int, ...], robust: str) -> GeometryFit:
    closure = closure_of(poses, model.pose(poses.q, start)[:, :3, 3])
    free, undetermined = _determined(model, poses, start, closure, free)
    _check_count(poses, len(free) + (closure.unknowns if closure else 0))
    state = _State(model, poses, free, start, closure)
    if state.unknowns == 0:
        noise, none = _robust_noise(state.residual, 0), np.zeros((0, 0))
        return GeometryFit(start, free, undetermined, None, noise, state.residual, np.ones(len(poses), bool), none, 1.0)
    weigh = _WEIGHTS[robust]
    for _ in range(REWEIGHTINGS):
        state, _ = _converged(state, _robust_noise(state.residual, state.unknowns), weigh)
    noise = _robust_noise(state.residual, state.unknowns)
    inliers = np.ones(len(poses), bool) if robust == "none" else _inliers(state.residual / noise)
    for _ in range(REWEIGHTINGS):  # until weights and noise agree, which the covariance below assumes
        state, converged = _converged(state, noise, _inliers_only(inliers))
        before, noise = (inliers, noise), _noise_by_leverage(state, inliers)
        inliers = _inliers(state.residual / noise) if robust != "none" else inliers
        if (inliers == before[0]).all() and np.allclose(noise, before[1], rtol=0.01):
            break
    if not converged:
        raise ComputationError(
            f"the fit did not converge in {ITERATIONS} steps; check the units, the order of the joints and the tool"
        )
    A = _whitened(state, noise, inliers)
    freedom = max(3.0, float((1 - _leverage(A, len(noise))).sum(axis=0).min()))
    student = freedom / (freedom - 2)  # the variance of Student's t, because the noise is estimated too
    covariance = np.asarray(student * np.linalg.inv(A.T @ A)[: len(free), : len(free)], float)
    unit = A / np.linalg.norm(A, axis=0)
    return GeometryFit(
        state.geometry, free, undetermined, state.closure, noise, state.residual, inliers, covariance,
        float(np.linalg.cond(unit)),
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _State:
    """An iterate of the fit, with its residuals and their Jacobian."""

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
        """The state after a step in all unknowns."""
        geometry = self.geometry.copy()
        geometry[list(self.free)] += step[: len(self.free)]
        closure = self.closure.moved(step[len(self.free) :]) if self.closure else None
        return _State(self.model, self.poses, self.free, geometry, closure)


def _converged(state: _State, noise: Array, weigh: Callable[[Array, int], Array]) -> tuple[_State, bool]:
    """Iteratively reweighted, damped Gauss-Newton steps (Levenberg-Marquardt); also returns whether they converged."""
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
            if np.linalg.norm(step) <= STEP_TOLERANCE:
                return state, True
            damping = max(5 * damping, 1e-6)
        state = trial
        if np.linalg.norm(step) <= STEP_TOLERANCE:
            return state, True
    return state, False


def _determined(
    model: ToolModel, poses: Poses, geometry: Array, closure: Closure | None, free: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Split the free constants into those that these poses determine, given those before them, and the others.

    With a closure the configurations are first projected onto it: only there are the Jacobian's columns exactly
    dependent where the loop cannot distinguish constants.
    """
    here = poses
    if closure is not None:
        here = replace(poses, q=on_closure(model, poses.q, geometry, closure))
        apart = np.abs(closure.residual(model.pose(here.q, geometry)[:, :3, 3])[0][:, 0])
        here = here.chosen(apart <= max(ON_CLOSURE, float(np.median(apart))))  # leaves out what cannot reach it
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
        for _ in range(2):  # orthogonalise twice, for accuracy
            for unit in basis:
                rest = rest - (unit @ rest) * unit
        left = float(np.linalg.norm(rest))
        if left > DEPENDENCE:
            basis.append(rest / left)
        if k < n:
            (kept if left > DEPENDENCE else lost).append(free[k])
    return tuple(kept), tuple(lost)


def on_closure(model: ToolModel, q: Array, geometry: Array, closure: Closure) -> Array:
    """Project configurations onto the closure: Newton steps of least norm until each tool origin fulfils it."""
    jacobian = model.arm.with_geometry(geometry).kernel("jacobian", backend="numpy")
    for _ in range(30):
        r, by_point, _ = closure.residual(model.pose(q, geometry)[:, :3, 3])
        slope = np.einsum("kmi,kij->kmj", by_point, jacobian(q)[:, :3])[:, 0]
        q = q - slope * (r / np.maximum((slope**2).sum(axis=1, keepdims=True), 1e-6))
    return q


def _check_count(poses: Poses, unknowns: int) -> None:
    rows = len(poses) * {"pose": 6, "point": 3}.get(poses.kind, 1)
    if rows < unknowns + max(3, unknowns // 4):
        raise InputError(
            f"{len(poses)} {poses.kind} measurements are {rows} equations for {unknowns} unknowns; measure more, or "
            "fit fewer constants (parameters=)"
        )


def _robust_noise(r: Array, unknowns: int) -> Array:
    """The noise of each axis from its median absolute residual, corrected for the degrees of freedom."""
    spread = 1.4826 * np.median(np.abs(r), axis=0)
    free = max(0.2, 1 - unknowns / r.size)
    return _floored(spread / np.sqrt(free))


def _noise_by_leverage(state: _State, inliers: Any) -> Array:
    """The noise of each axis: its sum of squared residuals divided by its degrees of freedom, rows minus leverage."""
    r = state.residual[inliers]
    noise = _floored(np.sqrt((r**2).mean(axis=0)))
    for _ in range(20):
        leverage, before = _leverage(_whitened(state, noise, inliers), len(noise)), noise
        noise = _floored(np.sqrt((r**2).sum(axis=0) / np.maximum((1 - leverage).sum(axis=0), 1e-3)))
        if np.allclose(noise, before, rtol=1e-4):
            break
    return noise


def _leverage(A: Array, m: int) -> Array:
    """(k, m) leverages, the diagonal of the hat matrix."""
    return np.asarray((np.linalg.qr(A)[0] ** 2).sum(axis=1).reshape(-1, m))


def _floored(noise: Array) -> Array:
    return np.asarray(np.maximum(noise, NOISE_FLOOR))


def _whitened(state: _State, noise: Array, inliers: Any) -> Array:
    J = state.slopes[inliers] / noise[:, None]
    return np.asarray(J.reshape(-1, J.shape[2]))


def _quantile(share: float, m: int) -> float:
    required("scipy")
    from scipy.special import gammaincinv  # scipy.stats takes half a second to import

    return float(np.sqrt(2 * gammaincinv(m / 2, share)))


def _inliers(whitened: Array) -> Any:
    return np.linalg.norm(whitened, axis=1) <= _quantile(1 - FALSE_ALARM / len(whitened), whitened.shape[1])


def _huber(distance: Array, m: int) -> Array:
    return np.asarray(np.minimum(1.0, _quantile(0.95, m) / np.maximum(distance, 1e-300)))


def _tukey(distance: Array, m: int) -> Array:
    share = distance / (2 * _quantile(0.95, m))
    return np.asarray(np.where(share < 1, (1 - np.minimum(share, 1) ** 2) ** 2, 1e-6))


def _inliers_only(inliers: Any) -> Callable[[Array, int], Array]:
    return lambda distance, m: np.asarray(inliers, float)


def _unweighted(distance: Array, m: int) -> Array:
    return np.ones_like(distance)


_WEIGHTS = {"huber": _huber, "tukey": _tukey, "none": _unweighted}
