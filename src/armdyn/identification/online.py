"""OnlineEstimator: recursive estimation with the model of `identify`, with forgetting and payload changes.

Square-root information filter on arrays: R is upper triangular, RᵀR the information matrix, and R x = z.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armdyn.arm import Arm
from armdyn.errors import ComputationError, InputError
from armdyn.identification import linear
from armdyn.identification.consistent import Problem
from armdyn.identification.model import Model
from armdyn.identification.payload import Payload, fitted_body, payload_regressor
from armdyn.identification.result import Estimate, identified_arm
from armdyn.values import real_array

Array = NDArray[np.float64]
REGULARIZATION = 1.0  # in noise variances; `identify` chooses it by cross-validation, which is not possible online
CHANGE = 3.0  # mean of squared innovation / variance in one update above which the payload has changed
LEAST = 20  # rows per update below which this mean is too uncertain
LOOSE = np.array([10.0, 1.0, 1.0, 1.0, *([0.1] * 6)])  # kg, kg m, kg m²: prior standard deviations of a payload


@dataclass(frozen=True, eq=False)
class OnlineEstimator:
    """Recursive estimator of an arm's parameters; `update` returns the estimator updated with more samples.

    With ``forgetting=1`` the values are those of weighted least squares on all samples at once. The estimator detects
    when a payload is picked up or put down (`changes`). From then on it estimates the ten parameters of a payload in
    addition to the arm's own: `payload` is the difference to the payload at the beginning.

    Attributes
    ----------
    model : Model
        The identified parameters: minimal parameters, rotor inertias, friction, offsets.
    deviation : array (n,)
        Standard deviations of the torque noise.
    forgetting : float
        The forgetting factor per sample; 1: nothing is forgotten.
    change : float
        The mean of squared innovation / variance in one update above which the payload has changed.
    information : SquareRootInformation
        The information on the parameters of the payload, once there may be one, and of the arm.
    samples : int
        The number of samples processed.
    changes : tuple of int
        The samples at which a change of the payload was detected.
    """

    model: Model
    deviation: Array
    forgetting: float
    change: float
    information: SquareRootInformation
    samples: int = 0
    changes: tuple[int, ...] = ()

    @classmethod
    def of(
        cls,
        arm: Arm,
        friction: str = "coulomb",
        *,
        rotor: bool = True,
        offset: bool = False,
        width: Any = 0.02,
        deviation: Any = 1.0,
        forgetting: float = 1.0,
        change: float = CHANGE,
        known: float | None = None,
    ) -> OnlineEstimator:
        """An estimator for an arm.

        `friction`, `rotor` and `offset` are as in `identify`; `width` (rad/s) is the width of the smoothed sign of
        Coulomb friction. `deviation` is the standard deviation of the torque noise, one number or n. With `known`, the
        arm's parameters are the prior: their standard deviations are this fraction of their size, or of a tenth of the
        largest parameter if that is larger.
        """
        if not isinstance(arm, Arm):
            raise InputError(f"OnlineEstimator takes an Arm, got {arm!r}; armdyn.load(...) returns one")
        model = Model.of(arm, friction, rotor=rotor, offset=offset)
        widths = _per_joint(width, arm.n, "width", least=0.0)
        model = replace(model, width=widths, stribeck=np.where(widths > 0, 5 * widths, 1.0))
        information = SquareRootInformation.none(len(model.names)) if known is None else _prior(model, arm, known)
        return cls(model, _per_joint(deviation, arm.n, "deviation"), _factor(forgetting), change, information)

    @classmethod
    def continuing(
        cls, estimate: Estimate, *, deviation: Any = None, forgetting: float = 1.0, change: float = CHANGE
    ) -> OnlineEstimator:
        """An estimator that starts from the values and the covariance identified from a log."""
        residual = estimate.training.residual.std(axis=0)
        own = _per_joint(residual if deviation is None else deviation, estimate.model.n, "deviation")
        information = SquareRootInformation.of(estimate.values, estimate.uncertainty.covariance)
        return cls(estimate.model, own, _factor(forgetting), change, information)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the arm's parameters, as in `identify`."""
        return self.model.names

    @property
    def own(self) -> SquareRootInformation:
        """The information on the arm's own parameters, without the payload."""
        return self.information.of_last(len(self.names))

    @property
    def values(self) -> Array:
        """The values of the arm's parameters, without the payload."""
        return self.own.values

    @property
    def deviations(self) -> Array:
        """The standard deviations of the arm's parameters; inf for those not yet observable."""
        return np.sqrt(np.diag(self.own.covariance))

    def regressor(self, q: Array, qd: Array, qdd: Array) -> Array:
        """The regressor (N, n, parameters) of the payload, once there may be one, and of the arm."""
        Y = self.model.regressor(q, qd, qdd)
        if not self.changes:
            return Y
        return np.concatenate([payload_regressor(self.model.arm, q, qd, qdd), Y], axis=-1)

    def predict(self, q: Any, qd: Any, qdd: Any) -> Array:
        """Joint torques (N, n) predicted with the current estimate, including the payload."""
        states = (np.atleast_2d(np.asarray(x, dtype=float)) for x in (q, qd, qdd))
        return np.asarray(self.regressor(*states) @ self.information.values)

    def update(self, q: Any, qd: Any, qdd: Any, tau: Any) -> OnlineEstimator:
        """The estimator updated with samples, (n,) or (N, n) in time order, all filtered with the same filter.

        Use some tens of samples per update: a change of the payload is detected once per update.
        """
        states = [_samples(x, self.model.n, name) for x, name in ((q, "q"), (qd, "qd"), (qdd, "qdd"), (tau, "tau"))]
        if len({len(x) for x in states}) > 1:
            raise InputError(
                f"q, qd, qdd and tau must have the same number of samples, got {', '.join(str(len(x)) for x in states)}"
            )
        after, surprise = self._updated(states)
        count = states[3].size
        if count >= LEAST and surprise > self.change * count and self.information.complete:
            after, _ = self.expecting_a_payload()._updated(states)
        return after

    def _updated(self, states: list[Array]) -> tuple[OnlineEstimator, float]:
        """The estimator updated with samples, with forgetting, and the squared norm of the whitened innovations."""
        tau = states[3]
        age = self.forgetting ** (np.arange(len(tau))[::-1] / 2)
        weights = age[:, None] / self.deviation
        Y = self.regressor(*states[:3])
        rows, right = (Y * weights[..., None]).reshape(-1, Y.shape[-1]), (tau * weights).ravel()
        information, surprise = self.information.faded(self.forgetting ** len(tau)).absorbed(rows, right)
        return replace(self, information=information, samples=self.samples + len(tau)), surprise

    def expecting_a_payload(self) -> OnlineEstimator:
        """The estimator after a change of the payload, which was detected or is known from the gripper."""
        if not self.own.complete:
            raise ComputationError("the parameters of the arm are not yet determined: more samples are needed first")
        return replace(self, information=self.own.behind(LOOSE), changes=(*self.changes, self.samples))

    @property
    def payload(self) -> Payload | None:
        """The change of the payload since the beginning, as a physically possible body; None before any change."""
        if not self.changes:
            return None
        held = self.information.of_first(len(LOOSE))
        return fitted_body(held.R, held.z, np.sqrt(np.diag(held.covariance)))

    def natural(self, prior: Arm | None = None, regularization: float = REGULARIZATION) -> Array:
        """Physically consistent inertial parameters of the links, then the extra parameters, without the payload.

        As in `identify`: with log-det regularization towards a prior, by default the arm of the model.
        """
        problem = Problem.of(self.model, prior or self.model.arm)
        return problem.solve(self.own.R @ self.model.natural, self.own.z, regularization)

    def arm(self, prior: Arm | None = None, regularization: float = REGULARIZATION) -> Arm:
        """The identified arm with physically consistent links; ``payload.held_by(arm)`` adds the payload."""
        return identified_arm(self.model, self.natural(prior, regularization), self.model.logs - 1)

    def __repr__(self) -> str:
        changed = f", {len(self.changes)} changes of the payload" if self.changes else ""
        return (
            f"<OnlineEstimator of {self.model.arm.name}: {len(self.names)} parameters, {self.samples} samples{changed}>"
        )


