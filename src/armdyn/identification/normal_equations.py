"""The normal equations of τ = Y(q, q̇, q̈) π over any number of rows, without the matrix of all regressors.

A million rows of a seven-joint arm have a regressor of 2.4 GB, and normal equations of 15 kB. Regressors are computed
in blocks that stay in the processor's cache, and added up there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from armdyn.arm import Arm, as_arm
from armdyn.errors import InputError
from armdyn.identification.threads import one_thread

BLOCK = 2**18  # bytes of the regressors of one block


def normal_equations(
    arm: Arm | str, q: Any, qd: Any, qdd: Any, tau: Any, weights: Any = None
) -> tuple[np.ndarray, np.ndarray]:
    """YᵀWY (p, p) and YᵀWτ (p,) of many rows, where Y are their regressors and W is diagonal.

    Their solution are the weighted least squares of the minimal parameters:
    ``np.linalg.solve(*armdyn.normal_equations(arm, q, qd, qdd, tau))``. Those of several logs, or of several processes,
    may be added. Normal equations lose digits: parameters whose regressors are nearly parallel come out with the square
    of the condition number, which `identify` avoids.

    Parameters
    ----------
    arm
        An arm, a catalogue name or the path of a robot's file.
    q, qd, qdd, tau
        Positions, velocities, accelerations and efforts, (rows, n) each; memory-mapped arrays are read block by block.
    weights
        The weight of each effort: (n,), or (rows, n); by default 1. For a noise of σ it is 1/σ².
    """
    robot = as_arm(arm, "normal_equations")
    kernel, p = robot.regressor, len(robot.minimal_parameters)
    nq, nv = robot.chain.nq, robot.chain.nv
    state = [np.asanyarray(x) for x in (q, qd, qdd, tau)]
    rows = len(state[0]) if state[0].ndim else 0
    for name, x, size in zip(("q", "qd", "qdd", "tau"), state, (nq, nv, nv, nv), strict=True):
        if x.shape != (rows, size):
            raise InputError(f"normal_equations expects {name} of shape ({rows}, {size}), got {x.shape}")
    scale = np.ones(nv) if weights is None else np.asanyarray(weights, dtype=float)
    if scale.shape not in ((nv,), (rows, nv)) or not (scale >= 0).all():
        raise InputError(
            f"weights must be numbers from 0 of shape ({nv},) or ({rows}, {nv}), got {scale.shape} with a minimum of "
            f"{scale.min() if scale.size else 'nothing'}"
        )
    normal, moment = np.zeros((p, p)), np.zeros(p)
    size = max(1, BLOCK // (8 * nv * p))
    space = np.empty((min(size, rows), nv, p))
    with one_thread():
        for first in range(0, rows, size):
            block = slice(first, min(first + size, rows))
            given = (np.ascontiguousarray(x[block], dtype=float) for x in state[:3])
            Y = kernel(*given, out=space[: block.stop - first])
            root = np.sqrt(scale if scale.ndim == 1 else scale[block])
            A = (Y if weights is None else Y * root[..., None]).reshape(-1, p)
            normal += A.T @ A
            moment += A.T @ (state[3][block] * root).ravel()
    return normal, moment
