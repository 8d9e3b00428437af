"""The function `identify`, which turns a log into an Estimate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from armdyn.arm import Arm
from armdyn.errors import InputError, choose, former
from armdyn.identification import linear
from armdyn.identification.band import judged, kept_band
from armdyn.identification.doubts import doubts_of, log_warnings, notes_of, warnings_of
from armdyn.identification.fit import ESTIMATORS, Fit, Setting, one_sided, relative_error, uncertainty
from armdyn.identification.instrumental import instrumental
from armdyn.identification.left_out import Guarded, guarded
from armdyn.identification.log import Log, PathName, as_log
from armdyn.identification.model import FRICTION, Model, Rows, rows
from armdyn.identification.nonlinear import find_tilt, tilted, with_bumps, with_widths
from armdyn.identification.preflight import changed, delayed_joints, misscaled_joints, preflight
from armdyn.identification.processing import Motion, Processing, choose_processing, joint_side, motions
from armdyn.identification.result import Estimate, compare
from armdyn.identification.selection import find_coupling, select, with_groups
from armdyn.identification.threads import one_thread
from armdyn.loading import as_arm
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
    if pull is not None:
        former("identify(pull=...)", "identify(regularization=...)", stacklevel=6)
        fitting = replace(fitting, regularization=pull)
    friction, width, tilt = terms.friction, terms.width, terms.tilt
    cutoff, parallel, dead_zone = filtering.cutoff, filtering.parallel, filtering.dead_zone
    transmission, zero, gains = drivetrain.transmission, drivetrain.zero, drivetrain.gains
    estimator, prior, regularization = fitting.estimator, fitting.prior, fitting.regularization
    folds, fix = fitting.folds, fitting.fix
    choose("estimator", estimator, ALL)
    choose("friction", friction, ("auto", *FRICTION))
    arm, prior = as_arm(arm, "identify"), None if prior is None else as_arm(prior, "identify(prior=...)")
    given = log if isinstance(log, Sequence) and not isinstance(log, str) else [log]
    logs = [as_log(one, arm) for one in given]
    side = Log.joined([checked(arm, one, transmission, zero, gains, folds, fix) for one in logs])
    if not np.ptp(side.array("tau"), axis=0).any():
        raise InputError("no torque ever changes in this log: there is nothing to identify from")
    drives = {"rotor": terms.rotor, "offset": terms.offset, "transmission": transmission}
    start = Model.of(arm, "coulomb" if friction == "auto" else friction, spring=terms.spring, **drives)
    start = replace(start, logs=len(logs) if terms.friction_per_log else 1)
    side = side if terms.friction_per_log else replace(side, pieces=tuple(replace(p, log=0) for p in side.pieces))
    how, said_of_band = processed(side, start, prior or arm, cutoff, parallel, dead_zone)
    parts = motions(side, how)
    doubts = preflight(prior or arm, parts)
    late = [] if any(finding.reading.late for finding in doubts) else delayed_joints(start, parts, how)
    wrong = [] if doubts or late else misscaled_joints(start, parts, how)
    changes = tuple(finding.reading for finding in (*doubts, *late)) if fix else ()
    if changes:
        side = changed(side, changes)
        for gravity in [tuple(r.gravity) for r in changes if r.gravity is not None]:
            arm, prior = arm.with_gravity(gravity), None if prior is None else prior.with_gravity(gravity)
            start = replace(start, arm=arm)
        how, said_of_band = processed(side, start, prior or arm, cutoff, parallel, dead_zone)
        parts = motions(side, how)
    how, said_of_states = judged(how, start, side, folds, width)
    if said_of_states and not how.logged_acceleration and cutoff is None and parallel in (None, True):
        how, said_of_band = kept_band(how, start, prior or arm, side)
    parts = motions(side, how) if said_of_states else parts
    start = start.tuned(np.concatenate([p.qd for p in parts]), width)
    found = rows(start, parts, how)
    if folds > len(found):
        raise InputError(f"{folds} folds need as many samples; {len(found)} are left after filtering and decimation")
    if not found.kept.any():
        raise InputError(f"no joint ever moves faster than the dead zone of {dead_zone:g}")
    if any(part.clipped is not None for part in parts):
        parts = one_sided(start, prior or arm, parts, how, found)
        found = rows(start, parts, how)
    model, base_tilt, steps = settled(
        start, prior or arm, parts, how, found, folds, friction == "auto", tilt, width is None, fix or not doubts
    )
    if model is not start:
        found = rows(model, parts, how)
    setting = Setting(model, prior or arm, folds, regularization, parts, how)
    fit = ALL[estimator](found, setting)
    if "load" in model.terms:  # fit again with the loads of the identified links; one iteration is enough
        setting = replace(setting, model=model.loaded(fit.natural), regularization=fit.regularization)
        model, found, curve = setting.model, rows(setting.model, parts, how), fit.curve
        fit = replace(ALL[estimator](found, setting), curve=curve)
    judgement = Guarded(fit, setting)
    if estimator == "consistent":
        judgement = guarded(found, replace(setting, regularization=regularization), fit, friction == "auto")
        fit, setting = judgement.fit, judgement.setting
    R, _ = linear.compress(found.Y, found.tau, fit.weights)
    estimate = Estimate(
        given=arm,
        prior=prior or arm,
        model=model,
        processing=how,
        estimator=estimator,
        fit=fit,
        uncertainty=uncertainty(model, found, fit, setting.prior),
        condition=linear.condition(R),
        training=compare(model, fit.values, side, how, parts, found),
        folds=left_out(found, setting, estimator, fit),
        left_out=judgement.errors,
        transmission=transmission,
        zero=zero,
        gains=gains,
        notes=(*side.notes, *said_of_states, *said_of_band),
        changes=changes,
        base_tilt=base_tilt,
        steps=steps,
    )
    if validate is not None:
        estimate = replace(estimate, validation=estimate.validate(validate))
    misread = [] if fix else [str(finding) for finding in doubts]
    reasons = (*misread, *doubts_of(estimate, parts))
    said = (
        *reasons,
        *(() if fix else map(str, late)),
        *wrong,
        *log_warnings(arm, side, how),
        *judgement.warnings,
        *warnings_of(estimate, parts),
    )
    notes = (*estimate.notes, *notes_of(estimate, parts))
    return replace(estimate, warnings=said, doubts=reasons, notes=notes)


def processed(
    side: Log, model: Model, prior: Arm, cutoff: float | None, parallel: float | bool | None, dead_zone: float = 0.0
) -> tuple[Processing, tuple[str, ...]]:
    """The processing of a log, with a band that holds unless cut-offs are given, and a note if it was lowered."""
    how = choose_processing(side, len(model.names), cutoff, parallel, dead_zone)
    return kept_band(how, model, prior, side) if cutoff is None and parallel in (None, True) else (how, ())


def settled(
    model: Model,
    prior: Arm,
    parts: list[Motion],
    how: Processing,
    found: Rows,
    folds: int,
    auto: bool,
    tilt: bool,
    sharpen: bool,
    couple: bool,
) -> tuple[Model, tuple[float, float], dict[str, float]]:
    """The model to fit, as given or as selected from the log; the base tilt; the steps of the selection."""
    steps: dict[str, float] = {}
    if auto:
        if sharpen:
            model, found = with_widths(model, prior, parts, how, found, folds)
        uncoupled, coupled = model, dict[str, float]()
        if couple:  # not if the columns may be mixed up, which looks like coupled motors
            model, coupled = find_coupling(model, prior, parts, how, found, folds)
            found = found if model is uncoupled else rows(model, parts, how)
        chosen = select(model, prior, parts, how, found, folds)
        model, tilt, steps = chosen.model, tilt or chosen.tilted, with_coupling(chosen.steps, coupled)
        model, steps = with_groups(model, steps, prior, parts, how, folds)
    angles = (0.0, 0.0)
    if tilt:
        found = rows(model, parts, how)
        angles = find_tilt(model, prior, parts, how, linear.weighted(found.Y, found.tau, found.kept).weights)
        model = replace(model, arm=tilted(model.arm, *angles))
    return (with_bumps(model, parts, how) if "stribeck" in model.terms else model), angles, steps


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
        raise InputError("the log has no torques or currents (tau), from which inertias and friction are identified")
    if log.drive == "current" and gains is None:
        raise InputError("the log has currents: give gains=[...] (N m per unit), or find them with identify_gains")
    degrees = [doubt for doubt in log.doubts if "degrees" in doubt]
    if degrees and transmission is None and not fix:
        advice = "Read it with degrees=True (degrees=False if it is in radians), or give the transmission."
        advice = "(degrees=False if it is in radians)" if "only one" in degrees[0] else advice
        raise InputError(f"{degrees[0]} {advice}")
    return joint_side(log, transmission, zero, gains)


def left_out(found: Rows, setting: Setting, estimator: str, fit: Fit) -> Array:
    """Relative error of each segment, predicted from the others with the same settings and instruments."""
    segment = found.segments(setting.folds)
    errors = []
    for k in range(setting.folds):
        out = segment == k
        instruments = None if fit.instruments is None else fit.instruments[~out]
        fixed = replace(setting, regularization=fit.regularization, instruments=instruments)
        again = ALL[estimator](found.where(~out), fixed)
        errors.append(relative_error(found.tau[out], found.Y[out] @ again.values))
    return np.array(errors)
