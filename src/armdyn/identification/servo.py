"""`armdyn.identify_servo`: servos, motors and friction of an arm from logged commands and positions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armdyn.arm import Arm, as_arm
from armdyn.chain import Servo
from armdyn.errors import InputError, checked_keywords, choose
from armdyn.identification.log import Log, PathName, as_log, unit_doubts
from armdyn.identification.servo_fit import (
    LATEST,
    LONG,
    LONGEST_STEP,
    SHORT,
    Free,
    Recording,
    ServoFit,
    ServoProblem,
    autocorrelation,
    best_of,
    cut,
    first_guess,
    smooth,
    unlimited,
    with_limits,
)
from armdyn.identification.servo_model import FIELDS, ServoModel, Shots, Values
from armdyn.identification.servo_result import ServoEstimate, added_by, commanded, in_units

Array = NDArray[np.float64]
Progress = Callable[[float, float, str], None]
FRICTIONS = {"coulomb": (), "stribeck": ("stribeck",), "load": ("load",), "full": ("stribeck", "load")}
BASE = ("kp", "kd", "delay", "armature", "viscous", "coulomb")
LIMITED = (*BASE, "limit")  # which is free where there is one
GAINED = 0.9  # of the squared error of a joint: what another start must come below
ROUNDS, TRIAL_STEPS = 3, 6  # of limits and long shots; of the fits of each start
TERMS = {"stribeck": ("static", "stribeck"), "load": ("load",), "lag": ("lag",)}
COM = 0.1  # m: a centre of mass is known to `prior` of this
SLOWEST = 0.05  # rad/s or m/s: the Stribeck speed that is tried first
SIGNIFICANT = 2.0  # deviations: what a further term must have to stay
UNEXPLAINED = 1.3  # times the noise of the positions: another start, and at last a doubt
MOST_STEPS = (12, 25, 25)  # of the three fits
FAR = 1.0  # rad or m, the median distance of positions from commands: not that of a servo that holds its load
STILL = 5.0  # times the resolution: a joint that moves less does not move


@checked_keywords
def identify_servo(
    arm: Arm | PathName,
    log: Log | PathName | Sequence[Log | PathName],
    *,
    loads: Sequence[Any] | None = None,
    friction: str = "auto",
    lag: bool = False,
    firmware: float = 1e-3,
    prior: float = 0.1,
    progress: Progress | None = None,
) -> ServoEstimate:
    """Identify position servos, rotor inertias and friction from logs of commands and positions, without torques.

    The logged motion is simulated from its commands, and the parameters are those whose positions are nearest to the
    logged ones. Per joint: kp, kd and delay of the servo, the torque limit if it is reached, rotor inertia, viscous and
    Coulomb friction, and what `friction` adds; of the arm, its minimal inertial parameters about their prior.

    Parameters
    ----------
    arm
        The arm, its inertias being the prior; servos, torque limits, rotor inertias and friction are first guesses.
    log
        A log with `command`, or several, of the same arm.
    loads
        The known load of each log at the tool: None, a mass in kg, or the arguments of `with_payload`.
    friction
        "coulomb" with viscous friction, or in addition "stribeck", "load" (-dependent) or both ("full"); "auto" keeps
        of these what exceeds twice its deviation.
    lag
        Whether the firmware's filter of the velocity is identified, too.
    firmware
        The period (s) in which the servos compute their torques, held in between; 0 for analogue ones. If it is wrong
        by x, rotor inertias are wrong by kd x / 2.
    prior
        The relative standard deviation of the links' masses and inertias; their centres of mass are known to `prior`
        of 0.1 m. 0 takes the inertias as exact.
    progress
        Called with (done, total, what is being done).
    """
    arm = as_arm(arm, "identify_servo")
    arm.must_suit("servo identification")
    choose("friction", friction, ("auto", *FRICTIONS))
    if not 0 <= prior <= 1:
        raise InputError(f"prior is a relative deviation from 0 to 1, got {prior}")
    say = _Progress(progress)
    if not 0 <= firmware < 0.05:
        raise InputError(f"firmware is the period of the servos' control loops, from 0 to 0.05 s, got {firmware}")
    model = ServoModel(arm)
    data = _Data.of(model, arm, log, loads)
    start = _start(model, arm, data)
    say("first guess")
    guess = first_guess(model, data.records, data.period, start)
    stages = _Stages(model, data, guess, _directions(model, arm, prior), firmware / 2, say)
    fit = stages.rough([start] if any(joint.servo for joint in arm.joints) else [])
    problem, fit = stages.known_friction(fit)
    problem, fit = stages.further_friction(problem, fit, friction, lag)
    say("what is known")
    return _estimate(arm, data, problem, fit)


@dataclass(frozen=True)
class _Stages:
    """The fits, one after the other: short shots, long ones with torque limits, further terms of friction."""

    model: ServoModel
    data: _Data
    guess: Values
    directions: Array
    hold: float
    say: _Progress

    def problem(self, shots: Shots, rest: Values) -> ServoProblem:
        """Gains, delays, motors, viscous and Coulomb friction, and what limits there are, are free."""
        pairs = [(f, i) for f in LIMITED for i in range(self.model.n) if f != "limit" or np.isfinite(rest.limit[i])]
        free = _free_of(self.model, self.data, rest, self.guess, pairs, self.directions)
        return ServoProblem(self.model, shots, free, rest, 1 / self.data.floor**2)

    def rough(self, given: Sequence[Values]) -> ServoFit:
        """Short shots from the best first guess of each joint: with a torque limit, without, or what the file has."""
        shots, q, v = cut(self.data.records, self.data.period, SHORT, self.data.steps, self.hold)
        tries = []
        for first in (self.guess, unlimited(self.guess), *given):
            problem = self.problem(shots, first)
            tries.append(problem.simulated(problem.free.at(first), q, v))
        rest = best_of(tries, np.ones(len(tries)))
        problem = self.problem(shots, rest)
        return problem.solved(problem.free.at(rest), q, v, MOST_STEPS[0], self.say.within("short shots"), 1e-2)

    def known_friction(self, fit: ServoFit) -> tuple[ServoProblem, ServoFit]:
        """Long shots; joints that these do not explain start again from torque limits that act rarely.

        A gradient does not find those. Each start gets a few steps, and each joint keeps its best one.
        """
        shots, q, v = cut(self.data.records, self.data.period, LONG, self.data.steps, self.hold)
        problem = self.problem(shots, fit.values)
        fit = problem.solved(problem.free.at(fit.values, fit.x), q, v, MOST_STEPS[1], self.say.within("long shots"))
        for _ in range(ROUNDS):
            noise = np.sqrt((fit.residuals**2).sum((0, 1)) / shots.weights.sum((0, 1)))
            wrong = noise > UNEXPLAINED * self.data.floor
            if not wrong.any():
                break
            tries = [fit]
            for rest in with_limits(problem, fit, wrong):
                one = self.problem(shots, rest)
                tries.append(one.solved(one.free.at(rest, fit.x), fit.q, fit.v, TRIAL_STEPS, self.say.within("limits")))
            rest = best_of(tries, np.array([GAINED, *np.ones(len(tries) - 1)]))
            if all((rest.joints[name] == fit.values.joints[name]).all() for name in LIMITED):
                break
            problem = self.problem(shots, rest)
            x = problem.free.at(rest, fit.x)
            fit = problem.solved(x, fit.q, fit.v, MOST_STEPS[1], self.say.within("long shots"))
        return replace(problem, weight=_weight(fit, problem, self.data)), fit

    def further_friction(
        self, problem: ServoProblem, fit: ServoFit, friction: str, lag: bool
    ) -> tuple[ServoProblem, ServoFit]:
        """All terms that are asked for; "auto" fits again without those that are not significant.

        Saturation may last less than a step: where there is any, steps are half as long.
        """
        if _saturates(fit).any():
            problem = replace(problem, shots=replace(problem.shots, steps=2 * problem.shots.steps))
            fit = problem.simulated(fit.x, fit.q, fit.v)
        more = ("lag",) if lag else ()
        extra = [t for name in ("full" if friction == "auto" else friction,) for t in (*FRICTIONS[name], *more)]
        chosen = [(t, i) for t in extra for i in range(self.model.n)]
        for _ in range(2):
            limited = _saturates(fit)
            fields = [*((f, i) for f in LIMITED for i in range(self.model.n) if f != "limit" or limited[i]),
                      *((f, i) for t, i in chosen for f in TERMS[t])]  # fmt: skip
            free = _free_of(self.model, self.data, fit.values, self.guess, fields, self.directions)
            problem = replace(problem, free=free, rest=_without(fit.values, fields))
            x = free.at(fit.values, fit.x)
            fit = problem.solved(x, fit.q, fit.v, MOST_STEPS[2], self.say.within("friction"))
            problem = replace(problem, weight=_weight(fit, problem, self.data))
            if friction != "auto":
                break
            kept = _significant(problem, fit, chosen) | {(t, i) for t, i in chosen if t in more}
            if len(kept) == len(chosen):
                break
            chosen = [one for one in chosen if one in kept]
        return problem, fit


class _Progress:
    def __init__(self, progress: Progress | None) -> None:
        self.progress, self.done, self.total = progress, 0, sum(MOST_STEPS) + 2

    def __call__(self, text: str) -> None:
        self.done = min(self.done + 1, self.total)
        if self.progress is not None:
            self.progress(self.done, self.total, text)

    def within(self, stage: str) -> Callable[[str], None]:
        return lambda text: self(f"{stage}: {text}")


@dataclass(frozen=True)
class _Data:
    """The records of all logs, their common period, and the resolution of the positions."""

    records: list[Recording]
    period: float
    resolution: Array
    steps: int
    noise: Array
    notes: tuple[str, ...]
    doubts: tuple[str, ...]

    @property
    def floor(self) -> Array:
        """(n,) the residuals of positions that noise and resolution explain."""
        return np.asarray(np.maximum(self.noise, self.resolution / np.sqrt(12)))

    @staticmethod
    def of(model: ServoModel, arm: Arm, log: Any, loads: Sequence[Any] | None) -> _Data:
        logs = [as_log(one, arm) for one in (log if isinstance(log, list | tuple) else [log])]
        if not logs:
            raise InputError("no log: give one, or several")
        held = [None] * len(logs) if loads is None else [*loads]
        if len(held) != len(logs):
            raise InputError(f"loads expects one entry per log ({len(logs)}), got {len(held)}")
        period = logs[0].period
        for one in logs:
            if one.n != arm.n:
                raise InputError(f"the log has {one.n} joints, {arm.name} has {arm.n}")
            if abs(one.period - period) > 1e-3 * period:
                raise InputError(f"all logs must have one sampling period, got {period:.6g} and {one.period:.6g} s")
        records, longest = [], LONG
        for one, load in zip(logs, held, strict=True):
            added = added_by(model, arm, load)
            records += [record for record in commanded(one, added) if len(record.q) * period > longest]
        if not records:
            raise InputError(f"no piece of the log is longer than {longest:.2g} s")
        resolution = np.maximum(np.min([_resolution(r.q[r.measured > 0]) for r in records], axis=0), 1e-7)
        travel = np.max([np.ptp(r.q, axis=0) for r in records], axis=0)
        _plausible(logs, records, arm.joint_names)
        still = [name for name, far, one in zip(arm.joint_names, travel, resolution, strict=True) if far < STILL * one]
        if len(still) == arm.n:
            raise InputError("no joint moves in the log: nothing can be said on the servos")
        if still:
            raise InputError(
                f"{', '.join(still)} does not move in the log: nothing can be said on its servo; lock it (lock={{'"
                f"{still[0]}': ...}} of armdyn.load, --lock {still[0]}=...), or record a motion of it"
            )
        noise = np.mean([_noise(r.q, period) for r in records], axis=0)
        notes = tuple(note for one in logs for note in one.notes)
        doubts = tuple(doubt for one in logs for doubt in one.doubts)
        return _Data(records, period, resolution, int(np.ceil(period / LONGEST_STEP - 1e-9)), noise, notes, doubts)


def _plausible(logs: Sequence[Log], records: Sequence[Recording], names: Sequence[str]) -> None:
    """Refuse positions or commands in other units, with which the fit would take long and find nothing."""
    for one in logs:
        wrong = {*unit_doubts(one.period, [{"q": piece.q} for piece in one.pieces])} & {*one.doubts}
        if wrong and one.source:
            raise InputError(f"{one.source}: {min(wrong)} If they are not, say degrees=True or degrees=False")
    q, command = (np.concatenate([getattr(r, name) for r in records]) for name in ("q", "command"))
    size = np.std(command, axis=0) / np.maximum(np.std(q, axis=0), 1e-12)
    ratio = float(np.median(size))
    for factor, first, second in ((180 / np.pi, "commands", "positions"), (np.pi / 180, "positions", "commands")):
        if 0.5 < ratio / factor < 2:
            raise InputError(f"commands move {ratio:.3g} times as far as positions: {first} in degrees, {second} not?")
    apart = np.abs(np.median(command - q, axis=0))
    i = int(np.argmax(apart))
    if apart[i] > FAR:
        raise InputError(
            f"commands and positions of {names[i]} are {apart[i]:.3g} rad or m apart throughout: do both have the zero"
            " of the arm's file?"
        )


def _noise(q: Array, period: float) -> Array:
    """(n,) the standard deviation of the positions about smooth ones: by the median, as motion has corners."""
    middle = np.zeros((2 * len(q) + 1, 1))
    middle[len(q)] = 1.0
    left = np.sqrt(((middle - smooth(middle, period)[0]) ** 2).sum())  # of white noise of 1
    return np.asarray(1.4826 * np.median(np.abs(q - smooth(q, period)[0]), axis=0) / left, dtype=np.float64)


def _resolution(q: Array) -> Array:
    """(n,) the encoder's count: the smallest difference that occurs, if positions are multiples of one."""
    found = []
    for column in q.T:
        levels = np.unique(np.round(column, 9))
        steps = np.diff(levels)
        least = np.percentile(steps, 5) if len(steps) else 0.0
        counts = steps / least if least else steps
        whole = len(steps) > 10 and np.mean(np.abs(counts - np.round(counts)) < 0.02) > 0.9
        found.append(least if whole else 0.0)
    return np.array(found)


