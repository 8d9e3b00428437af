"""Interpretations of a log that are tried: signs, order, units, joint zeros, gravity and delays."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from armdyn.identification.model.reading import BETTER, Reading, View

Array = NDArray[np.float64]
SLIGHTLY = 0.85  # ratio of errors required for units and delays, which friction and offsets partly compensate
MIN_DELAY = 0.01  # shortest delay considered, in seconds
REORDERED = 1.3  # penalty on orders and zeros with respect to signs, because they have more degrees of freedom
SPREAD = 2.5  # ratio of the largest to the smallest scale above which the joints do not share one
UNIT_SCALE = 200.0  # scale (or its inverse) of a single joint that only a wrong unit explains
MIN_TORQUE = 0.02  # of the largest torque; a smaller one is not sufficient to estimate the scale of a joint
DOUBTFUL = 0.25  # error of the given arm above which another gravity vector is tried
SNAP = 0.25  # rad; directions of gravity within this angle of a base axis, or of the given gravity, are taken as equal
UNITS = {1e3: "N mm", 100.0: "N cm", 9.80665: "kgf m", 1e-3: "kN m"}


def readings(view: View) -> Iterator[Reading]:
    """All interpretations of a log to be tried."""
    n = view.tau.shape[1]
    yield from _columns(view, n)
    yield from _units(view, n)
    yield from _scales(view, n)
    yield from delays(view, n)
    yield from _gravities(view, n)
    yield from _zeros(n)
    reach = float(np.ptp(view.q, axis=0).max())
    if reach > np.pi:
        degrees = np.full(n, np.pi / 180)
        yield Reading.of(n, "positions are in degrees", "Read the log with degrees=True", factor=degrees)
    if reach < 2:
        yield Reading.of(n, "positions are in turns", "Multiply them by 2 π", factor=np.full(n, 2 * np.pi))
    for a, b in [*combinations(range(n), 2), (-1, -1)]:
        order, words = np.arange(n)[::-1], "the joints are in reverse order"
        if a >= 0:
            order, words = np.arange(n), f"joints {a + 1} and {b + 1} are exchanged"
            order[[a, b]] = b, a
        change = {"order": order, "torque_order": order}
        yield Reading.of(n, words, "Reorder the columns of q and tau", penalty=REORDERED, **change)
        if a >= 0:
            words = f"the positions of joints {a + 1} and {b + 1} are exchanged"
            yield Reading.of(n, words, "Reorder the columns of q", penalty=REORDERED, order=order, joints=(a, b))
    for j in range(n):
        signs = np.where(np.arange(n) == j, -1.0, 1.0)
        words = f"joint {j + 1} has the opposite direction"
        yield Reading.of(n, words, f"Negate q{j + 1} and tau{j + 1}", factor=signs, torque_factor=signs)
        yield Reading.of(n, f"the position of joint {j + 1} has the opposite sign", f"Negate q{j + 1}", factor=signs)


def _columns(view: View, n: int) -> Iterator[Reading]:
    """The measured torques with the signs and the order that fit best."""
    from scipy.optimize import linear_sum_assignment

    errors = np.array([[[view.error(i, j, s) for s in (1.0, -1.0)] for j in range(n)] for i in range(n)])
    yield Reading.of(n, "all torques have the opposite sign", "Negate the torques", torque_factor=-np.ones(n))
    flipped = [j for j in range(n) if errors[j, j, 1] < BETTER * errors[j, j, 0]]
    if flipped:
        signs = np.where(np.isin(np.arange(n), flipped), -1.0, 1.0)
        words = f"the torque of {', '.join(f'joint {j + 1}' for j in flipped)} has the opposite sign"
        yield Reading.of(n, words, "Negate it", torque_factor=signs)
    cost = errors.min(axis=2).T ** 2 * np.where(np.eye(n) > 0, 1.0, REORDERED**2)
    joints, columns = linear_sum_assignment(cost)
    if (joints != columns).any():
        signs = np.where(errors[columns, joints].argmin(axis=1) == 1, -1.0, 1.0)
        said = ", ".join(f"{'-' if s < 0 else ''}tau{k + 1}" for k, s in zip(columns, signs, strict=True))
        moved = tuple(int(j) for j in np.flatnonzero((columns != joints) | (signs < 0)))
        change = {"torque_order": columns, "torque_factor": signs, "penalty": REORDERED, "joints": moved}
        yield Reading.of(n, f"the torques are in another order ({said})", "Reorder the torques", **change)


def _units(view: View, n: int) -> Iterator[Reading]:
    """A common factor between measured and predicted torques."""
    size = float((view.own * view.own).sum())
    factor = float((view.own * view.tau).sum()) / size if size else 1.0
    if factor <= 0 or 0.3 < factor < 3:
        return
    named = next(((value, f" (in {unit}?)") for value, unit in UNITS.items() if 0.6 < factor / value < 1.6), None)
    exact, unit = named or (factor, "")
    words = f"the torques are {_times(factor)}{unit}"
    remedy = f"{_undone(exact)} (gains={1 / exact:.4g})"
    yield Reading.of(n, words, remedy, torque_factor=np.full(n, 1 / exact), needed=SLIGHTLY)


def _times(factor: float) -> str:
    return f"{factor:.3g} times too large" if factor > 1 else f"{1 / factor:.3g} times too small"


def _undone(factor: float) -> str:
    return f"Divide them by {factor:.4g}" if factor > 1 else f"Multiply them by {1 / factor:.4g}"


def _scales(view: View, n: int) -> Iterator[Reading]:
    """An individual scale per joint: one column in another unit, or motor torques."""
    factors = np.array([view.scale(j) for j in range(n)])
    off = np.flatnonzero((factors > 0) & ~((factors > 0.2) & (factors < 5)))
    if not len(off):
        return
    if len(off) < max(2, n // 2):
        size = np.linalg.norm(view.own, axis=0)
        for j in off[(np.abs(np.log(factors[off])) > np.log(UNIT_SCALE)) & (size[off] > MIN_TORQUE * size.max())]:
            named = next(
                ((value, f" (in {unit}?)") for value, unit in UNITS.items() if 0.5 < factors[j] / value < 2), None
            )
            exact, unit = named or (float(factors[j]), "")
            change = np.where(np.arange(n) == j, 1 / exact, 1.0)
            words = f"the torque of joint {j + 1} is {_times(float(factors[j]))}{unit}"
            remedy = _undone(exact).replace("them", "it")
            yield Reading.of(n, words, remedy, torque_factor=change, needed=SLIGHTLY, joints=(int(j),))
        return
    usual = float(np.median(factors[factors > 0]))
    if factors.max() < SPREAD * factors[factors > 0].min():
        return  # a common factor
    factors = np.where(factors > 0, factors, usual)
    said = ", ".join(f"{x:.2g}" for x in factors)
    words = f"the torques have different scales per joint, {said} times the prediction (motor torques, or per cent?)"
    remedy = "Give the gear ratios or rated torques as gains=[...], or find them with identify_gains"
    yield Reading.of(n, words, remedy, torque_factor=1 / factors, needed=SLIGHTLY, penalty=REORDERED)


def _gravities(view: View, n: int) -> Iterator[Reading]:
    """Torques without the gravity load, and arms mounted in another orientation."""
    size = float(np.linalg.norm(view.gravity))
    if size == 0 or view.total < DOUBTFUL:
        return
    words = "the torques do not include the gravity load (does the controller compensate it?)"
    yield Reading.of(n, words, "Identify with arm.with_gravity((0, 0, 0))", gravity=(0.0, 0.0, 0.0))
    rest = view.tau - (view.own - view.weight @ view.gravity)
    scale = np.maximum(np.linalg.norm(view.tau, axis=0), 1e-300)  # joints weighted equally
    columns = view.weight / scale[:, None]
    found = np.linalg.lstsq(columns.reshape(-1, 3), (rest / scale).ravel(), rcond=1e-6)[0]
    if np.linalg.norm(found) < size / 3:
        return
    down = found / np.linalg.norm(found)
    axis = np.where(np.arange(3) == np.argmax(np.abs(down)), np.sign(down), 0.0)
    down = axis if down @ axis > np.cos(SNAP) else down
    if down @ view.gravity < np.cos(SNAP) * size:
        gravity = tuple(float(x) for x in np.round(size * down, 3) + 0.0)
        words = (
            f"gravity acts along ({', '.join(f'{x:.3g}' for x in gravity)}): the arm is mounted in another orientation"
        )
        yield Reading.of(n, words, f"Identify with arm.with_gravity({gravity})", gravity=gravity)


def _zeros(n: int) -> Iterator[Reading]:
    """Joint zeros that are off by a right angle or half a turn."""
    for j in range(n):
        for angle in (90, -90, 180):
            zero = np.where(np.arange(n) == j, np.deg2rad(angle), 0.0)
            words = f"the zero of joint {j + 1} is off by {-angle if angle < 180 else angle} degrees"
            yield Reading.of(n, words, f"Add {angle} degrees to q{j + 1} (zero=...)", zero=zero, penalty=REORDERED)


def delays(view: View, n: int) -> Iterator[Reading]:
    """Torques that are delayed or early with respect to the states."""
    most = max(1, round(0.2 / view.period))
    for step in sorted({s * round(k) for k in np.geomspace(1, most, 12) for s in (-1, 1)}):
        seconds = step * view.period
        if abs(seconds) >= MIN_DELAY and len(view.q) > 8 * abs(step):
            late = f"{1e3 * abs(seconds):.0f} ms {'late' if step > 0 else 'early'}"
            yield Reading.of(
                n, f"the torques are about {late}", "Shift them in time first", late=seconds, needed=SLIGHTLY
            )


def late_joint(view: View, n: int, joint: int, step: int) -> Reading:
    """The torque of one joint, late by `step` samples (early if negative)."""
    seconds = step * view.period
    late = f"{1e3 * abs(seconds):.0f} ms {'late' if step > 0 else 'early'}"
    words = f"the torque of joint {joint + 1} is about {late} with respect to the positions"
    return Reading.of(n, words, "Shift it in time first", late=seconds, late_joint=joint)
