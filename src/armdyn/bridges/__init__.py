"""The same programs in other people's libraries: CasADi, JAX, PyTorch, SymPy.

One file per library, imported only when it is asked for: ``arm.forward_dynamics.casadi()`` and its
siblings are methods of every kernel. CasADi and SymPy run the graph's operations on their own symbols
(`armdyn.graph.program.interpret`); JAX and PyTorch call the machine code that NumPy calls.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Protocol

from armdyn.errors import ArmdynError
from armdyn.graph import Program
from armdyn.graph.columns import ColumnProgram
from armdyn.graph.operations import OPERATIONS

# What every library's symbols do as numbers do; a bridge adds the functions.
ARITHMETIC = {name: OPERATIONS[name].evaluate for name in ("add", "sub", "mul", "div", "neg")}


class MissingPackage(ArmdynError, ImportError):  # noqa: N818 - it is said in words, not in "Error"
    """A bridge to a library that is not installed."""


class Source(Protocol):
    """What a bridge needs of a kernel."""

    chain: Any
    quantity: str
    options: Any

    @property
    def method(self) -> str:
        """The key of the formulation."""

    @property
    def program(self) -> Program:
        """The graph of the quantity."""

    @property
    def compiled_program(self) -> Program | ColumnProgram:
        """What its machine code is made from."""

    def variant(self, **choices: Any) -> Any:
        """The kernel with other options."""

    def batch(self, *shapes: tuple[int, ...]) -> tuple[int, ...]:
        """The batch that arrays of these shapes make together, or an error."""


def required(package: str) -> Any:
    """A library, or an error that says how to install it."""
    try:
        return import_module(package)
    except ImportError as error:
        raise MissingPackage(f'{package} is not installed; pip install "armdyn[{package}]" brings it') from error
