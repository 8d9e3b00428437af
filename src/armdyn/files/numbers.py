"""Numbers in files: lossless conversion between text and exact rationals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction

from armdyn.algebra import IDENTITY, Angle, Mat3, Scalar, exact
from armdyn.chain import Placement, exactly

_DIGITS = 2000  # the longest decimal that is accepted
_LARGEST = 10**100  # larger numbers are rejected


def rational(value: object) -> Fraction | None:
    """The exact number of a value in a file; None if it is not a finite number below 1e100.

    A decimal is taken literally. A string "p/q" is a fraction, for numbers that no decimal represents.
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        parts = value.split("/")
        if len(parts) != 2 or not all(p.removeprefix("-").isdecimal() and len(p) < _DIGITS for p in parts):
            return None
        number = Fraction(int(parts[0]), int(parts[1])) if int(parts[1]) else None
        return number if number is not None and abs(number) < _LARGEST else None
    if isinstance(value, Decimal):
        # 1e999999999 is short as text, but its digits would exhaust the memory
        if not value.is_finite() or (value and abs(value.adjusted()) > 330) or len(value.as_tuple().digits) > _DIGITS:
            return None
        return Fraction(value) if abs(value) < _LARGEST else None
    if isinstance(value, int | float) and abs(value) < _LARGEST:  # false for NaN
        return exact(value)
    return None


def decimal_text(x: Scalar) -> str | None:
    """The decimal that equals `x`: the shortest form of its float if that is exact, otherwise all digits.

    None if no finite decimal, or only a very long one, equals it.
    """
    value = exact(x)
    with suppress(OverflowError):  # a number that is too large for a float has no short form
        short = repr(float(value))
        if Fraction(short) == value:
            return short
    twos = fives = 0
    rest = value.denominator
    while rest % 2 == 0:
        rest, twos = rest // 2, twos + 1
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    places = max(twos, fives)
    if rest != 1 or places > _DIGITS // 2:
        return None
    digits = str(abs(value.numerator) * 10**places // value.denominator).rjust(places + 1, "0")
    sign = "-" if value < 0 else ""
    return f"{sign}{digits[: len(digits) - places]}.{digits[len(digits) - places :] or '0'}"


def number_text(x: Scalar) -> str:
    """`x` as a TOML value that reads back exactly: a decimal, or the string "p/q"."""
    value = exact(x)
    return decimal_text(value) or f'"{value.numerator}/{value.denominator}"'


def numbers_text(xs: Sequence[Scalar]) -> str:
    """A TOML array of exact numbers."""
    return f"[{', '.join(number_text(x) for x in xs)}]"


def from_rpy(roll: float, pitch: float, yaw: float) -> Mat3:
    """Rz(yaw) Ry(pitch) Rx(roll), exact at right angles."""
    r, p, y = (Angle.of(float(x)) for x in (roll, pitch, yaw))
    return exactly.from_rpy(r, p, y)


def to_rpy(R: Mat3) -> tuple[float, float, float]:
    """Roll, pitch, yaw of a rotation; at pitch ±π/2 the yaw is 0."""
    (r11, r12, r13), (r21, r22, r23), (r31, r32, r33) = ([float(x) for x in row] for row in R.rows)
    horizontal = math.hypot(r11, r21)
    pitch = math.atan2(-r31, horizontal)
    if horizontal < 1e-12:
        return math.atan2(r12 if r31 < 0 else -r12, r13 if r31 < 0 else r22), pitch, 0.0
    yaw = math.atan2(r21, r11)
    if horizontal < 1e-6:  # roll and yaw are known only together: the roll is that of the rotation without this yaw
        cy, sy = math.cos(yaw), math.sin(yaw)
        return math.atan2(sy * r13 - cy * r23, cy * r22 - sy * r12), pitch, yaw
    return math.atan2(r32, r33), pitch, yaw


def rpy_of(R: Mat3) -> tuple[float, float, float] | None:
    """The shortest roll, pitch, yaw that give exactly `R`; None if there are none."""
    if R == IDENTITY:
        return 0.0, 0.0, 0.0
    angles = to_rpy(R)
    for digits in (*range(2, 17), 30):
        r, p, y = rounded = tuple(round(angle, digits) + 0.0 for angle in angles)
        near = all(abs(x - angle) < 1e-14 for x, angle in zip(rounded, angles, strict=True))
        if near and from_rpy(r, p, y) == R:
            return r, p, y
    return None


def placement_text(placement: Placement) -> str:
    """A TOML table {xyz, rpy} that reads back exactly, with the rotation matrix if no rpy does."""
    rpy = rpy_of(placement.R)
    if rpy is not None:
        return f"{{ xyz = {numbers_text(tuple(placement.p))}, rpy = [{', '.join(map(repr, rpy))}] }}"
    rows = ", ".join(numbers_text(tuple(row)) for row in placement.R.rows)
    return f"{{ xyz = {numbers_text(tuple(placement.p))}, rotation = [{rows}] }}"
