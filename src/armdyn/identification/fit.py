"""The table of estimators: each takes the rows of a model and returns its parameters.

Error measures and uncertainty of a fit, with autocorrelated residuals.

Censored regression for saturated torques: the true torque lies at the limit or beyond it.

Leaving these rows out would bias the fit, because the torque itself then decides which rows are kept: for a joint
dominated by friction, only the rows near standstill would remain. A row with saturated torques is therefore fitted only
if the model predicts a smaller magnitude than was logged. This one-sided least-squares problem is solved iteratively;
it is the limit of a censored likelihood for noise that is small compared with the torque range.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from armdyn.arm import Arm
from armdyn.identification import linear
from armdyn.identification.consistent import Problem
from armdyn.identification.model import PAIRS, Model, Rows, filtered, kept_rows
from armdyn.identification.processing import Motion, Processing

Array = NDArray[np.float64]
REGULARIZATIONS = 10.0 ** np.arange(-2.0, 5.0)  # in noise variances: from almost none to almost fixed at the prior


@dataclass(frozen=True, eq=False)
class Setting:
    """The inputs of an estimator besides the rows."""

    model: Model
    prior: Arm
    folds: int = 5
    regularization: float | None = None
    parts: list[Motion] | None = None  # the motions from which the rows were computed
    how: Processing | None = None  # the processing with which they were computed
    instruments: Array | None = None  # the instruments of these rows, if already computed
    free_signs: bool = False  # whether rotor inertias and friction may be negative


@dataclass(frozen=True, eq=False)
class Fit:
    """The identifiable parameters, natural parameters that agree with them, and the weights of the rows.

    `information` is that of the prior, in natural parameters; `instruments` replace the rows on one side of the normal
    equations if instrumental variables are used.
    """

    values: Array
    natural: Array
    weights: Array
    information: Array | None = None
    regularization: float | None = None
    curve: tuple[Array, Array, Array] | None = None  # regularizations, left-out error, its standard error
    instruments: Array | None = None


Estimator = Callable[[Rows, Setting], Fit]


def _least_squares(solver: Callable[[Array, Array, linear.Kept], linear.Solution]) -> Estimator:
    def run(rows: Rows, setting: Setting) -> Fit:
        solution = solver(rows.Y, rows.tau, rows.kept)
        return Fit(solution.values, nearest(setting, solution.values), solution.weights)

    return run


def nearest(setting: Setting, values: Array) -> Array:
    """The natural parameters that agree with the identifiable ones and are closest to the prior, in its metric."""
    model = setting.model
    prior = model.prior(setting.prior)
    T = np.eye(len(prior))
    T[: model.links, : model.links] = Problem.of(model, setting.prior).coordinates
    K = model.natural
    return np.asarray(prior + T @ np.linalg.pinv(K @ T) @ (values - K @ prior))


def consistent(rows: Rows, setting: Setting) -> Fit:
    """The physically consistent fit, with the regularization towards the prior chosen by cross-validation."""
    model = setting.model
    weights = linear.weighted(rows.Y, rows.tau, rows.kept).weights
    problem = Problem.of(model, setting.prior, rows)
    if setting.free_signs:
        problem = replace(problem, positive=np.zeros_like(problem.positive))
    K = model.natural
    regularization, curve = setting.regularization, None
    if regularization is None:
        segment = rows.segments(setting.folds)
        parts = [segment == k for k in range(setting.folds)]
        triangles = [linear.compress(rows.Y[s], rows.tau[s], weights[s]) for s in parts]
        regularization, mean, spread = choose_regularization(triangles, problem, K)
        curve = (REGULARIZATIONS, mean, spread)
    R, z = linear.compress(rows.Y, rows.tau, weights)
    natural = problem.solve(R @ K, z, regularization)
    information = problem.information(natural, regularization)
    return Fit(K @ natural, natural, weights, information, regularization, curve)


def choose_regularization(
    triangles: list[tuple[Array, Array]], problem: Problem, K: Array
) -> tuple[float, Array, Array]:
    """The regularization weight by leave-one-segment-out cross-validation: a mean of those that predict about as well.

    `triangles` are the compressed segments. The logarithms of the errors are compared per segment, so that a segment
    that is hard to predict does not dominate. Returns the weight, and for each of REGULARIZATIONS the left-out error
    relative to the best one's (geometric mean) and its standard error.
    """
    errors = np.empty((len(REGULARIZATIONS), len(triangles)))
    for s, (R, z) in enumerate(triangles):
        others = [pair for k, pair in enumerate(triangles) if k != s]
        stacked = linear.triangle(np.vstack([np.column_stack([Ro, zo]) for Ro, zo in others]))
        found = problem.path(stacked[:, :-1] @ K, stacked[:, -1], list(REGULARIZATIONS))
        errors[:, s] = [float(((R @ (K @ natural) - z) ** 2).sum()) for natural in found]
    score = np.log(np.maximum(errors, 1e-300)) / 2
    best = int(np.argmin(score.mean(axis=1)))
    apart = score - score[best]
    mean, spread = apart.mean(axis=1), apart.std(axis=1, ddof=1) / np.sqrt(len(triangles))
    # Only the best weight and stronger ones are considered: below it the curve is flat, where the log alone decides.
    # A stronger one is weighted by how likely it is to be the best, from its distance in half standard errors. The
    # result is at least the strongest weight within one standard error, the simplest model that predicts as well.
    apart = np.maximum(mean, 0.0) / np.maximum(spread, 1e-300)
    likely = np.where(np.arange(len(mean)) >= best, np.exp(-2 * apart**2), 0.0)
    likely[best] = 1.0
    averaged = 10 ** (likely @ np.log10(REGULARIZATIONS) / likely.sum())
    strongest = REGULARIZATIONS[max(int(np.flatnonzero(mean <= spread).max()), best)]
    return float(max(averaged, strongest)), np.exp(mean), spread


ESTIMATORS: dict[str, Estimator] = {
    "ordinary": _least_squares(linear.ordinary),
    "weighted": _least_squares(linear.weighted),
    "huber": _least_squares(linear.huber),
    "consistent": consistent,
}


def relative_error(tau: Array, predicted: Array) -> float:
    """‖τ - τ̂‖ / ‖τ‖ over all joints and samples."""
    size = float(np.linalg.norm(tau))
    return float(np.linalg.norm(tau - predicted)) / size if size else float("nan")


def r_squared(tau: Array, predicted: Array) -> Array:
    """The coefficient of determination R² per joint."""
    spread = ((tau - tau.mean(axis=0)) ** 2).sum(axis=0)
    left = ((tau - predicted) ** 2).sum(axis=0)
    return np.where(spread > 0, 1 - left / np.where(spread > 0, spread, 1), np.nan)


def correlation_time(residual: Array) -> float:
    """The integrated autocorrelation time 1 + 2 Σ ρ_k in samples (Geyer's initial monotone sequence)."""
    x = residual - residual.mean()
    n = len(x)
    power = float(x @ x)
    if n < 4 or power == 0:
        return 1.0
    spectrum = np.abs(np.fft.rfft(x, 2 * n)) ** 2
    rho = np.fft.irfft(spectrum)[:n] / power
    pairs = rho[: n - n % 2].reshape(-1, 2).sum(axis=1)
    negative = np.flatnonzero(pairs <= 0)
    end = negative[0] if len(negative) else len(pairs)
    falling = np.minimum.accumulate(pairs[:end])
    return max(1.0, float(2 * falling.sum() - 1))


def autocorrelation_factors(residual: Array, piece: NDArray[np.int64]) -> Array:
    """The factor √(1 + 2 Σ ρ) per joint by which autocorrelated residuals increase the parameters' deviations."""
    out = []
    for j in range(residual.shape[1]):
        parts = [(np.count_nonzero(piece == k), correlation_time(residual[piece == k, j])) for k in np.unique(piece)]
        out.append(np.sqrt(sum(n * c for n, c in parts) / sum(n for n, _ in parts)))
    return np.array(out)


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """The covariance of the identifiable parameters, the autocorrelation factors, the share of the data in each."""

    covariance: Array
    factors: Array
    share: Array
    prior_width: float | None = None  # relative deviation of the prior's links, as the log shows it

    @property
    def deviations(self) -> Array:
        """Standard deviations."""
        return np.sqrt(np.maximum(np.diag(self.covariance), 0.0))

    @property
    def correlation(self) -> Array:
        """Correlation matrix."""
        d = np.where(self.deviations > 0, self.deviations, 1.0)
        return np.asarray(self.covariance / np.outer(d, d))


WIDTHS = np.geomspace(0.02, 1.0, 40)  # of the prior's links, tried: relative deviations of their pseudo-inertias
LEAST_WIDTH = 0.15  # nameplates and CAD are hardly better: 15 % of a mass, 10 mm of a centre of mass


def prior_width(model: Model, prior: Arm, rows: Rows, weights: Array) -> float:
    """How far the prior's links are from the arm's, as a relative deviation; at least LEAST_WIDTH.

    The width of the normal distribution about the prior, in its own coordinates X - 1, under which the log is the
    likeliest; all other parameters are projected out. `weights` are those of the rows with their autocorrelation.
    """
    K, links = model.natural, model.links
    R, z = linear.compress(rows.Y, rows.tau, weights)
    own = np.tile([1.0 if r == c else np.sqrt(0.5) for r, c in PAIRS], links // 10)  # deviations, ½ ‖X - 1‖² being 1
    A = R @ (K[:, :links] @ Problem.of(model, prior).coordinates) * own
    off = z - R @ (K @ np.where(np.arange(K.shape[1]) < links, model.prior(prior), 0.0))
    U, s, _ = np.linalg.svd(R @ K[:, links:], full_matrices=True)
    rest = U[:, int(np.count_nonzero(s > 1e-10 * max(float(s.max(initial=0.0)), 1e-300))) :]
    A, off = rest.T @ A, rest.T @ off
    energies, turned = np.linalg.eigh(A @ A.T)
    seen = (turned.T @ off) ** 2
    spread = 1 + WIDTHS[:, None] ** 2 * np.maximum(energies, 0.0)
    return max(LEAST_WIDTH, float(WIDTHS[int(np.argmin((np.log(spread) + seen / spread).sum(axis=1)))]))


def uncertainty(model: Model, rows: Rows, fit: Fit, prior: Arm | None = None) -> Uncertainty:
    """The sandwich estimate of the covariance, with the noise of each joint and its autocorrelation.

    The prior of the links is as uncertain as the log shows it to be, whatever weight it has in the fit.
    """
    residual = np.where(rows.kept, rows.tau - rows.Y @ fit.values, 0.0)
    factors = autocorrelation_factors(residual, rows.piece)
    seen = rows.Y if fit.instruments is None else fit.instruments
    freedom = 1 - rows.Y.shape[-1] / max(int(np.count_nonzero(rows.kept)), 1)
    normal = np.zeros((rows.Y.shape[-1],) * 2)
    noise = np.zeros_like(normal)
    for j in range(model.n):
        w = fit.weights[:, j, None]
        Z, Y = seen[:, j] * w, rows.Y[:, j] * w
        normal += Z.T @ Y
        count = max(int(np.count_nonzero(rows.kept[:, j])), 1)
        variance = float(((residual[:, j] * fit.weights[:, j]) ** 2).sum()) / count / max(freedom, 1e-3)
        noise += factors[j] ** 2 * variance * (Z.T @ Z)
    if fit.information is None:
        inverse = _inverse(normal)
        return Uncertainty(inverse @ noise @ inverse.T, factors, np.ones(len(normal)))
    K = model.natural
    inverse = K @ _inverse(K.T @ normal @ K + fit.information)
    data = inverse @ (K.T @ noise @ K) @ inverse.T
    held = inverse @ fit.information @ inverse.T
    both = np.diag(inverse @ (K.T @ normal @ K) @ inverse.T)
    total = both + np.diag(held)
    share = both / np.where(total > 0, total, 1.0)
    if prior is None or not fit.regularization:
        return Uncertainty(data + held, factors, share)
    width = prior_width(model, prior, rows, fit.weights / factors)
    wide = fit.information.copy()
    wide[: model.links, : model.links] *= fit.regularization * width**2
    return Uncertainty(data + inverse @ wide @ inverse.T, factors, share, width)


def _inverse(A: Array) -> Array:
    """The pseudo-inverse with the diagonal scaled to 1, so that small parameters do not appear singular."""
    d = np.sqrt(np.abs(np.diag(A)))
    d = np.where(d > 0, d, 1.0)
    return np.asarray(np.linalg.pinv(A / np.outer(d, d), rcond=1e-14) / np.outer(d, d))


CENSORED_ITERATIONS = 15
CENSORED_REGULARIZATION = 10.0  # of the fits that select the rows
ONE_LIMIT = 0.9  # minimum dominance of one limit in the saturated torques of a filtered row for it to be used


def one_sided(model: Model, prior: Arm, parts: list[Motion], how: Processing, found: Rows) -> list[Motion]:
    """The motions with the rows to fit; unchanged if no torque is saturated, or if all torques of a joint are."""
    parts = [replace(part, counted=None) for part in parts]
    outside = np.concatenate([kept_rows(part, how) for part in parts])
    if all(part.clipped is None for part in parts) or not outside.any(axis=0).all():
        return parts
    end = np.concatenate([_end(part, how, _middle(parts)) for part in parts])
    problem, K, kept = Problem.of(model, prior, found), model.natural, outside
    for _ in range(CENSORED_ITERATIONS):
        weights = linear.weighted(found.Y, found.tau, kept).weights
        R, z = linear.compress(found.Y, found.tau, weights)
        short = (found.tau - found.Y @ (K @ problem.solve(R @ K, z, CENSORED_REGULARIZATION))) * end > 0
        before, kept = kept, outside | (short & (end != 0))
        if np.array_equal(before, kept):
            break
    return [replace(part, counted=kept[found.piece == k]) for k, part in enumerate(parts)]


def _middle(parts: list[Motion]) -> Array:
    tau = np.concatenate([part.tau for part in parts])
    return np.asarray((tau.max(axis=0) + tau.min(axis=0)) / 2)


def _end(part: Motion, how: Processing, middle: Array) -> Array:
    """The limit that saturates each row, (N, n): 1 the upper, -1 the lower, 0 none or both."""
    if part.clipped is None:
        return 0 * filtered(part.tau, part, how)
    size = filtered(part.clipped.astype(float), part, how)
    sign = filtered(np.where(part.tau > middle, 1.0, -1.0) * part.clipped, part, how)
    return np.where(np.abs(sign) >= ONE_LIMIT * np.abs(size), np.sign(sign), 0.0)
