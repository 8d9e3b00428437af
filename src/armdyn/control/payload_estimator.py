"""Recursive payload estimator: identifies the payload during motion, without accelerations.

Source: the residual of the momentum observer (`momentum_observer`); Bierman 1977 (square-root information filter); the
stabilised forgetting is Kulhavý's.

Idea: the torque due to a payload is linear in its inertial parameters x (mass and first moments, or all ten), as are
its momentum and momentum bias. Filtered like the arm's own, they give equations y = W x: y is the negative residual
of the momentum observer, which is the filtered torque due to the payload, and column k of W is the filtered torque
due to unit parameter k. A square-root information filter processes one row per joint and step. Forgotten information
is replaced by the prior, so that the information matrix stays regular while the arm is at rest. When the innovations
exceed what noise and the uncertainty of the estimate explain, the payload has changed, and the filter restarts from
its prior.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from armdyn.algebra import Scalar, sign, sqrt
from armdyn.chain import Chain
from armdyn.control.dynamics import Dynamics, about_com
from armdyn.control.feedback import dot, less, low_pass, plus, scaled, transposed
from armdyn.control.law import PAYLOAD, QD, TAU, ControlLaw, Entry, Q
from armdyn.control.momentum_observer import momentum_filter, threshold
from armdyn.control.square_root import Matrix, absorbed, packed, solved, solved_transposed, triangle_size, unpacked
from armdyn.control.square_root import variances as variances_of

LIGHT = 1e-3  # kg: keeps the centre of mass finite as the mass tends to zero
PRIOR = (10.0, 1.0, 1.0, 1.0, *([0.1] * 6))  # kg, kg m, kg m²: default prior standard deviations


def step(model: Dynamics, x: SimpleNamespace) -> dict[str, Any]:
    """The estimate after one more row per joint."""
    size = len(x.prior)
    filtered, residual = momentum_filter(model, x, x.filtered)
    columns, W = unit_rows(model, x, transposed(x.columns))
    y = [-r for r in residual]
    R, z = unpacked(x.triangle, size), list(x.right)
    surprise = low_pass(x.surprise, innovation(R, z, W, y, x.deviation), x.dt * x.bandwidth[-1])
    changed = (1 + sign(surprise - x.change)) / 2
    R, z = anew(R, z, x.prior, changed)
    R, z = forgotten(R, z, x)
    for row, value, k, sigma in zip(W, y, x.bandwidth, x.deviation, strict=True):
        weight = sqrt(k * x.dt / 2) / sigma  # successive rows of a filtered signal are correlated: weighted down
        R, z = absorbed(R, z, [weight * entry for entry in row], weight * value)
    estimate = solved(R, z)
    mass = estimate[0]
    com = [mass * h / (mass * mass + LIGHT * LIGHT) for h in estimate[1:4]]
    return {
        "payload_mass": mass,
        "payload_com": com,
        "payload_inertia": about_com(estimate, com) if size == 10 else [0] * 6,
        "estimate": estimate,
        "deviations": [sqrt(v) for v in variances_of(R)],
        "changed": changed,
        "filtered": filtered,
        "columns": columns,
        "triangle": packed(R),
        "right": z,
        "surprise": (1 - changed) * surprise + changed,
    }


def unit_rows(model: Dynamics, x: SimpleNamespace, columns: Any) -> tuple[Matrix, Matrix]:
    """The next filter states and W, with one column per payload of one unit parameter."""
    after, found = [], []
    for k, before in enumerate(columns):
        unit = [int(i == k) for i in range(len(columns))]
        momentum = scaled(x.bandwidth, model.of_payload("momentum", unit, x.q, x.qd))
        driven = plus(model.of_payload("momentum_bias", unit, x.q, x.qd), momentum)
        after.append([low_pass(b, d, x.dt * w) for b, d, w in zip(before, driven, x.bandwidth, strict=True)])
        found.append(less(momentum, after[-1]))
    return transposed(after), transposed(found)


def innovation(R: Matrix, z: Any, W: Matrix, y: Any, deviation: Any) -> Scalar:
    """The mean over the joints of squared innovation / variance: about 1 if there is only noise."""
    estimate = solved(R, z)
    total: Scalar = 0
    for row, value, sigma in zip(W, y, deviation, strict=True):
        error = value - dot(row, estimate)
        across = solved_transposed(R, row)
        total = total + error * error / (sigma * sigma + dot(across, across))
    return total / len(W)


def anew(R: Matrix, z: Any, prior: Any, changed: Scalar) -> tuple[Matrix, list[Scalar]]:
    """R and z if `changed` is 0, those of the prior if it is 1."""
    kept = 1 - changed
    fresh = [[kept * entry if j >= i else 0 for j, entry in enumerate(row)] for i, row in enumerate(R)]
    for i, sigma in enumerate(prior):
        fresh[i][i] = fresh[i][i] + changed / sigma
    return fresh, [kept * entry for entry in z]


def forgotten(R: Matrix, z: Any, x: SimpleNamespace) -> tuple[Matrix, list[Scalar]]:
    """Information forgotten towards the prior: Λ → Λ/(1 + r) + Λ_prior r/(1 + r), with r = forgetting · dt."""
    rate = x.forgetting * x.dt
    share = 1 / (1 + rate)
    keep, back = sqrt(share), sqrt(rate * share)
    R = [[keep * entry if j >= i else 0 for j, entry in enumerate(row)] for i, row in enumerate(R)]
    z = [keep * entry for entry in z]
    for i, sigma in enumerate(x.prior):
        R, z = absorbed(R, z, [back / sigma if j == i else 0 for j in range(len(z))], 0)
    return R, z


def start(model: Dynamics, x: SimpleNamespace) -> dict[str, Any]:
    """The prior, and the filter states for which all residuals are zero."""
    size = len(x.prior)
    units = [[int(i == k) for i in range(size)] for k in range(size)]
    columns = [scaled(x.bandwidth, model.of_payload("momentum", unit, x.q, x.qd)) for unit in units]
    R: Matrix = [[1 / x.prior[i] if i == j else 0 for j in range(size)] for i in range(size)]
    return {
        "filtered": scaled(x.bandwidth, model("momentum", x.q, x.qd)),
        "columns": transposed(columns),
        "triangle": packed(R),
        "right": [0] * size,
        "surprise": 1,
    }


def deviation(chain: Chain) -> list[float]:
    """Default standard deviations: a third of the default threshold of the momentum observer."""
    return [most / 3 for most in threshold(chain)]


def law(name: str, summary: str, size: int) -> ControlLaw:
    """The estimator of the first `size` inertial parameters."""
    unit = "kg, kg m" if size == 4 else "kg, kg m, kg m²"
    return ControlLaw(
        name,
        summary,
        "bierman_1977",
        measured=(Q, QD, TAU),
        gains=(
            Entry("bandwidth", ("nv",), "filter bandwidth, 1/s", 20.0),
            Entry("deviation", ("nv",), "standard deviation of the residual without a payload, N m or N", deviation),
            Entry("prior", (size,), f"prior standard deviations of the payload parameters, {unit}",
                  lambda chain: list(PRIOR[:size])),
            Entry("forgetting", (), "forgetting rate, 1/s; 0: no forgetting", 0.0),
            Entry("change", (), "normalized squared innovation above which a payload change is detected", 10.0),
        ),
        outputs=(
            *PAYLOAD,
            Entry("estimate", (size,), f"inertial parameters about the tool origin, in tool axes: {unit}"),
            Entry("deviations", (size,), "standard deviations of `estimate`"),
            Entry("changed", (), "1 if a change of payload was detected in this step, otherwise 0"),
        ),
        memory=(
            Entry("filtered", ("nv",), "filter state of the residual"),
            Entry("columns", ("nv", size), "filter states of the regressor columns"),
            Entry("triangle", (triangle_size(size),), "upper triangular square root of the information matrix"),
            Entry("right", (size,), "right-hand side of the square-root information equation"),
            Entry("surprise", (), "low-pass filtered normalized squared innovation"),
        ),
        step=step,
        start=start,
        at_tool=True,
    )  # fmt: skip


LAW = law("payload_estimator", "recursive estimator of the mass and centre of mass of a payload", 4)
WHOLE = law("payload_inertia_estimator", "recursive estimator of all ten inertial parameters of a payload", 10)
