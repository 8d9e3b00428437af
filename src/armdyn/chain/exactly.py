"""Placements and bodies in exact arithmetic, fast where rotations are right-angled.

A right-angled rotation has the plain integers 0 and ±1 as entries. Fractions are slow, so products
with such entries are never multiplied out; a file with a dozen links loads in a few milliseconds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

from armdyn.algebra import Angle, Mat3, Scalar, Sym3, Vec3, exact
from armdyn.chain.joint import Link, Placement

NOISE = 1e-14  # radians or metres: the rounding error of a zero
_ROUNDING = 4e-16  # the error of a rotation's entries after a few products of rounded ones
_BITS = 128  # a longer denominator results from rounded numbers, not from a decimal in a file


def dot(a: Iterable[Scalar], b: Iterable[Scalar]) -> Scalar:
    """Scalar product that multiplies nothing by 0 or ±1."""
    total: Scalar = 0
    for x, y in zip(a, b, strict=True):
        if not x or not y:
            continue
        if type(x) is int and -1 <= x <= 1:
            product = y if x > 0 else -y
        elif type(y) is int and -1 <= y <= 1:
            product = x if y > 0 else -x
        else:
            product = x * y
        total = total + product if total else product
    return total


def rotate(R: Mat3, v: Vec3) -> Vec3:
    """R v."""
    return Vec3(dot(R.r1, v), dot(R.r2, v), dot(R.r3, v))


def product(A: Mat3, B: Mat3) -> Mat3:
    """A B."""
    columns = B.T
    return Mat3(rotate(columns, A.r1), rotate(columns, A.r2), rotate(columns, A.r3))


def at(outer: Placement, p: Vec3) -> Vec3:
    """The point p of the inner frame, seen from the outer."""
    return rotate(outer.R, p) + outer.p


def compose(outer: Placement, inner: Placement) -> Placement:
    """The product of two placements, with long denominators shortened."""
    R = product(outer.R, inner.R)
    if not is_right(R):
        R = Mat3(*(_rounded_row(row) for row in R.rows))
    return Placement(R, short(at(outer, inner.p), NOISE))


def _rounded_row(row: Vec3) -> Vec3:
    """A row of a rotation rounded to floats; a right angle composed of two oblique ones becomes exact again."""

    def entry(x: Scalar) -> Scalar:
        if type(x) is int:
            return x
        nearest = round(float(x))
        return nearest if abs(float(x) - nearest) < _ROUNDING else Fraction(float(x))

    return Vec3(entry(row.x), entry(row.y), entry(row.z))


def inverse(of: Placement) -> Placement:
    """The placement of the outer frame in the inner one."""
    T = of.R.T
    return Placement(T, -rotate(T, of.p))


def moved(link: Link, to: Placement) -> Link:
    """The body in a frame in which its own frame is placed at `to`; exact if that is right-angled."""
    R, p, m = to.R, to.p, link.mass
    if not any(link.natural):
        return link
    h, J = rotate(R, link.moment), _similarity(R, link.inertia)
    if any(p):
        w = h + h + m * p
        J = J + _steiner(p, w)
        h = h + m * p
    there = Link.from_natural(tuple(x if type(x) is Fraction else Fraction(x) for x in (m, *h, *J.entries)))
    return there if is_right(R) else _rounded(there)


def _similarity(R: Mat3, J: Sym3) -> Sym3:
    columns = Mat3(*(rotate(R, row) for row in J.full.rows))  # (R J)ᵀ, by rows
    full = product(R, columns)
    return Sym3(full.r1.x, full.r1.y, full.r2.y, full.r1.z, full.r2.z, full.r3.z)


def _steiner(p: Vec3, w: Vec3) -> Sym3:
    """The change of an inertia when its body, with first moment h, is moved by p; w = 2h + m p."""
    xx, yy, zz = p.x * w.x, p.y * w.y, p.z * w.z

    def mixed(a: Scalar, b: Scalar, c: Scalar, d: Scalar) -> Scalar:
        return dot((a, b), (c, d)) * Fraction(-1, 2)

    xy, xz, yz = mixed(p.x, p.y, w.y, w.x), mixed(p.x, p.z, w.z, w.x), mixed(p.y, p.z, w.z, w.y)
    return Sym3(yy + zz, xy, xx + zz, xz, yz, xx + yy)


def _rounded(link: Link) -> Link:
    """The link with the results of a rotation that is not right-angled rounded to decimals."""
    size = (link.mass, *(max(map(abs, link.moment)),) * 3, *(max(map(abs, link.inertia.entries)),) * 6)
    values = (
        Fraction(0) if abs(x) <= _ROUNDING * float(scale) else exact(float(x))
        for x, scale in zip(link.natural, size, strict=True)
    )
    return Link.from_natural(tuple(values))


def is_right(R: Mat3) -> bool:
    """Whether the rotation is right-angled: a signed permutation of the axes."""
    return all(type(x) is int or (isinstance(x, Fraction) and x.denominator == 1) for row in R.rows for x in row)


def length(x: Scalar) -> Scalar:
    """A length of the arm: a decimal, and exactly zero where only rounding is left of it."""
    if isinstance(x, float):
        return 0.0 if abs(x) <= NOISE else x
    return Fraction(0) if abs(x) <= NOISE else exact(float(x))


def short(v: Vec3, noise: float = 0.0) -> Vec3:
    """The vector with long denominators cut to what a float holds, and zero below `noise` where they are."""

    def cut(x: Scalar) -> Scalar:
        if not isinstance(x, Fraction) or x.denominator.bit_length() <= _BITS:
            return x
        return 0 if abs(x) <= noise else Fraction(float(x))

    return Vec3(cut(v.x), cut(v.y), cut(v.z))


def from_rpy(roll: Angle, pitch: Angle, yaw: Angle) -> Mat3:
    """Rz(yaw) Ry(pitch) Rx(roll), with integers where the angles are right."""
    (cr, sr), (cp, sp), (cy, sy) = (
        (int(a.cos), int(a.sin)) if a.is_right else (a.cos, a.sin) for a in (roll, pitch, yaw)
    )
    spsr, spcr = sp * sr, sp * cr
    return Mat3(
        Vec3(cy * cp, dot((cy, -sy), (spsr, cr)), dot((cy, sy), (spcr, sr))),
        Vec3(sy * cp, dot((sy, cy), (spsr, cr)), dot((sy, -cy), (spcr, sr))),
        Vec3(-sp, cp * sr, cp * cr),
    )


def root(x: Scalar) -> Scalar:
    """Square root, exact where it is rational."""
    if isinstance(x, float):
        return math.sqrt(x)
    top, bottom = math.isqrt(x.numerator), math.isqrt(x.denominator)
    if top * top == x.numerator and bottom * bottom == x.denominator:
        return Fraction(top, bottom)
    return Fraction(math.sqrt(x))


def unit(v: Vec3) -> Vec3:
    """The direction of a vector, exact where its length is rational, with integers along an axis."""
    components = [x for x in v if x]
    if len(components) == 1 and not isinstance(components[0], float):
        return Vec3(*((x > 0) - (x < 0) for x in v))
    r = root(v.dot(v))
    if isinstance(r, float) or r * r == v.dot(v):
        return Vec3(v.x / r, v.y / r, v.z / r)
    return Vec3(*(Fraction(float(x) / float(r)) for x in v))
