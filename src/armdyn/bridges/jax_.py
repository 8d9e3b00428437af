"""A kernel as a JAX function: jit, vmap, grad, jacfwd, jacrev, of any order.

On the CPU, XLA calls the same machine code as NumPy (`ffi`). On other devices the program is one Pallas kernel, whose
lanes are the rows of the batch, or plain JAX operations where Pallas has no compiler (`device_form`). One primitive
represents all kernels and their Jacobian products. Its JVP rule is a Jacobian-vector product, compiled as a separate
program, whose transpose is the vector-Jacobian product. `vmap` adds a leading axis, of length 1 for an operand that is
not batched.
"""

from __future__ import annotations

import ctypes
import logging
import math
import warnings
from functools import cache, partial
from typing import Any

import numpy as np

from armdyn.bridges import ARITHMETIC, ProgramSource
from armdyn.bridges.ffi import handler
from armdyn.bridges.function import Bridged, BridgeFunction
from armdyn.errors import required
from armdyn.graph.program import interpret

jax = required("jax")
jnp = jax.numpy
ad, batching, mlir = (required(f"jax.interpreters.{name}") for name in ("ad", "batching", "mlir"))
pallas = required("jax.experimental.pallas")

kernel_p = required("jax.extend.core").Primitive("armdyn")
kernel_p.multiple_results = True

LOG = logging.getLogger("armdyn")
ROWS = 256  # of a batch in one block of a Pallas kernel: whole vectors of every device
PALLAS = ("tpu", "cuda")  # devices that Pallas compiles for
OPERATIONS = ARITHMETIC | {
    "sin": jnp.sin,
    "cos": jnp.cos,
    "sqrt": jnp.sqrt,
    "sign": jnp.sign,
    "positive": lambda x: jnp.where(x > 0, jnp.ones_like(x), jnp.full_like(x, jnp.nan)),
}


class JaxFunction(Bridged):
    """A kernel as a function of JAX arrays, which broadcast as in NumPy; float32 in, float32 out."""

    def __init__(self, kernel: ProgramSource, device_form: bool = False) -> None:
        super().__init__(kernel)
        self.device_form = device_form

    def __reduce__(self) -> Any:
        return JaxFunction, (self.kernel, self.device_form)

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
        results = kernel_p.bind(*operands, function=self.made, device_form=self.device_form)
        return results[0] if len(results) == 1 else tuple(results)


def function(kernel: ProgramSource, device_form: bool = False) -> JaxFunction:
    """The kernel as a function of JAX arrays; with `device_form`, on the CPU too in the form for other devices."""
    return JaxFunction(kernel, device_form)


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


def _abstract(*avals: Any, function: BridgeFunction, device_form: bool) -> list[Any]:
    """The shapes of the results: the broadcast batch, then the core shape of each result."""
    batches = [a.shape[: len(a.shape) - len(shape)] for a, (_, shape) in zip(avals, function.inputs, strict=True)]
    batch = np.broadcast_shapes(*batches)
    return [jax.core.ShapedArray((*batch, *shape), avals[0].dtype) for _, shape in function.outputs]


@cache
def _jitted(function: BridgeFunction, device_form: bool) -> Any:
    return jax.jit(lambda *operands: kernel_p.bind(*operands, function=function, device_form=device_form))


def _evaluate(*operands: Any, function: BridgeFunction, device_form: bool) -> Any:
    return _jitted(function, device_form)(*operands)


@cache
def _target(function: BridgeFunction, single: bool) -> str:
    """Register the machine code with XLA; its name is the same in every process, for JAX's persistent cache."""
    name = f"armdyn_{function.name}_{'float32' if single else 'float64'}"
    address = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(handler(function.compiled_for(single), single))
    jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(address), platform="cpu")
    return name


def _lower(ctx: Any, *operands: Any, function: BridgeFunction, device_form: bool) -> Any:
    if device_form:
        return _lower_interpreted(ctx, *operands, function=function, device_form=device_form)
    single = ctx.avals_in[0].dtype == np.float32
    return jax.ffi.ffi_lowering(_target(function, single))(ctx, *operands)


def _columns(operands: Any, function: BridgeFunction) -> tuple[tuple[int, ...], list[Any]]:
    """The batch, and the operands as (entries, rows of the batch)."""
    pairs = list(zip(operands, [shape for _, shape in function.inputs], strict=True))
    batch = np.broadcast_shapes(*(x.shape[: len(x.shape) - len(shape)] for x, shape in pairs))
    count = math.prod(batch)
    wide = (jnp.broadcast_to(x, (*batch, *shape)).reshape(count, math.prod(shape)) for x, shape in pairs)
    return batch, [x.T for x in wide]


def _results(columns: Any, batch: tuple[int, ...], function: BridgeFunction) -> list[Any]:
    return [x.T.reshape(*batch, *shape) for x, (_, shape) in zip(columns, function.outputs, strict=True)]


def _entries(function: BridgeFunction, columns: Any, dtype: Any, rows: int) -> list[list[Any]]:
    """The program on vectors of rows: per result, its entries."""
    made = interpret(function.program, OPERATIONS, lambda value: dtype.type(float(value)), *columns)
    return [[jnp.broadcast_to(x, (rows,)) for x in entries] for entries in made]