def _start(model: ServoModel, arm: Arm, data: _Data) -> Values:
    """What the arm's file says, with guesses where it says nothing."""
    n = arm.n
    joints: dict[str, Array] = {name: np.zeros(n) for name in FIELDS}
    for i, joint in enumerate(arm.joints):
        servo = joint.servo
        for name in ("kp", "kd", "delay", "dead_band", "lag"):
            joints[name][i] = 0.0 if servo is None else float(getattr(servo, name))
        joints["armature"][i], joints["viscous"][i] = float(joint.rotor_inertia), float(joint.viscous)
        joints["coulomb"][i] = float(joint.coulomb)
        joints["static"][i] = max(float(joint.static) - float(joint.coulomb), 0.0)
        joints["stribeck"][i] = float(joint.stribeck) or SLOWEST
        joints["load"][i] = float(joint.forces.load_friction)
        joints["limit"][i] = np.inf if joint.limit.effort is None else joint.limit.effort
    return Values(joints, np.array([float(x) for x in model.arm.minimal_parameters.values]))


def _directions(model: ServoModel, arm: Arm, prior: float) -> Array:
    """(p, k) independent deviations of the minimal parameters that are as large as the prior is uncertain."""
    matrix = np.array(model.arm.minimal_parameters.matrix, float)
    if prior == 0:
        return np.zeros((len(matrix), 0))
    columns = []
    for k, natural in enumerate(model.arm.natural_parameters().reshape(-1, 10)):
        mass = abs(natural[0])
        whole = np.zeros(10 * arm.chain.bodies)
        whole[10 * k : 10 * k + 10] = prior * natural
        columns.append(whole)
        typical = np.abs(natural[4:]).max() + mass * COM**2
        for j, size in enumerate([mass * COM] * 3 + [typical] * 6, 1):
            own = np.zeros(10 * arm.chain.bodies)
            own[10 * k + j] = prior * size
            columns.append(own)
    spread = matrix @ np.array(columns).T
    sizes, vectors = np.linalg.eigh(spread @ spread.T)
    kept = sizes > 1e-12 * sizes.max()
    return np.asarray(vectors[:, kept] * np.sqrt(sizes[kept]))


