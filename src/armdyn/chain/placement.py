"""A fixed placement of one frame in another."""

from __future__ import annotations

from dataclasses import dataclass

from armdyn.algebra import IDENTITY, ZERO, Mat3, Vec3


@dataclass(frozen=True, slots=True)
class Placement:
    """x_outer = R x_inner + p."""

    R: Mat3 = IDENTITY
    p: Vec3 = ZERO

    def __matmul__(self, inner: Placement) -> Placement:
        return Placement(self.R @ inner.R, self.R @ inner.p + self.p)

    @property
    def inverse(self) -> Placement:
        """The placement of the outer frame in the inner one."""
        return Placement(self.R.T, -(self.R.T @ self.p))
