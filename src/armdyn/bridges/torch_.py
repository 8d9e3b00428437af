"""A kernel as a PyTorch function: autograd of any order, vmap, torch.compile.

On the CPU every kernel, and every Jacobian product that a derivative needs, is a custom operator of `torch.library`
that runs the same machine code as NumPy on the tensors' memory. The operands of an operator have equally many batch
axes, each of the full length or 1. `torch.compile` uses the operators directly. Otherwise an `autograd.Function` wraps
them, because only that supports forward mode and the transforms of `torch.func`.

On other devices, and with `device_form`, the program is a sequence of PyTorch's own operations, which autograd
differentiates and torch.compile fuses.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from armdyn.bridges import ARITHMETIC, ProgramSource
from armdyn.bridges.function import Bridged, BridgeFunction
from armdyn.errors import InputError, required
from armdyn.graph.node import OPERATIONS as PLAIN
from armdyn.graph.program import interpret

torch = required("torch")
AutogradFunction: Any = torch.autograd.Function


def _of_tensor(name: str, operation: Any) -> Any:
    """An operation that the program may also apply to a constant."""
    return lambda x: operation(x) if isinstance(x, torch.Tensor) else PLAIN[name].evaluate(x)


def _positive(x: Any) -> Any:
    return torch.where(x > 0, torch.ones_like(x), torch.full_like(x, float("nan")))


OPERATIONS = ARITHMETIC | {name: _of_tensor(name, getattr(torch, name)) for name in ("sin", "cos", "sqrt", "sign")}
OPERATIONS["positive"] = _of_tensor("positive", _positive)


class TorchFunction(Bridged):
    """A kernel as a function of tensors, which broadcast as in NumPy; float32 in, float32 out."""

    def __init__(self, kernel: ProgramSource, device_form: bool = False) -> None:
        super().__init__(kernel)
        self.device_form = device_form
        self.operator, self.differentiable = _operator(self.made), _differentiable(self.made).apply
        if device_form:
            _ = self.made.program  # made here, because PyTorch's compiler cannot trace the search for it

    def __reduce__(self) -> Any:
        return TorchFunction, (self.kernel, self.device_form)

    def __call__(self, *arrays: Any) -> Any:
        """The results for these tensors."""
        kernel, shapes = self.kernel, self.shapes
        values = [torch.as_tensor(array) for array in arrays]
        elsewhere = _elsewhere(kernel.quantity, values)
        if len(values) != len(shapes) or any(_core(v, s) != s for v, s in zip(values, shapes, strict=True)):
            kernel.batch(*(tuple(v.shape) for v in values))  # raises an error that says what is wrong
        dtype = torch.float32
        for value in values if kernel.dtype != "float32" else ():
            dtype = torch.promote_types(dtype, value.dtype if value.is_floating_point() else torch.get_default_dtype())
        if elsewhere or self.device_form:
            return _on_tensors(self.made, [value.to(dtype) for value in values])
        axes = max(v.ndim - len(s) for v, s in zip(values, shapes, strict=True))
        operands = []
        for value, shape in zip(values, shapes, strict=True):
            missing = axes + len(shape) - value.ndim
            same = value if value.dtype == dtype else value.to(dtype)
            operands.append(same.reshape((1,) * missing + tuple(value.shape)) if missing else same)
        return (self.differentiable if _differentiated(operands) else self.operator)(*operands)


def function(kernel: ProgramSource, device_form: bool = False) -> TorchFunction:
    """The kernel as a function of tensors; with `device_form`, on the CPU too in the form for other devices."""
    return TorchFunction(kernel, device_form)


def _differentiated(operands: list[Any]) -> bool:
    """Whether a derivative may be needed outside of `torch.compile`; if not, the plain operator is faster."""
    if torch.compiler.is_compiling():
        return False
    forward_mode = getattr(torch.autograd.forward_ad, "_current_level", 0) >= 0
    return forward_mode or any(x.requires_grad for x in operands)


def _core(value: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The trailing axes of a tensor, as many as the core shape has."""
    return tuple(value.shape[max(value.ndim - len(shape), 0) :])


def _elsewhere(quantity: str, values: list[Any]) -> bool:
    """Whether the tensors are on another device than the CPU; they must be on one."""
    devices = {value.device for value in values}
    if len(devices) > 1:
        listed = ", ".join(sorted(map(str, devices)))
        raise InputError(f"{quantity}: all tensors must be on one device, got {listed}; tensor.to(device) moves one")
    return any(device.type not in ("cpu", "meta") for device in devices)


