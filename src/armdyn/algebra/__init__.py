"""Generic arithmetic for the algorithms: scalars, vectors, sparse joint rotations, operation tallies, dual numbers."""

from armdyn.algebra.angle import Angle
from armdyn.algebra.dual import Dual
from armdyn.algebra.mat3 import IDENTITY, Mat3, Sym3
from armdyn.algebra.operations import Operations
from armdyn.algebra.rotation import JointRotation
from armdyn.algebra.scalar import Scalar, clamp, cos, exact, positive, sign, sin, sqrt
from armdyn.algebra.tally import Tally, counting, on_hand, online
from armdyn.algebra.vec3 import ZERO, Vec3, X, Y, Z

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
