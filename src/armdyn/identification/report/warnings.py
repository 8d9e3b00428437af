"""What a user should know before trusting an estimate, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from armdyn.arm import Arm
from armdyn.identification.log.aliasing import sampling_doubts
from armdyn.identification.log.faults import clipped
from armdyn.identification.log.log import Log
from armdyn.identification.log.processing import Motion, Processing
from armdyn.identification.model.bodies import pseudo_inertia
from armdyn.identification.model.model import TERMS

if TYPE_CHECKING:
    from armdyn.identification.estimate.result import Estimate

STILL = 0.05  # rad or m: a joint that stays within this hardly moves
REST, RESTING = 0.01, 0.05  # of a joint's largest velocity: at rest; share of the log above which it is said
ABSURD, FAR = 5.0, 1.0  # a mass this many times off the prior's; a link as large as this many lengths of the arm
MOSTLY = 0.5  # noise over motion in the filters' pass band, above which the rows are mostly noise
SLOW = 15.0  # Hz: no drive is logged so slowly
EXPLAINED, WRONG = 0.5, 0.2  # R² of a joint below which, and relative torque error above which, something is said
STRETCH, BURST = 0.06, 4.5  # part of a log, and residuals over the usual ones, that tell a contact; good logs: 2.9
UNSURE = 0.5  # relative deviation above which a parameter's size is not known
UNEVEN = 200.0  # condition number (unit columns) above which a motion excites some parameters hardly at all


def log_warnings(arm: Arm, log: Log, how: Processing) -> list[str]:
    """Doubts about the log itself."""
    said = [*log.doubts, *sampling_doubts(log, how)]
    q = log.array("q")
    for k, joint in enumerate(arm.joints):
        low, high = joint.limit.lower, joint.limit.upper
        off = max(0.0 if low is None else low - q[:, k].min(), 0.0 if high is None else q[:, k].max() - high)
        if off > STILL:
            said.append(f"joint {k + 1} goes {off:.3g} beyond its limits in the log: other order, zero or unit?")
    if log.rate < SLOW:
        said.append(
            f"the stamps say {log.rate:.3g} samples per second over {log.duration:.4g} s: are they in milliseconds?"
            f" Give the rate (rate={1e3 * log.rate:.4g}) if so"
        )
    tau = log.array("tau")
    dead = [str(j + 1) for j in np.flatnonzero(np.ptp(tau, axis=0) == 0)]
    if dead:
        said.append(f"the torque of joint {', '.join(dead)} never changes in the log: left out of the fit")
    ends = clipped(tau).mean(axis=0)
    said += [
        f"the torque of joint {j + 1} stands at the end of its range in {100 * ends[j]:.0f} % of the samples:"
        " a limit of the drive or of the logger? Those samples only tell that the torque is not less; move more gently,"
        " or widen the range"
        for j in np.flatnonzero((ends > 0) & (ends < 1))
    ]
    return said


def warnings_of(estimate: Estimate, parts: list[Motion]) -> list[str]:
    """Doubts about what was identified."""
    doubts = (
        _coupled(estimate),
        _noise(estimate),
        _touched(estimate),
        _motion(estimate, parts),
        _unsure(estimate),
        _inconsistent(estimate),
        _implausible(estimate),
        _overfitted(estimate),
        _unexplained(estimate, parts),
        _bumps(estimate),
    )
    return [text for said in doubts for text in said]


def _coupled(estimate: Estimate) -> list[str]:
    """A motor that turns two joints, which was found though nobody said so."""
    found = [name for name in estimate.steps if name.startswith("a motor that turns")]
    if not found:
        return []
    names = ", ".join(estimate.left_behind)
    return [
        f"the log shows {' and '.join(found)} (a coupled wrist): {names} are its inertia and friction. predict() has"
        " them, an arm and its files have no place for them. Where the log is of the motors, give the transmission as a"
        " matrix; where no such motor exists, check that the columns of these joints are not mixed up"
    ]


def _touched(estimate: Estimate) -> list[str]:
    """A stretch of the log that is predicted far worse than the rest of it."""
    left, t = estimate.training.residual, estimate.training.t
    usual = 1.4826 * np.median(np.abs(left), axis=0)
    seen = usual > 0
    wide = max(3, round(STRETCH * len(t)))
    if len(t) < 5 * wide or not seen.any():
        return []
    squares = ((left[:, seen] / usual[seen]) ** 2).mean(axis=1)
    run = np.sqrt(np.convolve(squares, np.ones(wide) / wide, "valid"))
    worst, ratio = int(np.argmax(run)), float(run.max() / max(float(np.median(run)), 1e-300))
    if run[worst] < BURST or ratio < BURST:
        return []
    return [
        f"from {t[worst]:.4g} to {t[worst + wide - 1]:.4g} s the residuals are {ratio:.2g} times the usual ones: did"
        " something touch the arm, or was a payload gripped or a brake on? Cut that part off (log.part)"
    ]


def _bumps(estimate: Estimate) -> list[str]:
    """Static friction exceeds Coulomb's; where it is less, it is a shape that fits, not that effect."""
    at = dict(zip(estimate.names, range(len(estimate.names)), strict=True))
    values, spread = estimate.values, estimate.deviations
    dips = [
        name
        for name, k in at.items()
        if name.startswith("fs") and (j := at.get(f"fc{name[2:]}")) is not None
        if values[k] - values[j] < -2 * np.hypot(spread[k], spread[j])
    ]
    if not dips:
        return []
    said = "static friction below Coulomb's"
    return [
        f"friction falls towards standstill ({', '.join(dips)}: {said}): read these as a fitted shape, not as stiction"
    ]


