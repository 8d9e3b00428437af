"""The same programs in other people's libraries: CasADi, JAX, PyTorch, SymPy.

One file per library, imported only when it is asked for: ``arm.forward_dynamics.casadi()`` and its
siblings are methods of every kernel. CasADi and SymPy run the graph's operations on their own symbols
(`walk`); JAX and PyTorch call the machine code that NumPy calls.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from types import MappingProxyType
from typing import Any, Protocol

from armdyn.errors import ArmdynError
from armdyn.graph import Program

# The operations that every library's symbols have; a bridge adds the functions of one argument.
ARITHMETIC: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv, "neg": operator.neg}
)


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


def walk(
    program: Program,
    operations: Mapping[str, Callable[..., Any]],
    constant: Callable[[Any], Any],
    *inputs: Sequence[Any],
) -> list[list[Any]]:
    """The outputs of a program run on a library's own symbols: one flat list in C order per output."""
    at: dict[int, Any] = {}
    for port, flat in zip(program.inputs, inputs, strict=True):
        at.update((node.serial, x) for node, x in zip(port.nodes, flat, strict=True))
    for node in program.order:
        if node.op == "const":
            at[node.serial] = constant(node.value)
        elif node.args:
            at[node.serial] = operations[node.op](*(at[arg.serial] for arg in node.args))
    return [[at[node.serial] for node in port.nodes] for port in program.outputs]