def _on_arrays(*operands: Any, function: BridgeFunction, device_form: bool) -> list[Any]:
    """The program in plain JAX operations."""
    batch, columns = _columns(operands, function)
    count, dtype = math.prod(batch), np.dtype(operands[0].dtype)
    made = _entries(function, [list(x) for x in columns], dtype, count)
    return _results([jnp.stack(x) if x else jnp.zeros((0, count), dtype) for x in made], batch, function)


def _in_pallas(*operands: Any, function: BridgeFunction, device_form: bool, interpreted: bool = False) -> list[Any]:
    """The program as one Pallas kernel over blocks of rows; the last block is padded with its last row."""
    batch, columns = _columns(operands, function)
    count, dtype = math.prod(batch), np.dtype(operands[0].dtype)
    sizes = [math.prod(shape) for _, shape in function.outputs]
    if not count or not all([*(len(x) for x in columns), *sizes]):  # Pallas has no empty arrays
        return _on_arrays(*operands, function=function, device_form=device_form)
    blocks = -(-count // ROWS)
    padded = [jnp.pad(x, ((0, 0), (0, blocks * ROWS - count)), mode="edge") for x in columns]

    def kernel(*refs: Any) -> None:
        read, written = refs[: len(columns)], refs[len(columns) :]
        given = [[ref[k, :] for k in range(ref.shape[0])] for ref in read]
        for ref, entries in zip(written, _entries(function, given, dtype, ROWS), strict=True):
            for k, x in enumerate(entries):
                ref[k, :] = x

    def block(size: int) -> Any:
        return pallas.BlockSpec((size, ROWS), lambda k: (0, k))

    made = pallas.pallas_call(
        kernel,
        grid=(blocks,),
        in_specs=[block(len(x)) for x in columns],
        out_specs=[block(size) for size in sizes],
        out_shape=[jax.ShapeDtypeStruct((size, blocks * ROWS), dtype) for size in sizes],
        interpret=interpreted,
    )(*padded)
    return _results([x[:, :count] for x in made], batch, function)


_lower_plainly = mlir.lower_fun(_on_arrays, multiple_results=True)
_lower_to_pallas = mlir.lower_fun(_in_pallas, multiple_results=True)
_lower_interpreted = mlir.lower_fun(partial(_in_pallas, interpreted=True), multiple_results=True)


def _lower_for_device(ctx: Any, *operands: Any, **parameters: Any) -> Any:
    """As a Pallas kernel, or in plain operations where this jaxlib has no Pallas compiler for the device."""
    try:
        return _lower_to_pallas(ctx, *operands, **parameters)
    except (NotImplementedError, ValueError, ImportError) as error:
        LOG.debug("plain JAX operations, since Pallas says: %s", error)
        return _lower_plainly(ctx, *operands, **parameters)


def _batch(operands: Any, axes: Any, *, function: BridgeFunction, device_form: bool) -> Any:
    moved = [x[None] if axis is None else jnp.moveaxis(x, axis, 0) for x, axis in zip(operands, axes, strict=True)]
    results = kernel_p.bind(*moved, function=function, device_form=device_form)
    return results, [0] * len(results)


def _jvp(primals: Any, tangents: Any, *, function: BridgeFunction, device_form: bool) -> Any:
    """The value, and its derivative along the nonzero tangents."""
    moving = [k for k, t in enumerate(tangents) if type(t) is not ad.Zero]
    product = function.product("jacobian_vector", tuple(function.inputs[k][0] for k in moving))
    along = [ad.instantiate_zeros(tangents[k]) for k in moving]
    values = kernel_p.bind(*primals, function=function, device_form=device_form)
    return values, kernel_p.bind(*primals, *along, function=product, device_form=device_form)


def _transpose(cotangents: Any, *operands: Any, function: BridgeFunction, device_form: bool) -> Any:
    """A Jacobian product is linear in its last operands; its transpose is the other product of the same function."""
    kind, wrt = function.path[-1]
    fixed = operands[: len(function.parent.inputs)]
    linear = operands[len(fixed) :]
    if not all(ad.is_undefined_primal(x) for x in linear) or any(ad.is_undefined_primal(x) for x in fixed):
        raise NotImplementedError(f"{function} can only be transposed with respect to all its tangents together")
    other = {"jacobian_vector": "vector_jacobian", "vector_jacobian": "jacobian_vector"}[kind]
    back = function.parent.product(other, wrt)
    weights = map(ad.instantiate_zeros, cotangents)
    results = kernel_p.bind(*fixed, *weights, function=back, device_form=device_form)
    return [None] * len(fixed) + [_summed(r, x.aval.shape) for r, x in zip(results, linear, strict=True)]


def _summed(value: Any, shape: tuple[int, ...]) -> Any:
    """The sum over the axes along which an operand of this shape was broadcast."""
    axes = tuple(k for k, (have, want) in enumerate(zip(value.shape, shape, strict=True)) if have != want)
    return jnp.sum(value, axes, keepdims=True) if axes else value


kernel_p.def_impl(_evaluate)
kernel_p.def_abstract_eval(_abstract)
mlir.register_lowering(kernel_p, _lower, platform="cpu")
for device in PALLAS:
    mlir.register_lowering(kernel_p, _lower_for_device, platform=device)
mlir.register_lowering(kernel_p, _lower_plainly)  # on all others
batching.primitive_batchers[kernel_p] = _batch
ad.primitive_jvps[kernel_p] = _jvp
ad.primitive_transposes[kernel_p] = _transpose
