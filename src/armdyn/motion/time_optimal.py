"""`time_optimal`: the fastest motion along a path, as a trajectory that says which limit binds where."""

from __future__ import annotations

import os
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from armdyn.algebra.frozen import cached_property
from armdyn.errors import InputError
from armdyn.motion.constraints import Constraints, MotionLimits
from armdyn.motion.path import Path, PathPiece, through
from armdyn.motion.sweep import Speeds, fastest
from armdyn.simulation.trajectory import Trajectory

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
REFINEMENTS = 1  # how often the steps are halved
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
    binding: tuple[str, ...] = ()
    overrun: float = 0.0  # the largest part of a limit by which it is exceeded between the points of the grid
    at: tuple[tuple[Constraints, int], ...] = field(default=(), repr=False)  # the limits along each piece, its lane

    @property
    def duration(self) -> float:
        """How long the motion takes, s."""
        return float(self.t[-1])

    @cached_property
    def ceiling(self) -> np.ndarray:
        """The largest path speed at every time at which the limits leave an acceleration at all, 1/s."""
        parts = []
        for k, (limits, lane) in enumerate(self.at):
            most = np.sqrt(_ceilings(limits, lane))
            parts.append(most if k == len(self.at) - 1 else most[:-1])
        return np.concatenate(parts)

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
        The arm, or several arms, such as samples of an uncertain one: the motion is then possible for all of them. An
        `Uncertain` arm stands for twenty of its samples.
    path
        Waypoints (k, n), poses of the tool (k, 4, 4), a SciPy spline, a function ``path(s, order)`` on [0, 1], a
        `Trajectory` to be timed anew, a CSV file of via points (its columns are q1 … qn, the joints' names, or x, y, z
        with qx, qy, qz, qw or roll, pitch, yaw), or a `Path`. A list of paths gives a list of motions, computed
        together.
    limits
        `MotionLimits`; the arm's own limits of torque and speed by default.
    payload
        A mass (kg) at the tool, or (mass, com, inertia) as `Arm.with_payload` takes them; with a list of these the
        motion is possible with each.
    blend
        For waypoints: straight lines whose corners are rounded within this distance, rad or m; 0 stops at corners. By
        default a cubic spline goes through all waypoints.
    speeds
        The path's speed ds/dt at its start and end, 1/s.
    grid
        Steps of the grid along every piece of the path; halved once where limits do not hold within them.
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
    """The arms for which the motion must be possible, with their payloads."""
    if hasattr(arm, "sample"):
        drawn = arm.sample(20)
        arm = [drawn.arm(k) for k in range(20)]
    arms = list(arm) if isinstance(arm, list | tuple) else [arm]
    for one in arms:
        one.must_suit("time-optimal motion")
        if one.n != arms[0].n:
            raise InputError(f"all arms must have as many joints, got {sorted({a.n for a in arms})}")
        if one.chain.has_mimics and any(float(j.forces.load_friction) for j in one.chain.joints):
            raise InputError("load-dependent friction together with mimic joints is not supported")
    if payload is None:
        return arms
    loads = payload if isinstance(payload, list) else [payload]
    return [one.with_payload(*(load if isinstance(load, tuple) else (load,))) for load in loads for one in arms]


@dataclass(frozen=True)
class _Overrun:
    """By how much limits are exceeded inside the steps: (2, lanes, steps, rows), (lanes, steps, norms), relative."""

    rows: np.ndarray
    norms: np.ndarray
    relative: np.ndarray


@dataclass(frozen=True)
class _Lane:
    """The motion along one piece of a path: its place in the arrays of all that were computed together."""

    at: Constraints
    found: Speeds
    times: np.ndarray
    overrun: _Overrun
    index: int

    @property
    def worst(self) -> float:
        """The largest part of a limit by which one is exceeded between the points of the grid."""
        return max(float(self.overrun.relative[self.index].max()), 0.0)


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
    lanes = iter(_solved(_Problem(arms, pieces, start, end, limits, friction), grid, REFINEMENTS))
    return [_motion(arms[0], path, [next(lanes) for _ in path.pieces], friction) for path in paths]


def _solved(problem: _Problem, grid: int, refinements: int) -> list[_Lane]:
    """All lanes; those whose limits do not hold between the points are computed again, then on a finer grid."""
    step = np.array([(piece.end - piece.start) / grid for piece in problem.pieces])
    at = _constraints(problem.arms, problem.pieces, problem.limits, grid, problem.friction)
    _must_move(at, problem.arms[0])
    found = fastest(at, step, problem.start, problem.end)
    _must_arrive(at, found, problem.arms[0])
    inside = _constraints(problem.arms, problem.pieces, problem.limits, grid * INSIDE, problem.friction)
    lanes = _lanes(at, found, _overrun(inside, found, step), step)
    wrong = [i for i, lane in enumerate(lanes) if lane.worst > OVERRUN]
    if wrong:
        part = problem.of(wrong)
        at = _constraints(part.arms, part.pieces, part.limits, grid, part.friction)
        inside = _constraints(part.arms, part.pieces, part.limits, grid * INSIDE, part.friction)
        for i, lane in zip(wrong, _repaired(part, at, inside, [lanes[i] for i in wrong], step[wrong]), strict=True):
            lanes[i] = lane
    wrong = [i for i in wrong if lanes[i].worst > OVERRUN]
    if wrong and refinements:
        for i, lane in zip(wrong, _solved(problem.of(wrong), 2 * grid, refinements - 1), strict=True):
            lanes[i] = lane if lane.worst < lanes[i].worst else lanes[i]
    return lanes


