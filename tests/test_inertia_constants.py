"""Inertia constants of composite bodies, against composite bodies summed directly."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from armdyn.algebra import Angle, Mat3, Sym3, Vec3
from armdyn.algebra.spatial import parallel_axis
from armdyn.chain import Chain, Link
from armdyn.chain.chain import generic_chain
from armdyn.parameters import (
    inertia_constants,
    inertia_constants_1994,
)

KINDS = ("R", "P", "RR", "RP", "PR", "PP", "RRR", "RPR", "PRP", "RRPRRR", "PPRRPR", "RRRRRRR", "RPPRPR")


def tilted(chain: Chain, gamma: float) -> Chain:
    """The chain with γ in every joint but the first."""
    joints = (chain.joints[0], *(replace(j, gamma=Angle.of(gamma)) for j in chain.joints[1:]))
    return replace(chain, joints=joints)


def composite_bodies(chain: Chain, q: list[float]) -> list[Link]:
    """Links i to n as one body seen from frame i, summed directly."""
    found = [chain.links[-1]]
    for link, joint, value in zip(chain.links[-2::-1], chain.joints[:0:-1], q[:0:-1], strict=True):
        R, p = joint.placement(value)
        found.append(link + found[-1].moved(R.matrix(), p))
    return found[::-1]


def close(a, b) -> bool:
    return all(abs(x - y) < 1e-12 for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("kinds", KINDS)
@pytest.mark.parametrize("gamma", [0.0, 0.4])
@pytest.mark.parametrize("version", [inertia_constants, inertia_constants_1994])
def test_constant_and_varying_parts_add_up_to_the_composite_bodies(kinds, gamma, version):
    """Lin & Fang 1999 eqs. (22)-(26), Lin 1994 eqs. (19)-(26)."""
    chain = tilted(generic_chain(kinds, 3), gamma)
    rng = random.Random(5)
    q = [rng.uniform(-3, 3) for _ in kinds]
    with_33 = 1 if version is inertia_constants else 0
    bodies, constants = composite_bodies(chain.floats, q), version(chain)
    vary_c, vary_J = Vec3(0, 0, 0), Sym3(0, 0, 0, 0, 0, 0)
    for i in reversed(range(chain.n)):
        body, constant = bodies[i], constants[i]
        assert abs(body.mass - constant.mass) < 1e-12
        assert close(body.moment, constant.k + vary_c)
        assert close(body.inertia.entries, (constant.U + vary_J).entries)
        joint = chain.floats.joints[i]
        R, p = joint.placement(q[i])
        R = Mat3(*R.matrix().rows)
        k, U = constant.k, constant.U
        if joint.revolute:
            vary_c = R @ (vary_c + Vec3(k.x, k.y, 0))
            rest = Sym3(U.xx - U.yy, U.xy, 0, U.xz, U.yz, with_33 * U.zz)
            vary_J = R.similarity(vary_J + rest) + parallel_axis(p, vary_c)
        else:
            d, b = joint.extension(q[i]), Vec3(joint.b, 0, 0)
            slide = Vec3(0, 0, d)
            inner = constant.mass * Sym3.steiner(slide, slide) + parallel_axis(slide, k + vary_c)
            vary_c = R @ (vary_c + constant.mass * slide)
            vary_J = R.similarity(vary_J + inner) + parallel_axis(b, vary_c)
