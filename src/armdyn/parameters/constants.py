"""Inertia constants of composite bodies: the part of a composite body's inertia that is independent of the motion.

Source: Lin & Fang 1999, App. C, eqs. (C1)-(C3); Lin 1994, eqs. (21), (23), (25).

Idea: the first moment and the inertia of composite body i (links i to n) about the origin of frame i are each the sum
of a constant and a varying part, ĉᵢ = kᵢ + lᵢ and Ĵᵢ = Uᵢ + Vᵢ. The part of composite body i+1 that is invariant under
the motion of joint i+1 goes into k and U.

Symbols (paper | code): m̂ᵢ | mass, kᵢ | k, Uᵢ | U, ⁱ⁺¹ᵢs | s, ⁱ⁺¹ᵢR_b | axis, b_{i+1} | b.

The two papers differ in (U)₃₃: rotation about z leaves diag(U₂₂, U₂₂, U₃₃) unchanged, and Lin 1994 adds all of it to
the next U, while Lin & Fang 1999 leave (U)₃₃ to the varying part V. Each set of minimal combinations follows from the
other by a unit triangular matrix (Lin 1994, Corollary 6); Lin & Fang's is the default, because their algorithms use it.
If γ is not 0, the constant rotation Rx(β)Ry(γ) replaces Rx(β).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from armdyn.algebra import JointRotation, Scalar, Sym3, Vec3, X, Z
from armdyn.algebra.angle import ZERO_ANGLE
from armdyn.algebra.spatial import parallel_axis
from armdyn.chain import Chain, Joint


@dataclass(frozen=True, slots=True)
class Constants:
    """m̂, k and U of one composite body."""

    mass: Scalar
    k: Vec3
    U: Sym3

    def __add__(self, other: Constants) -> Constants:
        return Constants(self.mass + other.mass, self.k + other.k, self.U + other.U)


def inertia_constants(chain: Chain) -> tuple[Constants, ...]:
    """m̂ᵢ, kᵢ, Uᵢ of every composite body, base to tip (Lin & Fang 1999, App. C).

    They are exact for exact chains, and linear in the links' ten parameters, which may be of any scalar type.
    """
    return _inwards(chain, lambda U: (U.yy, 0))


def inertia_constants_1994(chain: Chain) -> tuple[Constants, ...]:
    """The same, but (U)₃₃ is propagated inwards too (Lin 1994, eq. 23)."""
    return _inwards(chain, lambda U: (U.yy, U.zz))


def _inwards(chain: Chain, kept: Callable[[Sym3], tuple[Scalar, Scalar]]) -> tuple[Constants, ...]:
    """Tips to base; `kept` returns (a, c): diag(a, a, c) is the part of U that goes into the parent's constants."""
    found = [Constants(link.mass, link.moment, link.inertia) for link in chain.links]
    for i in reversed(range(chain.bodies)):
        if chain.parents[i] >= 0:
            parent = chain.parents[i]
            found[parent] = found[parent] + regrouped(chain.joints[i], found[i], kept)
    return tuple(found)


def regrouped(
    joint: Joint,
    outer: Constants,
    kept: Callable[[Sym3], tuple[Scalar, Scalar]] = lambda U: (U.yy, 0),
) -> Constants:
    """The part of the composite body beyond `joint` that is regrouped with the constants of its parent."""
    found = _past_revolute(joint, outer, kept) if joint.revolute else _past_prismatic(joint, outer)
    return _past_fork(joint, found) if joint.forked else found


def _past_fork(joint: Joint, body: Constants) -> Constants:
    """The constants in the parent's frame, past the rotation about and the shift along its z axis at a branch."""
    R, p = JointRotation(ZERO_ANGLE, ZERO_ANGLE, joint.turn.cos, joint.turn.sin), Z * joint.shift
    k = R @ body.k
    U = R.similarity(body.U) + Sym3.steiner(p, p) * body.mass + parallel_axis(p, k)
    return Constants(body.mass, k + p * body.mass, U)


def _past_revolute(joint: Joint, outer: Constants, kept: Callable[[Sym3], tuple[Scalar, Scalar]]) -> Constants:
    m, k_z = outer.mass, outer.k.z
    tilt = JointRotation(joint.beta, joint.gamma, 1, 0)
    axis = tilt @ Z
    s = X * joint.b + axis * joint.d
    a, c = kept(outer.U)
    U = (
        tilt.similarity(Sym3(1, 0, 1, 0, 0, 0)) * a
        + tilt.similarity(Sym3(0, 0, 0, 0, 0, 1)) * c
        + Sym3.steiner(s, s) * m
        + parallel_axis(s, axis) * k_z
    )  # eq. (C2)
    return Constants(m, s * m + axis * k_z, U)  # eq. (C1)


def _past_prismatic(joint: Joint, outer: Constants) -> Constants:
    m = outer.mass
    R = JointRotation(joint.beta, joint.gamma, joint.theta.cos, joint.theta.sin)
    b, k = X * joint.b, R @ outer.k
    U = R.similarity(outer.U) + Sym3.steiner(b, b) * m + parallel_axis(b, k)  # eq. (C3)
    return Constants(m, b * m + k, U)  # eq. (C1)
