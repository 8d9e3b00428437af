"""The geometry constants that are identifiable from tool poses, by exact elimination, without a tolerance.

Idea: a small change of a constant moves the tool by a screw that is fixed in one of the arm's frames: b and d translate
along x and z, β, γ and θ rotate about x, y and z (Mooring, Roth & Driels 1991). The columns of all constants at random
configurations, modulo a prime, are reduced like those of the inertial parameters (`elimination`): the constants whose
columns are independent over all configurations are kept, and every other one has the same effect as a fixed combination
of these. Base and tool have priority, then θ, d, b, β, γ in the order given.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

from armdyn.algebra import ZERO, JointRotation, Mat3, Scalar, Vec3, X, Y, Z
from armdyn.algebra.scalar import ZERO_ANGLE
from armdyn.chain import Chain, Joint
from armdyn.chain.geometry import GeometryConstant, geometry_constants
from armdyn.parameters.elimination import independent_columns
from armdyn.parameters.energy import Residue, configuration, modular, orthogonal, phase, residue

Column = tuple[Vec3, Vec3]  # displacement of the tool's origin and rotation of the tool, in base axes
_AXES = (X, Y, Z)


@lru_cache(maxsize=64)
def identifiable(
    chain: Chain, constants: tuple[GeometryConstant, ...], orientation: bool = True
) -> tuple[GeometryConstant, ...]:
    """The constants of a serial chain that are identifiable from poses (or positions alone) of the tool.

    If only a combination of constants is identifiable, the first of them is kept.
    """
    samples = _Samples(chain)
    order = {constant: k for k, constant in enumerate(geometry_constants(chain))}
    places = [order[constant] for constant in constants]

    def row(k: int, prime: int) -> list[int]:
        found = samples.at(k, prime, orientation)
        return [found[place] for place in places]

    return tuple(constants[k] for k in independent_columns(row, len(places)))


def screws(
    chain: Chain, constants: Sequence[GeometryConstant], q: Sequence[Scalar], base: Mat3, tool: Mat3
) -> list[Column]:
    """The displacement of the tool at q per geometry constant, for any scalar type; `constants` are all of the chain's.

    `base` and `tool` are the rotations of the chain's base and tool.
    """
    columns: list[tuple[Vec3, Vec3 | None]] = []  # a direction, and a point on the axis if it is a rotation
    at = chain.base.p
    columns += [(axis, None) for axis in _AXES] + [(base @ axis, at) for axis in _AXES]
    R = base
    listed = {(constant.joint, constant.kind) for constant in constants}
    for i, (joint, q_i) in enumerate(zip(chain.joints, q, strict=True)):
        moved, R, at = _joint(joint, q_i, R, at)
        columns += [screw for kind, screw in moved.items() if (i, kind) in listed]
    end = R @ chain.tool.p + at
    columns += [(R @ axis, None) for axis in _AXES] + [(R @ (tool @ axis), end) for axis in _AXES]
    return [(u, ZERO) if point is None else (u.cross(end - point), u) for u, point in columns]


def _joint(joint: Joint, q: Scalar, R: Mat3, at: Vec3) -> tuple[dict[str, tuple[Vec3, Vec3 | None]], Mat3, Vec3]:
    """The screws of a joint's constants by name, and the frame beyond it."""
    z = R @ Z
    axes: dict[str, tuple[Vec3, Vec3 | None]] = {"shift": (z, None), "turn": (z, at)}
    R = R @ JointRotation(ZERO_ANGLE, ZERO_ANGLE, joint.turn.cos, joint.turn.sin).matrix()
    x, at = R @ X, at + z * joint.shift
    axes |= {"b": (x, None), "beta": (x, at)}
    R, at = R @ JointRotation(joint.beta, ZERO_ANGLE, 1, 0).matrix(), at + x * joint.b
    axes["gamma"] = (R @ Y, at)
    R = R @ JointRotation(ZERO_ANGLE, joint.gamma, 1, 0).matrix()
    z = R @ Z
    axes |= {"d": (z, None), "theta": (z, at)}
    turned = joint.rotation(q)
    spin = JointRotation(ZERO_ANGLE, ZERO_ANGLE, turned.c, turned.s).matrix()
    return axes, R @ spin, at + z * joint.extension(q)


class _Samples:
    """Columns at random configurations modulo a prime; the k-th sample is the same in every run."""

    def __init__(self, chain: Chain) -> None:
        self.given = chain
        self.chain = orthogonal(chain)

    def at(self, k: int, prime: int, orientation: bool) -> list[int]:
        """One row: a random combination of the tool's displacements along, and rotations about, the base's axes."""
        rng = random.Random(f"armdyn geometry {k}")
        bare = modular(self.chain, prime)
        q = [Residue(rng.randrange(prime), prime) for _ in bare.joints]
        here = configuration(bare, q, [phase(joint, prime) for joint in self.chain.joints])
        base, tool = _modular_rotation(self.given.base.R, prime), _modular_rotation(self.given.tool.R, prime)
        placed = _with_ends(bare, self.given, prime)
        columns = screws(placed, geometry_constants(self.given), here, base, tool)
        pull = Vec3(*(Residue(rng.randrange(prime), prime) for _ in _AXES))
        spin = Vec3(*(Residue(rng.randrange(prime) if orientation else 0, prime) for _ in _AXES))
        return [residue(pull.dot(linear) + spin.dot(angular), prime) for linear, angular in columns]


def _with_ends(bare: Chain, given: Chain, prime: int) -> Chain:
    def point(p: Vec3) -> Vec3:
        return Vec3(*(Residue(residue(Fraction(x), prime), prime) for x in p))

    base, tool = replace(given.base, p=point(given.base.p)), replace(given.tool, p=point(given.tool.p))
    return replace(bare, base=base, tool=tool)


def _modular_rotation(R: Mat3, prime: int) -> Mat3:
    exact = rational_rotation(R)
    return Mat3(*(Vec3(*(Residue(residue(x, prime), prime) for x in row)) for row in exact.rows))


def rational_rotation(R: Mat3) -> Mat3:
    """An exactly orthogonal rational rotation matrix: from the quaternion, scaled so that its largest entry is 1."""
    (a, b, c), (d, e, f), (g, h, i) = ([float(x) for x in row] for row in R.rows)
    candidates = (
        (1 + a + e + i, h - f, c - g, d - b),
        (h - f, 1 + a - e - i, b + d, c + g),
        (c - g, b + d, 1 - a + e - i, f + h),
        (d - b, c + g, f + h, 1 - a - e + i),
    )
    best = max(candidates, key=lambda row: max(map(abs, row)))
    largest = max(best, key=abs)
    w, x, y, z = (Fraction(v / largest) for v in best)
    n = w * w + x * x + y * y + z * z
    return Mat3(
        Vec3(w * w + x * x - y * y - z * z, 2 * (x * y - w * z), 2 * (x * z + w * y)) * (1 / n),
        Vec3(2 * (x * y + w * z), w * w - x * x + y * y - z * z, 2 * (y * z - w * x)) * (1 / n),
        Vec3(2 * (x * z - w * y), 2 * (y * z + w * x), w * w - x * x - y * y + z * z) * (1 / n),
    )
