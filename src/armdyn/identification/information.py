"""The Fisher information of a motion on the parameters of the whole model, and its gradient.

M = Σ Yᵀ W² Y over the samples. Y has the columns of the rigid body, drives and friction; W is the inverse of the noise
of each joint's torque. Prior knowledge adds its own information. The predicted standard deviations are √(M⁻¹)_kk. The
criteria do not depend on units (Swevers et al. 1997; Pukelsheim 1993). `determinant` is D-optimality, -log det M / 2p.
`information` is the mean logarithm of the deviations relative to a reference, which is somewhat better than the best of
many random motions within the same limits; parameters that are worse than the reference are penalised. The determinant
alone favours the parameters that are easy to improve and neglects others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armdyn.arm import Arm
from armdyn.codegen.compile import compile_program
from armdyn.errors import InputError
from armdyn.formulations import QUANTITIES
from armdyn.formulations.physics import complete
from armdyn.formulations.registry import Options, nothing_added
from armdyn.formulations.regressor import regressor
from armdyn.graph.derive import jacobian
from armdyn.graph.program import trace
from armdyn.identification.model import Model

Array = NDArray[np.float64]
CRITERIA = ("information", "determinant")
KEEP = 300.0  # weight of the penalty on deviations above the reference
AHEAD = 0.05  # logarithm by which the reference is better than the best random motion
FURTHER = 10  # rank of a random motion: half the logarithm by which the best is ahead of it is added to the reference
WIDTH = 0.02  # of each joint's largest velocity: the width of the smoothed sign of Coulomb friction
RIDGE = 1e-12  # relative to the diagonal: keeps the information invertible if columns are nearly dependent


@lru_cache(maxsize=8)
def _sweep(arm: Arm) -> Any:
    """(q, q̇, q̈, G) -> gradients of Σ G·Y with respect to q, q̇, q̈, compiled from a reverse-mode derivative."""
    n, p = arm.n, len(arm.minimal_parameters)

    def weighted_sum(q: Any, qd: Any, qdd: Any, G: Any) -> Any:
        Y = complete(QUANTITIES["regressor"], nothing_added, regressor, arm.chain, [q, qd, qdd], Options(), None)
        return sum((g * y for gs, ys in zip(G, Y, strict=True) for g, y in zip(gs, ys, strict=True)), 0)

    inputs = {"q": (n,), "qd": (n,), "qdd": (n,), "G": (n, p)}
    program = trace("weighed_regressor", weighted_sum, inputs, (("s", ()),))
    return compile_program(jacobian(program, ["q", "qd", "qdd"]))


@dataclass(frozen=True, eq=False)
class Information:
    """The criterion of a design: a model, the noise of each joint's torque, the reference variances."""

    model: Model
    noise: Array
    criterion: str
    reference: Array | None = None
    known: Array | None = None  # prior information on each parameter, per sample of this log

    @classmethod
    def of(cls, arm: Arm, noise: Array, velocity: Array, criterion: str) -> Information:
        """The criterion for an arm with rotors, viscous and Coulomb friction and offsets at every joint."""
        model = Model.of(arm, "coulomb").tuned(velocity[None], [WIDTH * float(v) for v in velocity])
        return cls(model, noise, criterion)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the parameters."""
        return self.model.names

    def ahead_of(self, variances: Array) -> Information:
        """The criterion with a reference better than these variances per sample, (motions, parameters).

        The columns of Coulomb friction and offsets are at most 1, so no motion gives them a variance below the noise's.
        """
        least = np.zeros(len(self.names))
        for k, own in enumerate(self.model.standing_alone, self.model.rigid):
            least[k] = self.noise[own.joint] ** 2 if own.term in ("coulomb", "offset") else 0.0
        best, further = np.sort(variances, axis=0)[[0, min(FURTHER, len(variances) - 1)]]
        lead = np.maximum(best * np.sqrt(best / further) * np.exp(-2 * AHEAD), least * np.exp(-2 * AHEAD))
        return replace(self, reference=lead)

    def knowing(self, deviations: Sequence[float], samples: int) -> Information:
        """The criterion with prior standard deviations of the parameters, for a log of `samples` samples."""
        known = np.asarray(deviations, dtype=float)
        if known.shape != (len(self.names),) or not (known > 0).all():
            raise InputError(
                f"prior must be a positive standard deviation (inf: unknown) for each of {len(self.names)} parameters "
                f"({', '.join(self.names[:3])}, …), got shape {known.shape}"
            )
        return replace(self, known=1 / known**2 / samples)

    def matrix(self, q: Array, qd: Array, qdd: Array) -> Array:
        """M per sample, so that motions of different length can be compared."""
        Y = self.model.regressor(q, qd, qdd) / self.noise[:, None]
        return self._normal(Y.reshape(-1, Y.shape[-1]), len(q))

    def _normal(self, A: Array, samples: int) -> Array:
        M = A.T @ A / samples
        M = M if self.known is None else M + np.diag(self.known)
        return np.asarray(M + RIDGE * np.diag(np.diag(M)))

    def deviations(self, q: Array, qd: Array, qdd: Array) -> Array:
        """Predicted standard deviations of the parameters from this many independent samples."""
        return np.asarray(np.sqrt(np.diag(_inverse(self.matrix(q, qd, qdd))) / len(q)))

    def value(self, q: Array, qd: Array, qdd: Array) -> float:
        """The criterion, half a logarithm of variances; smaller is better."""
        return self._judge(self.matrix(q, qd, qdd))[0]

    def _judge(self, M: Array) -> tuple[float, Array]:
        """The criterion and its gradient with respect to M."""
        inverse = _inverse(M)
        p = len(M)
        if self.criterion == "determinant" or self.reference is None:
            return -float(np.linalg.slogdet(M)[1]) / (2 * p), -inverse / (2 * p)
        variance = np.diag(inverse)
        over = np.log(variance / self.reference) / 2
        behind = np.maximum(over, 0)
        weight = (1 + 2 * KEEP * behind) / (2 * p * variance)
        return float(over.mean() + KEEP * (behind @ behind) / p), -(inverse * weight) @ inverse

    def sloped(self, q: Array, qd: Array, qdd: Array) -> tuple[float, Array, Array]:
        """The criterion, the regressor (N, n, p), and the gradient of the criterion with respect to it."""
        Y = self.model.regressor(q, qd, qdd)
        A = Y / self.noise[:, None]
        value, slope = self._judge(self._normal(A.reshape(-1, A.shape[-1]), len(q)))
        return value, Y, 2 * A @ slope / self.noise[:, None] / len(q)

    def along(self, q: Array, qd: Array, qdd: Array, G: Array) -> list[Array]:
        """Gradients of Σ G·Y with respect to q, q̇, q̈, over all columns of the model."""
        rigid = self.model.rigid
        by_q, by_qd, by_qdd = _sweep(self.model.arm)(q, qd, qdd, np.ascontiguousarray(G[..., :rigid]))
        by_qd, by_qdd = by_qd.copy(), by_qdd.copy()
        for k, own in enumerate(self.model.standing_alone, rigid):
            j = own.joint
            assert j is not None
            g = G[:, j, k]
            if own.term == "viscous":
                by_qd[:, j] += g
            elif own.term == "coulomb":
                width = self.model.width[j]
                by_qd[:, j] += g / width / np.cosh(np.clip(qd[:, j] / width, -300, 300)) ** 2
            elif own.term == "rotor":
                by_qdd[:, j] += g
        return [by_q, by_qd, by_qdd]


def _inverse(M: Array) -> Array:
    """The inverse, computed with the diagonal scaled to 1."""
    d = 1 / np.sqrt(np.maximum(np.diag(M), 1e-300))
    return np.asarray(np.linalg.inv(M * np.outer(d, d)) * np.outer(d, d))
