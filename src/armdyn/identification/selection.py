"""Which further terms a log bears: forward selection, one term at one joint at a time.

Candidates are Stribeck's bump, friction that grows with the load, a spring, ripples of the torque over a turn, at each
joint, and a base off level. A candidate is kept if segments of the log that were left out are predicted better with
it: by 1 % at least, and by more than a standard error over the segments. Trial fits are ridge regressions towards the
prior: the log-det pull to second order, ½ ‖X - 1‖² in the prior's own coordinates. There a further column costs one
projection, so that all candidates are tried at once on one triangle a segment.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from armdyn.arm import Arm
from armdyn.identification import linear
from armdyn.identification.bodies import PAIRS, reference_bodies
from armdyn.identification.consistent import Problem
from armdyn.identification.model import RIPPLES, Model
from armdyn.identification.samples import Motion, Processing, Rows, thinned
from armdyn.identification.tilt import sideways

Array = NDArray[np.float64]
WORTH = 0.01  # a further term must lower the left-out error by 1 %
PULLS = (1.0, 10.0, 100.0, 1000.0)
FIRST_PULL = 10.0  # of the fit whose load and gravity the candidates start from
BUMPS = (0.03, 0.1, 0.3)  # Stribeck velocities tried, in each joint's largest; refined afterwards
NEGLIGIBLE = 1e-12  # squares below this part of the torque's are rounding


@dataclass(frozen=True, eq=False)
class Candidate:
    """What may be added to a model: terms at a joint, or (none) a base off level; with its columns (N, n, 1 or 2)."""

    name: str
    terms: tuple[str, ...]
    joint: int
    columns: Array
    velocity: float = 0.0  # of Stribeck's bump

    def added_to(self, model: Model) -> Model:
        """The model with these terms."""
        for term in self.terms:
            model = model.adding(term, self.joint)
        if self.velocity:
            model = replace(model, stribeck=np.where(np.arange(model.n) == self.joint, self.velocity, model.stribeck))
        return model


@dataclass(frozen=True, eq=False)
class Selection:
    """The model with what was added, whether the base leans, the left-out error after each step (at first 1)."""

    model: Model
    leans: bool
    steps: dict[str, float]


def select(model: Model, prior: Arm, parts: list[Motion], how: Processing, found: Rows, folds: int) -> Selection:
    """Add the candidate that predicts left-out segments best, as long as one is worth it."""
    weights = linear.weighted(found.Y, found.tau).weights
    bodies, _ = reference_bodies(model.prior(prior)[: 10 * model.n])
    problem = Problem(bodies, model.extra_positive)
    R, z = linear.compress(found.Y, found.tau, weights)
    start = problem.solve(R @ model.natural, z, FIRST_PULL)[: 10 * model.n]
    model = replace(model, load=start)
    left = list(candidates(model, parts, how))
    trials = Trials(model, problem, found, weights, left, folds)
    chosen: list[Candidate] = []
    steps = {"rigid body, viscous and Coulomb friction": 1.0}
    error = 1.0
    while left:
        gains = trials.gains(chosen, left)
        mean, spread = gains.mean(axis=0), gains.std(axis=0, ddof=1) / np.sqrt(folds)
        good = np.flatnonzero(mean < -np.maximum(spread, WORTH))
        if not len(good):
            break
        best = left[good[np.argmin(mean[good])]]
        error *= float(np.exp(mean[good].min()))
        chosen.append(best)
        steps[best.name] = error
        left = [c for c in left if (c.terms, c.joint) != (best.terms, best.joint)]
    for candidate in chosen:
        model = candidate.added_to(model)
    return Selection(model, any(not c.terms for c in chosen), steps)


def candidates(model: Model, parts: list[Motion], how: Processing) -> Iterator[Candidate]:
    """Everything the model could have besides; `model.load` says what a joint's load and weight are."""
    q = np.concatenate([p.q for p in parts])
    top = np.abs(np.concatenate([p.qd for p in parts])).max(axis=0)

    def made(name: str, terms: tuple[str, ...], j: int, velocity: float = 0.0) -> Candidate:
        base = replace(model, terms={}, coupling=None)
        own = Candidate(f"{name} of joint {j + 1}", terms, j, q, velocity).added_to(base)
        columns = np.concatenate([thinned(own.extras(p.q, p.qd, p.qdd), p, how) for p in parts])
        return Candidate(f"{name} of joint {j + 1}", terms, j, columns, velocity)

    for j in np.flatnonzero(top > 0):
        if "coulomb" in model.terms:
            yield from (made("Stribeck's bump", ("stribeck",), int(j), float(part * top[j])) for part in BUMPS)
            yield made("friction with the load", ("load",), int(j))
        if "spring" not in model.terms:
            yield made("spring", ("spring",), int(j))
        for k in RIPPLES:  # a ripple can be told from a slope where the joint covers it whole
            if model.arm.joints[j].revolute and np.ptp(q[:, j]) > 2 * np.pi / k:
                yield made(f"ripple ({k} a turn)", (f"sin{k}", f"cos{k}"), int(j))
    if np.linalg.norm(model.arm.gravity) > 0:
        columns = np.stack([side @ model.load for side in sideways(model.arm, parts, how)[1:]], axis=-1)
        yield Candidate("base off level", (), -1, columns)