def _lanes(at: Constraints, found: Speeds, overrun: _Overrun, step: np.ndarray) -> list[_Lane]:
    times = _durations(found, step)
    return [_Lane(at, found, times, overrun, i) for i in range(len(step))]


def _repaired(
    part: _Problem, at: Constraints, inside: Constraints, lanes: list[_Lane], step: np.ndarray
) -> list[_Lane]:
    """The best of some rounds in which the limits are drawn in where they were exceeded."""
    relative = np.stack([lane.overrun.relative[lane.index] for lane in lanes])
    rows = np.stack([lane.overrun.rows[:, lane.index] for lane in lanes], axis=1)
    norms = np.stack([lane.overrun.norms[lane.index] for lane in lanes])
    overrun, z = _Overrun(rows, norms, relative), np.stack([lane.found.z[lane.index] for lane in lanes])
    best = list(lanes)
    for repair in range(REPAIRS):
        _draw_in(at, overrun)
        if repair >= SLOWED_FROM:
            _slow_down(at, overrun, z)
        found = fastest(at, step, part.start, part.end)
        overrun, z = _overrun(inside, found, step), found.z
        for i, lane in enumerate(_lanes(copy(at), found, overrun, step)):
            if found.stuck[i] < 0 and lane.worst < best[i].worst:
                best[i] = lane
        if all(lane.worst <= OVERRUN for lane in best):
            break
    return best


def _constraints(
    arms: list[Any], pieces: list[PathPiece], limits: MotionLimits, grid: int, friction: bool
) -> Constraints:
    places = [np.linspace(piece.start, piece.end, grid + 1) for piece in pieces]
    q, dq, ddq = (np.stack([p.at(s, order) for p, s in zip(pieces, places, strict=True)]) for order in range(3))
    return Constraints(arms, limits, q, dq, ddq, friction)


def _must_move(at: Constraints, arm: Any) -> None:
    """Refuse a path that stands still."""
    speed = np.linalg.norm(at.dq, axis=-1)
    still = speed <= 1e-9 * np.maximum(speed.max(axis=1, keepdims=True), 1e-300)
    both = still[:, :-1] & still[:, 1:]
    if both.any():
        k = int(np.argwhere(both)[0, 1])
        raise InputError(
            f"the path stands still at {100 * k / (still.shape[1] - 1):.0f} % of its way; a path is the way alone: "
            f"leave the time out, and split it where {arm.name} is to wait"
        )


def _must_arrive(at: Constraints, found: Speeds, arm: Any) -> None:
    """Say where and why a motion is impossible."""
    if (found.stuck < 0).all():
        return
    lane = int(np.argmax(found.stuck >= 0))
    k = int(found.stuck[lane])
    still = np.zeros((at.q.shape[0], 1))
    relative = at.overrun(np.zeros(at.fastest.shape), np.zeros(at.fastest.shape))[2][lane, k, :-1]
    worst = int(np.argmax(relative)) if relative.size else 0
    where = f"at {100 * k / (at.q.shape[1] - 1):.0f} % of the path, q = {np.round(at.q[lane, k], 3).tolist()}"
    lower, upper = at.interval(k, still)
    if relative.size and relative[worst] > 0:
        raise InputError(
            f"{arm.name} cannot hold still {where}: {at.names[worst]} would exceed its limit by "
            f"{100 * relative[worst]:.0f} %; a smaller payload, another path or a larger limit would do"
        )
    if k in (0, at.q.shape[1] - 1):
        raise InputError(f"the speed asked for {where} is more than the limits of {arm.name} allow")
    raise InputError(
        f"no motion along the path is possible {where}: the acceleration would have to be at least "
        f"{lower[lane, 0]:.4g} and at most {upper[lane, 0]:.4g} (1/s² of the path's parameter)"
    )


def _overrun(inside: Constraints, found: Speeds, step: np.ndarray) -> _Overrun:
    """The worst of the places inside each step, both ends included."""
    lanes, steps = found.u.shape[:2]
    u, z = _within(found, step, np.arange(INSIDE) / INSIDE)
    z = np.concatenate([z.reshape(lanes, -1), found.z[:, -1:]], 1)
    u = np.concatenate([u.reshape(lanes, -1), found.u[:, -1:, 1]], 1)
    rows, norms, relative = inside.overrun(u, z)

    def worst(values: np.ndarray) -> np.ndarray:
        split = values[..., :-1, :].reshape(*values.shape[:-2], steps, INSIDE, values.shape[-1])
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


