"""Pseudo-inertia: a link's ten parameters as a symmetric 4 x 4 matrix, positive definite for a real body.

P = [[Σ, h], [hᵀ, m]] with Σ = ½ tr(I) 1 - I (Wensing, Kim & Slotine 2018, "Linear matrix inequalities for physically
consistent inertial parameter identification"). P ≻ 0 holds exactly when the mass and the principal moments are
positive and the moments satisfy the triangle inequalities, as those of a body with positive density do.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Entries of the upper triangle, column by column.
PAIRS = [(i, j) for j in range(4) for i in range(j + 1)]


def pseudo_inertia(natural: Array) -> Array:
    """The pseudo-inertia matrices (..., 4, 4) of inertial parameters (..., 10)."""
    m, hx, hy, hz, xx, xy, yy, xz, yz, zz = np.moveaxis(np.asarray(natural, dtype=float), -1, 0)
    half = (xx + yy + zz) / 2
    rows = [[half - xx, -xy, -xz, hx], [-xy, half - yy, -yz, hy], [-xz, -yz, half - zz, hz], [hx, hy, hz, m]]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def natural_of(P: Array) -> Array:
    """The inertial parameters (..., 10) of pseudo-inertia matrices (..., 4, 4): the inverse of `pseudo_inertia`."""
    P = np.asarray(P, dtype=float)
    s = P[..., 0, 0] + P[..., 1, 1] + P[..., 2, 2]
    parts = [P[..., 3, 3], P[..., 0, 3], P[..., 1, 3], P[..., 2, 3], s - P[..., 0, 0], -P[..., 0, 1]]
    parts += [s - P[..., 1, 1], -P[..., 0, 2], -P[..., 1, 2], s - P[..., 2, 2]]
    return np.stack(parts, axis=-1)


def reference_bodies(natural: Array) -> tuple[Array, list[int]]:
    """Physically consistent bodies near the given ones, (n, 4, 4), and the links (from 0) that were inconsistent.

    An inconsistent or flat body keeps its mass and centre of mass and is given the inertia of a small sphere; a link
    without mass is given a tenth of the mean mass. The bodies serve only as the reference of the regularization.
    """
    links = np.asarray(natural, dtype=float).reshape(-1, 10)
    masses = links[:, 0]
    usual = float(masses[masses > 0].mean()) if (masses > 0).any() else 1.0
    out, bad = [], []
    for k, link in enumerate(links):
        P = pseudo_inertia(link)
        scale = np.trace(P[:3, :3]) / 3 if link[0] > 0 else 0.0
        if link[0] <= 0 or np.linalg.eigvalsh(_unit(P, scale))[0] < 1e-6:
            bad.append(k)
            mass = link[0] if link[0] > 0 else 0.1 * usual
            centre = link[1:4] / link[0] if link[0] > 0 else np.zeros(3)
            radius = 0.05
            P = np.zeros((4, 4))
            P[:3, :3] = mass * (radius**2 * np.eye(3) + np.outer(centre, centre))
            P[:3, 3] = P[3, :3] = mass * centre
            P[3, 3] = mass
        out.append(P)
    return np.array(out), bad


def _unit(P: Array, scale: float) -> Array:
    """P normalized by its own mass and size, so that its eigenvalues can be compared with a threshold."""
    if not scale > 0 or not P[3, 3] > 0:
        return -np.eye(4)
    d = np.array([*([1 / np.sqrt(scale)] * 3), 1 / np.sqrt(P[3, 3])])
    return np.asarray(d[:, None] * P * d)
