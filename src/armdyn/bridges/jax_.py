"""A kernel as a JAX function on the CPU: jit, vmap, grad, jacfwd, jacrev, of any order.

XLA calls the same machine code as NumPy (`ffi`). One primitive represents all kernels and their Jacobian products. Its
JVP rule is a Jacobian-vector product, compiled as a separate program, whose transpose is the vector-Jacobian product.
`vmap` adds a leading axis, of length 1 for an operand that is not batched.
"""

from __future__ import annotations

import ctypes
import warnings
from functools import cache
from typing import Any

import numpy as np

from armdyn.bridges import ProgramSource, required
from armdyn.bridges.ffi import handler
from armdyn.bridges.function import Bridged, BridgeFunction

jax = required("jax")
jnp = jax.numpy
ad, batching, mlir = (required(f"jax.interpreters.{name}") for name in ("ad", "batching", "mlir"))

kernel_p = required("jax.extend.core").Primitive("armdyn")
kernel_p.multiple_results = True


class JaxFunction(Bridged):
    """A kernel as a function of JAX arrays, which broadcast as in NumPy; float32 in, float32 out."""

    def __call__(self, *arrays: Any) -> Any:
        """The results for these arrays."""
        _warn_of_narrowing(arrays)
        values = [jnp.asarray(array) for array in arrays]
        batch = self.kernel.batch(*(value.shape for value in values))
        single = self.kernel.dtype == "float32"
        dtype = jnp.float32 if single else jnp.promote_types(jnp.result_type(*values), jnp.float32)
        operands = []
        for value, shape in zip(values, self.shapes, strict=True):
            axes = (1,) * (len(batch) + len(shape) - value.ndim)
            operands.append(jnp.reshape(value.astype(dtype), (*axes, *value.shape)))
        results = kernel_p.bind(*operands, function=self.made)
        return results[0] if len(results) == 1 else tuple(results)


def function(kernel: ProgramSource) -> JaxFunction:
    """The kernel as a function of JAX arrays."""
    return JaxFunction(kernel)


def _warn_of_narrowing(arrays: tuple[Any, ...]) -> None:
    """Warn that JAX converts float64 to float32, which it does silently by default."""
    if jax.config.jax_enable_x64:
        return
    if any(isinstance(x, np.ndarray | np.generic) and x.dtype == np.float64 for x in arrays):
        warnings.warn(
            "JAX converts these float64 arrays to float32; for float64 results call "
            'jax.config.update("jax_enable_x64", True) before any other use of JAX, for float32 pass float32 arrays',
            stacklevel=3,
        )


def _abstract(*avals: Any, function: BridgeFunction) -> list[Any]:
    """The shapes of the results: the broadcast batch, then the core shape of each result."""
    batches = [a.shape[: len(a.shape) - len(shape)] for a, (_, shape) in zip(avals, function.inputs, strict=True)]
    batch = np.broadcast_shapes(*batches)
    return [jax.core.ShapedArray((*batch, *shape), avals[0].dtype) for _, shape in function.outputs]


@cache
def _jitted(function: BridgeFunction) -> Any:
    return jax.jit(lambda *operands: kernel_p.bind(*operands, function=function))


def _evaluate(*operands: Any, function: BridgeFunction) -> Any:
    return _jitted(function)(*operands)


@cache
def _target(function: BridgeFunction, single: bool) -> str:
    """Register the machine code with XLA; its name is the same in every process, for JAX's persistent cache."""
    name = f"armdyn_{function.name}_{'float32' if single else 'float64'}"
    address = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(handler(function.compiled_for(single), single))
    jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(address), platform="cpu")
    return name


def _lower(ctx: Any, *operands: Any, function: BridgeFunction) -> Any:
    single = ctx.avals_in[0].dtype == np.float32
    return jax.ffi.ffi_lowering(_target(function, single))(ctx, *operands)


def _batch(operands: Any, axes: Any, *, function: BridgeFunction) -> Any:
    moved = [x[None] if axis is None else jnp.moveaxis(x, axis, 0) for x, axis in zip(operands, axes, strict=True)]
    results = kernel_p.bind(*moved, function=function)
    return results, [0] * len(results)


def _jvp(primals: Any, tangents: Any, *, function: BridgeFunction) -> Any:
    """The value, and its derivative along the nonzero tangents."""
    moving = [k for k, t in enumerate(tangents) if type(t) is not ad.Zero]
    product = function.product("jacobian_vector", tuple(function.inputs[k][0] for k in moving))
    along = [ad.instantiate_zeros(tangents[k]) for k in moving]
    values = kernel_p.bind(*primals, function=function)
    return values, kernel_p.bind(*primals, *along, function=product)


def _transpose(cotangents: Any, *operands: Any, function: BridgeFunction) -> Any:
    """A Jacobian product is linear in its last operands; its transpose is the other product of the same function."""
    kind, wrt = function.path[-1]
    fixed = operands[: len(function.parent.inputs)]
    linear = operands[len(fixed) :]
    if not all(ad.is_undefined_primal(x) for x in linear) or any(ad.is_undefined_primal(x) for x in fixed):
        raise NotImplementedError(f"{function} can only be transposed with respect to all its tangents together")
    other = {"jacobian_vector": "vector_jacobian", "vector_jacobian": "jacobian_vector"}[kind]
    back = function.parent.product(other, wrt)
    results = kernel_p.bind(*fixed, *map(ad.instantiate_zeros, cotangents), function=back)
    return [None] * len(fixed) + [_summed(r, x.aval.shape) for r, x in zip(results, linear, strict=True)]


def _summed(value: Any, shape: tuple[int, ...]) -> Any:
    """The sum over the axes along which an operand of this shape was broadcast."""
    axes = tuple(k for k, (have, want) in enumerate(zip(value.shape, shape, strict=True)) if have != want)
    return jnp.sum(value, axes, keepdims=True) if axes else value


kernel_p.def_impl(_evaluate)
kernel_p.def_abstract_eval(_abstract)
mlir.register_lowering(kernel_p, _lower, platform="cpu")
batching.primitive_batchers[kernel_p] = _batch
ad.primitive_jvps[kernel_p] = _jvp
ad.primitive_transposes[kernel_p] = _transpose
