"""The function `identify`, which turns a log into an Estimate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from armdyn.arm import Arm, as_arm
from armdyn.errors import InputError, choose, former
from armdyn.identification import linear
from armdyn.identification.band import judged, kept_band, timed
from armdyn.identification.doubts import doubts_of, log_warnings, notes_of, warnings_of
from armdyn.identification.fit import ESTIMATORS, Fit, Setting, one_sided, relative_error, uncertainty
from armdyn.identification.instrumental import instrumental
from armdyn.identification.joint_faults import joint_faults
from armdyn.identification.left_out import Guarded, guarded
from armdyn.identification.log import Log, PathName, as_log
from armdyn.identification.model import FRICTION, Model, Rows, rows
from armdyn.identification.nonlinear import find_tilt, tilted, with_bumps, with_widths
from armdyn.identification.preflight import Finding, Reading, changed, preflight
from armdyn.identification.processing import Motion, Processing, brief_notes, choose_processing, joint_side, motions
from armdyn.identification.result import Estimate, compare
from armdyn.identification.selection import find_coupling, select, with_groups
from armdyn.identification.threads import one_thread
from armdyn.options import Drivetrain, Filtering, Fitting, IdentifyKeywords, Terms, flat_keywords

Array = NDArray[np.float64]
ALL = {**ESTIMATORS, "instrumental": instrumental}


@one_thread()
@flat_keywords(terms=Terms, filtering=Filtering, drivetrain=Drivetrain, fitting=Fitting)
def identify(
    arm: Arm | PathName,
    log: Log | PathName | Sequence[Log | PathName],
    *,
    validate: Log | PathName | None = None,
    pull: float | None = None,
    terms: Terms = Terms(),
    filtering: Filtering = Filtering(),
    drivetrain: Drivetrain = Drivetrain(),
    fitting: Fitting = Fitting(),
    **keywords: Unpack[IdentifyKeywords],
) -> Estimate:
    """Identify an arm's inertial parameters, rotors and friction from a log.

    Parameters
    ----------
    arm
        Its geometry and, as the prior, its inertial parameters: an Arm, a catalogue name or a path.
    log
        The recorded log or its path, or several of them, which are fitted together. `Log.read` has options for files
        whose columns, units or time stamps need to be explained.
    estimator
        ``consistent`` (physically consistent links, regularized towards the prior), ``ordinary``, ``weighted`` (per
        joint), ``huber`` (robust), ``instrumental`` (IDIM-IV).
    friction
        ``none``, ``viscous``, ``coulomb`` (and viscous), ``asymmetric``, ``stribeck``, ``asymmetric_stribeck``;
        ``auto`` starts from ``coulomb`` and adds, per joint, the terms that are statistically significant and improve
        the prediction of left-out segments: Stribeck effect, load-dependent friction, springs, position-dependent
        ripple, a tilt of the base.
    rotor, offset, spring
        Whether every joint has a rotor inertia, a constant offset, a stiffness.
    tilt
        Whether the base may be tilted: two angles of the gravity vector are identified, too.
    prior
        An arm to regularize towards, if it is not `arm` itself.
    regularization
        Weight of the prior, in units of one noise variance; by cross-validation on segments of the log unless given.
    transmission, zero
        If the log is on the motor side: motor positions = matrix @ joint positions (or n ratios), and the offsets to
        add to the joint positions afterwards.
    gains
        Torque per unit of logged effort, one per joint, if the log has motor currents.
    cutoff, parallel
        Cut-off frequencies (Hz) of the position filter and of the parallel filter of torques and regressor (False: no
        parallel filter); from the bandwidth of the motion unless given.
    width
        Velocity range over which Coulomb friction changes sign, one value or n; 0: the sign function. Unless given, it
        is 2 % of the largest velocity of each joint; ``auto`` reduces it as far as this improves the fit.
    dead_zone
        Velocity below which a joint's torque is left out of the fit: at rest, friction takes any value up to stiction.
        The errors are still computed over all rows.
    folds
        Number of segments for cross-validation.
    validate
        A log to predict, never used for fitting.
    fix
        Whether to apply the corrections that the pre-flight check proposes: sign, order, unit or delay of the torques;
        order, direction or unit of the joint positions. `notes` lists what was changed.
    friction_per_log
        Whether viscous and Coulomb friction and offsets are identified separately for each log (drives warm up), while
        all other parameters are shared. ``fc2_3`` is the difference of the third log from the first; `arm` belongs
        to the last log, `arm_of_log(1)` to the first.
    pull
        The former name of `regularization`.
    terms, filtering, drivetrain, fitting
        The keywords above as records of `armdyn.options`, to be used more than once.
    """
    asked = fitting
    if pull is not None:
        former("identify(pull=...)", "identify(regularization=...)", stacklevel=6)
        asked = replace(fitting, regularization=pull)
    logged = read(arm, log, terms, drivetrain, asked)
    as_logged = banded(logged, filtering)
    suspicions = suspected(logged, as_logged)
    recorded = corrected(logged, suspicions.changes) if asked.fix else logged
    band = banded(recorded, filtering) if recorded is not logged else as_logged
    prepared = prepare(recorded, band, terms, filtering, asked)
    selected = settled(recorded, prepared, terms, asked, couple=asked.fix or not suspicions.findings)
    outcome = fitted(recorded, prepared, selected, terms, asked)
    estimate = estimated(recorded, prepared, selected, outcome, drivetrain, asked.estimator)
    validated = estimate if validate is None else replace(estimate, validation=estimate.validate(validate))
    return worded(validated, recorded, prepared, outcome, suspicions, asked.fix)


@dataclass(frozen=True, eq=False)
class Recorded:
    """Stage 1, read: the arm, its prior, the log on the joint side, the model to start from, corrections applied.

    `doubts` are those about the clock.
    """

    arm: Arm
    prior: Arm
    log: Log
    model: Model
    changes: tuple[Reading, ...] = ()
    doubts: tuple[str, ...] = ()


def read(arm: Any, log: Any, terms: Terms, drivetrain: Drivetrain, fitting: Fitting) -> Recorded:
    """The logs as one on the joint side, and what of them is to be identified; refused if they do not fit together."""
    choose("estimator", fitting.estimator, ALL)
    choose("friction", terms.friction, ("auto", *FRICTION))
    known = as_arm(arm, "identify")
    prior = known if fitting.prior is None else as_arm(fitting.prior, "identify(prior=...)")
    sources = log if isinstance(log, Sequence) and not isinstance(log, str) else [log]
    matrix, zero, gains = drivetrain.transmission, drivetrain.zero, drivetrain.gains
    drives = {"rotor": terms.rotor, "offset": terms.offset, "transmission": matrix}
    friction = "coulomb" if terms.friction == "auto" else terms.friction
    model = Model.of(known, friction, spring=terms.spring, **drives)
    logs, doubts = list[Log](), tuple[str, ...]()
    for one in sources:
        given = as_log(one, known)
        either = [log and checked(known, log, matrix, zero, gains, fitting.folds, fitting.fix)
                  for log in (given, given.rival)]  # fmt: skip
        own, said = timed(model, prior, either[0] or given, either[1])
        logs, doubts = [*logs, own], (*doubts, *said)
    joined = Log.joined(logs)
    if not np.ptp(joined.array("tau"), axis=0).any():
        raise InputError("no torque ever changes in this log: there is nothing to identify from")
    if terms.friction_per_log:
        return Recorded(known, prior, joined, replace(model, logs=len(logs)), doubts=doubts)
    one = replace(joined, pieces=tuple(replace(p, log=0) for p in joined.pieces))
    return Recorded(known, prior, one, model, doubts=doubts)


@dataclass(frozen=True, eq=False)
class Banded:
    """Stage 2, band: the processing of the log, with a band that holds, the filtered motions, and a note if lowered."""

    processing: Processing
    motions: list[Motion]
    notes: tuple[str, ...]


def banded(recorded: Recorded, filtering: Filtering) -> Banded:
    """The cut-offs, from the motion and the torques unless they are given."""
    chosen = choose_processing(
        recorded.log, len(recorded.model.names), filtering.cutoff, filtering.parallel, filtering.dead_zone
    )
    free = filtering.cutoff is None and filtering.parallel in (None, True)
    processing, notes = kept_band(chosen, recorded.model, recorded.prior, recorded.log) if free else (chosen, ())
    return Banded(processing, motions(recorded.log, processing), notes)


@dataclass(frozen=True, eq=False)
class Suspicions:
    """Stage 3, check: interpretations under which the log makes more sense, joints whose torque or zero is wrong."""

    findings: list[Finding]
    late: list[Finding]
    misscaled: list[str]

    @property
    def changes(self) -> tuple[Reading, ...]:
        """What would mend the log."""
        return tuple(finding.reading for finding in (*self.findings, *self.late))


def suspected(recorded: Recorded, band: Banded) -> Suspicions:
    """What seems wrong with the log."""
    findings = preflight(recorded.prior, band.motions)
    whole = any(finding.reading.late for finding in findings)
    late, misscaled = ([], []) if whole else joint_faults(recorded.model, band.motions, band.processing)
    return Suspicions(findings, late, [] if findings else misscaled)


def corrected(recorded: Recorded, changes: tuple[Reading, ...]) -> Recorded:
    """The log with these corrections; with the gravity that it shows, if that is one of them."""
    if not changes:
        return recorded
    mended = replace(recorded, log=changed(recorded.log, changes), changes=changes)
    for gravity in [tuple(reading.gravity) for reading in changes if reading.gravity is not None]:
        arm, prior = mended.arm.with_gravity(gravity), mended.prior.with_gravity(gravity)
        mended = replace(mended, arm=arm, prior=prior, model=replace(mended.model, arm=arm))
    return mended


@dataclass(frozen=True, eq=False)
class Prepared:
    """Stage 4, model: the rows of the model to start from, their motions and processing, notes on both."""

    processing: Processing
    motions: list[Motion]
    model: Model
    rows: Rows
    notes: tuple[str, ...]


def prepare(recorded: Recorded, band: Banded, terms: Terms, filtering: Filtering, fitting: Fitting) -> Prepared:
    """Rows to fit, with logged or differentiated accelerations, whichever predict better, and saturated torques."""
    prior, log = recorded.prior, recorded.log
    processing, said = judged(band.processing, recorded.model, log, fitting.folds, terms.width)
    notes = band.notes
    free = filtering.cutoff is None and filtering.parallel in (None, True)
    if said and not processing.logged_acceleration and free:
        processing, notes = kept_band(processing, recorded.model, prior, log)
    moved = motions(log, processing) if said else band.motions
    model = recorded.model.tuned(np.concatenate([motion.qd for motion in moved]), terms.width)
    every = rows(model, moved, processing)
    if fitting.folds > len(every):
        raise InputError(
            f"{fitting.folds} folds need as many samples; {len(every)} are left after filtering and decimation"
        )
    if not every.kept.any():
        raise InputError(f"no joint ever moves faster than the dead zone of {filtering.dead_zone:g}")
    if any(motion.clipped is not None for motion in moved):
        moved = one_sided(model, prior, moved, processing, every)
        every = rows(model, moved, processing)
    return Prepared(processing, moved, model, every, (*said, *notes, *brief_notes(log, processing)))


@dataclass(frozen=True, eq=False)
class Selected:
    """Stage 5, select: the model to fit with its rows, the base tilt, and the steps of the selection."""

    model: Model
    rows: Rows
    tilt: tuple[float, float]
    steps: dict[str, float]


def settled(recorded: Recorded, prepared: Prepared, terms: Terms, fitting: Fitting, couple: bool) -> Selected:
    """The model as given, or as selected from the log; `couple` also looks for motors that turn two joints."""
    prior, moved, processing, folds = recorded.prior, prepared.motions, prepared.processing, fitting.folds
    model, seen, steps, tilt = prepared.model, prepared.rows, dict[str, float](), terms.tilt
    if terms.friction == "auto":
        if terms.width is None:
            model, seen = with_widths(model, prior, moved, processing, seen, folds)
        uncoupled, coupled = model, dict[str, float]()
        if couple:  # not if the columns may be mixed up, which looks like coupled motors
            model, coupled = find_coupling(model, prior, moved, processing, seen, folds)
            seen = seen if model is uncoupled else rows(model, moved, processing)
        chosen = select(model, prior, moved, processing, seen, folds)
        model, tilt, steps = chosen.model, tilt or chosen.tilted, with_coupling(chosen.steps, coupled)
        model, steps = with_groups(model, steps, prior, moved, processing, folds)
    angles = (0.0, 0.0)
    if tilt:
        seen = rows(model, moved, processing)
        angles = find_tilt(model, prior, moved, processing, linear.weighted(seen.Y, seen.tau, seen.kept).weights)
        model = replace(model, arm=tilted(model.arm, *angles))
    model = with_bumps(model, moved, processing) if "stribeck" in model.terms else model
    unchanged = model is prepared.model
    return Selected(model, prepared.rows if unchanged else rows(model, moved, processing), angles, steps)


@dataclass(frozen=True, eq=False)
class Refit:
    """Stage 6, fit: the fit, judged by left-out segments; the model with the loads of its links, its rows, setting."""

    model: Model
    rows: Rows
    setting: Setting
    judgement: Guarded
    folds: Array

    @property
    def fit(self) -> Fit:
        """The fit."""
        return self.judgement.fit


def fitted(recorded: Recorded, prepared: Prepared, selected: Selected, terms: Terms, fitting: Fitting) -> Refit:
    """The parameters by the estimator that is asked for."""
    run, moved, processing = ALL[fitting.estimator], prepared.motions, prepared.processing
    model, own = selected.model, selected.rows
    setting = Setting(model, recorded.prior, fitting.folds, fitting.regularization, moved, processing)
    fit = run(own, setting)
    if "load" in model.terms:  # fit again with the loads of the identified links; one iteration is enough
        model, curve = model.loaded(fit.natural), fit.curve
        setting, own = replace(setting, model=model, regularization=fit.regularization), rows(model, moved, processing)
        fit = replace(run(own, setting), curve=curve)
    judgement = Guarded(fit, setting)
    if fitting.estimator == "consistent":
        judgement = guarded(own, replace(setting, regularization=fitting.regularization), fit, terms.friction == "auto")
    final = judgement.setting
    return Refit(model, own, final, judgement, left_out(own, final, fitting.estimator, judgement.fit))


def estimated(
    recorded: Recorded, prepared: Prepared, selected: Selected, outcome: Refit, drivetrain: Drivetrain, estimator: str
) -> Estimate:
    """The estimate, without its warnings."""
    fit, own = outcome.fit, outcome.rows
    R, _ = linear.compress(own.Y, own.tau, fit.weights)
    return Estimate(
        given=recorded.arm,
        prior=recorded.prior,
        model=outcome.model,
        processing=prepared.processing,
        estimator=estimator,
        fit=fit,
        uncertainty=uncertainty(outcome.model, own, fit, recorded.prior),
        condition=linear.condition(R),
        training=compare(outcome.model, fit.values, recorded.log, prepared.processing, prepared.motions, own),
        folds=outcome.folds,
        left_out=outcome.judgement.errors,
        transmission=drivetrain.transmission,
        zero=drivetrain.zero,
        gains=drivetrain.gains,
        notes=(*recorded.log.notes, *prepared.notes),
        changes=recorded.changes,
        base_tilt=selected.tilt,
        steps=selected.steps,
    )


def worded(
    estimate: Estimate, recorded: Recorded, prepared: Prepared, outcome: Refit, suspicions: Suspicions, fixed: bool
) -> Estimate:
    """Stage 7, report: the estimate with doubts, warnings and notes."""
    misread = [] if fixed else [str(finding) for finding in suspicions.findings]
    doubts = (*recorded.doubts, *misread, *doubts_of(estimate, prepared.motions))
    warnings = (
        *doubts,
        *(() if fixed else map(str, suspicions.late)),
        *suspicions.misscaled,
        *log_warnings(recorded.arm, recorded.log, prepared.processing),
        *outcome.judgement.warnings,
        *warnings_of(estimate, prepared.motions),
    )
    notes = (*estimate.notes, *notes_of(estimate, prepared.motions))
    return replace(estimate, warnings=warnings, doubts=doubts, notes=notes)


def with_coupling(steps: dict[str, float], coupled: dict[str, float]) -> dict[str, float]:
    """The steps of the selection, preceded by those that found motors driving two joints."""
    (first, _), *others = steps.items()
    error = min(coupled.values(), default=1.0)
    return {first: 1.0, **coupled, **{name: error * value for name, value in others}}


def checked(arm: Arm, log: Log, transmission: Any, zero: Any, gains: Any, folds: int, fix: bool = False) -> Log:
    """The log on the joint side, after checking that it is compatible with the arm and the options."""
    if log.n != arm.n:
        raise InputError(f"the log has {log.n} joints ({', '.join(log.joints)}), {arm.name} has {arm.n}")
    if folds < 2:
        raise InputError(f"expected at least 2 folds, got {folds}")
    if not log.drive:
        servos = "" if log.pieces[0].command is None else "; its servos can be: identify_servo (armdyn servo)"
        raise InputError(
            f"the log has no torques or currents (tau), from which inertias and friction are identified{servos}"
        )
    if log.drive == "current" and gains is None:
        raise InputError("the log has currents: give gains=[...] (N m per unit), or find them with identify_gains")
    degrees = [doubt for doubt in log.doubts if "degrees" in doubt]
    if degrees and transmission is None and not fix:
        advice = "Read it with degrees=True (degrees=False if it is in radians), or give the transmission."
        advice = "(degrees=False if it is in radians)" if "only one" in degrees[0] else advice
        raise InputError(f"{degrees[0]} {advice}")
    return joint_side(log, transmission, zero, gains)


def left_out(every: Rows, setting: Setting, estimator: str, fit: Fit) -> Array:
    """Relative error of each segment, predicted from the others with the same settings and instruments."""
    segment = every.segments(setting.folds)
    errors = []
    for k in range(setting.folds):
        out = segment == k
        instruments = None if fit.instruments is None else fit.instruments[~out]
        fixed = replace(setting, regularization=fit.regularization, instruments=instruments)
        again = ALL[estimator](every.where(~out), fixed)
        errors.append(relative_error(every.tau[out], every.Y[out] @ again.values))
    return np.array(errors)
