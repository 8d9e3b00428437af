"""Warnings about a log and about the estimate obtained from it, and the doubts for which it is not to be trusted."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from armdyn.arm import Arm
from armdyn.identification.cleaning import clipped
from armdyn.identification.log import Log
from armdyn.identification.model import Parameter, pseudo_inertia
from armdyn.identification.processing import Motion, Processing, sampling_doubts

if TYPE_CHECKING:
    from armdyn.identification.result import Estimate


STILL = 0.05  # rad or m; a joint with a smaller range of motion hardly moves
REST = 0.01  # of the largest velocity of a joint, below which it is at rest
MAX_REST = 0.05  # fraction of the log at rest above which a warning is given
MASS_RATIO = 5.0  # ratio of a mass to that of the prior (or its inverse) above which it is implausible
LINK_SIZE = 1.0  # size of a link, in lengths of the arm, above which it is implausible
MAX_NOISE = 0.5  # ratio of noise to motion energy in the pass band of the filters above which a warning is given
MIN_RATE = 15.0  # Hz; robot controllers record at higher rates
MIN_R_SQUARED = 0.5  # R² of a joint below which a warning is given
MAX_ERROR = 0.2  # relative torque error above which an estimate is not trusted; measured logs of sound fits: 0.15
USELESS = 1.0  # relative error of a joint above which a prediction of zero torque would be better
NEGLIGIBLE_ERROR = 0.02  # relative errors below which fits are not compared, contacts not said: friction varies more
HEAVY = 2.0  # masses of the whole prior arm, above which the mass of one link is impossible
WINDOW = 0.06  # length of the window in which contacts are detected, as a fraction of the log
CONTACT = 4.5  # ratio of the residuals in the window to the typical ones that indicates a contact; good logs: 2.9
SHARP = 0.01  # of the torques, by which the arm's friction differs from that of the prediction, to be noted
SURE = 3.0  # standard deviations by which a difference between logs is one
UNCERTAIN = 0.5  # relative standard deviation above which the value of a parameter is not known
MAX_CONDITION = 200.0  # condition number (unit columns) above which some parameters are hardly excited


def notes_of(estimate: Estimate, parts: list[Motion]) -> list[str]:
    """By how much the friction of the arm, which jumps at standstill, differs from the smooth one of the prediction."""
    model = estimate.model
    sharp, extras = replace(model, width=np.zeros(model.n)), estimate.fit.natural[model.links :]
    apart = [(sharp.extras(*s) - model.extras(*s)) @ extras for p in parts for s in [(p.q, p.qd, p.qdd, p.log)]]
    size = float(np.linalg.norm(np.concatenate([p.tau for p in parts])))
    share = float(np.linalg.norm(np.concatenate(apart))) / max(size, 1e-300)
    drifts = _drifts(estimate)
    if share < SHARP:
        return drifts
    return [
        *drifts,
        f"in predict() friction changes its sign over up to {model.width.max():.2g} rad/s or m/s, in"
        f" arm.inverse_dynamics(friction=True) and in generated code at once: on this log that is {100 * share:.2g} %"
        " of the torques",
    ]


def _drifts(estimate: Estimate) -> list[str]:
    """What differs from log to log, and what does not, where each log has friction of its own."""
    model, said = estimate.model, []
    for log in range(1, model.logs):
        at = {p: k for k, p in enumerate(model.standing_alone, model.rigid) if p.log == log}
        far = [p for p, k in at.items() if abs(estimate.values[k]) > SURE * estimate.deviations[k]]
        texts = [f"{p.name} {estimate.values[at[p]]:.3g} ± {estimate.deviations[at[p]]:.2g}" for p in far]
        rest = f"the other {len(at) - len(far)} do not by {SURE:g} standard deviations"
        what = ", ".join(texts) or "nothing"
        said.append(f"in log {log + 1}, friction and offsets differ from log 1 in {what}; {rest}")
    return said


def log_warnings(arm: Arm, log: Log, how: Processing) -> list[str]:
    """Warnings about the log itself."""
    said = [*log.doubts, *sampling_doubts(log, how)]
    q = log.array("q")
    for k, joint in enumerate(arm.joints):
        low, high = joint.limit.lower, joint.limit.upper
        off = max(0.0 if low is None else low - q[:, k].min(), 0.0 if high is None else q[:, k].max() - high)
        if off > STILL:
            said.append(
                f"joint {k + 1} exceeds its limits by {off:.3g} in the log: check the order of the columns, its zero"
                " and its unit"
            )
    if log.rate < MIN_RATE:
        said.append(
            f"the time stamps give {log.rate:.3g} samples per second over {log.duration:.4g} s: are they in"
            f" milliseconds? Give the rate (rate={1e3 * log.rate:.4g}) if so"
        )
    tau = log.array("tau")
    dead = [str(j + 1) for j in np.flatnonzero(np.ptp(tau, axis=0) == 0)]
    if dead:
        said.append(f"the torque of joint {', '.join(dead)} never changes in the log: left out of the fit")
    ends = clipped(tau).mean(axis=0)
    said += [
        f"the torque of joint {j + 1} is saturated in {100 * ends[j]:.0f} % of the samples, by the drive or the"
        " measurement range: these samples give only a bound on the torque; use a less demanding motion, or a larger"
        " measurement range"
        for j in np.flatnonzero((ends > 0) & (ends < 1))
    ]
    return said


def doubts_of(estimate: Estimate, parts: list[Motion]) -> list[str]:
    """The reasons for which the estimate is not to be trusted as a model of the arm."""
    said = _unexplained(estimate, parts)
    poor = [
        f"joint {j + 1} ({100 * error:.0f} %)"
        for j, error in enumerate(estimate.training.joint_errors)
        if error > USELESS and np.linalg.norm(estimate.training.tau[:, j]) > 0
    ]
    if poor:
        said.append(f"the torque of {', '.join(poor)} is predicted worse than by zero, in the fitted log itself")
    left = float(np.sqrt(np.mean(estimate.folds**2)))
    if left > max(2 * estimate.error, MAX_ERROR):
        said.append(
            f"left-out segments are predicted with an error of {100 * left:.0f} %, the fitted ones with"
            f" {100 * estimate.error:.1f} %: the model is of this log and not of the arm"
        )
    usual = float(sum(max(float(link.mass), 0.0) for link in estimate.prior.links))
    heavy = [f"link {k} ({m:.3g} kg)" for k, m in enumerate(estimate.natural[:, 0], 1) if m > HEAVY * usual > 0]
    if heavy:
        said.append(
            f"the mass of {', '.join(heavy)} is more than {HEAVY:g} times that of the given arm, {usual:.3g} kg"
        )
    if estimate.tilt_at_bound:
        said.append("the base tilt is as large as it may be: is the arm mounted in another orientation?")
    return said


def warnings_of(estimate: Estimate, parts: list[Motion]) -> list[str]:
    """Warnings about the estimate."""
    doubts = (
        _coupled(estimate),
        _noise(estimate),
        _touched(estimate),
        _motion(estimate, parts),
        _unsure(estimate),
        _inconsistent(estimate),
        _implausible(estimate),
        _overfitted(estimate),
        _poorly_explained(estimate),
        _bumps(estimate),
    )
    return [text for said in doubts for text in said]


def _coupled(estimate: Estimate) -> list[str]:
    """A motor that drives two joints and was detected without being specified."""
    found = [name for name in estimate.steps if name.startswith("a motor that turns")]
    if not found:
        return []
    names = ", ".join(estimate.left_behind)
    return [
        f"the log shows {' and '.join(found)} (a coupled wrist): {names} are its inertia and friction. predict()"
        " includes them, but an Arm and its files cannot represent them. If the log is on the motor side, give the"
        " transmission as a matrix; if no such motor exists, check that the columns of these joints are not mixed up"
    ]


def _touched(estimate: Estimate) -> list[str]:
    """A time interval that is predicted far worse than the rest of the log."""
    left, t = estimate.training.residual, estimate.training.t
    usual = 1.4826 * np.median(np.abs(left), axis=0)
    seen = usual > 0
    wide = max(3, round(WINDOW * len(t)))
    if len(t) < 5 * wide or not seen.any():
        return []
    squares = ((left[:, seen] / usual[seen]) ** 2).mean(axis=1)
    run = np.sqrt(np.convolve(squares, np.ones(wide) / wide, "valid"))
    worst, ratio = int(np.argmax(run)), float(run.max() / max(float(np.median(run)), 1e-300))
    here = slice(worst, worst + wide)
    share = np.linalg.norm(left[here], axis=0) / np.sqrt(wide * (estimate.training.tau**2).mean(axis=0).clip(1e-300))
    if run[worst] < CONTACT or ratio < CONTACT or share.max() < NEGLIGIBLE_ERROR:
        return []
    return [
        f"from {t[worst]:.4g} to {t[worst + wide - 1]:.4g} s the residuals are {ratio:.2g} times the typical ones: did"
        " something touch the arm, was a payload gripped, or a brake engaged? Remove that interval (log.part)"
    ]


def _bumps(estimate: Estimate) -> list[str]:
    """Static friction below Coulomb friction, which is not physical: it only fits the shape of the curve."""
    model, values, spread = estimate.model, estimate.values, estimate.deviations
    at = {parameter: k for k, parameter in enumerate(model.standing_alone, model.rigid)}
    dips = [
        parameter.name
        for parameter, k in at.items()
        if parameter.term == "stribeck" and (j := at.get(Parameter("coulomb", parameter.joint))) is not None
        if values[k] - values[j] < -2 * np.hypot(spread[k], spread[j])
    ]
    if not dips:
        return []
    said = "static friction below Coulomb friction"
    return [
        f"friction decreases towards standstill ({', '.join(dips)}: {said}): these values fit the shape of the friction"
        " curve and are not stiction"
    ]


def _motion(estimate: Estimate, parts: list[Motion]) -> list[str]:
    said = []
    q = np.concatenate([p.q for p in parts])
    share = _share(estimate)
    reach = np.ptp(q, axis=0)
    slow = np.flatnonzero(reach < STILL) + 1
    if len(slow):
        joints = estimate.model.joints_of
        weak = sum(s < 0.5 for j, s in zip(joints, share, strict=True) if j is not None and j + 1 in slow)
        where = "rest on the prior" if estimate.fit.information is not None else "are not identifiable"
        who = ", ".join(f"joint {j} hardly moves ({reach[j - 1]:.2g} in all)" for j in slow)
        said.append(f"{who}: {weak} of {'its' if len(slow) == 1 else 'their'} parameters {where}")
    still = _at_rest(parts)
    if still > MAX_REST and not estimate.processing.dead_zone:
        said.append(
            f"the arm stands still for {100 * still:.0f} % of the log, where friction can take any value up to"
            " stiction: remove that interval, or give dead_zone=..."
        )
    if estimate.condition > MAX_CONDITION:
        said.append(
            f"the motion excites the parameters unevenly (condition number {estimate.condition:.3g} with unit columns):"
            " some combinations are hardly excited; use a trajectory from `armdyn excite`"
        )
    return said


def _at_rest(parts: list[Motion]) -> float:
    """The fraction of the samples in which no joint moves."""
    speed = np.abs(np.concatenate([p.qd for p in parts]))
    return float(np.mean((speed <= REST * speed.max(axis=0)).all(axis=1)))


def _share(estimate: Estimate) -> list[float]:
    """The fraction of each parameter determined by the data; without a prior, 1 if its value is known, else 0."""
    if estimate.fit.information is not None:
        return [float(s) for s in estimate.uncertainty.share]
    return [float(d < UNCERTAIN) for d in estimate.relative_deviations]


def _unsure(estimate: Estimate) -> list[str]:
    share = _share(estimate)
    weak = [name for name, s in zip(estimate.names, share, strict=True) if s < 0.5]
    if not weak:
        return []
    shown = ", ".join(weak[:8]) + (" ..." if len(weak) > 8 else "")
    if estimate.fit.information is not None:
        return [f"{len(weak)} of {len(estimate.names)} parameters rest more on the prior than on the log: {shown}"]
    return [
        f"{len(weak)} of {len(estimate.names)} parameters are known to no better than {100 * UNCERTAIN:.0f} %: {shown}"
    ]


def _inconsistent(estimate: Estimate) -> list[str]:
    said = []
    bad = [k + 1 for k, e in enumerate(estimate.smallest_eigenvalues) if e <= 0]
    if bad:
        said.append(
            f"links {', '.join(map(str, bad))} are not physically consistent (pseudo-inertia not positive definite):"
            " use estimator='consistent' for an arm to simulate with"
        )
    negative = [
        parameter.name
        for k, parameter in enumerate(estimate.model.standing_alone, estimate.model.rigid)
        if parameter.positive and estimate.values[k] < -2 * estimate.deviations[k]
    ]
    if negative and estimate.estimator != "consistent":  # where this one has negative values, it says why
        said.append(
            f"{', '.join(negative)} are negative, which is impossible for friction and rotor inertias:"
            " check the torques and their signs"
        )
    return said


def _implausible(estimate: Estimate) -> list[str]:
    """Consistent but implausible links: mass far from that of the prior, or size beyond the length of the arm."""
    said: list[str] = []
    reach = sum(float(np.hypot(float(j.b), float(j.d))) for j in estimate.given.joints) or 1.0
    for k, (link, prior) in enumerate(zip(estimate.natural, estimate.prior.links, strict=True), 1):
        mass, usual = float(link[0]), float(prior.mass)
        if mass <= 0:
            continue
        if usual > 0 and not 1 / MASS_RATIO < mass / usual < MASS_RATIO:
            said.append(f"link {k} has a mass of {mass:.3g} kg, the prior {usual:.3g} kg")
            continue
        centre = float(np.linalg.norm(link[1:4])) / mass
        gyration = float(np.sqrt(max(np.trace(pseudo_inertia(link)[:3, :3]), 0.0) / mass))
        if max(centre, gyration) > LINK_SIZE * reach:
            said.append(f"link {k} is {max(centre, gyration):.2g} m large, the arm {reach:.2g} m long")
    if not said:
        return []
    shown = "; ".join(said[:3]) + (f"; and {len(said) - 3} more links" if len(said) > 3 else "")
    return [
        f"{shown}: consistent, but hardly plausible; the motion may not excite them enough, or the log may be"
        " misinterpreted"
    ]


def _noise(estimate: Estimate) -> list[str]:
    noise = estimate.processing.noise
    if noise < MAX_NOISE:
        return []
    return [
        f"below the cut-off frequency, the noise in the accelerations has {noise:.2g} times the energy of the motion:"
        " give a lower cutoff=..., or record velocities"
    ]


def _poorly_explained(estimate: Estimate) -> list[str]:
    """Joints whose torque is not explained."""
    shown, where = (estimate.training, "the fitted log") if estimate.validation is None else (
        estimate.validation, "the validation log")  # fmt: skip
    poor = [f"{j + 1} ({r:.2f})" for j, r in enumerate(shown.r_squared) if r < MIN_R_SQUARED]
    if not poor:
        return []
    return [
        f"little of the torque of joint {', '.join(poor)} is explained (R²) in {where}:"
        " check the order, sign and unit of its columns, and its zero"
    ]


def _unexplained(estimate: Estimate, parts: list[Motion]) -> list[str]:
    """Torques that no arm of this geometry explains, or a validation log predicted far worse than the fitted one."""
    shown = estimate.training if estimate.validation is None else estimate.validation
    said = []
    if shown.error > max(2 * estimate.error, MAX_ERROR):
        said.append(
            f"the validation log is predicted with an error of {100 * shown.error:.1f} %, the fitted one with"
            f" {100 * estimate.error:.1f} %: is it from the same arm, in the same units, with similar motions?"
        )
    elif estimate.error > MAX_ERROR and all(part.clipped is None for part in parts):
        said.append(
            f"{100 * estimate.error:.0f} % of the torques are not explained by any arm of this geometry: is the log"
            " from this arm, are its time stamps correct and its columns in the order of the joints?"
        )
    return said


def _overfitted(estimate: Estimate) -> list[str]:
    left = float(np.sqrt(np.mean(estimate.folds**2)))
    if max(2 * estimate.error, NEGLIGIBLE_ERROR) < left <= max(2 * estimate.error, MAX_ERROR):
        return [
            f"left-out segments are predicted with an error of {100 * left:.1f} %, the fitted ones with"
            f" {100 * estimate.error:.1f} %: the model does not generalize to other motions"
        ]
    return []