def _prior(model: Model, arm: Arm, share: float) -> SquareRootInformation:
    if not (np.isfinite(share) and share > 0):
        raise InputError(f"known must be a positive fraction of the parameters' sizes, got {share!r}")
    values = model.natural @ model.prior(arm)
    size = np.abs(values)
    size = np.maximum(size, 0.1 * size.max())
    return SquareRootInformation.of(values, np.diag((share * size) ** 2))


def _factor(forgetting: float) -> float:
    if not 0 < forgetting <= 1:
        raise InputError(f"forgetting must be a factor per sample above 0 and at most 1, got {forgetting}")
    return float(forgetting)


def _per_joint(value: Any, n: int, name: str, least: float | None = None) -> Array:
    numbers = real_array(value, name)
    good = numbers > 0 if least is None else numbers >= least
    if numbers.shape not in ((), (n,)) or not np.all(good & np.isfinite(numbers)):
        raise InputError(f"{name} must be one positive number or {n}, got {value!r}")
    return np.array(np.broadcast_to(numbers, (n,)))


def _samples(values: Any, n: int, name: str) -> Array:
    array = np.atleast_2d(real_array(values, name))
    if array.ndim != 2 or array.shape[1] != n or not np.all(np.isfinite(array)):
        raise InputError(f"{name} must be finite and (n,) or (N, n) with n = {n}, got shape {np.shape(values)}")
    return array


