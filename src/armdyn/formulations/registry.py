"""What a quantity and a formulation are; the tuples of them stand in each quantity's own folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from armdyn.chain import Chain

Size = int | str  # "n" stands for the number of joints, "p" for that of minimal parameters, "10n" for 10 n


@dataclass(frozen=True)
class Formulation:
    """One published way to compute a quantity: `run(chain, *inputs)`, pure, over any scalar."""

    key: str
    run: Callable[..., Any]
    source: str  # a key of the bibliography, "" for ours
    summary: str
    # Where `run` leaves open what costs but does not change the result: keywords for this chain, the default first.
    ways: Callable[[Chain], Sequence[Mapping[str, Any]]] = lambda chain: ({},)
    ends: tuple[str, ...] = ()  # keys of formulations that are special cases of this one, and may be taken for it
    # Where there is an algorithm of their own for them: the derivatives in all inputs, one matrix an input.
    derivatives: Callable[..., Any] | None = None


@dataclass(frozen=True)
class Quantity:
    """What can be asked of an arm: its inputs, outputs and every way to compute it, the default first."""

    name: str
    inputs: tuple[tuple[str, tuple[Size, ...]], ...]
    outputs: tuple[tuple[str, tuple[Size, ...]], ...]
    methods: tuple[Formulation, ...]
    summary: str

    def shape(self, shape: tuple[Size, ...], n: int, p: int = 0) -> tuple[int, ...]:
        """The shape with the numbers of joints and of minimal parameters put in."""
        named = {"n": n, "p": p, "10n": 10 * n}
        return tuple(named[size] if isinstance(size, str) else size for size in shape)


Q = ("q", ("n",))
QD = ("qd", ("n",))
QDD = ("qdd", ("n",))
TAU = ("tau", ("n",))