def _saturates(fit: ServoFit) -> Array:
    assert fit.run is not None
    return np.asarray((fit.run.saturated != 0).mean((0, 1)) > 1e-3)


def _free_of(
    model: ServoModel, data: _Data, at: Values, guess: Values, pairs: Sequence[tuple[str, int]], directions: Array
) -> Free:
    """Priors: wide, about the first guess, of torques over kp; no further friction."""
    torque = np.mean([np.abs(guess.kp * (r.command - r.q)).mean(0) for r in data.records], axis=0)
    dry = np.maximum(np.maximum(guess.coulomb, 0.2 * torque) / guess.kp, data.resolution)
    damping = guess.kd / guess.kp
    rows = []
    for name, i in pairs:
        row: tuple[float, float, float, tuple[float, float]] = {
            "kp": (1.0, np.log(guess.kp[i]), 3.0, (-30, 30)),
            "kd": (1.0, np.log(damping[i]), 3.0, (-30, 30)),
            "limit": (1.0, np.log(at.limit[i] / at.kp[i]) if np.isfinite(at.limit[i]) else 0.0, 2.0, (-30, 30)),
            "stribeck": (1.0, np.log(guess.stribeck[i]), 0.7, (-7, 3)),
            "delay": (1e-3, 1e3 * guess.delay[i], 50.0, (0, 1e3 * LATEST)),
            "lag": (1e-3, 0.0, 10.0, (0, 50)),
            "armature": (1.0, np.log(guess.armature[i] / guess.kp[i]), 3.0, (-30, 30)),
            "viscous": (damping[i], 0.0, 1.0, (0, np.inf)),
            "coulomb": (dry[i], guess.coulomb[i] / guess.kp[i] / dry[i], 3.0, (0, np.inf)),
            "static": (dry[i], 0.0, 1.0, (0, np.inf)),
            "load": (1.0, 0.0, 0.2, (0, 0.9)),
            "dead_band": (data.resolution[i], 0.0, 3.0, (0, np.inf)),
        }[name]
        rows.append((*row[:3], *row[3]))
    count = directions.shape[1]
    rows += [(1.0, 0.0, 1.0, -np.inf, np.inf)] * count
    scale, prior, deviation, lower, upper = np.array(rows, float).T
    fields, joints = zip(*pairs, strict=True)
    return Free(tuple(fields), np.array(joints), scale[: len(pairs)], prior, deviation, lower, upper, directions,
                np.array([float(x) for x in model.arm.minimal_parameters.values]))  # fmt: skip