RANK = 1e-10  # smallest singular value over the largest, in columns of unit length, of information that is complete


@dataclass(frozen=True, eq=False)
class SquareRootInformation:
    """The information on parameters x: ‖R x - z‖² is their negative log-likelihood times two, up to a constant.

    Source: Bierman 1977. Rows are whitened, that is, scaled to unit noise.
    """

    R: Array
    z: Array

    @classmethod
    def none(cls, size: int) -> SquareRootInformation:
        """No information on any parameter."""
        return cls(np.zeros((size, size)), np.zeros(size))

    @classmethod
    def of(cls, values: Array, covariance: Array) -> SquareRootInformation:
        """Known values with a covariance; there is no information on directions in its null space."""
        scale = np.sqrt(np.maximum(np.diag(covariance), 0.0))
        scale = np.where(scale > 0, scale, 1.0)
        inverse = np.linalg.pinv(covariance / np.outer(scale, scale), rcond=1e-14, hermitian=True)
        size, turned = np.linalg.eigh(inverse)
        root = np.sqrt(np.maximum(size, 0.0))[:, None] * turned.T / scale
        R = linear.triangle(root)
        return cls(R, R @ values)

    def absorbed(self, rows: Array, right: Array) -> tuple[SquareRootInformation, float]:
        """The information updated with whitened rows, (k, p) and (k,), and the squared norm of their innovations.

        The norm is eᵀS⁻¹e, with e the innovations and S their covariance due to noise and the uncertainty of the
        parameters: it is distributed as χ² with k degrees of freedom if nothing has changed.
        """
        stacked = np.vstack([np.column_stack([self.R, self.z]), np.column_stack([rows, right])])
        T = linear.triangle(stacked)
        p = len(self.z)
        return SquareRootInformation(T[:p, :p], T[:p, p]), float(T[p, p] ** 2)

    def faded(self, factor: float) -> SquareRootInformation:
        """The information multiplied by a factor from 0 to 1."""
        root = float(np.sqrt(factor))
        return SquareRootInformation(root * self.R, root * self.z)

    @property
    def complete(self) -> bool:
        """Whether the information matrix has full rank."""
        return linear.condition(self.R) < 1 / RANK

    @property
    def values(self) -> Array:
        """The most likely parameters; those of minimum norm if they are not unique."""
        if not self.R.any():
            raise ComputationError("there is no estimate yet: the filter has processed no samples")
        return linear.solve(self.R, self.z)

    @property
    def covariance(self) -> Array:
        """(RᵀR)⁻¹; inf on the diagonal for parameters that are not determined."""
        norms = np.linalg.norm(self.R, axis=0)
        scale = np.where(norms > 0, norms, 1.0)
        _, s, Vt = np.linalg.svd(self.R / scale)
        good = s > RANK * max(float(s[0]), 1e-300)
        half = Vt[good].T / s[good]
        found = half @ half.T / np.outer(scale, scale)
        unknown = (Vt[~good] ** 2).sum(axis=0) > RANK
        found[unknown, unknown] = np.inf
        return np.asarray(found)

    def of_last(self, count: int) -> SquareRootInformation:
        """The marginal information on the last parameters."""
        return SquareRootInformation(self.R[-count:, -count:], self.z[-count:])

    def of_first(self, count: int) -> SquareRootInformation:
        """The marginal information on the first parameters."""
        turned = np.column_stack([self.R[:, count:], self.R[:, :count], self.z])
        T = linear.triangle(turned)
        rest = len(self.z) - count
        return SquareRootInformation(T[rest:-1, rest:-1], T[rest:-1, -1])

    def behind(self, deviations: Array) -> SquareRootInformation:
        """The information with further parameters in front, which have a prior of zero with these deviations."""
        k, p = len(deviations), len(self.z)
        R = np.zeros((k + p, k + p))
        R[:k, :k], R[k:, k:] = np.diag(1 / deviations), self.R
        return SquareRootInformation(R, np.concatenate([np.zeros(k), self.z]))
