"""Detection of wrong units in a log: degrees, and velocities that do not match the positions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
DEGREES = 4 * np.pi  # rad; hardly any joint has a range of more than two turns
MATCHING = 0.9  # minimum correlation of a velocity with the derivative of its position
NOT_USED = "The velocities are not used"


def unit_doubts(period: float, pieces: list[dict[str, Array]]) -> list[str]:
    """Messages about positions in degrees, and about velocities of another joint or in another unit."""
    return _degrees(pieces) or (_velocities(period, pieces) if "qd" in pieces[0] else [])


def _degrees(pieces: list[dict[str, Array]]) -> list[str]:
    reach = np.max([np.ptp(p["q"], axis=0) for p in pieces], axis=0)
    if reach.max() <= DEGREES:
        return []
    moving = reach > 1e-3 * reach.max()
    small = moving & (reach < np.pi)
    if small.any():
        who = ", ".join(str(j + 1) for j in np.flatnonzero(reach > DEGREES))
        return [
            f"the position of joint {who} ranges over {reach.max():.4g}, others over {reach[small].max():.3g} at most:"
            f" is it the only one in degrees? Convert that column"
        ]
    return [
        f"a position ranges over {reach.max():.4g}: are the positions in degrees, or on the motor side of a gearbox?"
    ]


def _velocities(period: float, pieces: list[dict[str, Array]]) -> list[str]:
    """Comparison of the logged velocities with the differentiated positions, per joint."""
    dq = np.concatenate([(p["q"][2:] - p["q"][:-2]) / (2 * period) for p in pieces])
    qd = np.concatenate([p["qd"][1:-1] for p in pieces])
    size, logged = np.linalg.norm(dq, axis=0), np.linalg.norm(qd, axis=0)
    moving = np.flatnonzero((size > 1e-3 * size.max()) & (logged > 0))
    if not len(moving) or not logged.any():
        return []
    slope = float((dq * qd).sum() / (qd**2).sum())
    own = (dq * qd).sum(axis=0)[moving] / (logged[moving] ** 2)
    alike = (dq.T @ qd) / np.maximum(np.outer(size, logged), 1e-300)
    if np.ptp(own) < 0.2 * abs(slope):
        return _scaled(slope)
    said = []
    for j, factor in zip(moving, own, strict=True):
        best = int(np.argmax(alike[j]))
        if alike[j, j] < -MATCHING:
            said.append(f"the velocity of joint {j + 1} has the opposite sign to the derivative of its position")
        elif alike[j, j] < 0.5 and best != j and alike[j, best] > MATCHING:
            said.append(f"the derivative of the position of joint {j + 1} matches the velocity of joint {best + 1}")
        elif alike[j, j] > MATCHING and not 0.8 < factor < 1.25:
            said += [f"joint {j + 1}: {text}" for text in _scaled(float(factor))]
    return [f"{'; '.join(said)}: are the columns mixed up? {NOT_USED}"] if said else _scaled(slope)


def _scaled(slope: float) -> list[str]:
    """Message about a common factor between the differentiated positions and the velocities."""
    for factor, said in (
        (180 / np.pi, "positions are in degrees and velocities in radians"),
        (np.pi / 180, "positions are in radians and velocities in degrees"),
    ):
        if abs(slope / factor - 1) < 0.1:
            return [f"the positions change {slope:.3g} times as fast as the logged velocities: {said}?"]
    if 0.9 < slope < 1.1:
        return []
    return [
        f"the positions change {slope:.3g} times as fast as the logged velocities: check the units, or the time"
        " stamps (rate=...)"
    ]