def _on_tensors(function: BridgeFunction, values: list[Any]) -> Any:
    """The program in PyTorch's operations, on the tensors' own device."""
    pairs = list(zip(values, [shape for _, shape in function.inputs], strict=True))
    columns = [x.reshape(*x.shape[: x.ndim - len(shape)], -1) for x, shape in pairs]
    batch = torch.broadcast_shapes(*(x.shape[:-1] for x in columns))
    made = interpret(function.program, OPERATIONS, float, *(x.unbind(-1) for x in columns))
    results = []
    for entries, (_, shape) in zip(made, function.outputs, strict=True):
        wide = [torch.as_tensor(x, dtype=values[0].dtype, device=values[0].device).expand(batch) for x in entries]
        flat = torch.stack(wide, -1) if wide else values[0].new_zeros((*batch, 0))
        results.append(flat.reshape((*batch, *shape)))
    return results[0] if len(results) == 1 else tuple(results)


@cache
def _operator(function: BridgeFunction) -> Any:
    """The operator armdyn::… of a function, registered once."""
    inputs = ", ".join(f"Tensor x{k}" for k in range(len(function.inputs)))
    results = ", ".join(["Tensor"] * len(function.outputs))
    schema = f"({inputs}) -> {results if len(function.outputs) == 1 else f'({results})'}"

    def run(*tensors: Any) -> Any:
        return _run(function, tensors)

    operator = torch.library.custom_op(
        f"armdyn::{function.name}", run, mutates_args=(), device_types="cpu", schema=schema
    )
    operator.register_fake(lambda *tensors: _empty(function, tensors))
    operator.register_autograd(
        lambda ctx, *gradients: _backward(function, ctx, gradients, _operator),
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
    )
    operator.register_vmap(lambda info, axes, *tensors: _vmap(function, axes, tensors, _operator))
    return operator


@cache
def _differentiable(function: BridgeFunction) -> Any:
    """The operator with rules for forward mode, backward mode and `torch.func`."""

    def applied(other: BridgeFunction) -> Any:
        return _differentiable(other).apply

    class Differentiable(AutogradFunction):  # type: ignore[misc]
        @staticmethod
        def forward(*tensors: Any) -> Any:
            return _operator(function)(*tensors)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            return _backward(function, ctx, gradients, applied)

        @staticmethod
        def jvp(ctx: Any, *tangents: Any) -> Any:
            moving = [(name, t) for (name, _), t in zip(function.inputs, tangents, strict=True) if t is not None]
            product = function.product("jacobian_vector", tuple(name for name, _ in moving))
            return applied(product)(*ctx.saved_tensors, *(t for _, t in moving))

        @staticmethod
        def vmap(info: Any, axes: Any, *tensors: Any) -> Any:
            return _vmap(function, axes, tensors, applied)

    return Differentiable


def _empty(function: BridgeFunction, tensors: Any) -> Any:
    """Uninitialised tensors for the results."""
    batches = [t.shape[: t.ndim - len(shape)] for t, (_, shape) in zip(tensors, function.inputs, strict=True)]
    batch = torch.broadcast_shapes(*batches)
    results = tuple(tensors[0].new_empty((*batch, *shape)) for _, shape in function.outputs)
    return results[0] if len(results) == 1 else results


def _run(function: BridgeFunction, tensors: Any) -> Any:
    try:
        results = _empty(function, tensors)
    except RuntimeError:
        function.kernel.batch(*(tuple(t.shape) for t in tensors[: len(function.inputs)]))
        raise
    out = tuple(r.numpy() for r in (results if isinstance(results, tuple) else (results,)))
    with np.errstate(all="ignore"):  # rows that are not finite show it in the result
        code = function.compiled_for(tensors[0].dtype == torch.float32)
        code(*(t.numpy() for t in tensors), out=out)
    return results


def _backward(function: BridgeFunction, ctx: Any, gradients: Any, apply: Callable[[BridgeFunction], Any]) -> Any:
    """The vector-Jacobian product for the inputs that need a gradient, summed over broadcast axes."""
    tensors, needed = ctx.saved_tensors, ctx.needs_input_grad
    names = tuple(name for (name, _), wanted in zip(function.inputs, needed, strict=True) if wanted)
    if any(g is None for g in gradients):
        given = next(g for g in gradients if g is not None)
        batch = given.shape[: tensors[0].ndim - len(function.inputs[0][1])]
        shapes = [(*batch, *shape) for _, shape in function.outputs]
        gradients = [given.new_zeros(s) if g is None else g for g, s in zip(gradients, shapes, strict=True)]
    weights = (g.contiguous() for g in gradients)  # the gradient of a sum is an expanded scalar, slow to read
    found = apply(function.product("vector_jacobian", names))(*tensors, *weights)
    results = iter(found if isinstance(found, tuple | list) else (found,))
    return tuple(next(results).sum_to_size(t.shape) if want else None for t, want in zip(tensors, needed, strict=True))


def _vmap(function: BridgeFunction, axes: Any, tensors: Any, apply: Callable[[BridgeFunction], Any]) -> Any:
    moved = [t.unsqueeze(0) if axis is None else t.movedim(axis, 0) for t, axis in zip(tensors, axes, strict=True)]
    results = apply(function)(*moved)
    return results, tuple(0 for _ in results) if isinstance(results, tuple | list) else 0
