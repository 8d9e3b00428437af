"""Kernel: one quantity of one arm by one formulation, as a function of NumPy arrays.

It broadcasts like a NumPy generalised ufunc: the last axes are those of the quantity, all axes before them
are batch axes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from armdyn.algebra.cached import cached_property
from armdyn.chain import Chain, Placement
from armdyn.chain.tool_names import no_tool
from armdyn.codegen import BACKENDS
from armdyn.codegen.compile import load_or_compile
from armdyn.codegen.runtime import vectorcall
from armdyn.codegen.runtime.columns import ArrayFunction, over_columns
from armdyn.codegen.text.numpy import compile_numpy
from armdyn.errors import InputError, choose
from armdyn.formulations import QUANTITIES
from armdyn.formulations.units import units
from armdyn.graph.columns import ColumnProgram
from armdyn.graph.program import Program
from armdyn.html import table
from armdyn.kernels.arguments import masked
from armdyn.kernels.choice import auto
from armdyn.kernels.payloads import refuse_impossible
from armdyn.kernels.threads import batch_of, checked, shared
from armdyn.programs.assemble import Assembly, Options, assemble
from armdyn.programs.collector import paused_collector
from armdyn.programs.program import compiled_program, program

OPTIONS = tuple(f.name for f in fields(Options))
EVERYWHERE = tuple(name for name in OPTIONS if name not in ("frames", "axes"))
COLUMNS = {"natural_regressor": ("columns",)}  # options that name frames in another way
_ARRAY = np.ndarray  # a module constant, because every call looks it up


if TYPE_CHECKING:

    class Fast:
        """Made through CPython's C API; see `codegen.runtime.vectorcall`."""
else:
    Fast = vectorcall.base()


