"""Forward selection of extra terms, one term at one joint at a time.

Candidates are, at each joint, Stribeck friction, load-dependent friction, a spring and torque ripple, and a base tilt.
A candidate is added if an information criterion on the whole log, which accounts for autocorrelated residuals, supports
it, and if it lowers the prediction error of left-out segments by at least 1 %. Trial fits are ridge regressions towards
the prior: the log-det divergence to second order, ½ ‖X - 1‖² in the coordinates of the prior. There a further column
costs one projection, so that all candidates are tried at once on one triangular matrix per segment.

Detection of motors that drive two joints without this being specified.

In many wrists a motor also drives the neighbouring joint: its inertia and friction then depend on the sum or the
difference of the two joint velocities, which friction models per joint cannot explain. The torque error of the wrist
of a TX40 (joint side) was 384 %, and is 50 % with the three regressor columns of the motor. These columns are tried for
all pairs of neighbouring joints, and kept if they are statistically significant and left-out segments are predicted far
better.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from armdyn.arm import Arm
from armdyn.identification import linear
from armdyn.identification.consistent import Problem
from armdyn.identification.fit import autocorrelation_factors
from armdyn.identification.left_out import better, ridge, segments
from armdyn.identification.model import PAIRS, RIPPLES, TERMS, Model, Rows, filtered, rows
from armdyn.identification.nonlinear import sideways
from armdyn.identification.processing import Motion, Processing

Array = NDArray[np.float64]
WORTH = 0.01  # a further term must lower the left-out error by 1 %
GROUP_WORTH = 0.05  # a term at all joints must lower it by 5 %, and by two standard errors, in time and in posture
GROUPS = {
    "spring": "springs at all joints",
    "stribeck": "Stribeck friction at all joints",
    "asymmetry": "asymmetric viscous friction at all joints",
}
MOST_GROUPS = 2
REGULARIZATIONS = (1.0, 10.0, 100.0, 1000.0)
FIRST_REGULARIZATION = 10.0  # of the fit whose load and gravity the candidates start from
BUMPS = (0.03, 0.1, 0.3)  # Stribeck velocities tried, in each joint's largest; refined afterwards
NEGLIGIBLE = 1e-12  # squares below this part of the torque's are rounding


@dataclass(frozen=True, eq=False)
class Candidate:
    """What may be added to a model: terms at a joint, or (none) a base tilt; with its columns (N, n, 1 or 2)."""

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
    """The model with what was added, whether the base is tilted, the left-out error after each step (at first 1)."""

    model: Model
    tilted: bool
    steps: dict[str, float]


def select(model: Model, prior: Arm, parts: list[Motion], how: Processing, found: Rows, folds: int) -> Selection:
    """Add the candidate that predicts left-out segments best, as long as one is worth it."""
    weights = linear.weighted(found.Y, found.tau, found.kept).weights
    problem = Problem.of(model, prior, found)
    R, z = linear.compress(found.Y, found.tau, weights)
    model = model.loaded(problem.solve(R @ model.natural, z, FIRST_REGULARIZATION))
    every = list(candidates(model, parts, how))
    trials = Trials(model, problem, found, weights, every, folds)
    chosen: list[Candidate] = []
    steps = {"rigid body, viscous and Coulomb friction": 1.0}
    error, left = 1.0, every
    while left:
        gains = trials.gains(chosen, left)
        gains = np.where(trials.evident(chosen, left), gains, 0.0)
        best = left[int(np.argmin(gains))]
        if gains.min() > -WORTH:
            break
        error *= float(np.exp(gains.min()))
        chosen.append(best)
        steps[best.name] = error
        left = [c for c in left if (c.terms, c.joint) != (best.terms, best.joint)]
    for candidate in chosen:
        model = candidate.added_to(model)
    return Selection(model, any(not c.terms for c in chosen), steps)


def with_groups(
    model: Model, steps: dict[str, float], prior: Arm, parts: list[Motion], how: Processing, folds: int
) -> tuple[Model, dict[str, float]]:
    """The model with a term at every joint that moves, where left-out segments in time and in posture bear it out.

    Terms that do little at each joint and much at all of them are not found one by one. Taken on 4 of 22 pairs of
    measured logs, with 7 to 15 % less error each; without the standard errors one pair doubled its error.
    """
    moving = np.flatnonzero(np.ptp(np.concatenate([p.q for p in parts]), axis=0) > 0)
    for _ in range(MOST_GROUPS):
        found = rows(model, parts, how)
        weights = linear.weighted(found.Y, found.tau, found.kept).weights
        before = _left_out(model, prior, found, weights, parts, how, folds)
        best: tuple[float, Model, str] | None = None
        for term, words in GROUPS.items():
            own = model.terms.get(term, ())
            if set(moving) <= set(own) or (term == "stribeck" and "coulomb" not in model.terms):
                continue
            trial = model
            for j in moving:
                trial = trial.adding(term, int(j))
            after = _left_out(trial, prior, rows(trial, parts, how), weights, parts, how, folds)
            gain = float(np.mean([a.mean() - b.mean() for a, b in zip(after, before, strict=True)]))
            evident = all(better(b, a, GROUP_WORTH, 2.0) for a, b in zip(after, before, strict=True))
            if evident and (best is None or gain < best[0]):
                best = gain, trial, words
        if best is None:
            break
        model = best[1]
        steps = {**steps, best[2]: min(steps.values()) * float(np.exp(best[0]))}
    return model, steps


def _left_out(
    model: Model, prior: Arm, found: Rows, weights: Array, parts: list[Motion], how: Processing, folds: int
) -> list[Array]:
    solver = ridge(model, Problem.of(model, prior, found))
    return [own.errors(solver) for own in segments(found, weights, parts, how, folds)]


def candidates(model: Model, parts: list[Motion], how: Processing) -> Iterator[Candidate]:
    """Everything the model could have besides; `model.load` says what a joint's load and weight are."""
    q = np.concatenate([p.q for p in parts])
    top = np.abs(np.concatenate([p.qd for p in parts])).max(axis=0)

    def shaped(*terms: str, stribeck: Array | None = None) -> Array:
        """The filtered columns of terms, (N, n, terms), each joint's its own."""
        own = model if stribeck is None else replace(model, stribeck=stribeck)
        columns = [np.stack([TERMS[term].column(own, p.q, p.qd, p.qdd) for term in terms], axis=-1) for p in parts]
        return np.concatenate([filtered(column, p, how) for column, p in zip(columns, parts, strict=True)])

    def made(name: str, terms: tuple[str, ...], j: int, shape: Array, velocity: float = 0.0) -> Candidate:
        columns = np.zeros_like(shape)
        columns[:, j] = shape[:, j]
        return Candidate(f"{name} of joint {j + 1}", terms, j, columns, velocity)

    chain = model.arm.chain
    followed = {chain.leader(joint)[0] for joint in chain.joints if joint.mimic is not None}
    leads = [i in followed for i in chain.independent]  # the load of joints that move together is not one joint's
    moving = [int(j) for j in np.flatnonzero(top > 0)]
    if "coulomb" in model.terms:
        for part in BUMPS:
            bump = shaped("stribeck", stribeck=np.where(top > 0, part * top, 1.0))
            yield from (made("Stribeck friction", ("stribeck",), j, bump, float(part * top[j])) for j in moving)
        load = shaped("load")
        yield from (made("friction with the load", ("load",), j, load) for j in moving if not leads[j])
    if "spring" not in model.terms:
        spring = shaped("spring")
        yield from (made("spring", ("spring",), j, spring) for j in moving)
    for k in RIPPLES:  # a ripple can be told from a slope where the joint covers it whole
        waves = (f"sin{k}", f"cos{k}")
        turning = [j for j in moving if model.arm.joints[j].revolute and np.ptp(q[:, j]) > 2 * np.pi / k]
        if turning:
            ripple = shaped(*waves)
            yield from (made(f"ripple ({k} per turn)", waves, j, ripple) for j in turning)
    if np.linalg.norm(model.arm.gravity) > 0:
        columns = np.stack([side @ model.load for side in sideways(model.arm, parts, how)[1:]], axis=-1)
        yield Candidate("base tilt", (), -1, columns)


