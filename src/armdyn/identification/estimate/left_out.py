"""How well models predict what they were not fitted to: segments of a log in time, and in posture.

A model that predicts other seconds of the same motion may still fail at other motions. So a change of the model is
judged twice: on consecutive segments, and on segments that are clusters of postures. Both compare the logarithms of the
weighted residuals segment by segment, so that a segment that is hard to predict counts no more than the others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from armdyn.identification.estimate import linear
from armdyn.identification.estimate.consistent import Problem
from armdyn.identification.log.processing import Motion, Processing
from armdyn.identification.model.bodies import PAIRS
from armdyn.identification.model.model import Model
from armdyn.identification.model.rows import Rows, filtered

Array = NDArray[np.float64]
REGULARIZATION = 10.0  # of the fits to the other segments
ROUNDS = 20  # of the clustering of postures
SMALLEST = 0.02  # of the rows, in a segment of postures that counts
NEGLIGIBLE = 1e-12  # squares below this part of the torque's are rounding
Solver = Callable[[Array, Array], Array]  # identifiable parameters from compressed rows


@dataclass(frozen=True, eq=False)
class Segments:
    """The compressed rows (R, z) of each segment, and of all others."""

    own: list[tuple[Array, Array]]
    others: list[tuple[Array, Array]]

    @classmethod
    def of(cls, found: Rows, weights: Array, segment: NDArray[np.int64]) -> Segments:
        """The segments with these numbers, without those that have hardly any rows."""
        count = np.bincount(segment)
        chosen = [segment == k for k in np.flatnonzero(count >= max(SMALLEST * len(segment), 2))]
        own = [linear.compress(found.Y[s], found.tau[s], weights[s]) for s in chosen]
        stacked = [np.column_stack(pair) for pair in own]
        others = [linear.triangle(np.vstack(stacked[:k] + stacked[k + 1 :])) for k in range(len(stacked))]
        return cls(own, [(R[:, :-1], R[:, -1]) for R in others] if len(own) > 1 else [])

    def errors(self, solver: Solver) -> Array:
        """Logarithms of the residuals of each segment, predicted from the others."""
        out = []
        for (R, z), (R_others, z_others) in zip(self.own, self.others, strict=False):
            left = float(((R @ solver(R_others, z_others) - z) ** 2).sum())
            out.append(np.log(max(left, NEGLIGIBLE * float(z @ z), 1e-300)) / 2)
        return np.array(out)


def segments(
    found: Rows, weights: Array, parts: list[Motion], how: Processing, folds: int
) -> tuple[Segments, Segments]:
    """The segments in time and those in posture."""
    q = np.concatenate([filtered(p.q, p, how) for p in parts])
    return (
        Segments.of(found, weights, found.segments(folds)),
        Segments.of(found, weights, posture_clusters(q, folds)),
    )


def posture_clusters(q: Array, count: int) -> NDArray[np.int64]:
    """The cluster of each posture (k-means; joints divided by their deviations, centres far apart at first)."""
    size = q.std(axis=0)
    x = (q - q.mean(axis=0)) / np.where(size > 1e-9, size, np.inf)
    centres = x[[int(np.argmax((x**2).sum(axis=1)))]]
    while len(centres) < count:
        nearest = ((x[:, None] - centres) ** 2).sum(axis=2).min(axis=1)
        centres = np.vstack([centres, x[int(np.argmax(nearest))]])
    for _ in range(ROUNDS):
        own = np.argmin(((x[:, None] - centres) ** 2).sum(axis=2), axis=1)
        moved = np.array([x[own == k].mean(axis=0) if (own == k).any() else centres[k] for k in range(count)])
        if np.allclose(moved, centres):
            break
        centres = moved
    return np.asarray(own, dtype=np.int64)


def better(before: Array, after: Array, least: float, deviations: float = 0.0) -> bool:
    """Whether the errors fall by a fraction of at least `least`, and by so many standard errors of their mean."""
    gain = before - after
    if len(gain) < 2:
        return False
    spread = float(gain.std(ddof=1)) / np.sqrt(len(gain))
    return bool(gain.mean() >= -np.log(1 - least) and gain.mean() >= deviations * spread)


def ridge(model: Model, problem: Problem) -> Solver:
    """The regularized fit without the bounds of physical consistency, which takes one factorization.

    The prior is held by the log-det divergence to second order, the extra terms weakly to the order of the torque.
    """
    links, extras = model.links, len(model.extra_names)
    T = np.eye(links + extras)
    T[:links, :links] = problem.coordinates
    K = model.natural @ T
    diagonal = np.array([r == c for r, c in PAIRS])
    own = np.tile(np.where(diagonal, 1.0, np.sqrt(2)), links // 10)  # ½ ‖X - 1‖² counts both triangles
    target = np.concatenate([np.tile(diagonal, links // 10), problem.held])

    def solver(R: Array, z: Array) -> Array:
        A = R @ K
        size = max(float(np.linalg.norm(z)), 1e-300)
        scale = np.linalg.norm(A[:, links:], axis=0) / size
        hold = np.sqrt(REGULARIZATION) * np.concatenate([own, np.where(scale > 0, scale, 1.0)])
        normal = A.T @ A + np.diag(hold**2)
        right = A.T @ (z - A @ target)
        unit = 1 / np.sqrt(np.diag(normal))
        x = target + unit * np.linalg.solve(normal * np.outer(unit, unit), unit * right)
        return np.asarray(K @ x)

    return solver


def consistent_fit(model: Model, problem: Problem, regularization: float, start: Array) -> Solver:
    """The physically consistent fit, from natural parameters that are near the solution."""
    K = model.natural

    def solver(R: Array, z: Array) -> Array:
        return np.asarray(K @ problem.solve(R @ K, z, regularization, start))

    return solver
