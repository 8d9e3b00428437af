"""A number of operations: multiplications, additions, divisions, sines and cosines."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Operations:
    """How many operations a computation takes; signs are free, a subtraction is an addition."""

    mul: int = 0
    add: int = 0
    div: int = 0
    trig: int = 0

    def __add__(self, other: Operations) -> Operations:
        return Operations(self.mul + other.mul, self.add + other.add, self.div + other.div, self.trig + other.trig)

    def __sub__(self, other: Operations) -> Operations:
        return Operations(self.mul - other.mul, self.add - other.add, self.div - other.div, self.trig - other.trig)

    @property
    def total(self) -> int:
        """Multiplications, additions and divisions together (sines and cosines are counted apart)."""
        return self.mul + self.add + self.div

    def __str__(self) -> str:
        text = f"{self.mul}M {self.add}A"
        return text + (f" {self.div}D" if self.div else "")
