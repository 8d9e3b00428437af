"""`time_optimal`: the fastest motion along a path, as a trajectory that says which limit binds where."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from armdyn.errors import InputError
from armdyn.kernels.kernel import checked
from armdyn.motion import compiled, rates
from armdyn.motion.constraints import Constraints, MotionLimits, RateLimits, along
from armdyn.motion.doubt import MANY, arms_of
from armdyn.motion.path import Path, PathPiece, through
from armdyn.motion.sweep import Speeds, fastest
from armdyn.simulation.trajectory import Trajectory
from armdyn.uncertainty import Samples, Uncertain
from armdyn.values import cached_property

if TYPE_CHECKING:
    from armdyn.arm import Arm
    from armdyn.pages.motion import Animation

INSIDE = 10  # places inside a step at which the limits are looked at again
OVERRUN = 1e-3  # of a limit: what may be exceeded between the points of the grid
REPAIRS = 6  # how often limits are drawn in where they were exceeded
SLOWED_FROM = 2  # the repair from which on the speed is reduced there as well
MOST_SLOWED = 0.3  # of z, in one repair
DRAWN_IN = 1.2  # how much more than the overrun
MOST_DRAWN_IN = 0.05  # of a limit; where a step needs more, a finer grid is what helps
MOST_NUMBERS = 1_000_000  # in an array over all places of the paths that are computed together
RATE_REPAIRS = 4  # how often limits are drawn in where limits of jerk or torque rate hold as well
REFINEMENTS = 3  # how often the steps are halved
BINDS = 0.02  # of a limit: within that, it binds


@dataclass(frozen=True, repr=False, eq=False)
class TimeOptimal(Trajectory):
    """The fastest motion along a path: a `Trajectory`, with the path's parameter and what limits the motion.

    `s`, `speed` and `acceleration` are the path's parameter and its derivatives in time at every time; where two pieces
    of the path meet, s starts anew. `fastest` is the largest speed from which the end can still be reached. `binding`
    names the limit that is reached on the step that begins at each time; "none" where the motion changes from one limit
    to another within the step.
    """

    s: np.ndarray = field(default_factory=lambda: np.zeros(0))
    speed: np.ndarray = field(default_factory=lambda: np.zeros(0))
    acceleration: np.ndarray = field(default_factory=lambda: np.zeros(0))
    fastest: np.ndarray = field(default_factory=lambda: np.zeros(0))
    overrun: float = 0.0  # the largest part of a limit by which it is exceeded between the points of the grid
    at: tuple[_Lane, ...] = field(default=(), repr=False)  # each piece of the path

    @property
    def duration(self) -> float:
        """How long the motion takes, s."""
        return float(self.t[-1])

    @cached_property
    def ceiling(self) -> np.ndarray:
        """The largest path speed at every time at which the limits leave an acceleration at all, 1/s."""
        parts = [np.sqrt(_ceilings(lane.limits)) for lane in self.at]
        return np.concatenate([*(part[:-1] for part in parts[:-1]), parts[-1]])

    @cached_property
    def binding(self) -> tuple[str, ...]:
        """The limit that is reached on the step that begins at each time."""
        parts = [_binding(lane) for lane in self.at]
        return tuple(name for k, part in enumerate(parts) for name in (part if k == len(parts) - 1 else part[:-1]))

    def save(self, path: str | os.PathLike[str]) -> None:
        """As a trajectory; with the suffix .h a C header with a table over time and a function that reads it."""
        from armdyn.files.text import write_text
        from armdyn.motion.table import header

        stem, suffix = os.path.splitext(os.path.basename(path))
        if suffix == ".h":
            write_text(path, header(self, stem))
        else:
            super().save(path)

    def animate(self) -> Animation:
        """A page that plays the motion beside its torques, with its phase plane and the limits there."""
        from armdyn.pages.motion import Animation, canvases, motion, motion_page
        from armdyn.pages.writer import section

        data = motion(self.arm, self.t, self.q, self.tau, self._curves())
        data["charts"] = self._phase_planes()
        chart = section("phase-plane", "Phase plane", canvases(data["charts"]))
        title = f"{self.arm.name}: {self.duration:.4g} s along the path"
        return Animation(motion_page(title, self.message, data, chart), title)

    def _phase_planes(self) -> list[dict[str, Any]]:
        """A chart per piece of the path: its speed over its parameter, below what the limits allow."""
        ends = [0, *(np.flatnonzero(np.diff(self.s) < 0) + 1), len(self.s)]
        charts = []
        for k, (a, b) in enumerate(pairwise(ends)):
            most = 3 * max(float(self.speed[a:b].max()), 1e-12)  # a ceiling far above says nothing
            curves = (("motion", self.speed), ("end can be reached", self.fastest), ("limits allow", self.ceiling))
            drawn = [{"name": name, "y": np.minimum(y[a:b], most).tolist()} for name, y in curves]
            piece = f", piece {k + 1}" if len(ends) > 2 else ""
            charts.append({"x": self.s[a:b].tolist(), "y": f"path speed [1/s]{piece}", "unit": "", "curves": drawn})
        return charts

    def __repr__(self) -> str:
        return f"<TimeOptimal motion of {self.arm.name}: {self.duration:.4g} s, {len(self.t)} times, {self.status}>"


def time_optimal(
    arm: Arm | Sequence[Arm],
    path: Any,
    *,
    limits: MotionLimits | None = None,
    payload: Any = None,
    blend: float | None = None,
    speeds: tuple[float, float] = (0.0, 0.0),
    grid: int = 200,
    friction: bool = True,
) -> Any:
    """The fastest motion along a path that no limit of motors, tool or grip forbids.

    Parameters
    ----------
    arm
        The arm, or several arms: the motion is then possible for all of them. An `Uncertain` arm stands for itself and
        twenty of its samples; ``uncertain.sample(100)`` for more; with ``uncertain.corners()`` the motion is proven
        for every arm in the box of its ranges.
    path
        Waypoints (k, n), poses of the tool (k, 4, 4), a SciPy spline, a function ``path(s, order)`` on [0, 1], a
        `Trajectory` to be timed anew, a CSV file of via points (its columns are q1 … qn, the joints' names, or x, y, z
        with qx, qy, qz, qw or roll, pitch, yaw), or a `Path`. A list of paths gives a list of motions, computed
        together.
    limits
        `MotionLimits`; the arm's own limits of torque and speed by default.
    payload
        A mass (kg) at the tool, or (mass, com, inertia) as `Arm.with_payload` takes them; with a list of these the
        motion is possible with each, and with everything between them: torques are linear in a payload's parameters.
    blend
        For waypoints: straight lines whose corners are rounded within this distance, rad or m; 0 stops at corners. By
        default a cubic spline goes through all waypoints.
    speeds
        The path's speed ds/dt at its start and end, 1/s.
    grid
        Steps of the grid along every piece of the path; they are halved, three times at most, where limits do not
        hold within them.
    friction
        Whether the motors overcome the arm's friction and other joint forces.

    Returns
    -------
    A `TimeOptimal` trajectory, or a list of them for a list of paths.
    """
    arms = _arms(arm, payload)
    limits = MotionLimits() if limits is None else limits
    if not isinstance(limits, MotionLimits):
        raise InputError(f"limits expects MotionLimits(torque=..., velocity=...), got {limits!r}")
    if int(grid) != grid or grid < 2:
        raise InputError(f"grid must be a whole number of at least 2 steps, got {grid!r}")
    if np.shape(speeds) != (2,) or not all(np.isfinite(v) and v >= 0 for v in speeds):
        raise InputError(f"speeds are the two speeds at the path's ends, at least 0; got {speeds!r}")
    several = isinstance(path, list | tuple) and len(path) > 0 and not np.isscalar(path[0]) and np.ndim(path[0]) != 1
    paths = through(path if several else [path], arms[0], blend)
    motions = _motions(arms, paths, limits, speeds, int(grid), friction)
    return motions if several else motions[0]


def _arms(arm: Any, payload: Any) -> list[Any]:
    """The arms for which the motion must be possible, with their payloads; the first is the one that moves."""
    arms = list(arm) if isinstance(arm, list | tuple) else [arm]
    for one in arms:
        nominal = nominal_arm(one)
        nominal.must_suit("time-optimal motion")
        if nominal.n != nominal_arm(arms[0]).n:
            raise InputError(f"all arms must have as many joints, got {sorted({nominal_arm(a).n for a in arms})}")
        if nominal.chain.has_mimics and any(float(j.forces.load_friction) for j in nominal.chain.joints):
            raise InputError("load-dependent friction together with mimic joints is not supported")
    loads: list[Any] = payload if isinstance(payload, list) else [payload]
    loaded = [_loaded(one, load) for load in loads for one in arms]
    return [each for one in loaded for each in (arms_of(one) if isinstance(one, Samples) else [one])]


def nominal_arm(arm: Any) -> Any:
    """The arm as its controller knows it."""
    arm = arm[0] if isinstance(arm, list | tuple) else arm
    return arm.arm if isinstance(arm, Uncertain) else arm.uncertain.arm if isinstance(arm, Samples) else arm


def _loaded(arm: Any, load: Any) -> Any:
    """An arm, or samples of an uncertain one, with a payload."""
    if isinstance(arm, Samples):
        return replace(arm, uncertain=_loadednominal_arm(arm.uncertain, load))
    if isinstance(arm, Uncertain):
        return _loadednominal_arm(arm, load).sample(MANY)
    return arm if load is None else arm.with_payload(*(load if isinstance(load, tuple) else (load,)))


def _loadednominal_arm(uncertain: Uncertain, load: Any) -> Uncertain:
    return uncertain if load is None else replace(uncertain, arm=_loaded(uncertain.arm, load))


@dataclass(frozen=True)
class _Overrun:
    """By how much limits are exceeded inside the steps: (2, lanes, steps, rows), (lanes, steps, norms), relative."""

    rows: np.ndarray
    norms: np.ndarray
    relative: np.ndarray


@dataclass(frozen=True)
class _Lane:
    """The motion along one piece of a path."""

    arms: tuple[Any, ...]
    limited: MotionLimits
    friction: bool
    s: np.ndarray
    curve: np.ndarray  # (3, points, n): q and its derivatives in s
    z: np.ndarray
    u: np.ndarray
    largest: np.ndarray
    times: np.ndarray
    worst: float  # the largest part of a limit by which one is exceeded between the points of the grid
    stuck: int
    rates: RateLimits | None = None

    @cached_property
    def limits(self) -> Constraints:
        """The limits along the piece."""
        q, dq, ddq = self.curve[:, None]
        return Constraints(self.arms, self.limited, q, dq, ddq, self.friction)


@dataclass(frozen=True)
class _Problem:
    """Pieces of paths, z at their ends, and what limits the motion along them."""

    arms: list[Any]
    pieces: list[PathPiece]
    start: np.ndarray
    end: np.ndarray
    limits: MotionLimits
    friction: bool

    def of(self, chosen: list[int]) -> _Problem:
        """Some of the pieces."""
        return replace(self, pieces=[self.pieces[i] for i in chosen], start=self.start[chosen], end=self.end[chosen])


def _motions(
    arms: list[Any],
    paths: Sequence[Path],
    limits: MotionLimits,
    speeds: tuple[float, float],
    grid: int,
    friction: bool,
) -> list[TimeOptimal]:
    """Every piece of a path is one lane of the sweeps."""
    pieces = [piece for path in paths for piece in path.pieces]
    start = np.array([speeds[0] ** 2 * (i == 0) for path in paths for i in range(len(path.pieces))])
    end = np.array([speeds[1] ** 2 * (i == len(path.pieces) - 1) for path in paths for i in range(len(path.pieces))])
    problem = _Problem(arms, pieces, start, end, limits, friction)
    changes = RateLimits.of(limits, arms, friction)
    solved = _solved(problem, grid, REFINEMENTS)
    if changes is not None:
        if grid < rates.FEWEST:
            raise InputError(f"limits of jerk and torque rate need a grid of at least {rates.FEWEST} steps, got {grid}")
        solved = [_with_rates(problem.of([i]), grid, lane, changes) for i, lane in enumerate(solved)]
    lanes = iter(solved)
    return _motions_of(arms[0], [[next(lanes) for _ in path.pieces] for path in paths], friction)


def _solved(problem: _Problem, grid: int, refinements: int) -> list[_Lane]:
    """All lanes; those whose limits do not hold between the points are computed again on a finer grid."""
    step = np.array([(piece.end - piece.start) / grid for piece in problem.pieces])
    solve = _compiled if _can_be_compiled(problem) else _plain
    together = max(1, MOST_NUMBERS // (compiled.FINE * grid * problem.arms[0].n * len(problem.arms)))
    lanes: list[_Lane] = []
    for first in range(0, len(step), together):
        chosen = list(range(first, min(first + together, len(step))))
        lanes += solve(problem.of(chosen), grid, step[chosen])
    wrong = [i for i, lane in enumerate(lanes) if lane.worst > OVERRUN]
    if wrong and refinements and (solve is _compiled or refinements == REFINEMENTS):  # NumPy takes seconds: once
        for i, lane in zip(wrong, _solved(problem.of(wrong), 2 * grid, refinements - 1), strict=True):
            lanes[i] = lane if lane.worst < lanes[i].worst else lanes[i]
    return lanes


def _can_be_compiled(problem: _Problem) -> bool:
    """Whether all limits are of the kinds that `compiled` knows."""
    losses = problem.friction and any(float(j.forces.load_friction) for arm in problem.arms for j in arm.joints)
    return not (losses or callable(problem.limits.torque) or problem.limits.power is not None)


def _compiled(problem: _Problem, grid: int, step: np.ndarray) -> list[_Lane]:
    """By machine code."""
    arms, limits = problem.arms, problem.limits
    curve = _curves(problem.pieces, compiled.FINE * grid)
    rows = along(arms, limits, curve, problem.friction, compiled.FINE)
    if rows is None:
        return _plain(problem, grid, step)
    points = curve[:, :, :: compiled.FINE].copy()
    _must_move(points[1], arms[0])
    rules = compiled.Rules(OVERRUN, DRAWN_IN, MOST_DRAWN_IN, MOST_SLOWED)
    repairs = (REPAIRS, SLOWED_FROM)
    found = compiled.solve(rows, step, problem.start, problem.end, rules, repairs, threads())
    lanes = [
        _Lane(
            tuple(arms), limits, problem.friction, np.linspace(piece.start, piece.end, grid + 1), points[:, i],
            found.z[i], found.u[i], found.largest[i], found.times[i], max(float(found.worst[i]), 0.0),
            int(found.stuck[i]),
        )
        for i, piece in enumerate(problem.pieces)
    ]  # fmt: skip
    _must_arrive(lanes)
    return lanes


def quick_durations(
    arm: Any, pieces: list[PathPiece], limits: MotionLimits, payload: Any, grid: int, friction: bool = True
) -> np.ndarray:
    """The times of many pieces from rest to rest, inf where there is none; limits hold at the points only."""
    problem = _Problem(_arms(arm, payload), pieces, np.zeros(len(pieces)), np.zeros(len(pieces)), limits, friction)
    step = np.array([(piece.end - piece.start) / grid for piece in pieces])
    rows = along(problem.arms, limits, _curves(pieces, grid), friction, 1) if _can_be_compiled(problem) else None
    if rows is None:
        found = fastest(_constraints(problem, grid), step, problem.start, problem.end)
        return np.where(found.stuck < 0, _durations(found, step).sum(axis=1), np.inf)
    rules = compiled.Rules(OVERRUN, DRAWN_IN, MOST_DRAWN_IN, MOST_SLOWED)
    solved = compiled.solve(rows, step, problem.start, problem.end, rules, (0, 0), threads())
    return np.where(solved.stuck < 0, solved.times.sum(axis=1), np.inf)


def _plain(problem: _Problem, grid: int, step: np.ndarray) -> list[_Lane]:
    """By the sweeps in NumPy, for limits that only Python can evaluate; the first repairs."""
    at = _constraints(problem, grid)
    _must_move(at.dq, problem.arms[0])
    found = fastest(at, step, problem.start, problem.end)
    lanes = _lanes(problem, at, found, None, step)
    _must_arrive(lanes)
    inside = _constraints(problem, grid * INSIDE)
    overrun = _overrun(inside, found, step)
    lanes = _lanes(problem, at, found, overrun, step)
    wrong = [i for i, lane in enumerate(lanes) if lane.worst > OVERRUN]
    if wrong:
        part = problem.of(wrong)
        for i, lane in zip(wrong, _repaired(part, grid, [lanes[i] for i in wrong], step[wrong]), strict=True):
            lanes[i] = lane
    return lanes


def _lanes(
    problem: _Problem, at: Constraints, found: Speeds, overrun: _Overrun | None, step: np.ndarray
) -> list[_Lane]:
    times = _durations(found, step)
    worst = np.zeros(len(step)) if overrun is None else np.maximum(overrun.relative.max(axis=(1, 2)), 0)
    grid = at.q.shape[1]
    return [
        _Lane(
            tuple(problem.arms), problem.limits, problem.friction, np.linspace(piece.start, piece.end, grid),
            np.stack([at.q[i], at.dq[i], at.ddq[i]]), found.z[i], found.u[i], found.largest[i], times[i],
            float(worst[i]), int(found.stuck[i]),
        )
        for i, piece in enumerate(problem.pieces)
    ]  # fmt: skip


def _repaired(part: _Problem, grid: int, lanes: list[_Lane], step: np.ndarray) -> list[_Lane]:
    """The best of some rounds in which the limits are drawn in where they were exceeded."""
    at, inside = _constraints(part, grid), _constraints(part, grid * INSIDE)
    found = Speeds(*(np.stack([getattr(lane, name) for lane in lanes]) for name in ("z", "u", "largest", "stuck")))
    overrun = _overrun(inside, found, step)
    best = list(lanes)
    for repair in range(REPAIRS):
        _draw_in(at, overrun)
        if repair >= SLOWED_FROM:
            _slow_down(at, overrun, found.z)
        found = fastest(at, step, part.start, part.end)
        overrun = _overrun(inside, found, step)
        for i, lane in enumerate(_lanes(part, at, found, overrun, step)):
            if lane.stuck < 0 and lane.worst < best[i].worst:
                best[i] = lane
        if all(lane.worst <= OVERRUN for lane in best):
            break
    return best


def _with_rates(problem: _Problem, grid: int, lane: _Lane, changes: RateLimits) -> _Lane:
    """One piece again, with limits of jerk and torque rate; other limits are drawn in where steps exceed them."""
    piece, rests = problem.pieces[0], (float(problem.start[0]) == 0, float(problem.end[0]) == 0)
    s = rates.places(piece.start, piece.end, grid, rests)
    step, share = np.diff(s), np.arange(INSIDE) / INSIDE
    fine = np.r_[(s[:-1, None] + step[:, None] * share).ravel(), s[-1]]
    at, inside = (
        Constraints(problem.arms, problem.limits, piece.at(x)[None], piece.at(x, 1)[None], piece.at(x, 2)[None],
                    problem.friction)
        for x in (s, fine)
    )  # fmt: skip
    guess, best = np.interp(s, lane.s, lane.z), None
    for _ in range(RATE_REPAIRS):
        z, u, times = rates.smoothest(at, s, guess, changes, rests)
        overrun = _worst_inside(inside, *rates.within(z, u, step, rests, share))
        worst = max(float(overrun.relative.max()), 0.0)
        if best is None or worst < best.worst:
            best = replace(
                lane, s=s, curve=np.stack([at.q[0], at.dq[0], at.ddq[0]]), z=z, u=np.stack([u[:-1], u[1:]], axis=1),
                largest=np.interp(s, lane.s, lane.largest), times=times, worst=worst, rates=changes,
            )  # fmt: skip
        if worst <= OVERRUN:
            break
        _draw_in(at, overrun)
    assert best is not None
    return best


def _curves(pieces: list[PathPiece], grid: int) -> np.ndarray:
    """(3, pieces, points, n) q and its derivatives at the points of a grid."""
    places = [np.linspace(piece.start, piece.end, grid + 1) for piece in pieces]
    curves = np.empty((3, len(pieces), grid + 1, np.shape(pieces[0].at(places[0][:1]))[-1]))
    for order in range(3):
        for k, (piece, s) in enumerate(zip(pieces, places, strict=True)):
            curves[order, k] = piece.at(s, order)
    return curves


def _constraints(problem: _Problem, grid: int) -> Constraints:
    q, dq, ddq = _curves(problem.pieces, grid)
    return Constraints(problem.arms, problem.limits, q, dq, ddq, problem.friction)


def _must_move(dq: np.ndarray, arm: Any) -> None:
    """Refuse a path that stands still; dq is (lanes, points, n)."""
    speed = np.linalg.norm(dq, axis=-1)
    still = speed <= 1e-9 * np.maximum(speed.max(axis=1, keepdims=True), 1e-300)
    both = still[:, :-1] & still[:, 1:]
    if both.any():
        k = int(np.argwhere(both)[0, 1])
        raise InputError(
            f"the path stands still at {100 * k / (still.shape[1] - 1):.0f} % of its way; a path is the way alone: "
            f"leave the time out, and split it where {arm.name} is to wait"
        )


def _must_arrive(lanes: list[_Lane]) -> None:
    """Say where and why a motion is impossible."""
    lane = next((lane for lane in lanes if lane.stuck >= 0), None)
    if lane is None:
        return
    arm, k, at = lane.arms[0], lane.stuck, lane.limits
    still, last = np.zeros((1, len(lane.s))), len(lane.s) - 1
    relative = at.overrun(still, still)[2][0, k, :-1]
    worst = int(np.argmax(relative)) if relative.size else 0
    where = f"at {100 * k / last:.0f} % of the path, q = {np.round(at.q[0, k], 3).tolist()}"
    lower, upper = at.interval(k, np.zeros((1, 1)))
    if relative.size and relative[worst] > 0:
        raise InputError(
            f"{arm.name} cannot hold still {where}: {at.names[worst]} would exceed its limit by "
            f"{100 * relative[worst]:.0f} %; a smaller payload, another path or a larger limit would do"
        )
    if k in (0, last):
        raise InputError(f"the speed asked for {where} is more than the limits of {arm.name} allow")
    raise InputError(
        f"no motion along the path is possible {where}: the acceleration would have to be at least "
        f"{lower[0, 0]:.4g} and at most {upper[0, 0]:.4g} (1/s² of the path's parameter)"
    )


def _overrun(inside: Constraints, found: Speeds, step: np.ndarray) -> _Overrun:
    """The worst of the places inside each step, both ends included."""
    lanes = len(found.u)
    u, z = _within(found, step, np.arange(INSIDE) / INSIDE)
    z = np.concatenate([z.reshape(lanes, -1), found.z[:, -1:]], 1)
    u = np.concatenate([u.reshape(lanes, -1), found.u[:, -1:, 1]], 1)
    return _worst_inside(inside, u, z)


def _worst_inside(inside: Constraints, u: np.ndarray, z: np.ndarray) -> _Overrun:
    """The worst of every step, whose places follow one another in u and z (lanes, places)."""
    rows, norms, relative = inside.overrun(u, z)

    def worst(values: np.ndarray) -> np.ndarray:
        split = values[..., :-1, :].reshape(*values.shape[:-2], u.shape[1] // INSIDE, INSIDE, values.shape[-1])
        return np.asarray(split.max(axis=-2))

    return _Overrun(worst(rows), worst(norms), worst(relative))


def _within(found: Speeds, step: np.ndarray, share: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """U and z (lanes, steps, shares) at these shares of every step."""
    begin, end = found.u[..., :1], found.u[..., 1:]
    z = found.z[:, :-1, None] + step[:, None, None] * (2 * begin * share + (end - begin) * share**2)
    return begin + (end - begin) * share, np.maximum(z, 0)


def _durations(found: Speeds, step: np.ndarray) -> np.ndarray:
    """(lanes, steps) the time of every step, ∫ ds / ṡ, by Gauss's rule; z may be 0 at one of its ends."""
    nodes, weights = np.polynomial.legendre.leggauss(16)
    angle = np.pi / 2 * (nodes + 1)
    share = (1 - np.cos(angle)) / 2  # the integrand is smooth in the angle, even from or to standstill
    z = _within(found, step, share)[1]
    with np.errstate(divide="ignore"):
        return np.asarray((np.pi / 4 * weights * np.sin(angle) / np.sqrt(z)).sum(-1) * step[:, None])