def _motion(arm: Any, path: Path, lanes: list[_Lane], friction: bool) -> TimeOptimal:
    """The trajectory of one path: its pieces one after the other."""
    columns: dict[str, list[np.ndarray]] = {key: [] for key in ("t", "q", "qd", "qdd", "s", "speed", "u", "fastest")}
    names: list[str] = []
    begin = 0.0
    for number, (piece, part) in enumerate(zip(path.pieces, lanes, strict=True)):
        at, found, lane = part.at, part.found, part.index
        x = np.sqrt(found.z[lane])
        s = np.linspace(piece.start, piece.end, len(x))
        t = begin + np.r_[0.0, np.cumsum(part.times[lane])]
        u = np.r_[found.u[lane, :, 0], found.u[lane, -1, 1]]
        q, dq, ddq = at.q[lane], at.dq[lane], piece.at(s, 2)
        keep = slice(0, None) if number == len(lanes) - 1 else slice(0, -1)
        values = (t, q, dq * x[:, None], dq * u[:, None] + ddq * (x**2)[:, None], s, x, u, np.sqrt(found.largest[lane]))
        for key, value in zip(columns, values, strict=True):
            columns[key].append(value[keep])
        names += _binding(at, found, lane)[keep]
        begin = float(t[-1])
    t, q, qd, qdd, s, x, u, most = (np.concatenate(columns[key]) for key in columns)
    tau = arm.inverse_dynamics(q, qd, qdd, friction=True) if friction else arm.inverse_dynamics(q, qd, qdd)
    energy = arm.kinetic_energy(q, qd) + arm.potential_energy(q)
    worst = max(lane.worst for lane in lanes)
    message = f"{t[-1]:.4g} s; limits are exceeded by at most {100 * worst:.2g} % between the points of the grid"
    return TimeOptimal(
        arm, t, q, qd, qdd, tau, energy, "finished", message, "time optimal", np.array("finished"), np.array(t[-1]),
        np.array(message), s=s, speed=x, acceleration=u, fastest=most, binding=tuple(names), overrun=worst,
        at=tuple((lane.at, lane.index) for lane in lanes),
    )  # fmt: skip


def _ceilings(at: Constraints, lane: int) -> np.ndarray:
    """(points,) the largest z below which the limits, not drawn in, leave an acceleration, by nested intervals."""
    at, points = copy(at), at.q.shape[1]
    at.tight, at.tight_norms, at.fastest = 0 * at.tight, 0 * at.tight_norms, at.speed_limits()
    found = np.zeros(points)
    for k in range(points):
        low, high = 0.0, float(at.fastest[lane, k])
        high = high if np.isfinite(high) else 1e12
        for _ in range(4):
            tried = np.linspace(low, high, 34)[1:] if low > 0 else np.geomspace(high * 1e-9, high, 33)
            lower, upper = (ends[lane] for ends in at.interval(k, np.broadcast_to(tried, (at.q.shape[0], len(tried)))))
            possible = lower <= upper
            if possible.all():
                low = high
                break
            first = int(np.argmin(possible))
            low, high = (low if first == 0 else float(tried[first - 1])), float(tried[first])
        found[k] = low
    return found


def _binding(at: Constraints, found: Speeds, lane: int) -> list[str]:
    """The limit with the least slack on the step that begins at each point, the last point's being that before it."""
    z, u = found.z, found.u
    begin = at.overrun(np.concatenate([u[..., 0], u[:, -1:, 1]], 1), z)[2][lane, :, :-1]
    end = at.overrun(np.concatenate([u[:, :1, 0], u[..., 1]], 1), z)[2][lane, :, :-1]
    names = []
    for k in range(u.shape[1]):
        slack = np.maximum(begin[k], end[k + 1])
        with np.errstate(invalid="ignore", divide="ignore"):
            fast = max(z[lane, k + i] / at.fastest[lane, k + i] for i in range(2))
        best = int(np.argmax(slack)) if slack.size else -1
        if fast >= 1 - BINDS and (best < 0 or fast - 1 >= slack[best]):
            names.append(_speed_name(at, lane, k + int(z[lane, k + 1] / at.fastest[lane, k + 1] >= fast)))
        elif best >= 0 and slack[best] >= -BINDS:
            names.append(at.names[best])
        else:
            names.append("none")
    return [*names, names[-1]]


def _speed_name(at: Constraints, lane: int, k: int) -> str:
    """The speed limit that gives `fastest`."""
    with np.errstate(divide="ignore"):
        by_joint = at.ends.velocity / np.abs(at.dq[lane, k])
    j = int(np.argmin(by_joint))
    if at.limits.tool_speed is not None and at.limits.tool_speed / max(at.tool_rate[lane, k], 1e-300) < by_joint[j]:
        return "tool speed"
    return f"velocity of {at.arms[0].joint_names[j]}"
