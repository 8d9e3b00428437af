"""Output-error fit of servos: least squares on positions by multiple shooting, with exact sensitivities.

The log is cut into shots, each with its own initial state; shots are short at first, so that a bad first guess cannot
carry a simulation away from the log, then longer. A Levenberg-Marquardt step solves for the parameters with the shots'
states eliminated. Parameters that the log does not determine stay with their priors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from armdyn.errors import ComputationError, required
from armdyn.identification.servo_model import Run, SensitivityColumns, ServoModel, Shots, Values, sensitivities

Array = NDArray[np.float64]
LONGEST_STEP = 2.5e-3  # s, of the integration: 0.01 mrad off on motions of one rad at 3 Hz of bandwidth
SMOOTHING = 0.1  # s of positions through which a cubic goes, for first states and first guesses
LATEST = 0.1  # s: the longest delay
SHORT, LONG = 0.25, 0.5  # s: shots of the first and of the last fit
LOGARITHMIC = ("kp", "kd", "limit", "stribeck", "armature")  # positive ones of unknown size
TORQUES = ("kd", "limit", "armature", "viscous", "coulomb", "static")  # those that grow with kp if all torques do
CLOSE = 0.1  # of the squared deviation of the positions: what a last step may still gain
GAINED = 0.7  # of the squared error without a torque limit: what a first guess with one must come below
SHARES = (1.0, 0.6, 0.3)  # of the damping that is the servo's, tried with a torque limit
MOTORS = (0.1, 0.3, 1.0, 3.0, 10.0)  # of the mean inertia of the links: rotor inertias that a first guess tries
RISES, FIRST_DAMPING = 8, 1e-3
DAMPINGS = (0.0, 0.01, 0.03, 0.1)  # s: kd / kp that a first guess tries with a torque limit
MOST_ROWS = 3000  # of a log, about, for a first guess
CUTS = (1.0, 0.85, 0.7, 0.55, 0.4, 0.28, 0.2, 0.14)  # of the largest force asked for: torque limits that are tried


@dataclass(frozen=True)
class Recording:
    """A uniformly sampled part of a log: positions and commands (samples, n), and what its load adds (p,).

    Rows with `measured` (samples,) 0 were missing: they are simulated, but not compared.
    """

    q: Array
    command: Array
    added: Array
    measured: Array


def smooth(q: Array, period: float) -> tuple[Array, Array, Array]:
    """Positions, velocities and accelerations (samples, n) of the cubic through the neighbours of each sample."""
    required("scipy")
    from scipy.signal import savgol_filter

    width = min(max(2 * round(SMOOTHING / period / 2) + 1, 5), len(q) - 1 + len(q) % 2)
    return tuple(  # type: ignore[return-value]
        savgol_filter(q, width, 3, deriv=order, delta=period, axis=0) for order in range(3)
    )


def cut(
    records: Sequence[Recording], period: float, seconds: float, steps: int, hold: float = 0.0
) -> tuple[Shots, Array, Array]:
    """The shots of logs with states (lanes, n) to start from; the last of each log overlaps the one before."""
    lead = int(np.ceil(LATEST / period)) + 1
    shortest = min(len(record.q) for record in records) - 1
    size = min(max(round(seconds / period), 4), shortest)
    parts: list[list[Array]] = [[] for _ in range(6)]
    for record in records:
        q, v, _ = smooth(record.q, period)
        before = np.concatenate([np.repeat(record.command[:1], lead, axis=0), record.command])
        done = 0
        while done < len(record.q) - 1:
            first = min(done, len(record.q) - 1 - size)
            weight = np.repeat(record.measured[first : first + size + 1, None], record.q.shape[1], axis=1)
            weight[: done - first + (done > 0)] = 0.0
            inside = slice(first, first + size + 1)
            row = (record.q[inside], weight, before[first : first + size + 1 + lead], record.added, q[first], v[first])
            for part, value in zip(parts, row, strict=True):
                part.append(value)
            done = first + size
    measured, weights, command = (np.stack(part, axis=1) for part in parts[:3])
    shots = Shots(measured, weights, command, lead, period, steps, np.stack(parts[3]), hold)
    return shots, np.stack(parts[4]), np.stack(parts[5])


@dataclass(frozen=True)
class Free:
    """What is free: parameters of joints, each with a prior, its deviation and bounds, and inertial directions.

    The coordinate of a logarithmic parameter is the logarithm of its value, otherwise the value over `scale`; of those
    that are torques, of their value over kp. All torques of a joint then grow with the one coordinate of its kp, which
    is what a log without weights leaves open. The inertial directions come last; their priors are 0 ± 1.
    """

    fields: tuple[str, ...]
    joints: NDArray[np.intp]
    scale: Array
    prior: Array
    deviation: Array
    lower: Array
    upper: Array
    directions: Array
    inertial: Array

    @classmethod
    def nothing(cls, values: Values) -> Free:
        """No parameter is free: only the shots' states are."""
        empty = np.zeros(0)
        none = np.zeros((len(values.inertial), 0))
        return cls((), np.zeros(0, dtype=np.intp), empty, empty, empty, empty, empty, none, values.inertial)

    def _are(self, names: Sequence[str]) -> NDArray[np.bool_]:
        return np.array([name in names for name in self.fields], dtype=bool)

    def _numbers(self, values: Values) -> Array:
        return np.array([values.joints[name][i] for name, i in zip(self.fields, self.joints, strict=True)])

    def values(self, x: Array, rest: Values) -> Values:
        """The parameters at x; those that are not free are those of `rest`."""
        count = len(self.fields)
        logarithmic, torques = self._are(LOGARITHMIC), self._are(TORQUES)
        numbers = np.where(logarithmic, np.exp(np.clip(x[:count], -30, 30)), x[:count] * self.scale)
        joints = {name: array.copy() for name, array in rest.joints.items()}
        gains = self._are(("kp",))
        joints["kp"][self.joints[gains]] = numbers[gains]
        numbers = numbers * np.where(torques, joints["kp"][self.joints], 1.0)
        for name, i, number in zip(self.fields, self.joints, numbers, strict=True):
            joints[name][i] = number
        return Values(joints, self.inertial + self.directions @ x[count:])

    def at(self, values: Values, previous: Array | None = None) -> Array:
        """The coordinates of values; those of inertial directions are taken over."""
        numbers = self._numbers(values) / np.where(self._are(TORQUES), values.kp[self.joints], 1.0)
        own = np.where(self._are(LOGARITHMIC), np.log(np.maximum(numbers, 1e-30)), numbers / self.scale)
        size = self.directions.shape[1]
        return np.concatenate([own, np.zeros(size) if previous is None else previous[len(previous) - size :]])

    def slopes(self, values: Values) -> Array:
        """(parameters, coordinates): the derivatives of the joints' free parameters."""
        numbers, torques = self._numbers(values), self._are(TORQUES)
        per = self.scale * np.where(torques, values.kp[self.joints], 1.0)
        found = np.diag(np.where(self._are(LOGARITHMIC), numbers, per))
        for k in np.flatnonzero(self._are(("kp",))):
            follow = torques & (self.joints == self.joints[k])
            found[follow, k] = numbers[follow]
        return found

    def columns(self, values: Values) -> SensitivityColumns:
        """The slopes that are needed at these values."""
        return SensitivityColumns(self.fields, self.joints, self.slopes(values), self.directions)


