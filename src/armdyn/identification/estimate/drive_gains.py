"""Drive gains from logs of currents: total least squares, because both sides of τ = K i = Y π are noisy.

The scale comes from something known: a weighed payload in a second log (Gautier & Briot 2014), or, without one, the
arm's own inertias taken as true.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armdyn.arm import Arm
from armdyn.errors import InputError
from armdyn.identification.estimate import linear
from armdyn.identification.estimate.threads import one_thread
from armdyn.identification.log.log import Log
from armdyn.identification.log.processing import Processing, choose_processing, joint_side, motions
from armdyn.identification.model.model import Model
from armdyn.identification.model.rows import filtered, rows

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Gains:
    """Torque over logged effort of every joint, with standard deviations."""

    values: Array
    deviations: Array
    warnings: tuple[str, ...] = ()


@one_thread()
def identify_gains(
    arm: Arm,
    log: Log,
    *,
    loaded: Log | None = None,
    payload: tuple[float, Any, Any] | None = None,
    transmission: Any = None,
    zero: Any = None,
    cutoff: float | None = None,
    parallel: float | bool | None = None,
) -> Gains:
    """The gain of every drive.

    Parameters
    ----------
    arm
        Its geometry; its inertias only where there is no payload.
    log
        Currents of the arm alone.
    loaded, payload
        A second log with a body whose (mass, com, inertia) in the tool's frame are known; inertia may be None.
    transmission, zero, cutoff, parallel
        As for `identify`.
    """
    if (loaded is None) != (payload is None):
        raise InputError("a loaded log and its payload (mass, com, inertia) go together: give both or neither")
    warnings: tuple[str, ...] = ()
    model = Model.of(arm, "coulomb", transmission=transmission)
    first = joint_side(log, transmission, zero)
    how = choose_processing(first, len(model.names), cutoff, parallel)
    model = model.tuned(np.concatenate([p.qd for p in motions(first, how)]), None)
    if loaded is None or payload is None:
        known = model.natural[: model.rigid, : 10 * arm.n] @ model.prior(arm)[: 10 * arm.n]
        Y, effort = _stacked(model, first, how)
        scale = (Y[:, : model.rigid] @ known)[:, None]
        unknown = Y[:, model.rigid :]  # drives and friction
        warnings = ("the scale rests on the arm's own inertias: weigh a payload for gains you can trust",)
    else:
        bare, effort_a = _stacked(model, first, how)
        second = joint_side(loaded, transmission, zero)
        carrying, effort_b = _stacked(model, second, how)
        unknown = np.vstack([bare, carrying])
        effort = np.vstack([effort_a, effort_b])
        scale = np.concatenate([np.zeros(len(bare)), _torque_of_load(arm, payload, second, how)])[:, None]
    return Gains(*_solved(effort, unknown, scale[:, 0], arm.n), warnings)


def _stacked(model: Model, side: Log, how: Processing) -> tuple[Array, Array]:
    """Regressor rows (N n, p) and efforts spread by joint (N n, n)."""
    found = rows(model, motions(side, how), how)
    spread = found.tau[:, :, None] * np.eye(model.n)
    return found.Y.reshape(-1, found.Y.shape[-1]), spread.reshape(-1, model.n)


def _torque_of_load(arm: Arm, payload: tuple[float, Any, Any], side: Log, how: Processing) -> Array:
    carrying = arm.with_payload(*payload)
    parts = []
    for p in motions(side, how):
        more = np.asarray(carrying.inverse_dynamics(p.q, p.qd, p.qdd)) - np.asarray(
            arm.inverse_dynamics(p.q, p.qd, p.qdd)
        )
        parts.append(filtered(more, p, how))
    return np.concatenate(parts).ravel()


def _solved(effort: Array, unknown: Array, scale: Array, n: int) -> tuple[Array, Array]:
    """Gains and deviations of effort @ gains - unknown @ x = scale, every column in units of its own norm.

    What is exactly collinear among the unknowns (merged parameters) is left out by an orthonormal basis of them.
    """
    U, s, _ = np.linalg.svd(unknown / np.maximum(np.linalg.norm(unknown, axis=0), 1e-300), full_matrices=False)
    basis = U[:, s > 1e-8 * s[0]]
    left, known = effort - basis @ (basis.T @ effort), scale - basis @ (basis.T @ scale)
    size, top = np.linalg.norm(left, axis=0), np.linalg.norm(known)
    if not top > 1e-9 * np.linalg.norm(scale) or (size == 0).any():
        raise InputError("the known load acts on no joint that moves: the scale of the drives cannot be told")
    x, deviation = linear.total(left / size, known / top)
    return x * top / size, deviation[:n] * top / size
