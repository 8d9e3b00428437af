"""Snapping: angles written 1.5708 are right angles, lengths of 1e-9 m are zero."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from armdyn.algebra import Angle, Scalar
from armdyn.chain.chain import Chain
from armdyn.chain.joint import Joint

SNAP = 1e-5  # radians; lengths use a hundredth of it, in metres


def snapped(chain: Chain, snap: float) -> Chain:
    """The chain with angles within `snap` of a multiple of π/2 made exact and tiny lengths made zero."""

    def length(x: Scalar) -> Scalar:
        return Fraction(0) if abs(x) <= snap / 100 else x

    def joint(j: Joint) -> Joint:
        return replace(
            j,
            b=length(j.b),
            d=length(j.d),
            beta=Angle.of(j.beta.radians, snap),
            theta=Angle.of(j.theta.radians, snap),
            gamma=Angle.of(j.gamma.radians, 0.0),
        )

    return replace(chain, joints=tuple(joint(j) for j in chain.joints)) if snap else chain
