"""A kernel's machine code, and that of its derivatives along directions, for the libraries that call it.

`Function.product` gives the Jacobian-vector or the vector-Jacobian product of a function as a function again, so
derivatives of any order are programs, compiled when they are first wanted and kept like every kernel.
"""

from __future__ import annotations

from armdyn.algebra.cached import cached_property
from armdyn.algebra.fingerprint import fingerprint
from armdyn.bridges import Source
from armdyn.codegen.compile import Compiled, Shapes, load_or_compile
from armdyn.errors import InputError
from armdyn.graph import Program
from armdyn.graph.derive import jacobian_vector, vector_jacobian
from armdyn.graph.simplify import simplify

Step = tuple[str, tuple[str, ...]]  # kind of product, names of the inputs to differentiate in
PRODUCTS = {"jacobian_vector": jacobian_vector, "vector_jacobian": vector_jacobian}
SIMPLIFIED = 1500  # operations of a product up to which rewriting takes under half a second (7 joints)
_KNOWN: dict[str, Function] = {}


class Function:
    """The program of a kernel after some products, with its machine code; equal ones are one object."""

    def __init__(self, kernel: Source, path: tuple[Step, ...], name: str) -> None:
        self.kernel, self.path, self.name = kernel, path, name
        self._products: dict[Step, Function] = {}

    def __repr__(self) -> str:
        return f"<{self.name}>"

    @cached_property
    def program(self) -> Program:
        """The graph."""
        if not self.path:
            return self.kernel.program
        kind, wrt = self.path[-1]
        product = PRODUCTS[kind](self.parent.program, wrt)
        return simplify(product) if product.operations.total <= SIMPLIFIED else product

    @cached_property
    def compiled(self) -> Compiled:
        """Machine code, from the disk if it is there."""
        k = self.kernel
        asked = (k.chain, k.quantity, k.method, k.options, *self.path)
        made = load_or_compile(asked, lambda: self.program if self.path else k.compiled_program)
        if made is None:
            raise InputError(f"{k.quantity} of this arm has an empty input or output; only NumPy's kernel computes it")
        return made

    @property
    def inputs(self) -> Shapes:
        """Names and shapes of the inputs."""
        return self.compiled.inputs

    @property
    def outputs(self) -> Shapes:
        """Names and shapes of the outputs."""
        return self.compiled.outputs

    @cached_property
    def parent(self) -> Function:
        """The function this is a product of."""
        return _known(self.kernel, self.path[:-1])

    def product(self, kind: str, wrt: tuple[str, ...]) -> Function:
        """The "jacobian_vector" or "vector_jacobian" product in some inputs, linear in its last inputs."""
        if (kind, wrt) not in self._products:
            self._products[kind, wrt] = _known(self.kernel, (*self.path, (kind, wrt)))
        return self._products[kind, wrt]


def function_of(kernel: Source) -> Function:
    """The kernel's own program as a function."""
    return _known(kernel, ())


def _known(kernel: Source, path: tuple[Step, ...]) -> Function:
    told = fingerprint(kernel.chain, kernel.quantity, kernel.method, kernel.options, path)
    name = f"{kernel.quantity}_{'_'.join(kind for kind, _ in path)}{'_' if path else ''}{told[:16]}"
    return _KNOWN.setdefault(name, Function(kernel, path, name))