def _without(values: Values, pairs: Sequence[tuple[str, int]]) -> Values:
    """The values without further terms that are not free."""
    joints = {name: array.copy() for name, array in values.joints.items()}
    for name in ("static", "load", "lag", "limit"):
        kept = [i for field, i in pairs if field == name]
        nothing = np.inf if name == "limit" else 0.0
        joints[name] = np.where(np.isin(np.arange(len(joints[name])), kept), joints[name], nothing)
    return Values(joints, values.inertial)


def _weight(fit: ServoFit, problem: ServoProblem, data: _Data) -> Array:
    """1 over the variance of each joint's positions, as residuals that repeat each other count."""
    weights = problem.shots.weights
    states = 2 * fit.q.shape[0]
    count = np.maximum(weights.sum((0, 1)) - states - len(fit.x) / problem.model.n, 1.0)
    variance = np.maximum((fit.residuals**2).sum((0, 1)) / count, data.resolution**2 / 100)
    return np.asarray(1 / (variance * autocorrelation(fit.residuals, weights)))


def _significant(problem: ServoProblem, fit: ServoFit, chosen: Sequence[tuple[str, int]]) -> set[tuple[str, int]]:
    _, matrix = problem.known(fit)
    deviations = np.sqrt(np.diag(np.linalg.inv(matrix)))
    free, found = problem.free, set()
    for term, i in chosen:
        name = TERMS[term][0]
        k = next(k for k, (f, j) in enumerate(zip(free.fields, free.joints, strict=True)) if (f, j) == (name, i))
        if fit.x[k] > SIGNIFICANT * deviations[k]:
            found.add((term, i))
    return found


