"""The machine code of a kernel and of its Jacobian products, for the libraries that call it (JAX and PyTorch).

`Function.product` returns the Jacobian-vector or vector-Jacobian product of a function as another function, so
derivatives of any order are programs, compiled on first use and cached like every kernel.

float32 arrays are computed in single precision, unless the kernel was asked for with ``dtype="float64"``: then they are
computed in double precision and the results are rounded.
"""

from __future__ import annotations

import json
from typing import Any

from armdyn.bridges import ProgramSource
from armdyn.codegen import cache
from armdyn.codegen.compile import Compiled, Shapes, load_or_compile, shapes
from armdyn.errors import InputError
from armdyn.graph import Program
from armdyn.graph.derive import jacobian_vector, vector_jacobian
from armdyn.graph.simplify import simplify
from armdyn.values import cached_property, fingerprint

Step = tuple[str, tuple[str, ...]]  # kind of product, names of the inputs to differentiate by
PRODUCTS = {"jacobian_vector": jacobian_vector, "vector_jacobian": vector_jacobian}
SIMPLIFIED = 1500  # largest product, in operations, to simplify: that takes under half a second (7 joints)
_KNOWN: dict[str, BridgeFunction] = {}


class BridgeFunction:
    """A kernel's program, or an iterated Jacobian product of it, with its machine code; equal functions are shared."""

    def __init__(self, kernel: ProgramSource, path: tuple[Step, ...], name: str) -> None:
        self.kernel, self.path, self.name = kernel, path, name
        self._products: dict[Step, BridgeFunction] = {}

    def __repr__(self) -> str:
        return f"<{self.name}>"

    @cached_property
    def program(self) -> Program:
        """The expression graph."""
        if not self.path:
            return self.kernel.program
        kind, wrt = self.path[-1]
        product = PRODUCTS[kind](self.parent.program, wrt)
        return simplify(product) if product.operations.total <= SIMPLIFIED else product

    @cached_property
    def compiled(self) -> Compiled:
        """The machine code in double precision."""
        return self._compile("double")

    @cached_property
    def _single(self) -> Compiled:
        return self._compile("float")

    def compiled_for(self, single: bool) -> Compiled:
        """The machine code for float64 arrays, or for float32 ones (`single`)."""
        return self._single if single and self.kernel.dtype != "float64" else self.compiled

    @property
    def _asked(self) -> tuple[Any, ...]:
        """What the program depends on."""
        return (*self.kernel.asked, *self.path)

    def _compile(self, number: str) -> Compiled:
        """Compile, or load from the cache on disk."""
        k = self.kernel
        made = load_or_compile(self._asked, lambda: self.program if self.path else k.compiled_program, number=number)
        if made is None:
            raise InputError(f"{k.quantity} of this arm has an empty input or output; only NumPy kernels support that")
        return made

    @cached_property
    def _shapes(self) -> tuple[Shapes, Shapes]:
        """Names and shapes of inputs and outputs, without compiling in a precision that may never be used."""
        text = cache.get_or_compute(cache.key("shapes", self._asked), lambda: json.dumps(shapes(self.program)))
        inputs, outputs = (tuple((name, tuple(shape)) for name, shape in side) for side in json.loads(text))
        return inputs, outputs

    @property
    def inputs(self) -> Shapes:
        """Names and shapes of the inputs."""
        return self._shapes[0]

    @property
    def outputs(self) -> Shapes:
        """Names and shapes of the outputs."""
        return self._shapes[1]

    @cached_property
    def parent(self) -> BridgeFunction:
        """The function this is a product of."""
        return _known(self.kernel, self.path[:-1])

    def product(self, kind: str, wrt: tuple[str, ...]) -> BridgeFunction:
        """The "jacobian_vector" or "vector_jacobian" product by the inputs `wrt`, linear in its last inputs."""
        if (kind, wrt) not in self._products:
            self._products[kind, wrt] = _known(self.kernel, (*self.path, (kind, wrt)))
        return self._products[kind, wrt]


class Bridged:
    """Base of a kernel as another library's function: a value, which pickles and compares by its kernel."""

    def __init__(self, kernel: ProgramSource) -> None:
        self.kernel, self.made = kernel, function_of(kernel)
        self.shapes = [shape for _, shape in self.made.inputs]
        self.__name__ = self.__qualname__ = kernel.quantity
        self.__doc__ = f"{kernel.quantity}({', '.join(name for name, _ in self.made.inputs)}), computed by armdyn."

    def __reduce__(self) -> Any:
        return type(self), (self.kernel,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Bridged) and type(other) is type(self) and other.made is self.made

    def __hash__(self) -> int:
        return hash(self.made.name)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.made.name}>"


def function_of(kernel: ProgramSource) -> BridgeFunction:
    """The kernel's own program as a function."""
    return _known(kernel, ())


def _known(kernel: ProgramSource, path: tuple[Step, ...]) -> BridgeFunction:
    digest = fingerprint(*kernel.asked, path, kernel.dtype)
    name = f"{kernel.quantity}_{'_'.join(kind for kind, _ in path)}{'_' if path else ''}{digest[:16]}"
    return _KNOWN.setdefault(name, BridgeFunction(kernel, path, name))
