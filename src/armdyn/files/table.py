"""A table of a file with its location, so that every error says where it is, what was found and what was expected."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, NoReturn

from armdyn.algebra import IDENTITY, ZERO, Mat3, Vec3
from armdyn.chain import Placement
from armdyn.errors import FileError
from armdyn.files.numbers import from_rpy, rational


@dataclass(frozen=True)
class Table:
    """A mapping from a file; `where` is its location ("arm.toml: joint 2 (elbow)")."""

    where: str
    content: Mapping[str, Any]

    def fail(self, complaint: str) -> NoReturn:
        """Raise a `FileError` with the location."""
        raise FileError(f"{self.where}: {complaint}")

    def only(self, allowed: Iterable[str]) -> None:
        """Raise an error for unknown keys."""
        names = list(allowed)
        for key in self.content:
            if key not in names:
                from difflib import get_close_matches  # seldom needed, slow to import

                near = get_close_matches(key, names, 1)
                hint = f" (did you mean {near[0]!r}?)" if near else ""
                self.fail(f"unknown key {key!r}{hint}; expected {', '.join(names)}")

    def has(self, key: str) -> bool:
        """Whether the table has the key."""
        return key in self.content

    def require(self, key: str) -> Any:
        """The value of a required key."""
        if key not in self.content:
            have = ", ".join(self.content) or "nothing"
            self.fail(f"missing key {key!r}; found only {have}")
        return self.content[key]

    def text(self, key: str, default: str | None = None) -> str:
        """A string."""
        value = self.require(key) if default is None else self.content.get(key, default)
        if not isinstance(value, str):
            self.fail(f"{key} must be a string, got {value!r}")
        return value

    def one_of(self, key: str, available: Iterable[str], default: str | None = None) -> str:
        """One of the available strings."""
        value = self.require(key) if default is None else self.content.get(key, default)
        names = list(available)
        if value not in names:
            self.fail(f"unknown {key} {value!r}; available: {', '.join(names)}")
        return str(value)

    def number(self, key: str, default: Fraction | None = None) -> Fraction:
        """An exact finite number."""
        value = self.require(key) if default is None else self.content.get(key, default)
        return value if isinstance(value, Fraction) else self._number(key, value)

    def _number(self, key: str, value: object) -> Fraction:
        number = rational(value)
        if number is None:
            self.fail(f"{key} must be a finite number, got {_brief(value)}")
        return number

    def numbers(self, key: str, count: int, meaning: str) -> tuple[Fraction, ...]:
        """An array of `count` exact numbers."""
        value = self.require(key)
        if not isinstance(value, list) or len(value) != count:
            self.fail(f"{key} must be an array of {count} numbers ({meaning}), got {_brief(value)}")
        return tuple(self._number(f"{key}[{i}]", item) for i, item in enumerate(value))

    def vector(self, key: str) -> Vec3:
        """Three exact numbers."""
        return Vec3(*self.numbers(key, 3, "x, y, z"))

    def table(self, key: str) -> Table:
        """A table inside this one."""
        value = self.require(key)
        if not isinstance(value, dict):
            self.fail(f"{key} must be a table {{ ... }}, got {_brief(value)}")
        return Table(f"{self.where}: {key}", value)

    def placement(self) -> Placement:
        """The placement {xyz, rpy} or {xyz, rotation}; both parts optional."""
        self.only(("xyz", "rpy", "rotation"))
        if self.has("rpy") and self.has("rotation"):
            self.fail("give rpy or rotation, not both")
        R = IDENTITY
        if self.has("rpy"):
            roll, pitch, yaw = self.numbers("rpy", 3, "roll, pitch, yaw in radians")
            R = from_rpy(float(roll), float(pitch), float(yaw))
        elif self.has("rotation"):
            R = self._rotation()
        return Placement(R, self.vector("xyz") if self.has("xyz") else ZERO)

    def _rotation(self) -> Mat3:
        rows = self.require("rotation")
        if not isinstance(rows, list) or len(rows) != 3:
            self.fail(f"rotation must be three rows of three numbers, got {_brief(rows)}")
        inner = Table(self.where, {f"rotation[{i}]": row for i, row in enumerate(rows)})
        R = Mat3(*(inner.vector(key) for key in inner.content))
        product = R @ R.T
        off = max(
            abs(a - b) for r, s in zip(product.rows, IDENTITY.rows, strict=True) for a, b in zip(r, s, strict=True)
        )
        if off > Fraction(1, 10**9):
            self.fail(f"rotation is not a rotation matrix: R Rᵀ differs from the identity by {float(off):.1g}")
        if R.r1.cross(R.r2).dot(R.r3) < 0:
            self.fail("rotation is not a rotation matrix but a reflection: its determinant is -1")
        return R


def _brief(value: object) -> str:
    """A value as text for a message, shortened."""
    text = str(value) if isinstance(value, Decimal) else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
