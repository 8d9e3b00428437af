"""Which method and step a run takes, whether its step was stable, and how each of its lanes ended.

A step is unstable if the method amplifies deviations that the arm itself damps.

At sampled states the equations of motion are linearised, by finite differences of the compiled right-hand side in the
modes of the state (joints that stick are left out). One step of the method maps a small deviation by G; the exact flow
would map it by exp(h J). If the spectral radius of G exceeds both 1 and that of the flow, the step is unstable,
whatever the states look like. Saturated motors count with their gains, because a step must be able to leave the limit.

A step can also be too long without any stiffness, where a motion is fast. At sampled states it is taken again in four
parts: the difference of the two energies is what a step adds or loses. More than a small share of the largest kinetic
energy over the run makes the step unstable, too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from armdyn.programs.stepping import SCHEMES, Scheme
from armdyn.simulation.request import Layout, Setup, Span, steps_in
from armdyn.simulation.stepper import Stepper

DEVIATION = 1e-6  # of q and q̇, for finite differences; second differences of rigid-body dynamics are moderate
MARGIN = 0.01  # growth per step that counts, beyond that of the motion itself
OVERALL = 20.0  # growth that counts over a whole run, as a logarithm: 5e8, from truncation errors to nonsense
SAMPLES = 12  # rows of a lane that are looked at
LANES = 4  # lanes of a batch that are looked at
SHORTENINGS = 20  # of a step, until it is stable
NEAR = 0.25  # of step times eigenvalue: AB4 becomes unstable at 0.3, all others later
HALVINGS = 60  # of a step, which locates an event to the last bit
FEW = 16  # up to so many lanes are bisected; with more, positions are interpolated
LONGEST = 1e-3  # s: the automatic step unless stability requires a shorter one
SHORTEST = 1e-7  # s: the shortest automatic step
RESERVE = 2.0  # how much stiffer than at the start an arm may become
FAST = 0.05  # rad (or m) per step: slower motions lose no energy that counts
LOST = 0.02  # of the largest kinetic energy, that the steps of a run may add or lose
UNSTABLE = "unstable step"
UNSTABLE_LOOP = "unstable loop"


@dataclass(frozen=True)
class Linear:
    """The equations of motion about a state: y' = J y for the joints that move; `stiff` is the implicit part of J.

    `moving` are the velocities that the rows stand for, and `inverse` is the inverse of their inertia matrix.
    """

    J: np.ndarray
    stiff: np.ndarray
    moving: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=int))
    inverse: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))

    @property
    def largest(self) -> float:
        """The magnitude of the largest eigenvalue, 1/s."""
        return float(np.max(np.abs(np.linalg.eigvals(self.J)), initial=0.0))


def linearised(stepper: Stepper, t: float, y: np.ndarray, released: bool = False) -> Linear | None:
    """The motion about a state (size,), or as if no joint stuck; None where it is not finite."""
    layout, n = stepper.layout, stepper.layout.nv
    q, qd = layout.split(y)
    shift = DEVIATION * np.maximum(1.0, np.abs(np.concatenate([layout.beside(q), qd])))
    around = np.concatenate([layout.moved(y, np.diag(shift)), layout.moved(y, -np.diag(shift))])
    qdd, free, tau = stepper.around(t, y, around, released)
    if not np.all(np.isfinite(qdd)):
        return None
    slopes = ((qdd[: 2 * n] - qdd[2 * n :]) / (2 * shift[:, None])).T  # (n, 2n)
    moving = np.flatnonzero(free)
    count = len(moving)
    inverse = np.linalg.inv(np.asarray(stepper.inertia(q))[np.ix_(moving, moving)])
    stiffness, damping, viscous, effort = (np.asarray(x)[moving] for x in stepper.gains())
    J, stiff = np.zeros((2, 2 * count, 2 * count))
    J[:count, count:] = stiff[:count, count:] = np.eye(count)
    J[:count, :count] = layout.kinematics(qd)[np.ix_(moving, moving)]
    J[count:, :count] = slopes[np.ix_(moving, moving)]
    J[count:, count:] = slopes[np.ix_(moving, moving + n)]
    cut = np.abs(tau[moving]) >= effort
    J[count:, :count] -= inverse * np.where(cut, stiffness, 0.0)
    J[count:, count:] -= inverse * np.where(cut, damping, 0.0)
    stiff[count:, :count] = -inverse * stiffness
    stiff[count:, count:] = -inverse * (damping + viscous)
    return Linear(J, stiff, moving, inverse)


def may_be_stiff(stepper: Stepper, q: np.ndarray, h: float) -> bool:
    """Whether gains and viscous friction at postures (rows, nq) come near the stability limit of any method.

    A bound that costs one evaluation of H per row: without it a short run would take ten times as long.
    """
    stiffness, damping, viscous, _ = stepper.gains()
    if not any(np.any(x) for x in (stiffness, damping, viscous)):
        return False
    inverse = np.linalg.inv(stepper.inertia(q))
    rates = [np.abs(inverse) @ np.abs(x) for x in (damping + viscous, stiffness)]  # no eigenvalue is larger
    return bool(h * rates[0].max() > NEAR or h * math.sqrt(rates[1].max()) > NEAR)


def step_matrix(scheme: Scheme, linear: Linear, h: float) -> np.ndarray:
    """The matrix by which one step maps a deviation."""
    J, size = linear.J, len(linear.J)
    one = np.eye(size)
    if scheme.past:
        return _multistep(scheme, J, h)
    if scheme.velocity_first:
        n = size // 2
        velocity = one[n:] + h * J[n:]
        return np.concatenate([one[:n] + h * velocity, velocity])
    stiff = linear.stiff if scheme.implicit else np.zeros_like(J)
    slopes: list[np.ndarray] = []
    for stage, row in enumerate(scheme.a):
        explicit = one + h * sum((float(a) * k for a, k in zip(row, slopes, strict=True)), np.zeros_like(J))
        own = scheme.implicit[stage] if scheme.implicit else ()
        if not own:
            slopes.append(J @ explicit)
            continue
        inner = one + h * sum((float(a) * k for a, k in zip(own[:-1], slopes, strict=True)), np.zeros_like(J))
        right = (J - stiff) @ explicit + stiff @ inner
        slopes.append(np.linalg.solve(one - h * float(own[-1]) * stiff, right))
    return one + h * sum((float(b) * k for b, k in zip(scheme.b, slopes, strict=True)), np.zeros_like(J))


def _multistep(scheme: Scheme, J: np.ndarray, h: float) -> np.ndarray:
    """The companion matrix of y⁺ = y + h Σ wₖ J yₖ."""
    weights, size = [float(w) for w in (*scheme.b, *scheme.past)], len(J)
    blocks = np.zeros((len(weights), len(weights), size, size))
    blocks[0] = [h * w * J for w in weights]
    blocks[0, 0] += np.eye(size)
    for k in range(1, len(weights)):
        blocks[k, k - 1] = np.eye(size)
    return blocks.transpose(0, 2, 1, 3).reshape(len(weights) * size, -1)


def growth(scheme: Scheme, linear: Linear, h: float) -> float:
    """The logarithm of the growth per step beyond that of the motion itself; 0 where the step is stable."""
    if not len(linear.J):
        return 0.0
    ours = _radius(step_matrix(scheme, linear, h))
    own = h * float(np.max(np.linalg.eigvals(linear.J).real))
    excess = math.log(max(ours, 1e-300)) - max(own, 0.0)
    return excess if excess > MARGIN else 0.0


def _radius(matrix: np.ndarray) -> float:
    if not np.all(np.isfinite(matrix)):
        return math.inf
    return float(np.max(np.abs(np.linalg.eigvals(matrix))))


def stable_step(scheme: Scheme, linears: list[Linear], h: float) -> float:
    """h, or h halved as often as it takes for all of them."""
    for _ in range(SHORTENINGS):
        if not any(growth(scheme, linear, h) for linear in linears):
            break
        h /= 2
    return h


@dataclass(frozen=True)
class UnstableStep:
    """An unstable step: where it was first seen, the largest eigenvalue there, and a step that would do."""

    t: float
    largest: float
    step: float


def examined(count: int, early: bool) -> np.ndarray:
    """The rows of a lane that are looked at: the last ones where it ended early, else evenly spread ones."""
    last = count - 1
    if early:
        return np.unique(np.maximum(0, last - np.array([0, 1, 2, 4, 8, 16, 32, 64])))
    return np.unique(np.linspace(0, last, min(SAMPLES, count)).astype(int))


def judge(
    stepper: Stepper, scheme: Scheme, h: float, times: np.ndarray, states: np.ndarray, early: bool
) -> UnstableStep | None:
    """Whether the step was too long for the method, by some rows of a lane (times, states)."""
    last, rows = len(times) - 1, examined(len(times), early)
    if not early and not may_be_stiff(stepper, stepper.layout.split(states[rows])[0], h):
        return None
    about = [(row, linearised(stepper, float(times[row]), states[row])) for row in rows.tolist()]
    known = [(row, linear) for row, linear in about if linear is not None]
    rates = [growth(scheme, linear, h) for _, linear in known]
    spans = [float(times[min(last, row + (last // len(rows) or 1))] - times[row]) for row, _ in known]
    total = sum(rate * max(span / h, 1.0) for rate, span in zip(rates, spans, strict=True))
    if not any(rates) or not (early or total > OVERALL):
        return None
    first = next(k for k, rate in enumerate(rates) if rate)
    linears = [linear for _, linear in known[: first + 1]]  # what follows may be no motion of the arm any more
    return UnstableStep(float(times[known[first][0]]), max(x.largest for x in linears), stable_step(scheme, linears, h))


@dataclass
class Ends:
    """Per lane: its status and message, when it ended, and the state there."""

    statuses: np.ndarray
    messages: list[str]
    times: np.ndarray
    states: np.ndarray  # (lanes, size), NaN where there is none beyond the last row

    @classmethod
    def of(cls, count: int, size: int, status: str, time: float) -> Ends:
        """All lanes with one status at one time."""
        return cls(
            np.full(count, status, dtype=object), [""] * count, np.full(count, time), np.full((count, size), np.nan)
        )


def found_ends(
    setup: Setup, stepper: Stepper, times: np.ndarray, states: np.ndarray, good: np.ndarray, status: str
) -> Ends:
    """How every lane ended; rows after its end become NaN."""
    rows = np.where(good.all(axis=1), len(times), np.argmin(good, axis=1))
    ends = Ends.of(len(states), states.shape[-1], status, float(times[-1]))
    over = np.flatnonzero(rows < len(times))
    finite = np.array([bool(np.isfinite(states[lane, rows[lane]]).all()) for lane in over], dtype=bool)
    for lane in over[~finite].tolist():
        t = float(times[rows[lane]])
        ends.statuses[lane], ends.times[lane] = "diverged", t
        ends.messages[lane] = f"the state was no longer finite at t = {t:.6g} s"
        if lane in stepper.source.faults:
            asked, ends.messages[lane] = stepper.source.faults[lane]
            while rows[lane] > 1 and times[rows[lane] - 1] >= asked * (1 - 1e-12):
                rows[lane] -= 1  # at this row there is no torque that could be reported
                good[lane, rows[lane]] = False
    _at_limits(setup, stepper, states, rows, over[finite], ends)
    _unstable(setup, stepper, times, states, rows, ends)
    _unstable_loop(stepper, times, states, rows, ends)  # before the energy: a loop that runs away moves too fast, too
    _lost_energy(setup, stepper, times, states, rows, ends)
    for lane in over.tolist():
        states[lane, rows[lane] :] = np.nan
    return ends


def _at_limits(
    setup: Setup, stepper: Stepper, states: np.ndarray, rows: np.ndarray, lanes: np.ndarray, ends: Ends
) -> None:
    """Locate the time at which each of these lanes met a limit; lanes of the same row together."""
    for row in np.unique(rows[lanes]).tolist():
        group = lanes[rows[lanes] == row]
        one = stepper.some(group)
        moments, reached, joints = locate(setup, one, states[group, row - 1], row)
        for lane, t, state, joint in zip(group.tolist(), moments, reached, joints, strict=True):
            ends.statuses[lane], ends.times[lane], ends.states[lane] = "limit", t, state
            ends.messages[lane] = met_limit(joint, t)


def met_limit(joint: str, t: float) -> str:
    """The message of a run that ended at a limit, with the alternatives."""
    rest = "which ends the run; limits=0.0 makes every limit a stop, limits=False ignores them"
    return f"{joint} met its limit at t = {t:.9g} s, {rest}"


def locate(setup: Setup, some: Stepper, start: np.ndarray, row: int) -> tuple[list[float], np.ndarray, list[str]]:
    """(moments, states, joints) where lanes meet a limit after `start`, their states stored before row `row`."""
    t0 = float(setup.times[row - 1])
    gap = float(setup.times[row]) - t0
    steps = steps_in(gap, setup.step)
    h = gap / steps
    chunks = some.run(start, Span(t0, h, 1, steps), some.single_step)
    within = np.concatenate([start[:, None], *(rows for rows, _ in chunks)], axis=1)
    outside = ~setup.inside(within[:, 1:])
    step = np.where(outside.any(axis=1), np.argmax(outside, axis=1), steps - 1)
    lanes = np.arange(len(start))
    moments, reached, beyond = np.zeros(len(start)), within[lanes, step], within[lanes, step + 1]
    for k in np.unique(step).tolist():
        group = lanes[step == k]
        find = _bisected if len(group) <= FEW else _interpolated
        moments[group], reached[group], beyond[group] = find(
            setup, some.some(group), within[group, k], beyond[group], t0 + k * h, h
        )
    return moments.tolist(), reached, [setup.joint_beyond(y) for y in beyond]


def _bisected(
    setup: Setup, some: Stepper, start: np.ndarray, beyond: np.ndarray, t: float, h: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Stepper inside at t and beyond at t + h: (moment, last state inside, first beyond), to the last bit."""
    moments = np.full(len(start), t)
    reached, beyond = start.copy(), beyond.copy()
    part, done = h, moments.copy()
    for _ in range(HALVINGS):
        part /= 2
        if part <= 1e-15 * max(1.0, abs(t)):
            break
        # Lanes are at different times now; each takes one more part from its last state inside the limits.
        for moment in np.unique(done).tolist():
            group = np.flatnonzero(done == moment)
            moved = next(some.some(group).run(reached[group], Span(moment, part, 1, 1), some.single_step))[0][:, -1]
            good = setup.inside(moved)
            reached[group[good]], beyond[group[~good]] = moved[good], moved[~good]
            done[group[good]] = moment + part
    return done, reached, beyond


