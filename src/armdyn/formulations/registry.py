"""What a quantity and a formulation are; the tuples of them stand in each quantity's own folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Size = int | str  # "n" stands for the number of joints


@dataclass(frozen=True)
class Formulation:
    """One published way to compute a quantity: `run(chain, *inputs)`, pure, over any scalar."""

    key: str
    run: Callable[..., Any]
    source: str  # a key of the bibliography, "" for ours
    summary: str


@dataclass(frozen=True)
class Quantity:
    """What can be asked of an arm: its inputs, outputs and every way to compute it, the default first."""

    name: str
    inputs: tuple[tuple[str, tuple[Size, ...]], ...]
    outputs: tuple[tuple[str, tuple[Size, ...]], ...]
    methods: tuple[Formulation, ...]
    summary: str

    def shape(self, shape: tuple[Size, ...], n: int) -> tuple[int, ...]:
        """The shape with the number of joints put in."""
        return tuple(n if size == "n" else int(size) for size in shape)


Q = ("q", ("n",))
QD = ("qd", ("n",))
QDD = ("qdd", ("n",))
TAU = ("tau", ("n",))
