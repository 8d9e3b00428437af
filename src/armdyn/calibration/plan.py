"""Optimal selection of calibration poses from a set of candidates.

The criterion is D-optimality: the selected poses maximise the determinant of the information matrix (Borm & Menq 1991
call its root O₁), which minimises the volume of the confidence ellipsoid. Poses are added greedily, then exchanged one
by one until no exchange improves the determinant (Fedorov 1972; Mitchell 1974, DETMAX).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from armdyn.calibration.measured import Array
from armdyn.calibration.model import ToolModel
from armdyn.calibration.run import Progress, chosen, serial_part
from armdyn.errors import InputError, choose
from armdyn.identification.threads import one_thread
from armdyn.options import PoseKeywords, PoseSearch, flat_keywords
from armdyn.parameters.geometry import identifiable
from armdyn.results import Result, ResultTable

if TYPE_CHECKING:
    from armdyn.arm import Arm
    from armdyn.pages.motion import View

EXCHANGE_SWEEPS = 10  # at most; one sweep tries to exchange every pose once


@dataclass(frozen=True, eq=False, repr=False)
class Plan(Result):
    """Poses to measure, `q` (count, n), and the standard deviation to expect of each constant at the assumed noise."""

    q: Array
    names: tuple[str, ...]
    deviations: Array
    log_determinant: float  # of the information matrix
    random: float  # the same for the best of 50 random selections of as many candidates
    arm: Arm

    def __repr__(self) -> str:
        return f"<Plan: {len(self.q)} poses for {len(self.names)} constants>"

    def plot(self) -> View:
        """A page with the arm in each pose, and the deviations to expect."""
        from armdyn.pages.results import plan_page

        return plan_page(self)

    def table(self) -> ResultTable:
        """The constants and the standard deviations to expect."""
        rows = [(name, float(x)) for name, x in zip(self.names, self.deviations, strict=True)]
        return ResultTable.of(repr(self)[1:-1], ["constant", "standard deviation [m or rad]"], rows)

    @property
    def gain(self) -> float:
        """The geometric mean deviation of the best random selection, divided by that of this plan."""
        return float(np.exp((self.log_determinant - self.random) / (2 * len(self.names))))


@flat_keywords(search=PoseSearch)
def calibration_poses(
    arm: Arm,
    count: int = 40,
    *,
    frame: str | None = None,
    parameters: str | Sequence[str] = "all",
    measured: str = "pose",
    noise: tuple[float, float] = (1e-4, 5e-4),
    progress: Progress | None = None,
    search: PoseSearch = PoseSearch(),
    **keywords: Unpack[PoseKeywords],
) -> Plan:
    """Select poses within the joint limits that determine the geometry best.

    Parameters
    ----------
    arm
        The arm. For a robot with several tips, `frame` names the one to measure.
    count
        The number of poses.
    frame, parameters
        As for `calibrate`.
    measured
        "pose" (position and orientation) or "point".
    noise
        Standard deviation of the positions in metres and of the orientations in radians.
    candidates
        The number of random configurations to select from, or the configurations (k, n) themselves.
    accept
        A function from configurations (k, n) to (k,) booleans: free of collisions, target visible, and so on.
    seed
        The seed of the random configurations.
    progress
        Called with (done, total, text) during the work.
    search
        `candidates`, `accept` and `seed` as a record of `armdyn.options`.
    """
    orientation = choose("measured", measured, ("pose", "point")) == "pose"
    part, path = serial_part(arm, frame)
    drawn = _candidates(arm, search.candidates, search.accept, search.seed)
    places = [k for k, i in enumerate(arm.chain.independent) if i in path]
    model = ToolModel(part)
    kept = identifiable(part.chain, chosen(part, parameters, measured), orientation)
    J = _slopes(model, np.ascontiguousarray(drawn[:, places]), kept, orientation, noise)
    rows = count * J.shape[1]
    if rows < len(kept) or count > len(drawn):
        least = -(-len(kept) // J.shape[1])
        raise InputError(
            f"got {count} poses and {len(drawn)} candidates; {len(kept)} constants need at least {least} {measured} "
            "measurements, and at least as many candidates as poses"
        )
    with one_thread():
        picked = _exchanged(J, _greedy(J, count), progress)
    M = np.einsum("kma,kmb->ab", J[picked], J[picked])
    rng = np.random.default_rng(search.seed + 1)
    chance = [_log_det(J[rng.choice(len(J), count, replace=False)]) for _ in range(50)]
    names = tuple(constant.name for constant in kept)
    return Plan(drawn[picked], names, np.sqrt(np.diag(np.linalg.inv(M))), _log_det(J[picked]), max(chance), arm)


def _candidates(arm: Arm, candidates: int | Any, accept: Callable[[Array], Any] | None, seed: int) -> Array:
    if not isinstance(candidates, int | np.integer):
        drawn = np.atleast_2d(np.asarray(candidates, float))
        if drawn.shape[1] != arm.n:
            raise InputError(f"candidates are configurations (k, {arm.n}), got {drawn.shape}")
        return drawn if accept is None else drawn[np.asarray(accept(drawn), bool)]
    rng = np.random.default_rng(seed)
    drawn = np.zeros((0, arm.n))
    for _ in range(100):
        fresh = arm.postures(rng, int(candidates))
        drawn = np.concatenate([drawn, fresh if accept is None else fresh[np.asarray(accept(fresh), bool)]])
        if len(drawn) >= candidates:
            return drawn[:candidates]
    raise InputError(
        f"accept admitted only {len(drawn)} of {100 * candidates} random configurations, but {candidates} are needed; "
        "ask for fewer candidates, or give the configurations"
    )


def _slopes(model: ToolModel, q: Array, kept: Any, orientation: bool, noise: tuple[float, float]) -> Array:
    """(k, m, constants) Jacobian of the measurements, each row divided by its noise."""
    J = model.slopes(q, model.today, model.pose(q, model.today))
    J = J[:, : 6 if orientation else 3, [model.constants.index(constant) for constant in kept]]
    return np.asarray(J / np.array([noise[0]] * 3 + [noise[1]] * 3)[: J.shape[1], None])


def _log_det(J: Array) -> float:
    return float(np.linalg.slogdet(np.einsum("kma,kmb->ab", J, J))[1])


def _gains(J: Array, inverse: Array) -> Array:
    """By how much each candidate would increase the log-determinant."""
    inner = (J @ inverse) @ J.transpose(0, 2, 1)
    return np.asarray(np.linalg.slogdet(np.eye(J.shape[1]) + inner)[1])


def _greedy(J: Array, count: int) -> list[int]:
    """Add poses one by one, starting from a weak prior so that the determinant is never zero."""
    M = 1e-6 * np.diag(np.einsum("kma,kma->a", J, J) / len(J))
    picked: list[int] = []
    for _ in range(count):
        gains = _gains(J, np.asarray(np.linalg.inv(M), float))
        gains[picked] = -np.inf
        picked.append(int(np.argmax(gains)))
        M = M + J[picked[-1]].T @ J[picked[-1]]
    return picked


def _exchanged(J: Array, picked: list[int], progress: Progress | None) -> list[int]:
    """Exchange poses one by one as long as the determinant grows."""
    best = _log_det(J[picked])
    for sweep in range(EXCHANGE_SWEEPS):
        if progress is not None:
            progress(sweep, EXCHANGE_SWEEPS, "exchanging poses")
        start = best
        for place in range(len(picked)):
            rest = picked[:place] + picked[place + 1 :]
            M = np.einsum("kma,kmb->ab", J[rest], J[rest])
            ridge = 1e-12 * np.diag(np.diag(M))  # without one pose, M is singular if there are just enough poses
            gains = _gains(J, np.linalg.inv(M + ridge))
            gains[rest] = -np.inf
            trial = [*picked[:place], int(np.argmax(gains)), *picked[place + 1 :]]
            value = _log_det(J[trial])
            if value > best + 1e-9:
                picked, best = trial, value
        if best - start < 1e-3:
            break
    return picked