def _estimate(arm: Arm, data: _Data, problem: ServoProblem, fit: ServoFit) -> ServoEstimate:
    told, matrix = problem.known(fit)
    free, model = problem.free, problem.model
    values, covariance, prior = in_units(free, fit, np.asarray(np.linalg.inv(matrix), dtype=np.float64))
    names = [f"{field} {arm.joint_names[i]}" for field, i in zip(free.fields, free.joints, strict=True)]
    if free.directions.shape[1]:
        names += model.arm.minimal_parameters.names
    whitened = told * free.deviation[:, None] * free.deviation
    rank = int((np.linalg.eigvalsh(whitened) > 1.0).sum())
    weights = problem.shots.weights
    noise = np.sqrt((fit.residuals**2).sum((0, 1)) / weights.sum((0, 1)))
    doubts = [*data.doubts]
    wrong = [
        f"{name} ({1e3 * got:.2g} against {1e3 * least:.2g} mrad or mm)"
        for name, got, least in zip(arm.joint_names, noise, data.floor, strict=True)
        if got > UNEXPLAINED * least
    ]
    if wrong:
        doubts.append(f"positions are explained less well than their noise allows: {', '.join(wrong)}")
    if not fit.converged:
        doubts.append("the fit did not converge: more steps would still change the parameters")
    late = [arm.joint_names[i] for i in range(model.n) if fit.values.delay[i] >= 0.999 * LATEST]
    if late:
        doubts.append(
            f"the delay of {', '.join(late)} is at its bound of {LATEST:g} s: clocks of commands and positions?"
        )
    notes = [*data.notes]
    free_limits = {int(i) for name, i in zip(free.fields, free.joints, strict=True) if name == "limit"}
    unreached = [name for i, name in enumerate(arm.joint_names) if i not in free_limits]
    if unreached:
        notes.append(f"the torque limit of {', '.join(unreached)} is not reached and cannot be told")
    trusted = fit.converged and not wrong
    made = _arm(arm, model, fit.values, data, free_limits, free.directions.shape[1] > 0)
    return ServoEstimate(
        arm, made, tuple(names), values, np.sqrt(np.maximum(np.diag(covariance), 0.0)), prior, noise, data.resolution,
        tuple(doubts), tuple(notes), trusted, rank, model, fit, problem, covariance,
    )  # fmt: skip