def _motion(estimate: Estimate, parts: list[Motion]) -> list[str]:
    said = []
    q = np.concatenate([p.q for p in parts])
    share = _share(estimate)
    reach = np.ptp(q, axis=0)
    slow = np.flatnonzero(reach < STILL) + 1
    if len(slow):
        weak = sum(s < 0.5 for name, s in zip(estimate.names, share, strict=True) if _joint(name) in slow)
        where = "rest on the prior" if estimate.fit.information is not None else "cannot be told"
        who = ", ".join(f"joint {j} hardly moves ({reach[j - 1]:.2g} in all)" for j in slow)
        said.append(f"{who}: {weak} of {'its' if len(slow) == 1 else 'their'} parameters {where}")
    still = _at_rest(parts)
    if still > RESTING and not estimate.processing.dead_zone:
        said.append(
            f"the arm stands still for {100 * still:.0f} % of the log, where friction is anything up to stiction:"
            " cut that part off, or give dead_zone=..."
        )
    if estimate.condition > UNEVEN:
        said.append(
            f"the motion excites the parameters unevenly (condition number {estimate.condition:.3g} with unit columns):"
            " some combinations are hardly seen; a trajectory from `armdyn excite` would tell more"
        )
    return said


def _at_rest(parts: list[Motion]) -> float:
    """The share of the samples in which no joint moves."""
    speed = np.abs(np.concatenate([p.qd for p in parts]))
    return float(np.mean((speed <= REST * speed.max(axis=0)).all(axis=1)))


def _share(estimate: Estimate) -> list[float]:
    """How much each parameter owes to the data: 1 all of it; without a prior, 0 where its size is unknown."""
    if estimate.fit.information is not None:
        return [float(s) for s in estimate.uncertainty.share]
    return [float(d < UNSURE) for d in estimate.relative_deviations]


def _joint(name: str) -> int:
    """The joint a parameter belongs to, by its name: U33_2 -> 2, fv3 -> 3, Iam6 -> 6."""
    digits = ""
    for letter in reversed(name.split(" ")[0]):
        if not letter.isdigit():
            break
        digits = letter + digits
    return int(digits) if digits else 0


def _unsure(estimate: Estimate) -> list[str]:
    share = _share(estimate)
    weak = [name for name, s in zip(estimate.names, share, strict=True) if s < 0.5]
    if not weak:
        return []
    shown = ", ".join(weak[:8]) + (" ..." if len(weak) > 8 else "")
    if estimate.fit.information is not None:
        return [f"{len(weak)} of {len(estimate.names)} parameters rest more on the prior than on the log: {shown}"]
    return [
        f"{len(weak)} of {len(estimate.names)} parameters are known to no better than {100 * UNSURE:.0f} %: {shown}"
    ]