def _draw_in(at: Constraints, overrun: _Overrun) -> None:
    """Draw the limits in at both ends of every step inside which they are exceeded."""
    for more, tight in ((overrun.rows, at.tight), (overrun.norms, at.tight_norms)):
        if not more.size:
            continue
        add = DRAWN_IN * np.where(np.isfinite(more), np.maximum(more, 0), 0)
        most = MOST_DRAWN_IN * (at.room if tight is at.tight else np.array([radius for *_, radius in at.norms]))
        tight[..., :-1, :] += add
        tight[..., 1:, :] = np.maximum(tight[..., 1:, :], tight[..., :-1, :] * (add > 0))
        np.minimum(tight, most, out=tight)
    over = np.clip(DRAWN_IN * overrun.relative[..., -1], 0, MOST_DRAWN_IN)
    for ends in (slice(None, -1), slice(1, None)):
        at.fastest[:, ends] /= (1 + over) ** 2


def _slow_down(at: Constraints, overrun: _Overrun, speeds: np.ndarray) -> None:
    """Reduce the speed around steps inside which a limit is exceeded: where a joint's inertia along the path vanishes.

    There the limits of u jump with the speed, and drawing the torques in changes nothing.
    """
    worst = overrun.relative.max(axis=-1)
    factor = 1 - np.clip(4 * worst, OVERRUN, MOST_SLOWED)
    for ends in (slice(None, -1), slice(1, None)):
        z = speeds[:, ends]
        slower = np.where((worst > OVERRUN) & (z > 0), z * factor, np.inf)
        at.fastest[:, ends] = np.minimum(at.fastest[:, ends], slower)


