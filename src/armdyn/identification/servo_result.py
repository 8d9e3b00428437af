"""What a log of commands and positions says on servos, motors and friction: values, combinations, predictions."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armdyn.arm import Arm
from armdyn.errors import InputError
from armdyn.identification.log import Log, PathName, as_log
from armdyn.identification.servo_fit import SMOOTHING, Free, Recording, ServoFit, ServoProblem, cut
from armdyn.identification.servo_model import ServoModel, Values
from armdyn.results import Result, ResultTable
from armdyn.values import cached_property

Array = NDArray[np.float64]
KNOWN = 0.03  # relative deviation: what is better known counts as determined
KNOWN_DELAY = 2e-3  # s
LOADS = (0.05, 0.2)  # of the arm's mass: known loads of proposed experiments
FARTHER = 1.3  # times as far: another motion of proposed experiments
FIRST_STEPS = 10  # of the fit of a first state
UNITS = {
    "kp": "N m/rad",
    "kd": "N m s/rad",
    "delay": "s",
    "dead_band": "rad",
    "lag": "s",
    "limit": "N m",
    "armature": "kg m²",
    "viscous": "N m s/rad",
    "coulomb": "N m",
    "static": "N m",
    "stribeck": "rad/s",
    "load": "",
}


@dataclass(frozen=True)
class Combination:
    """A parameter, or a ratio or sum of some, that the log determines: its value and standard deviation."""

    words: str
    value: float
    deviation: float
    gradient: Array  # of the value, in the order of the estimate's names

    @property
    def relative(self) -> float:
        """The deviation over the value."""
        return self.deviation / max(abs(self.value), 1e-300)

    def __str__(self) -> str:
        return f"{self.words} = {self.value:.4g} ± {self.deviation:.2g}"


@dataclass(frozen=True)
class Experiment:
    """A log to record next: the motion in words, the load at the tool (kg, or None), and what it would tell.

    `deviations` are the standard deviations of the joints' parameters after it, and `gain` is the geometric mean of
    their ratios to those now.
    """

    motion: str
    load: float | None
    deviations: Mapping[str, float]
    gain: float


@dataclass(frozen=True, eq=False)
class ServoEstimate(Result):
    """The result of `identify_servo`.

    `arm` has the servos, rotor inertias and friction found. `names`, `values` and `deviations` are all parameters that
    were free; `identifiable` lists what the log determines, alone or combined, and `undetermined` what stays with its
    prior. `noise` (n,) is the standard deviation of the positions' residuals, `doubts` what may be wrong.
    """

    given: Arm
    arm: Arm
    names: tuple[str, ...]
    values: Array
    deviations: Array
    prior_deviations: Array
    noise: Array
    resolution: Array
    doubts: tuple[str, ...]
    notes: tuple[str, ...]
    trusted: bool
    rank: int
    model: ServoModel
    fit: ServoFit
    problem: ServoProblem
    covariance: Array

    @property
    def parameters(self) -> Values:
        """The parameters of the simulated arm, by joint."""
        return self.fit.values

    def __repr__(self) -> str:
        return f"<ServoEstimate of {self.given.name}: {self.rank} of {len(self.fit.x)} combinations determined>"

    def __str__(self) -> str:
        lines = [
            f"{self.given.name}: servos identified; positions explained to "
            + ", ".join(f"{1e3 * x:.3g}" for x in self.noise)
            + " mrad or mm (standard deviation per joint)",
            f"the log determines {self.rank} of {len(self.fit.x)} combinations of the parameters:",
            *(f"  {found}" for found in self.identifiable),
        ]
        if self.undetermined:
            lines.append(f"it does not determine: {', '.join(self.undetermined)}")
            lines.append(self.advice)
        return "\n".join([*lines, *(f"doubt: {text}" for text in self.doubts)])

    def table(self) -> ResultTable:
        """The free parameters with their standard deviations, before and after."""
        columns = ["parameter", "value [SI]", "standard deviation", "of the prior"]
        rows = [(name, *map(float, row)) for name, *row in zip(
            self.names, self.values, self.deviations, self.prior_deviations, strict=True
        )]  # fmt: skip
        return ResultTable.of(f"{self.given.name}: servos, motors and friction", columns, rows)

    @cached_property
    def identifiable(self) -> tuple[Combination, ...]:
        """What the log determines to 3 % (delays to 2 ms): parameters, or where none is, their sums and ratios."""
        known: list[Combination] = []
        alone: set[str] = set()
        for k, name in enumerate(self.names):
            found = self._of(name, {k: 1.0}, self.values[k])
            limit = KNOWN_DELAY if name.startswith(("delay ", "lag ")) else KNOWN * abs(found.value)
            told = found.deviation < 0.5 * self.prior_deviations[k]
            if found.deviation < limit and told:
                known.append(found)
                alone.add(name)
        for joint in self.given.joint_names:
            known += [c for c in self._combined(joint, alone) if c.relative < KNOWN]
        return tuple(known)

    @cached_property
    def undetermined(self) -> tuple[str, ...]:
        """The parameters whose deviation the log reduces by less than half: they stay with their priors."""
        moved = self.deviations < 0.5 * self.prior_deviations
        return tuple(name for name, told in zip(self.names, moved, strict=True) if not told)

    @cached_property
    def scale_known(self) -> bool:
        """Whether the absolute size of torques is determined, and not only ratios to kp."""
        known = {found.words for found in self.identifiable}
        return all(f"kp {joint}" in known for joint in self.given.joint_names)

    @cached_property
    def experiments(self) -> tuple[Experiment, ...]:
        """Logs that could be recorded next, the most telling first: the log's motion, or another, with a load or none.

        Each is simulated with the parameters found, and what it would tell is added to what is known.
        """
        found = []
        mass = max(self.given.mass, 0.5)
        known = self.problem.known(self.fit)[1]
        before = self._joint_deviations(known)
        for load in (None, *(float(f"{share * mass:.1g}") for share in LOADS)):
            shots = self.problem.shots
            added = shots.added + added_by(self.model, self.given, load)
            for words, command in self._motions():
                problem = replace(self.problem, shots=replace(shots, added=added, command=command))
                run = problem.simulated(self.fit.x, self.fit.q, self.fit.v)
                if np.isfinite(run.cost):
                    more = problem.sums(run).reduced(0.0)[0]
                    after = self._joint_deviations(known + more)
                    found.append(Experiment(words, load, dict(zip(self.names, after, strict=False)),
                                            float(np.exp(np.mean(np.log(after / before))))))  # fmt: skip
        return tuple(sorted(found, key=lambda one: one.gain))

    def _motions(self) -> Iterator[tuple[str, Array]]:
        """The commands of the shots, and what else they could be."""
        shots = self.problem.shots
        command, middle = shots.command, shots.command.mean(axis=(0, 1))
        yield "the same motion", command
        at = shots.lead + (np.arange(len(command)) - shots.lead) / 2
        below = np.clip(np.floor(at).astype(int), 0, len(command) - 2)
        part = np.clip(at - below, 0, 1)[:, None, None]
        yield "the motion at half the speed", (1 - part) * command[below] + part * command[below + 1]
        larger = middle + FARTHER * (command - middle)
        ends = [joint.limit for joint in self.given.joints]
        if all((e.lower is None or low >= e.lower) and (e.upper is None or high <= e.upper)
               for e, low, high in zip(ends, larger.min((0, 1)), larger.max((0, 1)), strict=True)):  # fmt: skip
            yield f"the motion {FARTHER:g} times as far", larger

    def _joint_deviations(self, information: Array) -> Array:
        """The standard deviations of the joints' parameters by the information on the fit's coordinates."""
        covariance = np.asarray(np.linalg.inv(information), dtype=np.float64)
        _, whole, _ = in_units(self.problem.free, self.fit, covariance)
        return np.asarray(np.sqrt(np.diag(whole))[: len(self.problem.free.fields)])

    @property
    def advice(self) -> str:
        """The next experiment in words."""
        if not self.experiments:
            return "next: more motion of the joints concerned, faster and slower, with reversals"
        best = self.experiments[0]
        weak = [k for k, name in enumerate(self.names) if name.startswith("kp ") and name in best.deviations]
        k = max(weak, key=lambda k: self.deviations[k] / abs(self.values[k]))
        held, argument = ("", "") if best.load is None else (
            f" with a known load of about {best.load:g} kg at the tool", f" (loads=[None, {best.load:g}])"
        )  # fmt: skip
        now, then = (100 * x / abs(self.values[k]) for x in (self.deviations[k], best.deviations[self.names[k]]))
        scale = "" if self.scale_known else "; without a load, ratios to kp are known better than torques"
        return (
            f"next: record {best.motion}{held}{argument}: standard deviations fall to {100 * best.gain:.0f} % on"
            f" average, that of {self.names[k]} from {now:.2g} to {then:.2g} %{scale}"
        )

    def _of(self, words: str, terms: Mapping[int, float], value: float) -> Combination:
        gradient = np.zeros(len(self.names))
        for k, slope in terms.items():
            gradient[k] = slope
        variance = float(gradient @ self.covariance @ gradient)
        return Combination(words, float(value), float(np.sqrt(max(variance, 0.0))), gradient)

    def _combined(self, joint: str, alone: set[str]) -> Iterator[Combination]:
        """Sums and ratios of a joint's parameters, where these are not determined alone."""
        place = {name: k for k, name in enumerate(self.names)}
        kp = place[f"kp {joint}"]

        def sums() -> Iterator[tuple[str, list[int]]]:
            for names in ((f"kd {joint}", f"viscous {joint}"), *self._with_armature(joint)):
                yield " + ".join(names), [place[name] for name in names]

        seen: set[str] = set()
        for words, places in sums():
            parts = {self.names[k] for k in places}
            total = self._of(words, dict.fromkeys(places, 1.0), sum(self.values[k] for k in places))
            if not parts & alone and total.relative < KNOWN:
                seen |= parts
                yield total
            elif not parts & alone and self.names[kp] not in alone:
                yield self._ratio(f"({words}) / kp {joint}", places, kp)
        if self.names[kp] in alone:
            return
        for field in ("kd", "armature", "coulomb", "limit", "viscous"):
            name = f"{field} {joint}"
            if name in place and name not in alone | seen:
                yield self._ratio(f"{field} / kp {joint}", [place[name]], kp)

    def _ratio(self, words: str, above: Sequence[int], below: int) -> Combination:
        top, bottom = sum(self.values[k] for k in above), self.values[below]
        return self._of(words, {below: -top / bottom**2} | dict.fromkeys(above, 1 / bottom), top / bottom)

    def _with_armature(self, joint: str) -> Iterator[tuple[str, ...]]:
        """An inertial parameter that acts as a rotor inertia of this joint, with that."""
        i = self.given.joint_names.index(joint)
        rng = np.random.default_rng(0)
        q, qd, qdd = rng.uniform(-1, 1, (3, 20, self.model.n))
        Y = self.model.regressor(q, qd, qdd)
        for k, name in enumerate(self.model.arm.minimal_parameters.names):
            rotor = np.zeros_like(Y[..., k])
            rotor[:, i] = qdd[:, i]
            if name in self.names and np.allclose(Y[..., k], rotor, atol=1e-12):
                yield f"armature {joint}", name

    def predict(self, log: Log | PathName, *, load: Any = None) -> Array:
        """Positions (samples, n) from a log's commands and first state alone, as `log.array("q")` has them.

        The first state of each piece of the log is that from which its first tenth of a second is followed best.
        """
        log = as_log(log, self.given)
        added = added_by(self.model, self.given, load)
        found = []
        steps = max(1, int(np.ceil(log.period / self.problem.shots.h - 1e-9)))
        for record in commanded(log, added):
            shots, _, _ = cut([record], log.period, len(record.q) * log.period, steps, self.problem.shots.hold)
            run = self.model.run(self.fit.values, shots, *self._first_state(record, log.period, steps))
            found.append(run.q[::steps, 0])
        return np.concatenate(found)

    def _first_state(self, record: Recording, period: float, steps: int) -> tuple[Array, Array]:
        """Position and velocity (1, n) from which the simulation follows the first tenth of a second best.

        A cubic through these positions is worse: where a log begins at rest, its velocity is off by a multiple of the
        noise, and a joint that sticks keeps the error until it moves on.
        """
        rows = slice(0, max(round(SMOOTHING / period), 5) + 1)
        part = Recording(record.q[rows], record.command[rows], record.added, record.measured[rows])
        shots, q, v = cut([part], period, len(part.q) * period, steps, self.problem.shots.hold)
        start = ServoProblem(self.model, shots, Free.nothing(self.fit.values), self.fit.values, self.problem.weight)
        fit = start.solved(np.zeros(0), q, v, FIRST_STEPS, lambda text: None)
        return fit.q, fit.v

    def errors(self, log: Log | PathName, *, load: Any = None) -> Array:
        """(n,) root mean square errors of the predicted positions."""
        log = as_log(log, self.given)
        wrong = self.predict(log, load=load) - log.array("q")
        return np.asarray(np.sqrt((wrong**2).mean(axis=0)))

    def save(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write the arm as TOML, URDF and MJCF, and parameters.json, into a folder; all or nothing."""
        import json
        from tempfile import TemporaryDirectory

        from armdyn.files.text import write_files

        with TemporaryDirectory() as apart:
            self.arm.save(Path(apart) / "arm.toml")
            self.arm.to_urdf(Path(apart) / "arm.urdf")
            self.arm.to_mjcf(Path(apart) / "arm.xml")
            text = json.dumps(self.data, indent=2, ensure_ascii=False) + "\n"
            (Path(apart) / "parameters.json").write_text(text, encoding="utf-8")
            return write_files(folder, {path.name: path.read_bytes() for path in sorted(Path(apart).iterdir())})

    @property
    def data(self) -> dict[str, Any]:
        """All numbers and words, as plain lists and dictionaries."""
        return {
            "arm": self.given.name,
            "names": [*self.names],
            "values": self.values.tolist(),
            "deviations": self.deviations.tolist(),
            "identifiable": [{"words": c.words, "value": c.value, "deviation": c.deviation} for c in self.identifiable],
            "undetermined": [*self.undetermined],
            "rank": self.rank,
            "noise": self.noise.tolist(),
            "trusted": self.trusted,
            "doubts": [*self.doubts],
            "notes": [*self.notes],
        }


def commanded(log: Log, added: Array) -> Iterator[Recording]:
    """The pieces of a log with what its load adds."""
    for piece in log.pieces:
        if piece.command is None:
            raise InputError(
                f"{log.source or 'the log'} has no commanded positions: give them as command=, or as columns command1 …"
            )
        measured = np.ones(len(piece.q)) if piece.measured is None else piece.measured
        yield Recording(piece.q, piece.command, added, measured)


def added_by(model: ServoModel, arm: Arm, load: Any) -> Array:
    """What a known load at the tool adds to the minimal parameters: a mass, or the arguments of `with_payload`."""
    own = np.array(model.arm.minimal_parameters.matrix, float)
    if load is None:
        return np.zeros(len(own))
    held = model.arm.with_payload(*(load if isinstance(load, tuple | list) else (load,)))
    return np.asarray(own @ (held.natural_parameters() - model.arm.natural_parameters()))


def in_units(free: Free, fit: ServoFit, covariance: Array) -> tuple[Array, Array, Array]:
    """Values, covariance and prior deviations of all free parameters, the inertial ones last."""
    slopes = free.slopes(fit.values)
    values = np.array([fit.values.joints[name][i] for name, i in zip(free.fields, free.joints, strict=True)])
    (count, coordinates), inertial = slopes.shape, free.directions.shape[1] > 0
    whole = np.zeros((count + inertial * len(free.directions), len(fit.x)))
    whole[:count, :coordinates] = slopes
    if inertial:
        whole[count:, coordinates:] = free.directions
        values = np.concatenate([values, fit.values.inertial])
    prior = np.sqrt(np.einsum("ij,j,ij->i", whole, free.deviation**2, whole))
    return values, whole @ covariance @ whole.T, prior
