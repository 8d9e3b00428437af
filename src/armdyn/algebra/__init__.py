"""Generic arithmetic for the algorithms: scalars, vectors, sparse joint rotations, operation tallies, dual numbers."""

from armdyn.algebra.dual import Dual
from armdyn.algebra.scalar import Angle, Operations, Scalar, clamp, cos, exact, positive, sign, sin, sqrt
from armdyn.algebra.spatial import IDENTITY, ZERO, JointRotation, Mat3, Sym3, Vec3, X, Y, Z
from armdyn.algebra.tally import Tally, counting, on_hand, online

__all__ = [
    "IDENTITY",
    "ZERO",
    "Angle",
    "Dual",
    "JointRotation",
    "Mat3",
    "Operations",
    "Scalar",
    "Sym3",
    "Tally",
    "Vec3",
    "X",
    "Y",
    "Z",
    "clamp",
    "cos",
    "counting",
    "exact",
    "on_hand",
    "online",
    "positive",
    "sign",
    "sin",
    "sqrt",
]