@dataclass
class Sums:
    """Normal equations: of each shot's state (lanes, 2n, ...) and of the parameters."""

    states: Array
    mixed: Array
    own: Array
    right_states: Array
    right: Array

    def reduced(self, damping: float) -> tuple[Array, Array, Callable[[Array], Array]]:
        """The matrix and right side of the parameters without the states, and the states that belong to a step."""
        diagonal = np.einsum("lii->li", self.states)
        ridge = damping * diagonal + 1e-9 * diagonal.max(axis=1, keepdims=True) + 1e-300
        A = self.states + ridge[..., None] * np.eye(self.states.shape[-1])
        eliminated = np.linalg.solve(A, np.concatenate([self.mixed, self.right_states[..., None]], -1))
        inner, last = eliminated[..., :-1], eliminated[..., -1]
        matrix = self.own - np.einsum("lsp,lsq->pq", self.mixed, inner)
        right = self.right - np.einsum("lsp,ls->p", self.mixed, last)
        return matrix, right, lambda step: last - inner @ step


@dataclass
class ServoFit:
    """A fit: parameters, states of the shots, residuals (samples, lanes, n), and the information on the parameters."""

    values: Values
    x: Array
    q: Array
    v: Array
    residuals: Array
    cost: float
    information: Array = field(default_factory=lambda: np.zeros((0, 0)))
    run: Run | None = None
    converged: bool = False


