"""OnlineEstimator: the model of `identify`, sample by sample, with forgetting and changes of the payload."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armdyn.arm import Arm
from armdyn.errors import ComputationError, InputError
from armdyn.identification.estimate.consistent import Problem
from armdyn.identification.estimate.payload import Payload, fitted_body, tool_to_last
from armdyn.identification.estimate.result import Estimate, identified_arm
from armdyn.identification.model.model import Model
from armdyn.identification.online.information import Information
from armdyn.kernels.arguments import real_array

Array = NDArray[np.float64]
REGULARIZATION = 1.0  # in noise variances: a consistent arm without cross-validation
CHANGE = 3.0  # mean squared innovation over its variance, of one update, beyond which the payload has changed
LEAST = 20  # rows per update for which that mean means something
LOOSE = np.array([10.0, 1.0, 1.0, 1.0, *([0.1] * 6)])  # kg, kg m, kg m²: what a payload may change


@dataclass(frozen=True, eq=False)
class OnlineEstimator:
    """The parameters of an arm, learned recursively; `update` gives the estimator with more samples taken in.

    With ``forgetting=1`` the values are those of weighted least squares on all samples at once. A payload that is
    picked up or put down is noticed (`changes`). From then on the filter knows of a payload beside the arm's own
    parameters, which stay what they were: `payload` says what is carried more than at the beginning.

    Attributes
    ----------
    model : Model
        What is identified: minimal parameters, rotors, friction, offsets.
    deviation : array (n,)
        Standard deviations of the torques' noise.
    forgetting : float
        What is left of a sample's weight one sample later, 1: nothing is forgotten.
    change : float
        Mean squared innovation over its variance, of one update, beyond which the payload has changed.
    information : Information
        What is known: of the ten parameters of a payload, once there may be one, and of the arm's own.
    samples : int
        How many have been taken in.
    changes : tuple of int
        The samples at which the payload was found to have changed.
    """

    model: Model
    deviation: Array
    forgetting: float
    change: float
    information: Information
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
        """An estimator that begins with an arm.

        `friction`, `rotor` and `offset` are those of `identify`, `width` (rad/s) that of Coulomb friction's sign.
        `deviation` is the torques' standard deviation, one number or n. With `known` the arm's own parameters are a
        prior: each is known to this share of its size, and of a tenth of the largest of its kind.
        """
        if not isinstance(arm, Arm):
            raise InputError(f"OnlineEstimator takes an Arm, got {arm!r}; armdyn.load(...) gives one")
        model = Model.of(arm, friction, rotor=rotor, offset=offset)
        widths = _per_joint(width, arm.n, "width", least=0.0)
        model = replace(model, width=widths, stribeck=np.where(widths > 0, 5 * widths, 1.0))
        information = Information.none(len(model.names)) if known is None else _prior(model, arm, known)
        return cls(model, _per_joint(deviation, arm.n, "deviation"), _factor(forgetting), change, information)

    @classmethod
    def continuing(
        cls, estimate: Estimate, *, deviation: Any = None, forgetting: float = 1.0, change: float = CHANGE
    ) -> OnlineEstimator:
        """An estimator that begins with what was identified from a log, its covariance included."""
        residual = estimate.training.residual.std(axis=0)
        own = _per_joint(residual if deviation is None else deviation, estimate.model.n, "deviation")
        information = Information.of(estimate.values, estimate.uncertainty.covariance)
        return cls(estimate.model, own, _factor(forgetting), change, information)

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters, as those of `identify`."""
        return self.model.names

    @property
    def own(self) -> Information:
        """What is known of the arm without a payload."""
        return self.information.of_last(len(self.names))

    @property
    def values(self) -> Array:
        """Their values, without a payload."""
        return self.own.values

    @property
    def deviations(self) -> Array:
        """Their standard deviations; inf for what no sample has shown yet."""
        return np.sqrt(np.diag(self.own.covariance))

    def regressor(self, q: Array, qd: Array, qdd: Array) -> Array:
        """The columns of a payload, once there may be one, and of the arm: (N, n, parameters)."""
        Y = self.model.regressor(q, qd, qdd)
        if not self.changes:
            return Y
        last = np.asarray(self.model.arm.natural_regressor(q, qd, qdd))[..., -10:] @ tool_to_last(self.model.arm)
        return np.concatenate([last, Y], axis=-1)

    def predict(self, q: Any, qd: Any, qdd: Any) -> Array:
        """Joint torques by what is known now, with the payload: (N, n)."""
        states = (np.atleast_2d(np.asarray(x, dtype=float)) for x in (q, qd, qdd))
        return np.asarray(self.regressor(*states) @ self.information.values)

    def update(self, q: Any, qd: Any, qdd: Any, tau: Any) -> OnlineEstimator:
        """The estimator with samples taken in, (n,) or (N, n) in the order of time; filtered alike beforehand.

        Some tens of samples per update are best: a change of the payload is decided update by update.
        """
        states = [_samples(x, self.model.n, name) for x, name in ((q, "q"), (qd, "qd"), (qdd, "qdd"), (tau, "tau"))]
        if len({len(x) for x in states}) > 1:
            raise InputError(f"as many q, qd, qdd and tau are expected, got {', '.join(str(len(x)) for x in states)}")
        after, surprise = self._taken_in(states)
        count = states[3].size
        if count >= LEAST and surprise > self.change * count and self.information.complete:
            after, _ = self.expecting_a_payload()._taken_in(states)
        return after

    def _taken_in(self, states: list[Array]) -> tuple[OnlineEstimator, float]:
        """With samples taken in, the older ones of less weight; and how far they were from what was expected."""
        tau = states[3]
        age = self.forgetting ** (np.arange(len(tau))[::-1] / 2)
        weights = age[:, None] / self.deviation
        Y = self.regressor(*states[:3])
        rows, right = (Y * weights[..., None]).reshape(-1, Y.shape[-1]), (tau * weights).ravel()
        information, surprise = self.information.faded(self.forgetting ** len(tau)).absorbed(rows, right)
        return replace(self, information=information, samples=self.samples + len(tau)), surprise

    def expecting_a_payload(self) -> OnlineEstimator:
        """The estimator from the moment on that something else is carried: noticed, or known from the gripper."""
        if not self.own.complete:
            raise ComputationError("the arm itself is not known yet: take in more samples before the payload changes")
        return replace(self, information=self.own.behind(LOOSE), changes=(*self.changes, self.samples))

    @property
    def payload(self) -> Payload | None:
        """What the tool carries more than at the beginning, a body that is possible; None before any change."""
        if not self.changes:
            return None
        held = self.information.of_first(len(LOOSE))
        return fitted_body(held.R, held.z, np.sqrt(np.diag(held.covariance)))

    def natural(self, prior: Arm | None = None, regularization: float = REGULARIZATION) -> Array:
        """Natural parameters of links that are possible bodies, then the extras, without a payload.

        As `identify` has them: regularized by log-det towards a prior, the model's own arm unless given.
        """
        problem = Problem.of(self.model, prior or self.model.arm)
        return problem.solve(self.own.R @ self.model.natural, self.own.z, regularization)

    def arm(self, prior: Arm | None = None, regularization: float = REGULARIZATION) -> Arm:
        """The arm with links that are possible bodies, rotors and friction; ``payload.held_by(arm)`` carries it."""
        found, links = self.natural(prior, regularization), 10 * self.model.n
        extras = dict(zip(self.model.extra_names, map(float, found[links:]), strict=True))
        return identified_arm(self.model, found[:links].reshape(-1, 10), extras)

    def __repr__(self) -> str:
        changed = f", {len(self.changes)} changes of the payload" if self.changes else ""
        return (
            f"<OnlineEstimator of {self.model.arm.name}: {len(self.names)} parameters, {self.samples} samples{changed}>"
        )


def _prior(model: Model, arm: Arm, share: float) -> Information:
    if not (np.isfinite(share) and share > 0):
        raise InputError(f"known must be a positive share of the parameters' sizes, got {share!r}")
    values = model.natural @ model.prior(arm)
    size = np.abs(values)
    size = np.maximum(size, 0.1 * size.max())
    return Information.of(values, np.diag((share * size) ** 2))


def _factor(forgetting: float) -> float:
    if not 0 < forgetting <= 1:
        raise InputError(
            f"forgetting is what is left of a weight one sample later, above 0 and at most 1; got {forgetting}"
        )
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