def _motions_of(arm: Any, pieces: list[list[_Lane]], friction: bool) -> list[TimeOptimal]:
    """The trajectories, one per path: the pieces of each one after the other."""
    parts = [[_states(lane, k == len(lanes) - 1) for k, lane in enumerate(lanes)] for lanes in pieces]
    columns = [
        list(part[0]) if len(part) == 1 else [np.concatenate(column) for column in zip(*part, strict=True)]
        for part in parts
    ]
    ends = np.cumsum([0, *(len(column[0]) for column in columns)])
    q, qd, qdd = (np.concatenate([column[k] for column in columns]) for k in (1, 2, 3))
    tau = arm.inverse_dynamics(q, qd, qdd, friction=True) if friction else arm.inverse_dynamics(q, qd, qdd)
    energy = arm.kinetic_energy(q, qd) + arm.potential_energy(q)
    found = []
    for lanes, column, a, b in zip(pieces, columns, ends[:-1], ends[1:], strict=True):
        steps, q, qd, qdd, s, x, u, most = column
        t = np.concatenate([[0.0], np.cumsum(steps[:-1])])
        worst = max(lane.worst for lane in lanes)
        message = f"{t[-1]:.4g} s; limits are exceeded by at most {100 * worst:.2g} % between the points of the grid"
        found.append(TimeOptimal(
            arm, t, q, qd, qdd, tau[a:b], energy[a:b], "finished", message, "time optimal", np.array("finished"),
            np.array(t[-1]), np.array(message), s=s, speed=x, acceleration=u, fastest=most, overrun=worst,
            at=tuple(lanes),
        ))  # fmt: skip
    return found