Say = Callable[[str], None]


@dataclass(frozen=True)
class ServoProblem:
    """Shots, what is free, what is not, and the weight of a position of each joint (1/variance)."""

    model: ServoModel
    shots: Shots
    free: Free
    rest: Values
    weight: Array

    def simulated(self, x: Array, q: Array, v: Array) -> ServoFit:
        """The shots at these parameters and states, and their cost with that of the priors."""
        values = self.free.values(x, self.rest)
        run = self.model.run(values, self.shots, q, v)
        residuals = (self.shots.measured - run.q[:: self.shots.steps]) * self.shots.weights
        with np.errstate(over="ignore"):  # shots that run away cost infinitely much
            fitted = float((residuals**2 * self.weight).sum()) if run.finite else np.inf
        cost = fitted + float((((x - self.free.prior) / self.free.deviation) ** 2).sum())
        return ServoFit(values, x, q, v, residuals, cost, run=run)

    def sums(self, at: ServoFit) -> Sums:
        """The normal equations about a fit, without the priors."""
        n, columns = self.model.n, self.free.columns(at.values)
        lanes, states, size = at.q.shape[0], 2 * n, 2 * n + len(columns)
        total, right = np.zeros((lanes, size, size)), np.zeros((lanes, size))
        root = np.sqrt(self.weight)

        def see(sample: int, slopes: Array) -> None:
            nonlocal total, right
            J = slopes * (root * self.shots.weights[sample])[..., None]
            turned = np.swapaxes(J, -1, -2)
            total += turned @ J
            right += np.einsum("lij,lj->li", turned, root * at.residuals[sample])

        assert at.run is not None
        sensitivities(self.model, at.values, self.shots, at.run, columns, see)
        inner, outer = slice(None, states), slice(states, None)
        return Sums(total[:, inner, inner], total[:, inner, outer], total[:, outer, outer].sum(0),
                    right[:, inner], right[:, outer].sum(0))  # fmt: skip

    def solved(self, x: Array, q: Array, v: Array, most: int, say: Say, rough: float = 1e-4) -> ServoFit:
        """Levenberg-Marquardt from these parameters and states; a gain below `rough` of the cost ends it."""
        free, damping = self.free, FIRST_DAMPING
        best = self.simulated(x, q, v)
        if not np.isfinite(best.cost):
            raise ComputationError("the simulation of the log diverges from the first guess of its servos")
        weight = 1 / free.deviation**2
        for _ in range(most):
            say(f"error {np.sqrt(np.mean(best.residuals**2)):.3g}")
            sums = self.sums(best)
            small = False
            for _ in range(RISES):
                matrix, right, states = sums.reduced(damping)
                matrix = matrix + np.diag(weight)
                best.information = matrix
                right = right - weight * (best.x - free.prior)
                step = _bounded_step(matrix, right, damping, best.x, free)
                more = states(step).reshape(len(best.q), 2, -1)
                tried = self.simulated(best.x + step, best.q + more[:, 0], best.v + more[:, 1])
                if tried.cost < best.cost:
                    small = best.cost - tried.cost < max(CLOSE, rough * best.cost)
                    tried.information, best = best.information, tried
                    damping = max(damping / 8, 1e-9)
                    break
                damping *= 8
            else:
                small = True
            if small:
                best.converged = True
                break
        return best

    def known(self, at: ServoFit) -> tuple[Array, Array]:
        """What the log alone says on the parameters at a fit, and that with the priors."""
        matrix = self.sums(at).reduced(0.0)[0]
        return matrix, matrix + np.diag(1 / self.free.deviation**2)