class Trials:
    """Fits with further columns, all from one triangle per segment."""

    def __init__(
        self, model: Model, problem: Problem, found: Rows, weights: Array, every: list[Candidate], folds: int
    ) -> None:
        links, extras = model.links, len(model.extra_names)
        T = np.eye(links + extras)
        T[:links, :links] = problem.coordinates
        base = found.Y @ (model.natural @ T)
        ends = np.cumsum([c.columns.shape[-1] for c in every]) + base.shape[-1]
        self.at = {c: np.arange(end - c.columns.shape[-1], end) for c, end in zip(every, ends, strict=True)}
        self.base = np.arange(base.shape[-1])
        diagonal = np.array([r == c for r, c in PAIRS])
        self.links = np.tile(np.where(diagonal, 1.0, np.sqrt(2)), model.links // 10)  # ½ ‖X - 1‖² counts both triangles
        target = np.concatenate([np.tile(diagonal, model.links // 10), problem.held])
        columns = [base, *(c.columns for c in every), (found.tau - base @ target)[..., None], found.tau[..., None]]
        self.rows = np.concatenate(columns, axis=2) * weights[..., None]
        self.piece, self.samples = found.piece, found.kept.sum(axis=0)
        segment = found.segments(folds)
        self.segments = [segment == k for k in range(folds)]
        parts = [linear.triangle(self.rows[own].reshape(-1, self.rows.shape[-1])) for own in self.segments]
        self.others = [linear.triangle(np.vstack(parts[:k] + parts[k + 1 :])) for k in range(folds)]
        self.whole = linear.triangle(np.vstack(parts))
        self.regularization = REGULARIZATIONS[0]

    def gains(self, chosen: list[Candidate], left: list[Candidate]) -> Array:
        """Logarithm of the left-out error with each candidate over that without, in the mean over joints.

        Squares are summed over the segments joint by joint, so that each joint counts alike; each model has the weight
        that predicts best.
        """
        scores = np.array([self._left_out(regularization, chosen, left) for regularization in REGULARIZATIONS])
        self.regularization = REGULARIZATIONS[int(np.argmin(scores[:, 0]))]
        best = scores.min(axis=0)
        return np.asarray(best[1:] - best[0])

    def _left_out(self, regularization: float, chosen: list[Candidate], left: list[Candidate]) -> Array:
        squares = np.array([
            (self._residuals(self.rows[own], others, regularization, chosen, left) ** 2).sum(axis=1)
            for own, others in zip(self.segments, self.others, strict=True)
        ])  # fmt: skip
        floor = np.maximum(NEGLIGIBLE * (self.rows[..., -1] ** 2).sum(axis=0), 1e-300)
        return np.asarray(np.log(np.maximum(squares.sum(axis=0), floor)).mean(axis=-1) / 2)

    def evident(self, chosen: list[Candidate], left: list[Candidate]) -> NDArray[np.bool_]:
        """Which candidates the whole log bears out: the extended Bayesian information criterion (Chen & Chen 2008).

        N log(S₀ / S₁) of the joints it acts on exceeds k log N + 2 log P for k columns of P candidates, where N is the
        number of samples less what neighbouring residuals repeat of each other.
        """
        residual = self._residuals(self.rows, self.whole, self.regularization, chosen, left)
        count = np.maximum(self.samples / autocorrelation_factors(residual[0], self.piece) ** 2, 1.0)
        squares = np.maximum((residual**2).sum(axis=1), 1e-300)
        found = count * np.log(squares[0] / squares[1:])
        columns = np.array([len(self.at[c]) for c in left])
        own = np.array([found[k].sum() if c.joint < 0 else found[k, c.joint] for k, c in enumerate(left)])
        size = np.array([count.mean() if c.joint < 0 else count[c.joint] for c in left])
        return np.asarray(own > columns * np.log(size) + 2 * np.log(len(self.at)))

    def _residuals(
        self, rows: Array, fitted: Array, regularization: float, chosen: list[Candidate], left: list[Candidate]
    ) -> Array:
        """What is left of rows by fits to a triangle: with the chosen columns alone, then with each candidate too."""
        active = np.concatenate([self.base, *(self.at[c] for c in chosen)])
        size = max(float(np.linalg.norm(fitted[:, -1])), 1e-300)  # extras are of the order of the torque itself
        extras = np.linalg.norm(fitted[:, len(self.links) : -2], axis=0) / size
        hold = np.concatenate([self.links, np.where(extras > 0, extras, 1.0), [0.0]])
        W = np.vstack([fitted[:, :-1], np.sqrt(regularization) * np.diag(hold)])
        Q, R = np.linalg.qr(W[:, active])
        along = Q.T @ W
        free = W - Q @ along
        seen = rows[..., :-1] - rows[..., active] @ np.linalg.solve(R, along)
        out = [seen[..., -1]]
        for columns in (self.at[c] for c in left):
            C = free[:, columns]
            out.append(seen[..., -1] - seen[..., columns] @ np.linalg.solve(C.T @ C, C.T @ free[:, -1]))
        return np.array(out)


MIN_RESIDUAL = 0.01  # of the torque; if the residual of every joint is smaller, no coupling is searched for
MIN_GAIN = 0.15  # reduction of the mean left-out error of the joints: 0.47 for a TX40's wrist, 0.08 if uncoupled


def find_coupling(
    model: Model, prior: Arm, parts: list[Motion], how: Processing, found: Rows, folds: int
) -> tuple[Model, dict[str, float]]:
    """The model with motors that drive two joints, if none was given; and the steps, with their left-out errors."""
    steps: dict[str, float] = {}
    error = 1.0
    while "coulomb" in model.terms and (steps or model.coupling is None):
        fit = linear.weighted(found.Y, found.tau, found.kept)
        weights, left = fit.weights, found.tau - found.Y @ fit.values
        if (np.linalg.norm(left, axis=0) < MIN_RESIDUAL * np.linalg.norm(found.tau, axis=0)).all():
            break
        every = list(_couplings(model, parts, how))
        if not every:
            break
        trials = Trials(model, Problem.of(model, prior, found), found, weights, [c for c, _ in every], folds)
        shown = [c for c, _ in every]
        gains = np.where(trials.evident([], shown), trials.gains([], shown), 0.0)
        if gains.min() > -MIN_GAIN:
            break
        best, coupled = every[int(np.argmin(gains))]
        error *= float(np.exp(gains.min()))
        steps[best.name] = error
        model = coupled
        found = rows(model, parts, how)
    return model, steps


def _couplings(model: Model, parts: list[Motion], how: Processing) -> Iterator[tuple[Candidate, Model]]:
    """Motors that also drive the previous joint, in the same or the opposite direction, as columns and as models.

    A motor that also drives the next joint is the same case, because its row has the entries 1 and ±1 at both joints.
    """
    K = np.eye(model.n) if model.coupling is None else model.coupling
    for k in range(1, model.n):
        for sign in (1.0, -1.0) if np.count_nonzero(K[k]) == 1 else ():
            coupling = K.copy()
            coupling[k, k - 1] = sign
            coupled = replace(model, coupling=coupling)
            new = [i for parameter, i in coupled.places.items() if parameter.motor == k]
            columns = [filtered(coupled.extras(p.q, p.qd, p.qdd, p.log)[:, :, new], p, how) for p in parts]
            yield Candidate(f"a motor that turns joints {k} and {k + 1}", (), -1, np.concatenate(columns)), coupled
