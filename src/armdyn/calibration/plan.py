"""Which poses to measure: those that tell the constants best, chosen from many candidates.

The criterion is D-optimality, the determinant of the information matrix (Borm & Menq 1991 call its root O₁): the volume
of the region of uncertainty is least. Poses are added one by one, each the best beside those there are, then exchanged
for better ones until no exchange gains (Fedorov 1972; Mitchell 1974, DETMAX).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from armdyn.calibration.measured import Array
from armdyn.calibration.model import ToolModel
from armdyn.calibration.run import Progress, chosen, serial_part
from armdyn.errors import InputError, choose
from armdyn.identification.estimate.threads import one_thread
from armdyn.parameters.geometry import identifiable

if TYPE_CHECKING:
    from armdyn.arm import Arm

SWEEPS = 10
SLIDE = 0.5  # metres either way for a sliding joint without limits


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """Poses to measure: `q` (count, n), and what they promise of each constant for the noise that was assumed."""

    q: Array
    names: tuple[str, ...]
    deviations: Array
    log_determinant: float  # of the information matrix
    random: float  # the best of as many random choices of the same candidates

    def __repr__(self) -> str:
        return f"<Plan: {len(self.q)} poses for {len(self.names)} constants>"

    @property
    def gain(self) -> float:
        """By what factor the mean deviation (geometric) is smaller than that of the best random choice."""
        return float(np.exp((self.log_determinant - self.random) / (2 * len(self.names))))


def calibration_poses(
    arm: Arm,
    count: int = 40,
    *,
    frame: str | None = None,
    parameters: str | Sequence[str] = "all",
    measured: str = "pose",
    noise: tuple[float, float] = (1e-4, 5e-4),
    candidates: int | Any = 1000,
    accept: Callable[[Array], Any] | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Plan:
    """Poses within the joints' limits that determine the geometry best.

    Parameters
    ----------
    arm
        The arm; of a tree, `frame` says which tip will be measured.
    count
        How many poses.
    frame, parameters
        As for `calibrate`.
    measured
        "pose" (position and orientation) or "point".
    noise
        Standard deviation of the positions in metres and of the orientations in radians.
    candidates
        How many random configurations to choose from, or the configurations (k, n) themselves.
    accept
        A function of configurations (k, n) that gives (k,) booleans: no collision, the target is seen, and so on.
    seed
        Of the random configurations.
    progress
        Called with (done, total, text) as the work goes on.
    """
    orientation = choose("measured", measured, ("pose", "point")) == "pose"
    part, path = serial_part(arm, frame)
    drawn = _candidates(arm, candidates, accept, seed)
    places = [k for k, i in enumerate(arm.chain.independent) if i in path]
    model = ToolModel(part)
    kept = identifiable(part.chain, chosen(part, parameters, measured), orientation)
    J = _slopes(model, np.ascontiguousarray(drawn[:, places]), kept, orientation, noise)
    rows = count * J.shape[1]
    if rows < len(kept) or count > len(drawn):
        least = -(-len(kept) // J.shape[1])
        raise InputError(
            f"{count} of {len(drawn)} candidates: expected at least {least} {measured} measurements for {len(kept)} "
            "constants, and as many candidates"
        )
    with one_thread():
        picked = _exchanged(J, _greedy(J, count), progress)
    M = np.einsum("kma,kmb->ab", J[picked], J[picked])
    rng = np.random.default_rng(seed + 1)
    chance = [_log_det(J[rng.choice(len(J), count, replace=False)]) for _ in range(50)]
    names = tuple(constant.name for constant in kept)
    return Plan(drawn[picked], names, np.sqrt(np.diag(np.linalg.inv(M))), _log_det(J[picked]), max(chance))


def _candidates(arm: Arm, candidates: int | Any, accept: Callable[[Array], Any] | None, seed: int) -> Array:
    if not isinstance(candidates, int | np.integer):
        drawn = np.atleast_2d(np.asarray(candidates, float))
        if drawn.shape[1] != arm.n:
            raise InputError(f"candidates are configurations (k, {arm.n}), got {drawn.shape}")
        return drawn if accept is None else drawn[np.asarray(accept(drawn), bool)]
    reach = np.array([np.pi if joint.revolute else SLIDE for joint in arm.joints])
    low, high = np.maximum(arm.limits[:, 0], -reach), np.minimum(arm.limits[:, 1], reach)
    rng = np.random.default_rng(seed)
    drawn = np.zeros((0, arm.n))
    for _ in range(100):
        fresh = rng.uniform(low, high, (candidates, arm.n))
        drawn = np.concatenate([drawn, fresh if accept is None else fresh[np.asarray(accept(fresh), bool)]])
        if len(drawn) >= candidates:
            return drawn[:candidates]
    raise InputError(f"accept took {len(drawn)} of {100 * candidates} random configurations, expected {candidates}")


def _slopes(model: ToolModel, q: Array, kept: Any, orientation: bool, noise: tuple[float, float]) -> Array:
    """(k, m, constants) slopes in units of the noise; lengths and angles in units that make columns alike in size."""
    J = model.slopes(q, model.today, model.pose(q, model.today))
    J = J[:, : 6 if orientation else 3, [model.constants.index(constant) for constant in kept]]
    return np.asarray(J / np.array([noise[0]] * 3 + [noise[1]] * 3)[: J.shape[1], None])


def _log_det(J: Array) -> float:
    return float(np.linalg.slogdet(np.einsum("kma,kmb->ab", J, J))[1])


def _gains(J: Array, inverse: Array) -> Array:
    """What each candidate would add to the logarithm of the determinant."""
    inner = (J @ inverse) @ J.transpose(0, 2, 1)
    return np.asarray(np.linalg.slogdet(np.eye(J.shape[1]) + inner)[1])


def _greedy(J: Array, count: int) -> list[int]:
    """Poses added one by one, on a weak prior that makes the first ones comparable."""
    M = 1e-6 * np.diag(np.einsum("kma,kma->a", J, J) / len(J))
    picked: list[int] = []
    for _ in range(count):
        gains = _gains(J, np.asarray(np.linalg.inv(M), float))
        gains[picked] = -np.inf
        picked.append(int(np.argmax(gains)))
        M = M + J[picked[-1]].T @ J[picked[-1]]
    return picked


def _exchanged(J: Array, picked: list[int], progress: Progress | None) -> list[int]:
    """Poses exchanged one by one as long as that gains."""
    best = _log_det(J[picked])
    for sweep in range(SWEEPS):
        if progress is not None:
            progress(sweep, SWEEPS, "exchanging poses")
        start = best
        for place in range(len(picked)):
            rest = picked[:place] + picked[place + 1 :]
            M = np.einsum("kma,kmb->ab", J[rest], J[rest])
            scale = 1e-12 * np.diag(np.diag(M))  # as many poses as are needed leave a singular rest
            gains = _gains(J, np.linalg.inv(M + scale))
            gains[rest] = -np.inf
            trial = [*picked[:place], int(np.argmax(gains)), *picked[place + 1 :]]
            value = _log_det(J[trial])
            if value > best + 1e-9:
                picked, best = trial, value
        if best - start < 1e-3:
            break
    return picked
