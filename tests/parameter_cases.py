"""Chains with structure, and what their regressors say numerically."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction
from math import pi

import numpy as np

from armdyn.algebra import Angle, Vec3
from armdyn.chain import Chain
from armdyn.chain.chain import generic_chain
from armdyn.codegen.text.numpy import Column
from armdyn.formulations.regressor import natural_regressor

DOWN = Vec3(Fraction(0), Fraction(0), Fraction(-981, 100))
NO_GRAVITY = Vec3(Fraction(0), Fraction(0), Fraction(0))
GRAVITIES = (DOWN, Vec3(Fraction(0), Fraction(-981, 100), Fraction(0)), Vec3(Fraction(3), Fraction(-4), Fraction(7)))


def structured_chain(seed: int, gravities=(*GRAVITIES, NO_GRAVITY), most: int = 5) -> Chain:
    """R and P joints with parallel, perpendicular, intersecting and coincident axes; some with γ."""
    rng = random.Random(seed)
    kinds = "".join(rng.choice("RRRP") for _ in range(rng.randint(1, most)))
    chain = generic_chain(kinds, rng.randrange(10**6))

    def angle() -> Angle:
        return Angle.of(rng.choice([0, 0, 0, pi / 2, -pi / 2, pi, rng.uniform(0.4, 1.1)]))

    def length() -> Fraction:
        return rng.choice([Fraction(0), Fraction(0), Fraction(rng.randrange(200, 600), 1000)])

    joints = tuple(
        replace(
            joint,
            b=length(),
            d=length(),
            beta=angle(),
            theta=angle(),
            gamma=Angle.of(rng.choice([0.0] * 9 + [0.5])),
        )
        for joint in chain.joints
    )
    return replace(chain, joints=joints, gravity=rng.choice(gravities))


def motions(n: int, count: int, seed: int = 0):
    """Random q, q̇, q̈: three arrays (count, n)."""
    return np.random.default_rng(seed).uniform(-2, 2, (3, count, n))


def over(function, chain: Chain, *arrays):
    """A formulation run once over a whole batch, on floats."""
    columns = [[array[:, k].copy().view(Column) for k in range(chain.n)] for array in arrays]
    result = function(chain.floats, *columns)
    count = len(arrays[0])
    if not isinstance(result[0], list):
        result = [[x] for x in result]
    out = np.empty((count, len(result), len(result[0])))
    for i, row in enumerate(result):
        for k, x in enumerate(row):
            out[:, i, k] = x
    return out


def rank(Y) -> int:
    """The numerical rank; the singular values must leave no doubt."""
    columns = Y.reshape(-1, Y.shape[-1])
    size = np.linalg.norm(columns, axis=0)
    felt = columns[:, size > 1e-9] / size[size > 1e-9]
    if not felt.size:
        return 0
    values = np.linalg.svd(felt, compute_uv=False)
    assert not np.any((values > 1e-12) & (values < 1e-5)), values
    return int((values > 1e-9).sum())


def force_rank(chain: Chain) -> int:
    """The numerical rank of a long random regressor in the natural parameters."""
    q, qd, qdd = motions(chain.n, 16 + 4 * chain.n)
    return rank(over(natural_regressor, chain, q, qd, qdd))


def gravity_rank(chain: Chain) -> int:
    """The same at rest."""
    q, zero = motions(chain.n, 20 + 4 * chain.n)[0], np.zeros((20 + 4 * chain.n, chain.n))
    return rank(over(natural_regressor, chain, q, zero, zero))


def table(*rows, kinds: str | None = None, gravity: Vec3 = DOWN) -> Chain:
    """A chain from rows (b, β, d, θ) of a modified Denavit-Hartenberg table."""
    chain = generic_chain(kinds or "R" * len(rows))
    joints = tuple(
        replace(joint, b=Fraction(str(b)), beta=Angle.of(beta), d=Fraction(str(d)), theta=Angle.of(theta))
        for joint, (b, beta, d, theta) in zip(chain.joints, rows, strict=True)
    )
    return replace(chain, joints=joints, gravity=gravity)


def natural(chain: Chain):
    """The 10 n natural parameters as floats."""
    return np.array([float(x) for link in chain.links for x in link.natural])