def _bounded_step(matrix: Array, right: Array, damping: float, x: Array, free: Free) -> Array:
    """The damped step; parameters that it would push beyond a bound stay there."""
    held = ((x <= free.lower) & (right < 0)) | ((x >= free.upper) & (right > 0))
    step = np.zeros_like(x)
    for _ in range(len(x)):
        loose = np.flatnonzero(~held)
        part = matrix[np.ix_(loose, loose)]
        moved = np.linalg.solve(
            part + damping * np.diag(np.diag(part)), right[loose] - matrix[np.ix_(loose, held)] @ step[held]
        )
        step[loose] = moved
        ends = np.clip(x + step, free.lower, free.upper) - x
        beyond = ~held & (ends != step)
        step = np.where(held | beyond, ends, step)
        if not beyond.any():
            break
        held = held | beyond
    return step


def autocorrelation(residuals: Array, weights: Array) -> Array:
    """(n,) by how much neighbouring residuals repeat each other: 1 plus twice the sum of their correlations."""
    r = residuals * weights
    power = np.maximum((r**2).sum((0, 1)), 1e-300)
    factor = np.ones(r.shape[-1])
    open_ = np.ones(r.shape[-1], dtype=bool)
    for k in range(1, min(len(r) - 1, 200)):
        shared = np.maximum((r[k:] ** 2).sum((0, 1)) * (r[:-k] ** 2).sum((0, 1)), 1e-300) ** 0.5
        rho = (r[k:] * r[:-k]).sum((0, 1)) / np.maximum(shared, power * 1e-12)
        open_ &= rho > 0.05
        if not open_.any():
            break
        factor += np.where(open_, 2 * rho, 0.0)
    return factor


def first_guess(model: ServoModel, records: Sequence[Recording], period: float, start: Values) -> Values:
    """Servo gains, delays, friction and torque limits by least squares on the equation of motion.

    It is taken along smoothed positions, with the load of the prior, needs no guess, and is good enough for short
    shots. Delays, rotor inertias, kd / kp and the error of position at which the torque saturates are tried in turn.
    """
    motions = [smooth(record.q, period) for record in records]
    torques = [model.torques(*m, start.inertial + r.added) for m, r in zip(motions, records, strict=True)]
    inertia = np.mean([np.einsum("kii->ki", model.slopes(*m, start.inertial)[2]).mean(0) for m in motions], axis=0)
    joints = {name: array.copy() for name, array in start.joints.items()}
    size = np.maximum(inertia, 0.1 * np.median(inertia))  # motors differ less than what they carry
    for i in range(model.n):
        motors = np.array([start.armature[i]] if start.armature[i] > 0 else [share * size[i] for share in MOTORS])
        tried = []
        for delay in np.arange(0, 0.05, max(period / 4, 1e-3)):
            held = [_held(record.command[:, i], delay, period) for record in records]
            tried.append(_guess_of(held, [[x[:, i] for x in m] for m in motions], [t[:, i] for t in torques], motors))
        delay, (_, kp, kd, coulomb, motor, limit) = min(
            zip(np.arange(0, 0.05, max(period / 4, 1e-3)), tried, strict=True), key=lambda one: one[1][0]
        )
        least = 4 * (inertia[i] + motor)  # a bandwidth of 2 rad/s
        joints["limit"][i] = limit
        joints["kp"][i] = kp = max(kp, least)
        joints["kd"][i] = max(kd, 0.1 * np.sqrt(kp * (inertia[i] + motor)))
        joints["delay"][i], joints["coulomb"][i], joints["armature"][i] = delay, coulomb, motor
        joints["viscous"][i] = 0.0  # kd is that of both, whatever damping the file has
    return Values(joints, start.inertial)


def _held(command: Array, delay: float, period: float) -> Array:
    """The smoothed command of a joint that acts at each sample."""
    t = np.arange(len(command)) * period
    return smooth(np.interp(t - delay - period / 2, t, command)[:, None], period)[0][:, 0]