def _states(lane: _Lane, last: bool) -> tuple[np.ndarray, ...]:
    """Time to the next point, q, q̇, q̈, s, ṡ, s̈, the largest ṡ; without the last point where another piece follows."""
    x, (q, dq, ddq) = np.sqrt(lane.z), lane.curve
    u = np.append(lane.u[:, 0], lane.u[-1, 1])
    columns = (np.append(lane.times, 0.0), q, dq * x[:, None], dq * u[:, None] + ddq * lane.z[:, None], lane.s, x, u,
               np.sqrt(lane.largest))  # fmt: skip
    return columns if last else tuple(column[:-1] for column in columns)


def _ceilings(at: Constraints) -> np.ndarray:
    """(points,) the largest z below which the limits leave an acceleration, by nested intervals."""
    points = at.q.shape[1]
    found = np.zeros(points)
    for k in range(points):
        low, high = 0.0, float(at.fastest[0, k])
        high = high if np.isfinite(high) else 1e12
        for _ in range(4):
            tried = np.linspace(low, high, 34)[1:] if low > 0 else np.geomspace(high * 1e-9, high, 33)
            lower, upper = (ends[0] for ends in at.interval(k, tried[None]))
            possible = lower <= upper
            if possible.all():
                low = high
                break
            first = int(np.argmin(possible))
            low, high = (low if first == 0 else float(tried[first - 1])), float(tried[first])
        found[k] = low
    return found


