"""Write tests/data/ur5_log.csv: a simulated log with what a measured one has.

Links off the file's by up to 30 %, viscous, Coulomb and Stribeck friction, offsets, coloured torque noise, encoder
noise, time stamps that are uneven, late and rounded, three rows lost. Run: python tests/data/make_ur5_log.py
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

import armdyn
from armdyn.algebra import exact
from armdyn.chain import Link
from armdyn.identification.excitation import Basis

SECONDS, RATE, ENCODER = 12.0, 100.0, 2e-5
VISCOUS = np.array([8.0, 9.0, 5.0, 1.5, 1.4, 1.1])
COULOMB = np.array([6.0, 7.0, 4.0, 1.2, 1.0, 0.8])
STICTION, STRIBECK = np.array([3.0, 0.0, 2.0, 0.0, 0.0, 0.0]), 0.1
OFFSET = np.array([0.4, -0.5, 0.3, 0.05, -0.04, 0.02])
NOISE = np.array([0.6, 0.8, 0.4, 0.06, 0.05, 0.04])


def true_arm() -> armdyn.Arm:
    """The arm behind the log: the catalogue's UR5 with every link heavier or lighter."""
    arm = armdyn.load("ur5")
    factors = (1.1, 1.3, 1.25, 0.9, 1.2, 0.75)
    links = tuple(
        Link.from_natural(tuple(x * exact(f) for x in link.natural)) for f, link in zip(factors, arm.links, strict=True)
    )
    return replace(arm, given=replace(arm.given, links=links))


def table() -> tuple[list[str], np.ndarray]:
    """The columns' names and the rows."""
    rng = np.random.default_rng(7)
    arm = true_arm()
    grid = np.arange(round(SECONDS * RATE)) / RATE
    taken = grid + rng.uniform(-0.001, 0.001, len(grid))  # the controller's clock is not the logger's
    basis = Basis(SECONDS, 6)
    c = rng.normal(size=(basis.size, arm.n)) * 0.7 / np.sqrt(basis.size)
    q, qd, qdd = (b @ c for b in basis.at(taken))
    q = q + np.array([0.3, -1.2, 1.0, -0.8, 0.5, 0.2])
    tau = np.asarray(arm.inverse_dynamics(q, qd, qdd)) + VISCOUS * qd + OFFSET
    tau += np.sign(qd) * (COULOMB + STICTION * np.exp(-((qd / STRIBECK) ** 2)))
    white = rng.normal(size=tau.shape)
    coloured = np.zeros_like(white)
    for k in range(1, len(white)):  # first-order Gauss-Markov, correlated over 50 ms
        coloured[k] = 0.82 * coloured[k - 1] + 0.57 * white[k]
    tau += NOISE * (0.7 * coloured + 0.3 * rng.normal(size=tau.shape))
    q = q + ENCODER * rng.normal(size=q.shape)
    kept = np.delete(np.arange(len(grid)), [200, 201, 777])
    names = ["t", *(f"q{k}" for k in range(1, 7)), *(f"tau{k}" for k in range(1, 7))]
    return names, np.column_stack([np.round(taken, 4), q, tau])[kept]


if __name__ == "__main__":
    names, rows = table()
    formats = ["%.4f", *["%.6f"] * 6, *["%.4g"] * 6]
    path = Path(__file__).with_name("ur5_log.csv")
    np.savetxt(path, rows, fmt=formats, delimiter=",", header=",".join(names), comments="")