def _interpolated(
    setup: Setup, some: Stepper, start: np.ndarray, beyond: np.ndarray, t: float, h: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same for many lanes, by cubic Hermite interpolation of the positions, with an error of order h⁴."""
    layout = setup.layout
    low, high = np.zeros(len(start)), np.ones(len(start))
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        inside = setup.inside(_cubic(layout, start, beyond, middle, h))
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    return t + low * h, _cubic(layout, start, beyond, low, h), _cubic(layout, start, beyond, high, h)


def _cubic(layout: Layout, a: np.ndarray, b: np.ndarray, x: np.ndarray, h: float) -> np.ndarray:
    """States on the Hermite cubic from a (x = 0) to b (x = 1)."""
    x = x[:, None]
    (qa, va), (qb, vb) = layout.split(a), layout.split(b)
    q = qa * (1 + 2 * x) * (1 - x) ** 2 + qb * x**2 * (3 - 2 * x)
    q = q + h * (layout.rate(qa, va) * x * (1 - x) ** 2 - layout.rate(qb, vb) * x**2 * (1 - x))
    return layout.normalised(np.hstack([q, va + x * (vb - va)]))


def _unstable(
    setup: Setup, stepper: Stepper, times: np.ndarray, states: np.ndarray, rows: np.ndarray, ends: Ends
) -> None:
    """Lanes that ended, or went on, because their step was too long for the method."""
    if stepper.source.silent and not np.any(rows < len(times)):
        return  # a function is not called with states that did not occur
    early, others = _examined(rows, len(times))
    h = max(span.h for span in setup.spans)
    for lane in [*early.tolist(), *([] if stepper.source.silent else others.tolist())]:
        if lane in stepper.source.faults:
            continue
        last = int(rows[lane])
        if last < 2:
            last = min(len(times), 1)
        known = states[lane, :last]
        verdict = judge(stepper.some(np.array([lane])), SCHEMES[stepper.taken], h, times[:last], known, lane in early)
        if verdict:
            ends.statuses[lane] = UNSTABLE
            ends.messages[lane] = _advice(stepper, h, verdict)
    if UNSTABLE in ends.statuses[early]:  # lanes that were not examined are assumed to have ended in the same way
        first = next(lane for lane in early.tolist() if ends.statuses[lane] == UNSTABLE)
        for lane in np.flatnonzero(rows < len(times)).tolist():
            if lane not in early:
                ends.statuses[lane], ends.messages[lane] = UNSTABLE, ends.messages[first]


def _examined(rows: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Some lanes that ended early, and some of the others."""
    early = np.flatnonzero(rows < count)[: 2 * LANES]
    others = np.flatnonzero(rows == count)
    return early, others[:: max(1, len(others) // LANES)][:LANES]


def _lost_energy(
    setup: Setup, stepper: Stepper, times: np.ndarray, states: np.ndarray, rows: np.ndarray, ends: Ends
) -> None:
    """Lanes, the fastest ones, whose energy is not that of the arm, by what examined steps add or lose."""
    if stepper.plants is not None or len(times) < 2:
        return
    h, order = max(span.h for span in setup.spans), SCHEMES[stepper.taken].order
    known = np.arange(len(times)) < rows[:, None]
    speeds = np.max(np.abs(setup.layout.split(states)[1]), axis=(1, 2), where=known[..., None], initial=0.0)
    for lane in np.argsort(-speeds, kind="stable")[: 2 * LANES].tolist():
        last, quick = int(rows[lane]), h * float(speeds[lane]) > FAST
        if ends.statuses[lane] not in ("finished", "limit") or not (quick or order == 1):
            continue
        lost, kinetic = _energy_error(setup, stepper, lane, times[:last], states[lane, :last], h)
        if not (kinetic > 0 and lost > 0):
            continue
        share = f"{lost / kinetic:.2g} of" if lost < kinetic else "more than"
        amount = f"its steps change the energy by about {lost:.2g} J, {share} the largest kinetic energy"
        if quick and lost > LOST * kinetic:
            step = h * 0.5 ** math.ceil(math.log2(4 * lost / (LOST * kinetic)) / order)
            ends.statuses[lane] = UNSTABLE
            ends.messages[lane] = f"a step of {h:.3g} s is too long for {stepper.taken}: {amount}; try {step:.2g} s"
        elif order == 1 and ends.statuses[lane] == "finished":
            ends.messages[lane] = f"reached t = {times[-1]:.6g} s; {stepper.taken} is of first order: {amount}"


def _energy_error(
    setup: Setup, stepper: Stepper, lane: int, times: np.ndarray, states: np.ndarray, h: float
) -> tuple[float, float]:
    """(estimate of the energy that the steps of a lane have added or lost, largest kinetic energy), J."""
    arm, errors, kinetic = setup.arm, [], 0.0
    for row in examined(len(times), False).tolist():
        one = stepper.some(np.array([lane]), row)
        y, t = states[row : row + 1], float(times[row])
        energies = []
        for parts in (1, 4):
            end = next(one.run(y, Span(t, h / parts, parts, 1), one.single_step))[0][0, -1]
            q, qd = setup.layout.split(end)
            moving = float(arm.kinetic_energy(q, qd))
            energies.append(moving + float(arm.potential_energy(q)))
            kinetic = max(kinetic, moving)
        errors.append(energies[0] - energies[1])
    # With friction or stops the median: a step in which a joint rebounds or comes to rest is unlike the others.
    usual = float(np.median(errors) if stepper.sticks else np.mean(errors))
    return (abs(usual) * (times[-1] - times[0]) / h if math.isfinite(usual) else 0.0), kinetic


def _unstable_loop(stepper: Stepper, times: np.ndarray, states: np.ndarray, rows: np.ndarray, ends: Ends) -> None:
    """Lanes whose controller is too slow for its gains, or whose motors never catch up with it."""
    early, others = _examined(rows, len(times))
    for lane in [*early.tolist(), *others.tolist()]:
        if ends.statuses[lane] == UNSTABLE or lane in stepper.source.faults:
            continue
        last = max(int(rows[lane]), 1)
        message = stepper.source.unstable_loop(stepper, lane, times[:last], states[:, :last], lane in early)
        if message:
            ends.statuses[lane], ends.messages[lane] = UNSTABLE_LOOP, message


def _advice(stepper: Stepper, h: float, verdict: UnstableStep) -> str:
    """What was wrong, and what would help."""
    others = "" if stepper.taken == "ARK4" or stepper.source.silent else '; so would method="ARK4"'
    return (
        f"a step of {h:.3g} s is too long for {stepper.taken} from t = {verdict.t:.4g} s on: it amplifies motions "
        f"that die away (largest eigenvalue about {verdict.largest:.3g} 1/s); {verdict.step:.2g} s would do{others}"
    )


def chosen_method(stepper: Stepper, setup: Setup) -> str:
    """RK4, or ARK4 if controller gains or viscous friction are too stiff for RK4 with this step."""
    postures = setup.layout.split(setup.state)[0]
    if stepper.source.silent or not len(postures) or not may_be_stiff(stepper, postures, RESERVE * setup.step):
        return "RK4"
    stiff = any(growth(SCHEMES["RK4"], linear, RESERVE * setup.step) for linear in _starts(stepper, setup))
    return "ARK4" if stiff else "RK4"


def first_step(stepper: Stepper, setup: Setup) -> float:
    """The longest automatic step, or a shorter one if the method needs it at the initial states."""
    if stepper.source.silent:
        return setup.step
    return stable_step(SCHEMES[stepper.taken], _starts(stepper, setup), setup.step)


def _starts(stepper: Stepper, setup: Setup) -> list[Linear]:
    """The linearised motion about the initial states of some lanes."""
    if not len(setup.state):
        return []
    lanes = np.unique(np.linspace(0, len(setup.state) - 1, LANES).astype(int))
    t = float(setup.times[0])
    linears = [linearised(stepper.some(np.array([lane])), t, setup.state[lane], released=True) for lane in lanes]
    return [linear for linear in linears if linear is not None]
