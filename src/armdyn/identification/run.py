"""identify: from a log to an Estimate, in one call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armdyn.arm import Arm
from armdyn.errors import InputError, choose
from armdyn.identification import linear
from armdyn.identification.estimate import Estimate, compare
from armdyn.identification.fitting import ESTIMATORS, Fit, Setting
from armdyn.identification.instrumental import instrumental
from armdyn.identification.log import Log
from armdyn.identification.model import FRICTION, Model
from armdyn.identification.samples import Motion, Processing, Rows, joint_side, motions, processing, rows
from armdyn.identification.selection import Choice, Work, select
from armdyn.identification.statistics import relative_error
from armdyn.identification.stribeck import with_bumps
from armdyn.identification.threads import one_thread
from armdyn.identification.tilt import lean, level
from armdyn.identification.uncertainty import uncertainty
from armdyn.identification.warnings import log_warnings, warnings_of

Array = NDArray[np.float64]
ALL = {**ESTIMATORS, "instrumental": instrumental}


@one_thread()
def identify(
    arm: Arm,
    log: Log,
    *,
    estimator: str = "consistent",
    friction: str = "auto",
    rotor: bool = True,
    offset: bool = True,
    spring: bool = False,
    tilt: bool = False,
    prior: Arm | None = None,
    pull: float | None = None,
    transmission: Any = None,
    zero: Any = None,
    gains: Any = None,
    cutoff: float | None = None,
    parallel: float | bool | None = None,
    width: float | Sequence[float] | None = None,
    folds: int = 5,
    validate: Log | None = None,
) -> Estimate:
    """Identify an arm's inertial parameters, rotors and friction from a log.

    Parameters
    ----------
    arm
        Its geometry, and, as the prior, its inertias.
    log
        What the robot recorded.
    estimator
        ``consistent`` (every link a possible body, pulled to the prior), ``ordinary``, ``weighted`` (per joint),
        ``huber`` (robust), ``instrumental`` (IDIM-IV).
    friction
        ``none``, ``viscous``, ``coulomb`` (and viscous), ``asymmetric``, ``stribeck``, ``asymmetric_stribeck``;
        ``auto`` takes ``coulomb`` and adds Stribeck's bump and a tilt where left-out segments bear them out.
    rotor, offset, spring
        Whether every joint has a rotor inertia, a constant offset, a stiffness.
    tilt
        Whether the base may be off level: two angles of gravity are found with the rest.
    prior
        An arm to pull towards, where it is not `arm` itself.
    pull
        How strongly, in units of one noise variance; by cross-validation on segments of the log unless given.
    transmission, zero
        Where the log is the motors': motor positions = matrix @ joint positions (or n ratios), and the joint
        positions to add afterwards.
    gains
        Torque over logged effort, one a joint: where the log has currents.
    cutoff, parallel
        Cut-offs (Hz) of the positions' filter and of the filter both sides of the model go through (False: none);
        from the motion's bandwidth unless given.
    width
        Velocity over which Coulomb friction turns round, one or n; 2 % of each joint's largest unless given; 0: sign.
    folds
        Segments for cross-validation.
    validate
        A log to predict, never used for fitting.
    """
    choose("estimator", estimator, ALL)
    choose("friction", friction, ("auto", *FRICTION))
    side = checked(arm, log, transmission, zero, gains, folds)
    drives = {"rotor": rotor, "offset": offset, "transmission": transmission}
    start = Choice("coulomb" if friction == "auto" else friction, spring)
    how = processing(side, len(Model.of(arm, start.friction, spring=spring, **drives).names), cutoff, parallel)
    parts = motions(side, how)

    def make(choice: Choice) -> Work:
        leaning = level(arm, *choice.lean) if any(choice.lean) else arm
        return prepared(Model.of(leaning, choice.friction, spring=choice.spring, **drives), parts, how, width)

    choice, tried, work = settled(make, start, prior or arm, how, folds, friction == "auto", tilt)
    if folds > len(work.rows):
        raise InputError(f"{folds} folds need as many samples; {len(work.rows)} are left after filtering and thinning")
    setting = Setting(work.model, prior or arm, folds, pull, work.parts, how)
    fit = ALL[estimator](work.rows, setting)
    R, _ = linear.compress(work.rows.Y, work.rows.tau, fit.weights)
    estimate = Estimate(
        given=work.model.arm,
        prior=prior or arm,
        model=work.model,
        how=how,
        estimator=estimator,
        fit=fit,
        uncertainty=uncertainty(work.model, work.rows, fit),
        condition=linear.condition(R),
        training=compare(work.model, fit.values, side, how, work.rows),
        folds=left_out(work.rows, setting, estimator, fit),
        transmission=transmission,
        zero=zero,
        gains=gains,
        notes=log.notes,
        choice=choice,
        tried=tried,
    )
    if validate is not None:
        estimate = replace(estimate, validation=estimate.validate(validate))
    said = (*log_warnings(arm, side), *warnings_of(estimate, work.parts))
    return replace(estimate, warnings=said)


def settled(
    make: Callable[[Choice], Work], start: Choice, prior: Arm, how: Processing, folds: int, auto: bool, tilt: bool
) -> tuple[Choice, dict[str, float], Work]:
    """The model to fit: as asked for, or as the log bears it out; what was tried; the model's rows."""
    if auto:
        return select(make, start, prior, how, folds)
    work = make(start)
    if not tilt:
        return start, {}, work
    weights = linear.weighted(work.rows.Y, work.rows.tau).weights
    choice = replace(start, lean=lean(work.model, prior, work.parts, how, weights))
    return choice, {}, make(choice)


def checked(arm: Arm, log: Log, transmission: Any, zero: Any, gains: Any, folds: int) -> Log:
    """The log on the joints' side; an error that says what does not fit."""
    if log.n != arm.n:
        raise InputError(f"the log has {log.n} joints ({', '.join(log.joints)}), {arm.name} has {arm.n}")
    if folds < 2:
        raise InputError(f"expected at least 2 folds, got {folds}")
    if log.drive == "current" and gains is None:
        raise InputError("the log has currents: give gains=[...] (N m a unit), or find them with identify_gains")
    degrees = [doubt for doubt in log.doubts if "degrees" in doubt]
    if degrees and transmission is None:
        advice = "Read it with degrees=True (degrees=False if it is in radians), or give the transmission."
        raise InputError(f"{degrees[0]} {advice}")
    return joint_side(log, transmission, zero, gains)


def prepared(model: Model, parts: list[Motion], how: Processing, width: float | Sequence[float] | None) -> Work:
    """The model's smooth sign and Stribeck velocities settled on the log, and its rows."""
    model = model.tuned(np.concatenate([p.qd for p in parts]), width)
    if "stribeck" in model.terms:
        model = with_bumps(model, parts, how)
    return Work(model, parts, rows(model, parts, how))


def left_out(found: Rows, setting: Setting, estimator: str, fit: Fit) -> Array:
    """Relative error of each segment, predicted from the others with the same settings."""
    segment = found.segments(setting.folds)
    fixed = replace(setting, pull=fit.pull, parts=None)
    errors = []
    for k in range(setting.folds):
        out = segment == k
        again = ALL[estimator](found.where(~out), fixed)
        errors.append(relative_error(found.tau[out], found.Y[out] @ again.values))
    return np.array(errors)
