"""Kernel: one quantity of one arm by one formulation, as a function of NumPy arrays.

It broadcasts like a NumPy generalised ufunc: the last axes are the joint's, everything before them
is a batch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from armdyn.chain import Chain
from armdyn.errors import InputError, choose
from armdyn.formulations import QUANTITIES
from armdyn.graph.program import Program, _flatten
from armdyn.kernels.assemble import Options, assemble, program

BACKENDS = ("python",)


class Column(np.ndarray):
    """A whole batch as one scalar: what the plain algorithm computes with on the `python` backend."""

    def cos(self) -> Any:
        """Cosine of every entry."""
        return np.cos(self)

    def sin(self) -> Any:
        """Sine of every entry."""
        return np.sin(self)

    def sqrt(self) -> Any:
        """Square root of every entry."""
        return np.sqrt(self)

    def sign(self) -> Any:
        """-1, 0 or 1."""
        return np.sign(self)

    def positive(self) -> Any:
        """1 where positive, NaN elsewhere."""
        return np.where(self > 0, 1.0, np.nan).view(Column)


class Kernel:
    """A compiled (or plain) function of configurations."""

    def __init__(
        self,
        chain: Chain,
        quantity: str,
        method: str = "auto",
        backend: str = "python",
        options: Options = Options(),
    ) -> None:
        self.chain = chain
        self.quantity = choose("quantity", quantity, QUANTITIES)
        methods = [m.key for m in QUANTITIES[quantity].methods]
        self.method = methods[0] if method == "auto" else choose(f"method of {quantity}", method, methods)
        self.backend = choose("backend", backend, BACKENDS)
        self.options = options
        self._assembly = assemble(chain.floats, quantity, self.method, options)

    @property
    def program(self) -> Program:
        """The graph this kernel is compiled from."""
        return program(self.chain, self.quantity, self.method, self.options)

    def __repr__(self) -> str:
        inputs = ", ".join(f"{name}{list(shape)}" for name, shape in self._assembly.inputs)
        return f"<Kernel {self.quantity}({inputs}) by {self.method} on {self.backend}>"

    def __call__(self, *arrays: Any, out: Any = None) -> Any:
        shapes = self._assembly.inputs
        if len(arrays) != len(shapes):
            names = ", ".join(name for name, _ in shapes)
            raise InputError(f"{self.quantity} takes {len(shapes)} arrays ({names}), got {len(arrays)}")
        values, batches = [], []
        for array, (name, shape) in zip(arrays, shapes, strict=True):
            value = np.asarray(array, dtype=float)
            core = value.shape[value.ndim - len(shape) :]
            if core != shape:
                raise InputError(
                    f"{self.quantity} of this arm (n = {self.chain.n}) expects {name} of shape (..., "
                    f"{', '.join(map(str, shape))}), got {value.shape}"
                )
            values.append(value)
            batches.append(value.shape[: value.ndim - len(shape)])
        batch = np.broadcast_shapes(*batches)
        columns = [
            [np.broadcast_to(v[..., k], batch).view(Column) for k in range(shape[0])]
            for v, (_, shape) in zip(values, shapes, strict=True)
        ]
        results = self._assembly.function(*columns)
        outputs = self._assembly.outputs
        if len(outputs) == 1:
            results = (results,)
        arrays_out = []
        for (_, shape), result in zip(outputs, results, strict=True):
            flat = np.empty((*batch, int(np.prod(shape, dtype=int))))
            for k, entry in enumerate(_flatten(result)):
                flat[..., k] = entry
            arrays_out.append(flat.reshape((*batch, *shape))[()])
        result_out = arrays_out[0] if len(arrays_out) == 1 else tuple(arrays_out)
        if out is not None:
            out[...] = result_out
            return out
        return result_out