def _inconsistent(estimate: Estimate) -> list[str]:
    said = []
    bad = [k + 1 for k, e in enumerate(estimate.smallest_eigenvalues) if e <= 0]
    if bad:
        said.append(
            f"links {', '.join(map(str, bad))} are not physically consistent (pseudo-inertia not positive definite):"
            " use estimator='consistent' for an arm to simulate with"
        )
    symbols = {term.symbol for term in TERMS.values() if term.positive}
    negative = [
        name
        for name, value, deviation in zip(estimate.names, estimate.values, estimate.deviations, strict=True)
        if name.rstrip("0123456789") in symbols and value < -2 * deviation
    ]
    if negative:
        said.append(f"{', '.join(negative)} came out negative, which no friction or rotor is: check torques and signs")
    return said


def _implausible(estimate: Estimate) -> list[str]:
    """Links that could exist but hardly do: masses and sizes far from the prior's and from the arm's own length."""
    said: list[str] = []
    reach = sum(float(np.hypot(float(j.b), float(j.d))) for j in estimate.given.joints) or 1.0
    for k, (link, prior) in enumerate(zip(estimate.natural, estimate.prior.links, strict=True), 1):
        mass, usual = float(link[0]), float(prior.mass)
        if mass <= 0:
            continue
        if usual > 0 and not 1 / ABSURD < mass / usual < ABSURD:
            said.append(f"link {k} has a mass of {mass:.3g} kg, the prior {usual:.3g} kg")
            continue
        centre = float(np.linalg.norm(link[1:4])) / mass
        gyration = float(np.sqrt(max(np.trace(pseudo_inertia(link)[:3, :3]), 0.0) / mass))
        if max(centre, gyration) > FAR * reach:
            said.append(f"link {k} is {max(centre, gyration):.2g} m large, the arm {reach:.2g} m long")
    if not said:
        return []
    shown = "; ".join(said[:3]) + (f"; and {len(said) - 3} more links" if len(said) > 3 else "")
    return [f"{shown}: consistent, but hardly plausible; this motion may not tell it, or the log is read wrongly"]


def _noise(estimate: Estimate) -> list[str]:
    noise = estimate.processing.noise
    if noise < MOSTLY:
        return []
    return [
        f"below the cut-off the noise of the positions has {noise:.2g} times the energy of the accelerations:"
        " give a lower cutoff=..., or log velocities"
    ]


def _unexplained(estimate: Estimate, parts: list[Motion]) -> list[str]:
    """Joints whose torque the model does not explain, and a log that is predicted far worse than the fitted one."""
    shown, where = (estimate.training, "that was fitted") if estimate.validation is None else (
        estimate.validation, "that was not fitted")  # fmt: skip
    said = []
    poor = [f"{j + 1} ({r:.2f})" for j, r in enumerate(shown.r_squared) if r < EXPLAINED]
    if poor:
        said.append(
            f"little of the torque of joint {', '.join(poor)} is explained (R²) in the log {where}:"
            " check order, sign and unit of its columns, and its zero"
        )
    if shown.error > max(2 * estimate.error, WRONG):
        said.append(
            f"the log that was not fitted is predicted to {100 * shown.error:.1f} %, the fitted one to"
            f" {100 * estimate.error:.1f} %: is it of the same arm, in the same units, with motions of the same kind?"
        )
    elif estimate.error > WRONG and all(part.clipped is None for part in parts):
        said.append(
            f"{100 * estimate.error:.0f} % of the torques are not explained by any arm of this geometry: is the log of"
            " this arm, its time right, its columns in the arm's order?"
        )
    return said


def _overfitted(estimate: Estimate) -> list[str]:
    left = float(np.sqrt(np.mean(estimate.folds**2)))
    if left > 2 * estimate.error:
        return [
            f"segments left out are predicted to {100 * left:.1f} %, those fitted to {100 * estimate.error:.1f} %:"
            " the model does not carry over to other motions"
        ]
    return []