def _binding(lane: _Lane) -> list[str]:
    """The limit with the least slack on the step that begins at each point, the last point's being that before it."""
    z, u, at = lane.z, lane.u, lane.limits
    begin = at.overrun(np.r_[u[:, 0], u[-1, 1]][None], z[None])[2][0, :, :-1]
    end = at.overrun(np.r_[u[0, 0], u[:, 1]][None], z[None])[2][0, :, :-1]
    names = []
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.nan_to_num(z / at.fastest[0])
    if lane.rates is not None:
        changes = rates.shares(at, z, np.r_[u[:, 0], u[-1, 1]], lane.times, lane.rates)
        changing = [f"jerk of {name}" for name in at.arms[0].joint_names]
        changing += [f"torque rate of {name}" for arm in at.arms for name in arm.joint_names]
    for k in range(len(u)):
        slack = np.maximum(begin[k], end[k + 1])
        fast = ratio[k : k + 2].max()
        if lane.rates is not None and changes[k].max() >= 1 - BINDS:
            names.append(changing[int(np.argmax(changes[k]))])
            continue
        best = int(np.argmax(slack)) if slack.size else -1
        if fast >= 1 - BINDS and (best < 0 or fast - 1 >= slack[best]):
            names.append(_speed_name(at, k + int(np.argmax(ratio[k : k + 2]))))
        elif best >= 0 and slack[best] >= -BINDS:
            names.append(at.names[best])
        else:
            names.append("none")
    return [*names, names[-1]]


def _speed_name(at: Constraints, k: int) -> str:
    """The speed limit that gives `fastest`."""
    with np.errstate(divide="ignore"):
        by_joint = at.ends.velocity / np.abs(at.dq[0, k])
    j = int(np.argmin(by_joint))
    if at.limits.tool_speed is not None and at.limits.tool_speed / max(at.tool_rate[0, k], 1e-300) < by_joint[j]:
        return "tool speed"
    return f"velocity of {at.arms[0].joint_names[j]}"


def threads() -> int:
    """How many threads solve many paths together: those of the kernels."""
    return checked(None)
