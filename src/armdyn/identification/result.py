"""Estimate: the parameters identified from a log, their uncertainty, and the identified arm."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from armdyn.algebra import exact
from armdyn.arm import Arm
from armdyn.chain import Joint, JointForces, Link, Ripple
from armdyn.chain.joint import DRIVE
from armdyn.errors import ComputationError, InputError, count, former
from armdyn.identification.adapt import adapted, last_log
from armdyn.identification.fit import Fit, Uncertainty, r_squared, relative_error
from armdyn.identification.log import Log, PathName, as_log
from armdyn.identification.model import STRIBECK_EXPONENT, TERMS, Model, Parameter, Rows, pseudo_inertia, rows
from armdyn.identification.nonlinear import MOST_TILT
from armdyn.identification.preflight import Reading, changed
from armdyn.identification.processing import Motion, Processing, brief_notes, joint_side, motions
from armdyn.results import Result, ResultTable
from armdyn.values import cached_property

if TYPE_CHECKING:
    from armdyn.pages.motion import View

Array = NDArray[np.float64]
COMMON = ("rotor", "viscous", "coulomb")  # terms that every reader of a URDF and its SRDF takes
BLOCK = 4096  # rows of the regressor computed at a time
RENAMED = {"pull": "regularization", "lean": "base_tilt", "how": "processing"}  # deprecated; kept for two versions


@dataclass(frozen=True, eq=False)
class Prediction:
    """Measured and predicted torques of a log, with the same filter; `raw_error` is that of all unfiltered samples."""

    source: str
    t: Array
    tau: Array
    predicted: Array
    raw_error: float
    q: Array  # joint positions at `t`

    @property
    def error(self) -> float:
        """‖τ - τ̂‖ / ‖τ‖ of the filtered rows."""
        return relative_error(self.tau, self.predicted)

    @property
    def residual(self) -> Array:
        """τ - τ̂, (N, n)."""
        return self.tau - self.predicted

    @property
    def joint_errors(self) -> Array:
        """‖τ - τ̂‖ / ‖τ‖ per joint."""
        return np.array([relative_error(a, b) for a, b in zip(self.tau.T, self.predicted.T, strict=True)])

    @property
    def r_squared(self) -> Array:
        """R² per joint."""
        return r_squared(self.tau, self.predicted)


@dataclass(frozen=True, eq=False)
class Estimate(Result):
    """The parameters identified from a log; `arm` is the identified arm."""

    given: Arm  # the arm given to `identify`; `model.arm` includes the base tilt
    prior: Arm
    model: Model
    processing: Processing
    estimator: str
    fit: Fit
    uncertainty: Uncertainty
    condition: float
    training: Prediction
    folds: Array  # relative prediction error of each segment when it is left out of the fit
    left_out: tuple[float, float] | None = None  # the same over segments in time and posture, and by least squares
    transmission: Any = None
    zero: Any = None
    gains: Any = None
    warnings: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()  # the reasons for which the estimate is not to be trusted; `warnings` include them
    notes: tuple[str, ...] = ()
    validation: Prediction | None = None
    changes: tuple[Reading, ...] = ()  # corrections of signs, units and the like that are applied to logs
    base_tilt: tuple[float, float] = (0.0, 0.0)  # rad, in two directions
    steps: dict[str, float] = field(default_factory=dict)  # left-out error after each added term, relative to the first
    changes_of_friction: dict[str, tuple[float, float]] = field(default_factory=dict)  # by `adapt`: and deviations

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the identifiable parameters."""
        return self.model.names

    @property
    def values(self) -> Array:
        """The values of the identifiable parameters."""
        return self.fit.values

    @property
    def deviations(self) -> Array:
        """The standard deviations, which include the autocorrelation of the residuals (`autocorrelation_factors`)."""
        return self.uncertainty.deviations

    @property
    def relative_deviations(self) -> Array:
        """Standard deviation divided by the absolute value; inf if the value is 0."""
        size = np.abs(self.values)
        return np.where(size > 0, self.deviations / np.where(size > 0, size, 1.0), np.inf)

    @property
    def correlation(self) -> Array:
        """The correlation matrix of the parameters."""
        return self.uncertainty.correlation

    @property
    def autocorrelation_factors(self) -> Array:
        """The factor per joint by which autocorrelated residuals increase the standard deviations."""
        return self.uncertainty.factors

    @property
    def regularization(self) -> float | None:
        """The regularization weight, in units of one noise variance; None without regularization."""
        return self.fit.regularization

    @property
    def error(self) -> float:
        """Relative torque error on the training log."""
        return self.training.error

    @property
    def trusted(self) -> bool:
        """Whether the estimate is a model of the arm; if not, `doubts` say why, and URDFs are written only by force."""
        return not self.doubts

    @property
    def tilt_at_bound(self) -> bool:
        """Whether a base tilt was found at the bound of the search."""
        return bool(max(map(abs, self.base_tilt)) >= 0.99 * MOST_TILT)

    @cached_property
    def natural(self) -> Array:
        """The ten inertial parameters of each link, (n, 10), which agree with the identified parameters."""
        return self.fit.natural[: self.model.links].reshape(-1, 10)

    @cached_property
    def extras(self) -> dict[str, float]:
        """The parameters other than those of the links by name: rotor inertias, friction, offsets, ..."""
        return dict(zip(self.model.extra_names, map(float, self.fit.natural[self.model.links :]), strict=True))

    @property
    def smallest_eigenvalues(self) -> Array:
        """The smallest eigenvalue of each link's pseudo-inertia; negative for a physically impossible body."""
        return np.asarray(np.linalg.eigvalsh(pseudo_inertia(self.natural))[:, 0])

    @cached_property
    def arm(self) -> Arm:
        """The arm with the identified links, rotors and joint forces; for several logs, with those of the last."""
        return self.arm_of_log(self.model.logs)

    def arm_of_log(self, number: int) -> Arm:
        """The arm in one of several logs (from 1), each of which has its own friction."""
        if not 1 <= number <= self.model.logs:
            raise InputError(f"friction was identified for {self.model.logs} logs, got number {number}")
        return identified_arm(self.model, self.fit.natural, number - 1)

    def predict(self, q: Any, qd: Any, qdd: Any) -> Array:
        """Joint torques (N, n) of the identified model, including friction and offsets (of the last log)."""
        q, qd, qdd = (np.atleast_2d(np.asarray(x, dtype=float)) for x in (q, qd, qdd))
        return predict(self.model, self.values, q, qd, qdd, self.model.logs - 1)

    def validate(self, log: Log | PathName) -> Prediction:
        """Compare the torques of a log (or of its file) that was not used for the fit with the prediction.

        If its positions do not tell which of two clocks is right, the torques decide.
        """
        given = as_log(log, self.given)
        either = [self._compared(self._read(one)) for one in (given, given.rival) if one is not None]
        return min(either, key=lambda prediction: prediction.error)

    def _compared(self, side: Log) -> Prediction:
        last = replace(side, pieces=tuple(replace(piece, log=self.model.logs - 1) for piece in side.pieces))
        return compare(self.model, self.values, last, self.processing)

    def _read(self, log: Log | PathName) -> Log:
        """Another log on the joint side, with the corrections of the first."""
        given = as_log(log, self.given)
        if given.n != self.given.n:
            raise InputError(f"the log has {given.n} joints, {self.given.name} has {self.given.n}")
        if not given.drive:
            raise InputError("the log has no torques or currents (tau), with which predictions could be compared")
        return changed(joint_side(given, self.transmission, self.zero, self.gains), self.changes)

    def adapt(self, log: Log | PathName) -> Estimate:
        """The estimate with viscous and Coulomb friction and offsets of another log, of another day or temperature.

        Seconds of any motion are enough: inertias and everything else are kept, and their uncertainty is taken into
        account. `changes_of_friction` has the differences, `training` compares this log.
        """
        side = self._read(log)
        parts = motions(side, self.processing)
        model, natural, maps = last_log(self.model, self.fit.natural)
        found = rows(model, parts, self.processing)
        if not found.kept.any():
            raise InputError("no joint moves in this log: friction cannot be adapted to it")
        speeds = np.abs(np.concatenate([p.qd for p in parts])).max(axis=0)
        covariance = maps @ self.uncertainty.covariance @ maps.T
        noise = self.training.residual.std(axis=0), self.autocorrelation_factors
        own = adapted(model, natural, covariance, found, speeds, noise)
        before, after = (compare(model, values, side, self.processing, parts, found)
                         for values in (model.natural @ natural, own.fit.values))  # fmt: skip
        text = (
            f"friction and offsets are those of {side.source or 'another log'} ({side.duration:.3g} s), whose torques"
            f" had an error of {100 * before.error:.3g} % before and have {100 * after.error:.3g} % now"
        )
        return replace(
            self, model=model, fit=replace(self.fit, **{k: getattr(own.fit, k) for k in ("values", "natural")}),
            uncertainty=own.uncertainty, training=after, validation=None, changes_of_friction=own.changes,
            notes=(*self.notes, text, *brief_notes(side, self.processing)),
        )  # fmt: skip

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the identified arm as an arm file (.toml)."""
        self.arm.save(path)

    def to_urdf(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write the identified arm as a URDF; a base tilt rotates the base, because gravity in URDF is fixed.

        Rotor inertias, for which a URDF has no place, are also written as an SRDF of the same name beside it, for
        ``pinocchio.loadRotorParameters``. `beyond_urdf` lists what programs other than armdyn do not read at all. An
        estimate that is not trusted is written only with `force`.
        """
        if self.doubts and not force:
            raise ComputationError(
                f"{path} is not written, because the estimate is not to be trusted: {'; '.join(self.doubts)}."
                " to_urdf(..., force=True) writes it"
            )
        from armdyn.files import urdf_out
        from armdyn.files.text import write_text

        standing = upright(self.arm, self.given.gravity)
        standing.to_urdf(path)
        rotors = urdf_out.rotor_params(replace(standing.description, chain=standing.chain))
        if rotors:
            write_text(Path(path).with_suffix(".srdf"), rotors)

    @property
    def beyond_urdf(self) -> dict[str, float]:
        """The identified parameters, by name, that a URDF with its SRDF holds for armdyn alone or not at all.

        Other programs read links, viscous and Coulomb friction, and rotor inertias.
        """
        return {
            p.name: value
            for p, value in self._of_all_logs
            if p.joint is None or p.term not in COMMON or p.name in self.left_behind
        }

    @property
    def left_behind(self) -> dict[str, float]:
        """The identified parameters, by name, that an `Arm` cannot represent and only `predict` uses.

        These belong to motors that drive several joints, or are friction coefficients estimated as negative.
        """
        return {p.name: value for p, value in self._of_all_logs if p.joint is None or (p.positive and value < 0)}

    @property
    def _of_all_logs(self) -> list[tuple[Parameter, float]]:
        """The extra parameters that are not zero, and no differences between logs."""
        values = map(float, self.fit.natural[self.model.links :])
        return [(p, x) for p, x in zip(self.model.extra_parameters, values, strict=True) if x and p.log is None]

    def plot(self) -> View:
        """The report as a page that a notebook shows: measured and predicted torques, parameters, errors."""
        from armdyn.identification.report import page
        from armdyn.pages.motion import View

        return View(page(self), f"{self.given.name}, identified")

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write the HTML report."""
        from armdyn.identification.report import write

        write(self, path)

    def __getattr__(self, name: str) -> Any:
        if name in RENAMED:
            former(f"Estimate.{name}", f"Estimate.{RENAMED[name]}")
            return getattr(self, RENAMED[name])
        raise AttributeError(f"'Estimate' object has no attribute {name!r}")

    def __str__(self) -> str:
        shown, where = (self.training, "fitted") if self.validation is None else (self.validation, "not fitted")
        fits = ", ".join(f"{r:.4f}" for r in shown.r_squared)
        return (
            f"{repr(self)[1:-1]}\n  R² by joint, on the log that was {where}: {fits}\n  {self.processing}\n"
            f"  {len(self.training.t)} rows per joint of {self.training.source or 'the log'}{self._apart}{self._beside}"
            + "".join(f"\n  not trusted: {text}" for text in self.doubts)
        )

    @property
    def _beside(self) -> str:
        """A line about the error of left-out segments, and that of plain least squares on the same rows."""
        if self.left_out is None:
            return ""
        own, plain = (f"{100 * error:.3g} %" for error in self.left_out)
        return (
            f"\n  left-out segments, in time and in posture (weighted by joint): {own}; by plain least squares {plain}"
        )

    @property
    def _apart(self) -> str:
        """A line about the parameters that the arm and its files do not include."""
        if not self.left_behind:
            return ""
        motors = [k + 1 for k in self.model.shared_motors]
        who = f": motor {', '.join(map(str, motors))} turns several joints" if motors else ""
        names = ", ".join(f"{name} {value:.3g}" for name, value in self.left_behind.items())
        return f"\n  in predict() alone, not in the arm or its files: {names}{who}"

    def table(self) -> ResultTable:
        """The identified parameters, the best determined first."""
        order = np.argsort(self.relative_deviations, kind="stable")
        rows = [
            (
                self.names[k],
                float(self.values[k]),
                float(self.deviations[k]),
                self.model.kind(self.names[k], int(k))[1],
                100 * float(self.relative_deviations[k]),
            )
            for k in order
        ]
        heads = ["parameter", "value", "standard deviation", "unit", "[% of the value]"]
        return ResultTable.of(repr(self)[1:-1], heads, rows)

    def __repr__(self) -> str:
        test = "" if self.validation is None else f", {100 * self.validation.error:.2f} % on {self.validation.source}"
        return (
            f"<Estimate of {self.given.name}: {len(self.names)} parameters, {self.estimator}, "
            f"torque error {100 * self.error:.2f} %{test}, {count(len(self.warnings), 'warning')}"
            f"{'' if self.trusted else ', NOT TRUSTED'}>"
        )


def compare(
    model: Model, values: Array, log: Log, how: Processing, parts: list[Motion] | None = None, own: Rows | None = None
) -> Prediction:
    """Measured and predicted torques of a log (joint side); its motions and rows can be given to save time."""
    parts = parts or motions(log, how)
    found = own or rows(model, parts, how)
    every = parts if how.early(log.rate) == 1 else motions(log, how, decimate=False)
    predicted = np.concatenate([predict(model, values, p.q, p.qd, p.qdd, p.log) for p in every])
    raw = relative_error(np.concatenate([p.tau for p in every]), predicted)
    t, q = (np.concatenate([getattr(p, name) for p in parts]) for name in ("t", "q"))
    along = np.stack([np.interp(found.t, t, column) for column in q.T], axis=1)
    return Prediction(log.source, found.t, found.tau, found.Y @ values, raw, along)


def predict(model: Model, values: Array, q: Array, qd: Array, qdd: Array, log: int = 0) -> Array:
    """Torques of the model, computed in blocks because the regressor of a long log may not fit into memory."""
    blocks = [slice(k, k + BLOCK) for k in range(0, len(q), BLOCK)]
    return np.concatenate([model.regressor(q[b], qd[b], qdd[b], log) @ values for b in blocks])


def identified_arm(model: Model, natural: Array, log: int = 0) -> Arm:
    """The arm of the model with these natural parameters (10 per link, then the extra ones), in one of its logs."""
    arm = model.arm
    of_links, extras = natural[: model.links].reshape(-1, 10), natural[model.links :]
    links = tuple(Link.from_natural(tuple(exact(float(x)) for x in row)) for row in of_links)
    own_terms: list[dict[str, float]] = [{} for _ in range(model.n)]
    for parameter, value in zip(model.extra_parameters, map(float, extras), strict=True):
        if parameter.joint is not None and parameter.log in (None, log):
            of_joint = own_terms[parameter.joint]
            of_joint[parameter.term] = of_joint.get(parameter.term, 0.0) + value
    joints = []
    coordinate = {i: j for j, i in enumerate(arm.given.independent)}
    for i, joint in enumerate(arm.given.joints):
        j = coordinate.get(i)  # what a mimic joint adds is identified at its leader
        own = {} if j is None else own_terms[j]
        speed = float(model.stribeck[j]) if j is not None and "stribeck" in own else 0.0
        joints.append(_identified_joint(joint, model.terms, own, speed))
    given = replace(arm.given, links=links, joints=tuple(joints))
    return replace(arm, given=given, source=f"{arm.source}; links and drives identified from a log".lstrip("; "))


def _identified_joint(joint: Joint, terms: Iterable[str], values: Mapping[str, float], stribeck: float) -> Joint:
    """The joint with the parameters of its own terms, and none of the other terms of the model."""
    names = {TERMS[term].field for term in terms} | ({"static", "stribeck"} if "coulomb" in terms else set())
    drive: dict[str, Any] = {name: exact(0.0) for name in names if name in DRIVE}
    forces: dict[str, Any] = {}
    waves: dict[int, dict[str, Any]] = {}
    for name, value in values.items():
        term = TERMS[name]
        number = exact(max(value, 0.0) if term.positive else value)
        if term.ripple is not None:
            per_turn, wave = term.ripple
            waves.setdefault(per_turn, {})[wave] = number
        else:
            (drive if term.field in DRIVE else forces)[term.field] = number
    ripples = tuple(Ripple(per_turn, **wave) for per_turn, wave in waves.items())
    if "stribeck" in values:
        drive["stribeck"], forces["stribeck_exponent"] = exact(stribeck), STRIBECK_EXPONENT
    return replace(joint, **drive, forces=JointForces(ripples=ripples, **forces))


def upright(arm: Arm, gravity: Any) -> Arm:
    """The arm with this gravity and its base rotated to the same effect, for formats without a gravity vector."""
    down, wanted = (np.array(g, dtype=float) / np.linalg.norm(g) for g in (arm.gravity, gravity))
    axis = np.cross(down, wanted)
    sine, cosine = float(np.linalg.norm(axis)), float(down @ wanted)
    if sine < 1e-12:
        return arm
    S = np.cross(np.eye(3), axis / sine)
    R = np.eye(3) + sine * S + (1 - cosine) * S @ S
    rpy = (np.arctan2(R[2, 1], R[2, 2]), -np.arcsin(np.clip(R[2, 0], -1, 1)), np.arctan2(R[1, 0], R[0, 0]))
    return arm.with_gravity(gravity).with_base(rpy=[float(x) for x in rpy])