class Trials:
    """Left-out errors of models with further columns, all from one triangle a segment."""

    def __init__(
        self, model: Model, problem: Problem, found: Rows, weights: Array, every: list[Candidate], folds: int
    ) -> None:
        links, extras = 10 * model.n, len(model.extra_names)
        T = np.eye(links + extras)
        T[:links, :links] = problem.coordinates
        base = model.natural @ T
        ends = np.cumsum([c.columns.shape[-1] for c in every]) + base.shape[1]
        self.at = {c: np.arange(end - c.columns.shape[-1], end) for c, end in zip(every, ends, strict=True)}
        self.base = np.arange(base.shape[1])
        diagonal = np.array([r == c for r, c in PAIRS])
        self.links = np.tile(np.where(diagonal, 1.0, np.sqrt(2)), model.n)  # ½ ‖X - 1‖² counts both triangles
        target = np.concatenate([np.tile(diagonal, model.n), np.zeros(extras)])
        Y = np.concatenate([found.Y, *(c.columns for c in every)], axis=2)
        parts = []
        for k in range(folds):
            own = found.segments(folds) == k
            S, z = linear.compress(Y[own], found.tau[own], weights[own])
            A = S[:, : len(base)] @ base
            parts.append(np.column_stack([A, S[:, len(base) :], z - A @ target, z]))
        others = [linear.triangle(np.vstack(parts[:k] + parts[k + 1 :])) for k in range(folds)]
        self.folds = list(zip(parts, others, strict=True))

    def gains(self, chosen: list[Candidate], left: list[Candidate]) -> Array:
        """Logarithm of the left-out error with each candidate over that without, (folds, candidates)."""
        active = np.concatenate([self.base, *(self.at[c] for c in chosen)])
        errors = np.array([[self._errors(*fold, pull, active, left) for fold in self.folds] for pull in PULLS])
        scores = np.log(errors) / 2
        best = np.argmin(scores.mean(axis=1), axis=0)  # the pull that predicts best, for each candidate
        scores = scores[best, :, np.arange(len(best))].T
        return np.asarray(scores[:, 1:] - scores[:, :1])

    def _errors(
        self, out: Array, others: Array, pull: float, active: NDArray[np.int64], left: list[Candidate]
    ) -> list[float]:
        """Squares of one left-out segment: with the active columns alone, then with each candidate."""
        size = float(np.linalg.norm(others[:, -1]))
        W, test = others[:, :-1], out[:, :-1]
        hold = np.linalg.norm(W, axis=0) / size  # extras are of the order of the torque itself
        hold[: len(self.links)] = self.links
        hold[-1] = 0.0  # the torque's own column
        hold[:-1] = np.where(hold[:-1] > 0, hold[:-1], 1.0)
        W = np.vstack([W, np.sqrt(pull) * np.diag(hold)])
        Q, R = np.linalg.qr(W[:, active])
        along = Q.T @ W
        free = W - Q @ along
        test = test - test[:, active] @ np.linalg.solve(R, along)
        floor = max(NEGLIGIBLE * float(out[:, -1] @ out[:, -1]), 1e-300)
        found = [float(test[:, -1] @ test[:, -1])]
        for columns in (self.at[c] for c in left):
            C = free[:, columns]
            rest = test[:, -1] - test[:, columns] @ np.linalg.solve(C.T @ C, C.T @ free[:, -1])
            found.append(float(rest @ rest))
        return [max(x, floor) for x in found]