class Kernel(Fast):
    """A function of configurations, compiled at its first call."""

    def __init__(
        self,
        chain: Chain,
        quantity: str,
        method: str = "auto",
        backend: str = "llvm",
        options: Options = Options(),
        frames: Mapping[str, tuple[int, Placement]] | None = None,
        links: tuple[tuple[int, Placement], ...] = (),
    ) -> None:
        self.chain = chain
        self.quantity = choose("quantity", quantity, QUANTITIES)
        methods = ["auto", *(m.key for m in QUANTITIES[quantity].methods)]
        self._asked_method = choose(f"method of {quantity}", method, methods)
        self._of_body = QUANTITIES[quantity].of_body
        self.backend = choose("backend", backend, BACKENDS)
        takes = QUANTITIES[quantity].takes
        of_links = QUANTITIES[quantity].of_links and not options.frames
        self.options = options = replace(options, frames=links) if of_links else options
        self.frames = dict(frames or {})  # frames by name, for the options `frame` and `frames`
        self.links = links  # the frame of each link as in the file; empty: the bodies' own
        self._ports = tuple(name for name, _ in QUANTITIES[quantity].inputs)
        self._option_names = tuple(dict.fromkeys((*takes, *COLUMNS.get(quantity, ()), "parameters", "derivatives")))
        self._variants: dict[Options, Kernel] = {options: self}
        self._calls: dict[Any, Kernel] = {}
        self._compiled: Any = None

    @cached_property
    def method(self) -> str:
        """The key of the formulation; "auto" is resolved when first needed."""
        self._must_have_a_tool()
        asked = self._asked_method
        return auto(self.chain, self.quantity, self.options) if asked == "auto" else asked

    @cached_property
    def assembly(self) -> Assembly:
        """The function over scalars behind this kernel, with the shapes of its arrays."""
        return assemble(self.chain.floats, self.quantity, self.method, self.options)

    @property
    def program(self) -> Program:
        """The graph this kernel is compiled from."""
        return program(self.chain, self.quantity, self.method, self.options)

    @property
    def compiled_program(self) -> Program | ColumnProgram:
        """The program that is compiled to machine code: `program`, or its column-wise form if it would be very long."""
        return compiled_program(self.chain, self.quantity, self.method, self.options)

    @property
    def compiled(self) -> Any:
        """The function of arrays that the backend made."""
        if self._compiled is None:
            with paused_collector():
                self._compiled = self._compile()
        return self._compiled

    def _compile(self) -> Any:
        made: Any = None
        if self.backend == "llvm":
            asked = (self.chain, self.quantity, self.method, self.options)
            made = load_or_compile(asked, lambda: self.compiled_program, uniform=("parameters", "geometry"))
        if made is not None and self._of_body:
            return made  # no fast path: payloads are checked at every call
        if made is not None:
            vectorcall.attach(self, made.addresses["entry"], made.code)
            return made
        a = self.assembly
        if self.backend == "numpy":
            return ArrayFunction(compile_numpy(self.program), a.inputs, a.outputs)
        return over_columns(a.function, a.inputs, a.outputs)

    def wasm(self) -> bytes:
        """A WebAssembly module without imports; it exports this quantity, `memory` and `heap` (docs/webassembly.md).

        For forward dynamics it also exports `advance`: many steps of the classical Runge-Kutta method in one call.
        """
        from armdyn.kernels.wasm_emission import wasm_module  # imported only if needed

        return wasm_module({self.quantity: self.program})

    def __repr__(self) -> str:
        inputs = ", ".join(f"{name}{list(shape)}" for name, shape in self.assembly.inputs)
        return f"<Kernel {self.quantity}({inputs}) by {self.method} on {self.backend}>"

    def _repr_html_(self) -> str:
        """The inputs and outputs with shapes and units."""
        sides = (("input", self.assembly.inputs), ("output", self.assembly.outputs))
        rows = [
            (name, side, str((*shape,)), units(self.chain, self.quantity, name))
            for side, ports in sides
            for name, shape in ports
        ]  # fmt: skip
        return table(f"{self.quantity} by {self.method} on {self.backend}", ["array", "", "shape", "unit"], rows)

    def __reduce__(self) -> Any:
        return Kernel, (self.chain, self.quantity, self.method, self.backend, self.options, self.frames, self.links)

    def __call__(self, *arrays: Any, out: Any = None, threads: int | None = None, **choices: Any) -> Any:
        """The quantity at every configuration of the batch; `choices` are options for this call."""
        if choices:
            arrays, choices = self._by_name(arrays, choices)
            kernel = self._asked(choices) if choices else self
            arrays = (*arrays, *_last(choices))
            return kernel(*arrays) if out is None and threads is None else kernel(*arrays, out=out, threads=threads)
        plain = out is None or type(out) is _ARRAY
        for x in arrays:
            if type(x) is not _ARRAY:
                plain = False
        if not plain:
            arrays = self._as_numpy(arrays, out)
        if self._of_body:
            refuse_impossible(*arrays)
        function, count = self._compiled or self.compiled, checked(threads)
        try:
            if count == 1 and function.quiet:
                return function(*arrays, out=out)
            with np.errstate(all="ignore"):  # non-finite results are visible in their rows
                return function(*arrays, out=out) if count == 1 else shared(function, arrays, out, count)
        except (ValueError, TypeError) as error:
            raise self._diagnosis(arrays, out, error) from error

    def _as_numpy(self, arrays: tuple[Any, ...], out: Any) -> tuple[Any, ...]:
        """Other libraries' arrays as NumPy arrays. Masked ones are refused: results would get the mask of one input."""
        if any(map(masked, (*arrays, *(out if isinstance(out, tuple) else (out,))))):
            raise InputError(
                f"{self.quantity} takes plain arrays, got a masked one: a joint that is masked out has no position; "
                "select the rows first, or use np.ma.filled"
            )
        return tuple([x if type(x) is np.ndarray else _plain(x) for x in arrays])

    def _asked(self, choices: dict[str, Any]) -> Kernel:
        """The cached variant of this kernel for the options of a call."""
        asked = tuple((name, _FLAGS[name](x) if name in _FLAGS else x) for name, x in choices.items())
        try:
            return self._calls[asked]
        except KeyError:
            return self._calls.setdefault(asked, self.variant(**dict(asked)))
        except TypeError:  # a list, say
            return self.variant(**dict(asked))

    def variant(self, **choices: Any) -> Kernel:
        """The kernel with other options."""
        for name in choices:
            if name not in EVERYWHERE:  # these have an error of their own that lists the quantities that take them
                self._must_be_known(name)
        flags: dict[str, Any] = dict(choices)
        if isinstance(flags.get("tool_wrench"), tuple):
            flags["frames"] = self._placed(flags["tool_wrench"])
        elif any(isinstance(one, str) for one in flags.get("frames", ())):
            flags["frames"] = self._placed(self.frames if flags["frames"] == "all" else flags["frames"])
        if "columns" in flags:
            at_links = choose("columns", flags.pop("columns"), ("bodies", "urdf")) == "urdf"
            flags["frames"] = self.links if at_links else ()
        if flags.get("tool_wrench") is not None:
            flags["tool_wrench"] = flags["tool_wrench"] is not False
        if not isinstance(flags.get("derivatives", ()), tuple):
            wrt = flags["derivatives"]
            flags["derivatives"] = tuple(wrt) if isinstance(wrt, list) else (wrt,)
        if not isinstance(flags.get("frame"), tuple | None):
            flags["frame"] = self.frames[choose("frame", flags["frame"], self.frames)]
        options = replace(self.options, **flags)
        if options not in self._variants:
            # Friction does not change the ranking; a robot with several tips has no method until it has a frame.
            placed = bool(options.frames) or (options.frame is not None and self.options.frame is None)
            searched = options.derivatives or options.parameters != self.options.parameters or placed
            method = self._asked_method if searched else self.method
            made = Kernel(self.chain, self.quantity, method, self.backend, options, self.frames, self.links)
            self._variants[options] = made
        return self._variants[options]

    def _placed(self, names: Any) -> tuple[tuple[int, Placement], ...]:
        """Frames by their names."""
        listed = (names,) if isinstance(names, str) else names
        return tuple(self.frames[choose("frame", name, self.frames)] for name in listed)

    def _must_be_known(self, name: str) -> None:
        if name not in self._option_names:
            choose(f"option of {self.quantity}", name, (*self._ports, "out", "threads", *self._option_names))

    def _by_name(self, arrays: tuple[Any, ...], choices: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The inputs, of which some may be given by name, and the options."""
        if not any(name in choices for name in self._ports):
            return arrays, choices
        given = {name: x for name, x in choices.items() if name in self._ports}
        twice = [name for name in self._ports[: len(arrays)] if name in given]
        missing = [name for name in self._ports[len(arrays) :] if name not in given]
        if twice or missing:
            what = f"{twice[0]} is given twice" if twice else f"{', '.join(missing)} missing"
            raise InputError(f"{self.quantity} takes {', '.join(self._ports)}, in this order or by name; {what}")
        rest = {name: x for name, x in choices.items() if name not in given}
        return (*arrays, *(given[name] for name in self._ports[len(arrays) :])), rest

    def casadi(self, **choices: Any) -> Any:
        """The same as a `casadi.Function` of named matrices, whose Jacobian is armdyn's derivative program."""
        from armdyn.bridges import casadi_  # each of these libraries is imported only on demand

        return casadi_.function(self.variant(**choices))

    def jax(self, **choices: Any) -> Any:
        """The same as a function of JAX arrays on the CPU: jit, vmap and derivatives of any order."""
        from armdyn.bridges import jax_

        return jax_.function(self.variant(**choices))

    def torch(self, **choices: Any) -> Any:
        """The same as a function of PyTorch tensors on the CPU: autograd, vmap and torch.compile."""
        from armdyn.bridges import torch_

        return torch_.function(self.variant(**choices))

    def sympy(self, parameters: str = "numbers", **choices: Any) -> Any:
        """The same as readable SymPy expressions; ``parameters="symbols"`` gives symbols to lengths, masses etc."""
        from armdyn.bridges import sympy_

        if parameters in ("runtime", "geometry"):
            return sympy_.expressions(self.variant(parameters=parameters, **choices))
        return sympy_.expressions(self.variant(**choices), parameters)

    def batch(self, *shapes: tuple[int, ...]) -> tuple[int, ...]:
        """The batch shape of arrays of these shapes; raises an error if they do not broadcast."""
        arrays = tuple(np.broadcast_to(0.0, shape) for shape in shapes)
        found = batch_of(self.assembly, arrays)
        if found is None:
            raise self._diagnosis(arrays, None, ValueError("the arrays do not fit"))
        return found

    def _must_have_a_tool(self) -> None:
        """Raise an error that lists the candidates if the robot has no tool and no frame was given."""
        at_tool = QUANTITIES[self.quantity].at_tool or self.options.tool_wrench
        if at_tool and self.options.frame is None and not self.options.frames and not self.chain.tool_carrier:
            frames = [(name, k) for name, (k, _) in self.frames.items()]
            raise InputError(no_tool(self.quantity, self.chain, frames, "give frame="))

    def _diagnosis(self, arrays: tuple[Any, ...], out: Any, error: Exception) -> Exception:
        """The error with the array's name, its shape and the expected shape."""
        takes = self.assembly.inputs
        of = f"{self.quantity} of this arm (n = {self.chain.n})"
        if len(arrays) != len(takes):
            names = ", ".join(name for name, _ in takes)
            return InputError(f"{of} takes {len(takes)} arrays ({names}), got {len(arrays)}")
        batches = []
        for array, (name, shape) in zip(arrays, takes, strict=True):
            try:
                value = np.asarray(array)
            except ValueError as ragged:
                return InputError(f"{of}: {name} is not an array of numbers: {ragged}")
            core = value.ndim - len(shape)
            if core < 0 or value.shape[core:] != shape:
                return InputError(f"{of} expects {name} of shape {_shape(shape)}, got {value.shape}")
            if not np.can_cast(value.dtype, float):
                return InputError(f"{of} expects {name} as real numbers, got {value.dtype}; float64 is the widest")
            batches.append(value.shape[:core])
        try:
            batch = np.broadcast_shapes(*batches)
        except RuntimeError:
            return InputError(f"{of}: {error}")
        except ValueError:
            got = ", ".join(f"{name} {b}" for (name, _), b in zip(takes, batches, strict=True))
            return InputError(f"{of}: the batches do not broadcast together: {got}")
        return self._diagnosis_out(of, batch, out) or InputError(f"{of}: {error}")

    def _diagnosis_out(self, of: str, batch: tuple[int, ...], out: Any) -> Exception | None:
        gives = self.assembly.outputs
        given = out if isinstance(out, tuple) else (out,)
        if out is not None and len(given) != len(gives):
            return InputError(f"{of} returns {len(gives)} arrays, out has {len(given)}")
        for array, (name, shape) in zip(given, gives, strict=False):
            if array is not None and getattr(array, "shape", None) != (*batch, *shape):
                got = getattr(array, "shape", type(array).__name__)
                return InputError(f"{of} expects out ({name}) of shape {(*batch, *shape)}, got {got}")
        return None


def _shape(shape: tuple[int, ...]) -> str:
    return f"(..., {', '.join(map(str, shape))})" if shape else "(...)"


def _plain(x: Any) -> Any:
    """Another library's array (one with `__array_ufunc__` or `__dlpack__`) as a NumPy array."""
    if isinstance(x, np.ndarray | np.generic) or not (hasattr(x, "__array_ufunc__") or hasattr(x, "__dlpack__")):
        return x
    return np.asarray(x) if hasattr(x, "__array__") else np.from_dlpack(x)


def _last(choices: dict[str, Any]) -> tuple[Any, ...]:
    """The arrays given as options, in the order of the inputs they become: wrench, then parameters or geometry."""
    values = choices.get("parameters")
    return (*_wrench(choices), *(() if values is None or isinstance(values, str) else (values,)))


def _parameters(values: Any) -> Any:
    """The option that selects the program: values are those of the minimal parameters."""
    return values if isinstance(values, str) else "runtime"


def _wrench(choices: dict[str, Any]) -> tuple[Any, ...]:
    """The wrench given as a keyword argument, which becomes the last array; none if it is positional (`True`).

    Several wrenches are given as a mapping from frame names and are concatenated to one array.
    """
    wrench = choices.get("tool_wrench")
    if wrench is None or isinstance(wrench, bool | tuple):
        return ()
    if not isinstance(wrench, Mapping):
        return (wrench,)
    each = [np.asarray(one, dtype=float) for one in wrench.values()]
    for name, one in zip(wrench, each, strict=True):
        if one.shape[-1:] != (6,):
            raise InputError(f"the wrench at {name!r} must be (force, torque), of the shape (..., 6); got {one.shape}")
    batch = np.broadcast_shapes(*(one.shape[:-1] for one in each))
    return (np.concatenate([np.broadcast_to(one, (*batch, 6)) for one in each], axis=-1),)


def _flag(wrench: Any) -> Any:
    """The option that selects the program: whether there is a wrench, or the names of the frames of several."""
    if isinstance(wrench, Mapping):
        return tuple(wrench)
    return wrench if wrench is None or isinstance(wrench, bool | tuple) else True


_FLAGS = {"tool_wrench": _flag, "parameters": _parameters}
