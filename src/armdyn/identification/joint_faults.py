"""What is wrong with single columns of a log, told by fits of all parameters.

The links beyond a joint turn up in the torques of several joints. If one of these is in another unit, or if one joint's
positions have another zero or another gear ratio, no arm explains them all; if a torque is late, no friction does. Each
such fault is a trial: rows of one joint divided by a factor (the noise is on the torque), one further column of slopes,
or a torque shifted in time. All trials are solved from the same normal matrices, one per segment and joint.

A fault is reported if it explains a good part of what the fit leaves of the torques, or somewhat less with more
certainty, and if it predicts left-out segments better, in time and in posture. On four sound logs of three measured
arms nothing is reported, although an LWR4's fourth torque seems to be 11 % too large; on 100 simulated ones of 12 s, of
five arms, a wrong fault of a wrist in four, which explains 4 to 11 % of what the fit leaves. All torques late
by 20 ms lower the residual to between 0.27 and 0.88 (an LWR4's slow motion: 0.96), one torque that joint's to between
0.32 and 0.83; sound logs reach 0.985, and single joints of a UR10 and an LWR4 0.92 and 0.88, at some shift. On slow
logs a joint may fit better and better however far it is shifted, as elastic or sticking joints do: such a minimum at
the end of the range is no delay of one joint.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from armdyn.errors import required
from armdyn.identification import linear
from armdyn.identification.left_out import better, posture_clusters
from armdyn.identification.model import Model, filtered, rows
from armdyn.identification.preflight import Finding, Reading
from armdyn.identification.processing import Motion, Processing

Array = NDArray[np.float64]
STEPS = np.array([5, 10, 15, 20, 25, 30, 40, 50, 65]) * 1e-3  # s, either way
SHIFTS = np.concatenate([[0.0], -STEPS[::-1], STEPS])
ENDS = (1, len(SHIFTS) - 1)
SCALES = np.log([1 / 4, 1 / 3, 0.5, 0.7, 0.85, 1.0, 1.18, 1.4, 2.0, 3.0, 4.0])
LEAST_SCALE, LEAST_ZERO, NUDGE = 0.15, 0.03, 1e-4  # smallest such logarithm and zero (rad); step of a derivative
EXPLAINED = 0.2  # of the squared residuals: what one fault must explain to be reported anyway
EVIDENT, SLOPE_EVIDENT = 0.02, 0.08  # the same of a torque and of positions, if left-out segments (by 2 %) bear it out
ABOUT = 0.7  # of the best scale's gain, with which another joint's may be meant as well
CLEAR, ALL_CLEAR = 0.85, 0.9  # ratio of the residuals, shifted and as logged, up to which one torque or all are late
FOLDS = 5
ROWS = 4000  # of each joint, at most
RIDGE = 1e-11  # of the diagonal of the normal matrices


@dataclass(frozen=True)
class _Trial:
    """A fault: of a joint (all: None) the factor of its torque and its shift (a number in SHIFTS), or a column."""

    joint: int | None = None
    factor: float = 1.0
    shift: int = 0
    column: int | None = None


@dataclass(frozen=True, eq=False)
class _Normal:
    """The normal matrices of weighted rows by segment and joint: parameters, slopes (two per joint), torques."""

    p: int
    n: int
    matrices: list[Array]  # for segments in time and in posture: (segments, n, columns, columns)

    @classmethod
    def of(cls, model: Model, parts: list[Motion], how: Processing) -> tuple[_Normal, Array] | None:
        """With the relative residual of each joint's torque; None if no row is fitted."""
        model = model.tuned(np.concatenate([p.qd for p in parts]), None)
        own = rows(model, parts, how)
        if not own.kept.any():
            return None
        solution = linear.weighted(own.Y, own.tau, own.kept)
        step = slice(None, None, max(1, len(own) // ROWS))
        torques = [np.concatenate([filtered(_shifted(p, x), p, how) for p in parts])[step] for x in SHIFTS]
        slopes = _slopes(model, parts, how, solution.values)[step]
        every = [own.Y[step], slopes, np.stack(torques, axis=-1)]
        columns = np.concatenate(every, axis=2) * solution.weights[step][..., None]
        q = np.concatenate([filtered(p.q, p, how) for p in parts])[step]
        matrices = [cls._of(columns, segment) for segment in (own.segments(FOLDS)[step], posture_clusters(q, FOLDS))]
        left, size = (np.linalg.norm(x * solution.weights, axis=0)
                      for x in (own.tau - own.Y @ solution.values, own.tau))  # fmt: skip
        return cls(own.Y.shape[-1], model.n, matrices), left / np.maximum(size, 1e-300)

    @staticmethod
    def _of(columns: Array, segment: NDArray[np.int64]) -> Array:
        chosen = [np.swapaxes(columns[segment == k], 0, 1) for k in range(FOLDS)]
        return np.stack([np.swapaxes(x, 1, 2) @ x for x in chosen])

    def under(self, trial: _Trial, matrices: Array) -> Array:
        """The normal matrices by joint (n, columns + 1, columns + 1) of a trial, the torque last."""
        first = self.p + 2 * self.n
        kept = [*range(self.p), *([] if trial.column is None else [self.p + trial.column])]
        out = []
        for j, matrix in enumerate(matrices):
            concerned = trial.joint in (None, j)
            chosen = [*kept, first + (trial.shift if concerned else 0)]
            scale = np.ones(len(chosen))
            scale[:-1] = 1 / trial.factor if trial.joint == j else 1.0
            out.append(matrix[np.ix_(chosen, chosen)] * np.outer(scale, scale))
        return np.array(out)

    def left(self, trial: _Trial) -> Array:
        """The squared residual of each joint, of a fit to all rows."""
        own = self.under(trial, self.matrices[0].sum(axis=0))
        x = np.append(-_solved(own.sum(axis=0)), 1.0)
        return np.asarray(np.maximum(np.einsum("i,jik,k->j", x, own, x), 0.0))

    def errors(self, trial: _Trial) -> list[Array]:
        """Logarithms of the residuals of segments, predicted from the others; in time, and in posture."""
        out = []
        for matrices in self.matrices:
            own = np.array([self.under(trial, segment).sum(axis=0) for segment in matrices])
            fits = [np.append(-_solved(own.sum(axis=0) - matrix), 1.0) for matrix in own]
            squares = [float(x @ matrix @ x) for x, matrix in zip(fits, own, strict=True) if matrix[-1, -1] > 0]
            out.append(np.log(np.maximum(squares, 1e-300)) / 2)
        return out

    def evident(self, trial: _Trial, deviations: float = 2.0) -> bool:
        """Whether a trial predicts left-out segments better, in time and in posture, by so many standard errors."""
        return all(better(before, after, EVIDENT, deviations)
                   for before, after in zip(self.errors(_Trial()), self.errors(trial), strict=True))  # fmt: skip


def _solved(matrix: Array) -> Array:
    """The parameters that leave least of the last column."""
    unit = 1 / np.sqrt(np.maximum(np.diag(matrix)[:-1], 1e-300))
    normal = matrix[:-1, :-1] * np.outer(unit, unit) + RIDGE * np.eye(len(unit))
    return np.asarray(unit * np.linalg.solve(normal, unit * matrix[:-1, -1]))


def _slopes(model: Model, parts: list[Motion], how: Processing, values: Array) -> Array:
    """The slopes of the predicted torques over each joint's zero, and over the scale of its positions: (N, n, 2 n)."""
    out = []
    for p in parts:
        base, columns = model.regressor(p.q, p.qd, p.qdd, p.log) @ values, []
        for j in range(model.n):
            q, qd, qdd = p.q.copy(), p.qd.copy(), p.qdd.copy()
            q[:, j] += NUDGE
            columns.append((model.regressor(q, qd, qdd, p.log) @ values - base) / NUDGE)
            for x, own in ((q, p.q), (qd, p.qd), (qdd, p.qdd)):
                x[:, j] = (1 + NUDGE) * own[:, j]
            columns.append((model.regressor(q, qd, qdd, p.log) @ values - base) / NUDGE)
        zeros, ratios = np.stack(columns[::2], axis=-1), np.stack(columns[1::2], axis=-1)
        out.append(filtered(np.concatenate([zeros, ratios], axis=2), p, how))
    return np.concatenate(out)


def _shifted(part: Motion, shift: float) -> Array:
    return np.stack([np.interp(part.t + shift, part.t, tau) for tau in part.tau.T], axis=1) if shift else part.tau


def joint_faults(model: Model, parts: list[Motion], how: Processing) -> tuple[list[Finding], list[str]]:
    """The torques that are late or early, and in words the joint whose torque or positions explain more if wrong."""
    fit = _Normal.of(model, parts, how)
    if fit is None:
        return [], []
    normal, errors = fit
    late, left = _delays(normal, errors)
    return late, _misscaled(normal, model, 1 - left**2)


def _delays(normal: _Normal, errors: Array) -> tuple[list[Finding], float]:
    """The torques that are late or early, all together or each by itself, and what part of all residuals is left."""
    n, before = normal.n, normal.left(_Trial())
    whole = max(float(before.sum()), 1e-300)
    together = [float(np.sqrt(normal.left(_Trial(shift=k)).sum() / whole)) for k in range(len(SHIFTS))]
    found: dict[int, tuple[float, float]] = {}
    alone = 1.0
    for j in range(n):
        left = np.array([normal.left(_Trial(j, shift=k)) for k in range(len(SHIFTS))])
        best = int(np.argmin(left[:, j]))
        ratio, total = float(np.sqrt(left[best, j] / max(before[j], 1e-300))), float(np.sqrt(left[best].sum() / whole))
        trial = _Trial(j, shift=best)
        if best not in ENDS and total < 1 and ratio <= CLEAR and normal.evident(trial, 0.0):
            found[j], alone = (float(SHIFTS[best]), ratio), min(alone, total)
    best = int(np.argmin(together))
    late = together[best] <= ALL_CLEAR and (together[best] <= CLEAR or normal.evident(_Trial(shift=best)))
    if late and together[best] < alone:
        return [_all_late(normal.n, errors, best, together[best])], together[best]
    findings = []
    for j, (shift, ratio) in found.items():
        reading = Reading.of(
            n, f"the torque of joint {j + 1} is about {_late(shift)} with respect to the positions",
            "Shift it in time first", late=shift, late_joint=j,
        )  # fmt: skip
        findings.append(Finding(reading, float(errors[j]), float(errors[j] * ratio), fitted=True))
    return findings, alone


def _all_late(n: int, errors: Array, best: int, ratio: float) -> Finding:
    """All torques, late or early by about the same."""
    more = " or more" if best in ENDS else ""
    slowly = ", or went through a slow filter" if SHIFTS[best] > 0 else ""
    words = f"all torques are about {_late(float(SHIFTS[best]))}{more}{slowly}"
    error = float(np.sqrt(np.mean(errors**2)))
    reading = Reading.of(n, words, "Shift them in time first", late=float(SHIFTS[best]))
    return Finding(reading, error, error * ratio, fitted=True)


def _late(shift: float) -> str:
    return f"{1e3 * abs(shift):.0f} ms {'late' if shift > 0 else 'early'}"


def _misscaled(normal: _Normal, model: Model, least: float) -> list[str]:
    """The joint whose torque, zero or gear ratio seems wrong, in words, if one explains much, and more than `least`."""
    before = normal.left(_Trial()).sum()
    scales = [_scale(normal, j) for j in range(normal.n)]
    trials = [(trial, gain, _scale_words(trial)) for trial, gain in scales if abs(np.log(trial.factor)) > LEAST_SCALE]
    trials += list(_slope_trials(normal, model, before))
    if not trials:
        return []
    trial, gain, words = max(trials, key=lambda found: found[1])
    enough = max(EVIDENT if trial.column is None else SLOPE_EVIDENT, least)
    if gain < enough or (gain < EXPLAINED and not normal.evident(trial)):
        return []
    if trial.column is None:
        others = [t for t, g, _ in trials if t.column is None and t is not trial and g > ABOUT * gain]
        words += "".join(f" (or that of joint {(t.joint or 0) + 1} {_number(1 / t.factor)} times)" for t in others)
        words += ": check its gear ratio, its unit or its gain"
    return [f"{words}; that explains {100 * gain:.0f} % of what a fit leaves of the torques"]


def _scale(normal: _Normal, j: int) -> tuple[_Trial, float]:
    """The factor by which a joint's torque fits the others' best, and the part of the squared residuals explained."""
    required("scipy")
    from scipy.optimize import minimize_scalar

    def left(logarithm: float) -> float:
        return float(normal.left(_Trial(j, float(np.exp(logarithm)))).sum())

    tried = [left(x) for x in SCALES]
    best, before = int(np.argmin(tried)), left(0.0)
    if best in (0, len(SCALES) - 1) or before <= 0:
        return _Trial(j), 0.0
    bounds = (SCALES[best - 1], SCALES[best + 1])
    found = minimize_scalar(left, bounds=bounds, method="bounded", options={"maxiter": 12})
    return _Trial(j, float(np.exp(found.x))), 1 - float(found.fun) / before


def _scale_words(trial: _Trial) -> str:
    joint = (trial.joint or 0) + 1
    return (
        f"the torque of joint {joint} seems to be {_number(1 / trial.factor)} times what those of the other joints say"
    )


def _number(x: float) -> str:
    return f"{x:.3g}"


def _slope_trials(normal: _Normal, model: Model, before: float) -> Iterator[tuple[_Trial, float, str]]:
    """The trials of a zero that is off, and of positions in another unit or with another gear ratio."""
    for column in range(2 * normal.n):
        trial, j = _Trial(column=column), column % normal.n
        own = normal.under(trial, normal.matrices[0].sum(axis=0)).sum(axis=0)
        change, gain = float(_solved(own)[-1]), 1 - float(normal.left(trial).sum()) / max(before, 1e-300)
        if column < normal.n and abs(change) > LEAST_ZERO and model.arm.joints[j].revolute:
            degrees = np.degrees(change)
            yield (
                trial,
                gain,
                (
                    f"the zero of joint {j + 1} seems to be off by about {abs(degrees):.2g} degrees: add {degrees:.2g}"
                    " degrees to its positions, or check it in its calibration pose"
                ),
            )
        elif column >= normal.n and LEAST_SCALE < abs(np.log(max(1 + change, 1e-3))) < SCALES[-2]:
            yield (
                trial,
                gain,
                (
                    f"the positions of joint {j + 1} seem to be {_number(1 / (1 + change))} times those of the arm:"
                    " check its gear ratio"
                ),
            )