def _guess_of(
    held: Sequence[Array], motions: Sequence[Sequence[Array]], loads: Sequence[Array], motors: Array
) -> tuple[float, float, float, float, float, float]:
    """(relative error, kp, kd, coulomb, motor, limit) of one joint at one delay: the best of a grid."""
    q, v, a = (np.concatenate([m[k] for m in motions]) for k in range(3))
    c, load = np.concatenate(held), np.concatenate(loads)
    thin = slice(None, None, max(len(q) // MOST_ROWS, 1))
    error, v, a, load = (c - q)[thin], v[thin], a[thin], load[thin]
    right = load + motors[:, None] * a  # (motors, rows)
    total = np.maximum((right**2).sum(1), 1e-30)
    dry = -np.tanh(v / 0.02)
    largest = np.abs(error).max() or 1.0
    best = (np.inf, 0.0, 0.0, 0.0, 0.0, np.inf)
    for ends in (np.inf, *(share * largest for share in CUTS[1:])):
        for damping in (0.0,) if ends == np.inf else DAMPINGS:
            push = np.clip(error - damping * v, -ends, ends)
            A = np.stack([push, -v, dry], -1)
            for k, (numbers, rest) in enumerate(_nonnegative(A, right)):
                score = rest / total[k] * (1.0 if ends == np.inf else 1 / GAINED)
                if score < best[0]:
                    kp, viscous, coulomb = numbers
                    best = (score, kp, viscous + kp * damping, coulomb, float(motors[k]), kp * ends if kp else np.inf)
    return best


def _nonnegative(A: Array, right: Array) -> Iterator[tuple[Array, float]]:
    """Nonnegative least squares for several right sides: the numbers, and the squared error."""
    size = np.maximum(np.linalg.norm(A, axis=0), 1e-12)
    M, columns = (A / size).T @ (A / size), right @ (A / size)
    for b, square in zip(columns, (right**2).sum(1), strict=True):
        found, least = np.zeros(len(M)), float(square)
        for used in ((0, 1, 2), (0, 1), (0, 2), (0,)):
            x = np.zeros(len(M))
            x[list(used)] = np.linalg.lstsq(M[np.ix_(used, used)], b[list(used)])[0]
            rest = float(square - x @ b)
            if (x >= 0).all() and rest < least:
                found, least = x, rest
        yield found / size, least


def unlimited(values: Values) -> Values:
    """The same without torque limits."""
    return Values(values.joints | {"limit": np.full_like(values.limit, np.inf)}, values.inertial)


def with_limits(problem: ServoProblem, fit: ServoFit, wanted: NDArray[np.bool_]) -> Iterator[Values]:
    """Other values of the wanted joints: each with the torque limit that explains its positions best.

    Limits are tried below what a joint asks for without one, for several shares of the damping that the servo makes:
    that is clipped, too, and decides when.
    """
    values, shots, joints = fit.values, problem.shots, np.arange(problem.model.n)
    damping = values.kd + values.viscous
    for share in SHARES:
        split = {"kd": share * damping, "viscous": (1 - share) * damping, "limit": np.full(len(joints), np.inf)}
        free = Values({name: np.where(wanted, split.get(name, x), x) for name, x in values.joints.items()},
                      values.inertial)  # fmt: skip
        run = problem.model.run(free, shots, fit.q, fit.v)
        error = run.command - (run.q[:-1] + run.q[1:]) / 2
        most = np.abs(values.kp * error - free.kd * (run.w[:-1] + run.w[1:]) / 2).max((0, 1))
        tried = [np.where(wanted, cut * most, values.limit) for cut in CUTS]
        scores = []
        for limit in tried:
            made = problem.model.run(Values(free.joints | {"limit": limit}, values.inertial), shots, fit.q, fit.v)
            scores.append(_squares((shots.measured - made.q[:: shots.steps]) * shots.weights))
        limit = np.array(tried)[np.argmin(scores, axis=0), joints]
        yield Values(free.joints | {"limit": limit}, values.inertial)


def best_of(tries: Sequence[ServoFit], factors: Array) -> Values:
    """The values of each joint in that of several fits that explains its positions best; `factors` of squared errors.

    Inertial parameters are those of the first.
    """
    scores = [factor * _squares(fit.residuals) for factor, fit in zip(factors, tries, strict=True)]
    best = np.argmin(scores, axis=0)
    joints = {
        name: np.array([fit.values.joints[name] for fit in tries])[best, np.arange(len(best))]
        for name in tries[0].values.joints
    }
    return Values(joints, tries[0].values.inertial)


def _squares(residuals: Array) -> Array:
    """(n,) sums of squares of residuals (samples, lanes, n), infinite where a simulation ran away."""
    with np.errstate(over="ignore"):
        return np.asarray(np.where(np.isfinite(residuals).all((0, 1)), (residuals**2).sum((0, 1)), np.inf))
