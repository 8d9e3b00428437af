"""Kernels in other libraries: CasADi, JAX, PyTorch, SymPy.

There is one file per library, imported on first use: every kernel has the methods ``casadi()``, ``jax()``, ``torch()``
and ``sympy()``. CasADi and SymPy evaluate the expression graph on their own symbols
(`armdyn.graph.program.interpret`); JAX and PyTorch call the same machine code as NumPy.
"""

from __future__ import annotations

from typing import Any, Protocol

from armdyn.graph import Program
from armdyn.graph.node import OPERATIONS
from armdyn.graph.program import ColumnProgram

# Operators that every library overloads for its symbols; a bridge adds the functions.
ARITHMETIC = {name: OPERATIONS[name].evaluate for name in ("add", "sub", "mul", "div", "neg")}


class ProgramSource(Protocol):
    """The attributes of a kernel that a bridge uses."""

    chain: Any
    quantity: str
    options: Any
    option_names: tuple[str, ...]
    dtype: str | None

    @property
    def asked(self) -> tuple[Any, ...]:
        """What the program depends on."""

    @property
    def program(self) -> Program:
        """The graph of the quantity."""

    @property
    def compiled_program(self) -> Program | ColumnProgram:
        """The program that its machine code is compiled from."""

    def variant(self, **choices: Any) -> Any:
        """The kernel with other options."""

    def batch(self, *shapes: tuple[int, ...]) -> tuple[int, ...]:
        """The broadcast batch shape of arrays of these shapes, or an error."""
