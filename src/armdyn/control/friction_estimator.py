"""Recursive estimator of viscous and Coulomb friction and offsets, joint by joint, without accelerations.

Source: the residual of the momentum observer (`momentum_observer`); Bierman 1977 (square-root information filter); the
stabilised forgetting is Kulhavý's.

Idea: inertias of an arm do not change, its friction does, as drives warm up. The residual of the momentum observer is
what the arm's model lacks, through a first-order filter. Without contact that is -(q̇, sgn q̇, 1)·x per joint, with the
columns through the same filter, and x the friction beyond the model's. One square-root information filter of three
parameters per joint forgets towards the model's friction. Rows that are further off than noise and the uncertainty of
the estimate explain are contacts, and count little (Cauchy's weights).
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from armdyn.algebra import sqrt
from armdyn.chain import Chain
from armdyn.control.adaptive import friction_of
from armdyn.control.dynamics import Dynamics
from armdyn.control.feedback import dot, low_pass, smooth_sign
from armdyn.control.law import QD, TAU, ControlLaw, Entry, Q
from armdyn.control.momentum_observer import momentum_filter, threshold
from armdyn.control.momentum_observer import start as observer_start
from armdyn.control.payload_estimator import deviation, forgotten
from armdyn.control.square_root import (
    Matrix,
    absorbed,
    packed,
    solved,
    solved_transposed,
    triangle_size,
    unpacked,
    variances,
)

SIZE = 3  # viscous, Coulomb, offset
PRIOR = 12.5  # default thresholds of the momentum observer, a quarter of the effort limit: at 1 rad/s or m/s


def step(model: Dynamics, x: SimpleNamespace) -> dict[str, Any]:
    """The estimates after one more row per joint."""
    filtered, residual = momentum_filter(model, x, x.filtered)
    out: dict[str, list[Any]] = {name: [] for name in ("change", "deviations", "columns", "triangle", "right")}
    for i, v in enumerate(x.qd):
        now = (v, smooth_sign(v, x.sign_width), 1)
        gain = x.dt * x.bandwidth[i]
        row = [low_pass(before, column, gain) for before, column in zip(x.columns[i], now, strict=True)]
        prior = (x.viscous_prior[i], x.coulomb_prior[i], x.offset_prior[i])
        R, z = unpacked(x.triangle[i], SIZE), list(x.right[i])
        R, z = forgotten(R, z, SimpleNamespace(forgetting=x.forgetting, dt=x.dt, prior=prior))
        across = solved_transposed(R, row)
        error = -residual[i] - dot(row, solved(R, z))
        most = x.outlier * x.outlier * (x.deviation[i] * x.deviation[i] + dot(across, across))
        variance = x.deviation[i] * x.deviation[i] * (1 + error * error / most)  # Cauchy's weights of outliers
        weight = sqrt(gain / (2 * variance))  # rows of a filtered signal are correlated: weighted down
        R, z = absorbed(R, z, [weight * entry for entry in row], -weight * residual[i])
        for name, value in (("change", solved(R, z)), ("deviations", [sqrt(s) for s in variances(R)]),
                            ("columns", row), ("triangle", packed(R)), ("right", z)):  # fmt: skip
            out[name].append(value)
    change = out.pop("change")
    known = _known(model, len(change))
    estimates = {
        name: [own + beyond[k] for own, beyond in zip(known[k], change, strict=True)]
        for k, name in enumerate(("viscous", "coulomb", "offset"))
    }
    return {**estimates, **out, "filtered": filtered}


def _known(model: Dynamics, n: int) -> tuple[list[Any], list[Any], list[Any]]:
    """The friction and offsets of the model; zero where they are not known."""
    joints = model.chain.joints if not model.chain.has_mimics else ()
    offsets = [joint.forces.offset for joint in joints] if model.friction and joints else [0] * n
    return (*friction_of(joints, n, model.friction), offsets)


def start(model: Dynamics, x: SimpleNamespace) -> dict[str, Any]:
    """The friction of the model, and the filter state for which the residual is zero."""
    triangles: list[list[Any]] = []
    for i in range(len(x.qd)):
        prior = (x.viscous_prior[i], x.coulomb_prior[i], x.offset_prior[i])
        R: Matrix = [[1 / prior[k] if k == j else 0 for j in range(SIZE)] for k in range(SIZE)]
        triangles.append(packed(R))
    n = len(x.qd)
    zero = {"columns": [[0] * SIZE for _ in range(n)], "right": [[0] * SIZE for _ in range(n)]}
    return {**observer_start(model, x), **zero, "triangle": triangles}


def prior(chain: Chain) -> list[float]:
    """Default prior deviations of friction and offsets, from the default thresholds of the momentum observer."""
    return [PRIOR * most for most in threshold(chain)]


LAW = ControlLaw(
    "friction_estimator",
    "recursive estimator of viscous and Coulomb friction and offsets of every joint",
    "bierman_1977",
    measured=(Q, QD, TAU),
    gains=(
        Entry("bandwidth", ("nv",), "filter bandwidth, 1/s", 20.0),
        Entry("deviation", ("nv",), "standard deviation of the residual without contact, N m or N", deviation),
        Entry("viscous_prior", ("nv",), "prior standard deviation of viscous friction, N m s/rad or N s/m", prior),
        Entry("coulomb_prior", ("nv",), "prior standard deviation of Coulomb friction, N m or N", prior),
        Entry("offset_prior", ("nv",), "prior standard deviation of the offset, N m or N", prior),
        Entry("sign_width", (), "velocity within which the Coulomb friction is smoothed, rad/s or m/s", 0.02),
        Entry("forgetting", (), "forgetting rate towards the prior, 1/s; 0: no forgetting", 0.02),
        Entry("outlier", (), "predicted standard deviations beyond which rows count less, as contacts", 3.0),
    ),
    outputs=(
        Entry("viscous", ("nv",), "estimated viscous friction coefficients, N m s/rad or N s/m"),
        Entry("coulomb", ("nv",), "estimated Coulomb friction, N m or N"),
        Entry("offset", ("nv",), "estimated constant torques, N m or N"),
        Entry("deviations", ("nv", SIZE), "standard deviations of the three"),
    ),
    memory=(
        Entry("filtered", ("nv",), "filter state of the residual"),
        Entry("columns", ("nv", SIZE), "filter states of the velocity, its sign and 1"),
        Entry("triangle", ("nv", triangle_size(SIZE)), "upper triangular square roots of the information matrices"),
        Entry("right", ("nv", SIZE), "right-hand sides of the square-root information equations"),
    ),
    step=step,
    start=start,
)