def _arm(arm: Arm, model: ServoModel, values: Values, data: _Data, limits: set[int], inertial: bool) -> Arm:
    """The arm with what was found."""
    joints = []
    place = {k: i for i, k in enumerate(arm.given.independent)}
    for k, joint in enumerate(arm.given.joints):
        if k not in place:
            joints.append(joint)
            continue
        i = place[k]
        number = {name: _number(array[i]) for name, array in values.joints.items() if np.isfinite(array[i])}
        law = {name: number[name] for name in ("kp", "kd", "delay", "dead_band", "lag")}
        sticks = values.static[i] > 0
        joints.append(
            replace(
                joint,
                servo=Servo(**law, resolution=_number(data.resolution[i])),
                rotor_inertia=number["armature"],
                viscous=number["viscous"],
                coulomb=number["coulomb"],
                static=number["coulomb"] + number["static"] if sticks else Fraction(0),
                stribeck=number["stribeck"] if sticks else Fraction(0),
                forces=replace(joint.forces, load_friction=number["load"]),
                limit=replace(joint.limit, effort=float(number["limit"])) if i in limits else joint.limit,
            )
        )
    links = arm.given.links
    if inertial:
        links = model.arm.with_minimal_parameters([_number(x) for x in values.inertial], nearest=True).given.links
    source = f"{arm.source}; servos, motors and friction identified from a log".lstrip("; ")
    return replace(arm, given=replace(arm.given, joints=tuple(joints), links=links), source=source)


def _number(x: float) -> Fraction:
    return Fraction(repr(float(x)))
