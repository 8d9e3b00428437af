"""Kernel: one quantity of one arm by one formulation, as a function of NumPy arrays.

It broadcasts like a NumPy generalised ufunc: the last axes are those of the quantity, all axes before them
are batch axes.

The formulation is chosen by `auto`, cached on disk: the search runs once per machine, not once per process. Arguments
are checked (real numbers, not masked, possible payloads). Large batches are computed on several threads: kernels
release the GIL meanwhile.
"""

from __future__ import annotations

import logging
import math
import operator
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from functools import lru_cache, partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import numpy as np

from armdyn.algebra import Sym3, Vec3, exact
from armdyn.chain import Chain, Link, Placement
from armdyn.chain.chain import no_tool
from armdyn.chain.joint import ROUNDING, impossibility
from armdyn.codegen import BACKENDS, DEVICES, cache, fastcall, keywords
from armdyn.codegen.compile import load_or_compile, load_or_compile_single
from armdyn.codegen.text.numpy import ArrayFunction, compile_numpy, over_columns
from armdyn.errors import InputError, choose
from armdyn.formulations import QUANTITIES
from armdyn.formulations.registry import Shapes
from armdyn.graph.program import ColumnProgram, Program
from armdyn.html import table
from armdyn.kernels import describe
from armdyn.kernels.describe import OfObject
from armdyn.programs import search
from armdyn.programs.assemble import Assembly, Options, assemble, input_ports, output_ports
from armdyn.programs.program import compiled_program, program
from armdyn.programs.search import paused_collector
from armdyn.values import cached_property, masked

LOG = logging.getLogger("armdyn")


@lru_cache(maxsize=1024)
def auto(chain: Chain, quantity: str, options: Options = Options()) -> str:
    """The key of the formulation with the fewest compiled operations."""
    if len(QUANTITIES[quantity].methods) == 1:
        chosen, why = search.auto(chain, quantity, options), "its only formulation"
    else:
        name, start = cache.key("auto", chain, quantity, options), time.perf_counter()
        searched = False

        def search_now() -> str:
            nonlocal searched
            searched = True
            return search.auto(chain, quantity, options)

        chosen = cache.get_or_compute(name, search_now)
        why = "fewest operations, searched now" if searched else "fewest operations, as found before (cache on disk)"
        why += f", {1e3 * (time.perf_counter() - start):.2f} ms"
    LOG.debug("%s of %d joints: method %s (%s)", quantity, chain.n, chosen, why)
    return chosen


_FULL = [[0, 3, 4], [3, 1, 5], [4, 5, 2]]  # the index of each matrix entry among xx, yy, zz, xy, xz, yz


def refuse_impossible(*inputs: Any) -> None:
    """Raise an error for the first impossible payload: masses (...), coms (..., 3), inertias about them (..., 6).

    Arrays of wrong shapes are left to the kernel, which reports them.
    """
    try:
        mass, com, inertia = (np.asarray(x) for x in inputs[:3])
        batch = np.broadcast_shapes(mass.shape, com.shape[:-1], inertia.shape[:-1])
    except (ValueError, RuntimeError):  # RuntimeError: more axes than NumPy broadcasts
        return
    numbers = all(x.dtype.kind in "fiub" for x in (mass, com, inertia))
    if not numbers or com.shape[-1:] != (3,) or inertia.shape[-1:] != (6,):
        return
    finite = np.isfinite(mass) & np.isfinite(com).all(axis=-1) & np.isfinite(inertia).all(axis=-1)
    with np.errstate(all="ignore"):  # non-finite inputs are flagged above
        odd = ~finite | (mass < 0) | _impossible(inertia) | ((mass == 0) & inertia.any(axis=-1))
    if odd.any():
        row = np.unravel_index(int(np.argmax(odd)), batch)
        m, c, J = (np.broadcast_to(x, (*batch, *k))[row] for x, k in ((mass, ()), (com, (3,)), (inertia, (6,))))
        where = f" (row {', '.join(map(str, row))} of the batch)" if batch else ""
        raise InputError(f"this payload is not possible: {_reason(float(m), c.tolist(), J.tolist())}{where}")


def _impossible(inertia: np.ndarray) -> np.ndarray:
    """Which of the finite inertias (..., 6) are physically impossible, by the criteria of `checks.link_faults`."""
    odd = np.zeros(inertia.shape[:-1], dtype=bool)
    some = inertia.any(axis=-1) & np.isfinite(inertia).all(axis=-1)
    if some.any():
        small, middle, large = np.linalg.eigvalsh(np.asarray(inertia, dtype=float)[some][:, _FULL]).T
        slack = ROUNDING * np.maximum(np.abs(small), np.abs(large))
        odd[some] = (small < -slack) | (large > small + middle + slack)
    return odd


def _reason(mass: float, com: list[float], inertia: list[float]) -> str:
    if not np.isfinite([mass, *com, *inertia]).all():
        return f"mass {mass:g}, com {com} and inertia {inertia} must be finite"
    xx, yy, zz, xy, xz, yz = map(exact, inertia)
    body = Link.from_com(exact(mass), Vec3(*map(exact, com)), Sym3(xx, xy, yy, xz, yz, zz))
    return impossibility(body) or "its inertia is at the edge of what a body can have"


SMALLEST = 2048  # configurations per thread: fewer take less time than waking up a thread

_threads = 1
_waiting: SimpleQueue[Callable[[], None]] = SimpleQueue()  # what the threads of this process do next
_workers = 0  # how many there are


def set_threads(count: int) -> None:
    """Set the default number of threads for large batches; `threads=` of a call overrides it."""
    global _threads
    _threads = _count(count)


def checked(count: int | None) -> int:
    """A valid number of threads; None means the default."""
    return _threads if count is None else _count(count)


def _count(count: object) -> int:
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
        raise InputError(f"threads must be a positive whole number, got {count!r}; this machine has {os.cpu_count()}")
    return int(count)


def shared(function: Any, arrays: tuple[Any, ...], out: Any, count: int) -> Any:
    """`function(*arrays, out=out)`, with the batch split into `count` parts if it is large enough."""
    values = [np.asarray(array) for array in arrays]
    batch = batch_of(function, values)
    given = (None,) * len(function.outputs) if out is None else out if isinstance(out, tuple) else (out,)
    arrays_given = all(o is None or isinstance(o, np.ndarray) for o in given)
    if batch is None or math.prod(batch) < 2 * SMALLEST or len(given) != len(function.outputs) or not arrays_given:
        return function(*arrays, out=out)
    if any(o is not None and np.may_share_memory(o, v) for o in given for v in values):
        return function(*arrays, out=out)  # one part could overwrite the input of another
    whole = [
        np.empty((*batch, *shape), function.dtype) if o is None else o
        for o, (_, shape) in zip(given, function.outputs, strict=True)
    ]
    for o, (_, shape) in zip(whole, function.outputs, strict=True):
        if o.shape != (*batch, *shape):
            return function(*arrays, out=out)  # raises the error
    spread = [np.broadcast_to(v, (*batch, *shape)) for v, (_, shape) in zip(values, function.inputs, strict=True)]
    axis = batch.index(max(batch))
    parts = min(count, max(1, math.prod(batch) // SMALLEST), batch[axis])
    bounds = [batch[axis] * part // parts for part in range(parts + 1)]

    def one(part: int) -> None:
        cut = (*(slice(None),) * axis, slice(bounds[part], bounds[part + 1]))
        with np.errstate(all="ignore"):
            function(*(v[cut] for v in spread), out=tuple(o[cut] for o in whole))

    _run(one, parts)
    return whole[0] if len(whole) == 1 else tuple(whole)


def batch_of(function: Any, values: Sequence[Any]) -> tuple[int, ...] | None:
    """The shape of the batch; None if the arrays do not fit, which the function itself reports better."""
    if len(values) != len(function.inputs):
        return None
    batches: list[tuple[int, ...]] = []
    for value, (_, shape) in zip(values, function.inputs, strict=True):
        core = value.ndim - len(shape)
        if core < 0 or value.shape[core:] != shape:
            return None
        batches.append(value.shape[:core])
    if batches.count(batches[0]) == len(batches):
        return batches[0]
    try:
        return np.broadcast_shapes(*batches)
    except (ValueError, RuntimeError):  # RuntimeError: more axes than NumPy broadcasts here
        return None


class _Parts:
    """The parts of a batch on several threads: which have started, and whether others may still start."""

    def __init__(self, one: Callable[[int], None]) -> None:
        self._one = one
        self._changed = threading.Condition()
        self._running = 0
        self._stopped = False

    def run(self, part: int) -> None:
        """Run one part, unless it was stopped before it started."""
        with self._changed:
            if self._stopped:
                return
            self._running += 1
        try:
            self._one(part)
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify_all()

    def stop(self) -> None:
        """Start no further part and wait for the running ones, even if interrupted."""
        interrupt = None
        while True:
            try:
                with self._changed:
                    self._stopped = True
                    while self._running:
                        self._changed.wait()
                break
            except KeyboardInterrupt as error:
                interrupt = error
        if interrupt is not None:
            raise interrupt


def _run(one: Callable[[int], None], parts: int) -> None:
    """Run every part, the first of them on this thread. After an error or Ctrl-C no part runs any more.

    The threads wait in a queue of their own: a `ThreadPoolExecutor` takes 0.1 ms to hand out a part and to get it back.
    """
    global _workers
    while _workers < parts - 1:
        _workers += 1
        threading.Thread(target=_work, args=(_waiting,), name=f"armdyn_{_workers}", daemon=True).start()
    shared_out, ended = _Parts(one), SimpleQueue[BaseException | None]()

    def reported(part: int) -> None:
        try:
            shared_out.run(part)
        except BaseException as error:  # raised again by the caller's thread
            ended.put(error)
        else:
            ended.put(None)

    try:
        for part in range(1, parts):
            _waiting.put(partial(reported, part))
        shared_out.run(0)
        for _ in range(1, parts):
            if (error := ended.get()) is not None:
                raise error
    finally:
        shared_out.stop()


def _work(waiting: SimpleQueue[Callable[[], None]]) -> None:
    """The life of a thread."""
    while True:
        waiting.get()()


def _after_fork() -> None:
    """Threads do not survive a fork; the child starts its own."""
    global _waiting, _workers
    _waiting, _workers = SimpleQueue(), 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


OPTIONS = tuple(f.name for f in fields(Options))
EVERYWHERE = tuple(name for name in OPTIONS if name not in ("frames", "axes", "rows", "damping", "packed"))
OF_A_CALL = ("out", "threads")
UNIFORM = ("parameters", "geometry")  # inputs that are usually the same for a whole batch
COLUMNS = {"natural_regressor": ("columns",)}  # options that name frames in another way
_ARRAY = np.ndarray  # a module constant, because every call looks it up
_DOUBLE = np.dtype(np.float64)  # this one object, unless an array was made in an unusual way
_SINGLE = (np.dtype(np.float32), np.dtype(np.float16))  # integers are computed in double precision


if TYPE_CHECKING:

    class Fast:
        """Made through CPython's C API; see `codegen.fastcall`."""
else:
    Fast = fastcall.base()


class Kernel(Fast):
    """A function of configurations, compiled at its first call."""

    # `help`, `inspect.signature` and completion show the quantity's own face.
    __doc__ = OfObject(describe.documentation, __doc__)
    __name__ = OfObject(describe.name)
    __signature__ = OfObject(describe.signature)

    def __init__(
        self,
        chain: Chain,
        quantity: str,
        method: str = "auto",
        backend: str = "llvm",
        options: Options = Options(),
        frames: Mapping[str, tuple[int, Placement]] | None = None,
        links: tuple[tuple[int, Placement], ...] = (),
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        self.chain = chain
        self.dtype = precision(dtype)  # in which it computes; None: that of its inputs
        self.quantity = choose("quantity", quantity, QUANTITIES)
        methods = ["auto", *(m.key for m in QUANTITIES[quantity].methods)]
        self._asked_method = choose(f"method of {quantity}", method, methods)
        self._of_body = QUANTITIES[quantity].of_body
        self.backend = choose("backend", backend, (*BACKENDS, DEVICES))
        self.device = device  # of the backend gpu
        takes = QUANTITIES[quantity].takes
        of_links = QUANTITIES[quantity].of_links and not options.frames
        self.options = options = replace(options, frames=links) if of_links else options
        self.frames = dict(frames or {})  # frames by name, for the options `frame` and `frames`
        self.links = links  # the frame of each link as in the file; empty: the bodies' own
        self._ports = tuple(name for name, _ in QUANTITIES[quantity].inputs)
        self.option_names = tuple(dict.fromkeys((*takes, *COLUMNS.get(quantity, ()), "parameters", "derivatives")))
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
    def asked(self) -> tuple[Any, ...]:
        """What the program depends on."""
        return self.chain, self.quantity, self.method, self.options

    @property
    def ports(self) -> tuple[Shapes, Shapes]:
        """The inputs and the results, with their shapes."""
        asked = self.chain, self.quantity, self.options
        return input_ports(*asked), output_ports(*asked)

    @property
    def program(self) -> Program:
        """The graph this kernel is compiled from."""
        return program(self.chain, self.quantity, self.method, self.options)

    @cached_property
    def input_names(self) -> tuple[str, ...]:
        """What the inputs are called as keywords of a call: those that are options by the options' names."""
        names = (name for name, _ in self.ports[0])
        return tuple("tool_wrench" if name == "wrench" else name for name in names)

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
            made = load_or_compile(self.asked, lambda: self.compiled_program, UNIFORM, self._number)
        if self.backend == DEVICES:
            from armdyn.codegen.gpu.webgpu import DeviceFunction  # imported only if needed

            return DeviceFunction(self.program, self.device)
        if made is not None and self._of_body:
            return made  # no fast path: payloads are checked at every call
        if made is not None:
            fastcall.attach(self, made.addresses["entry"], made.code)
            return made
        a, dtype = self.assembly, self.dtype or "float64"
        if self.backend == "numpy":
            return ArrayFunction(compile_numpy(self.program), a.inputs, a.outputs, dtype)
        return over_columns(a.function, a.inputs, a.outputs, dtype)

    @property
    def _number(self) -> str:
        return "float" if self.dtype == "float32" else "double"

    @cached_property
    def _single_calls_compiled(self) -> bool:
        """Whether machine code takes calls with one configuration; compiles it, but not the code for batches."""
        if self.backend != "llvm" or self._of_body or not fastcall.supported(type(self)):
            return False
        with paused_collector():
            made = load_or_compile_single(self.asked, lambda: self.compiled_program, UNIFORM, self._number)
        return made is not None and fastcall.attach(self, made.code.address("entry"), made)

    def _one_configuration(self, arrays: tuple[Any, ...]) -> list[Any] | None:
        """The inputs as arrays that machine code takes, if they are one configuration and NumPy would cast them."""
        shapes = self._core_shapes
        if len(arrays) != len(shapes) or not all(type(x) in (_ARRAY, list, tuple) for x in arrays):
            return None
        try:
            found = [np.asarray(x) for x in arrays]
        except ValueError:  # ragged lists
            return None
        dtype, casting = (_SINGLE[0], "same_kind") if self._number == "float" else (_DOUBLE, "safe")
        for x, shape in zip(found, shapes, strict=True):
            if x.shape != shape or x.dtype.kind not in "fiu" or not np.can_cast(x.dtype, dtype, casting):  # type: ignore[arg-type]
                return None
        return [np.array(x, dtype, order="C") for x in found]

    @cached_property
    def _core_shapes(self) -> tuple[tuple[int, ...], ...]:
        return tuple(shape for _, shape in self.ports[0])

    @cached_property
    def single(self) -> Kernel:
        """The same in single precision: what runs if all inputs are float32."""
        return self._like(self.options, self.method, "float32")

    def _like(self, options: Options, method: str, dtype: str | None) -> Kernel:
        """The same quantity of the same arm with other options."""
        given = (self.chain, self.quantity, method, self.backend, options, self.frames, self.links)
        return Kernel(*given, self.device, dtype)

    def wasm(self) -> bytes:
        """A WebAssembly module without imports; it exports this quantity, `memory`, `heap` (docs/howto/webassembly.md).

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
            (name, side, str((*shape,)), describe.unit(self, name))
            for side, ports in sides
            for name, shape in ports
        ]  # fmt: skip
        return table(f"{self.quantity} by {self.method} on {self.backend}", ["array", "", "shape", "unit"], rows)

    def __reduce__(self) -> Any:
        given = (self.chain, self.quantity, self.method, self.backend, self.options, self.frames, self.links)
        return Kernel, (*given, self.device, self.dtype)

    def __call__(self, *arrays: Any, out: Any = None, threads: int | None = None, **choices: Any) -> Any:
        """The quantity at every configuration of the batch; `choices` are options for this call."""
        if choices:
            wrenches = choices.get("tool_wrench")
            if type(wrenches) is dict and len(choices) == 1 and out is None and threads is None:
                kernel = self._calls.get((*wrenches,))
                if kernel is not None and (joined := _joined(wrenches)) is not None:
                    return kernel(*arrays, joined)
            every, options = self._by_name(arrays, choices)
            kernel = self._asked(options) if options else self
            every = (*every, *_last(options))
            if out is not None or threads is not None:
                return kernel(*every, out=out, threads=threads)
            result = kernel(*every)
            keywords.remember(self, len(arrays), choices, kernel.input_names[len(arrays) :], kernel)
            if type(wrenches) is dict and len(choices) == 1:
                self._calls[(*wrenches,)] = kernel
            return result
        plain = out is None or type(out) is _ARRAY
        by_inputs = self.dtype is None and self.backend != DEVICES  # which computes in single precision
        for x in arrays:
            if type(x) is not _ARRAY:
                plain = False
            elif x.dtype is _DOUBLE:
                by_inputs = False
        if not plain:
            arrays = self._as_numpy(arrays, out)
        if by_inputs and _are_single(arrays):
            plainly = out is None and threads is None  # without keywords, machine code takes the call
            return self.single(*arrays) if plainly else self.single(*arrays, out=out, threads=threads)
        if self._of_body:
            refuse_impossible(*arrays)
        if self._compiled is None and out is None and threads is None:
            one = self._one_configuration(arrays)
            if one is not None and self._single_calls_compiled:
                return self(*one)  # by machine code, here and, without a detour, next time
        function, count = self._compiled or self.compiled, 1 if self.backend == DEVICES else checked(threads)
        try:
            if count == 1 and function.quiet:
                return function(*arrays, out=out)
            with np.errstate(all="ignore"):  # non-finite results are visible in their rows
                return function(*arrays, out=out) if count == 1 else shared(function, arrays, out, count)
        except InputError:
            raise
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
        if "dtype" in choices:
            dtype = precision(choices.pop("dtype"))
            other = self.variant(**choices) if choices else self
            return other if dtype == other.dtype else other._like(other.options, other.method, dtype)
        if "solver" in choices:
            return self._solved_by(choices.pop("solver")).variant(**choices)
        for name in choices:
            if name in OF_A_CALL:
                raise InputError(f"{name}= is an option of a call, not of a kernel: {self.quantity}(..., {name}=...)")
            if name not in EVERYWHERE:  # these have an error of their own that lists the quantities that take them
                self._must_be_known(name)
        flags: dict[str, Any] = dict(choices)
        if isinstance(flags.get("tool_wrench"), tuple):
            flags["frames"] = self._placed(flags["tool_wrench"])
        elif any(isinstance(one, str) for one in flags.get("frames", ())):
            flags["frames"] = self._placed(self.frames if flags["frames"] == "all" else flags["frames"])
        if "rows" in flags:
            flags["rows"] = _rows(flags["rows"])
        if "damping" in flags:
            flags["damping"] = _damping(flags["damping"])
        if flags.get("packed", False) not in (True, False):
            raise InputError(f"packed must be True or False, got {flags['packed']!r}")
        if "columns" in flags:
            at_links = choose("columns", flags.pop("columns"), ("bodies", "urdf")) == "urdf"
            flags["frames"] = self.links if at_links else ()
        for one in ("tool_wrench", "base_acceleration"):
            if flags.get(one) is not None:
                flags[one] = flags[one] is not False
        if flags.get("base_acceleration", False) is None:
            flags["base_acceleration"] = False
        if not isinstance(flags.get("derivatives", ()), tuple):
            wrt = flags["derivatives"]
            flags["derivatives"] = tuple(wrt) if isinstance(wrt, list) else (wrt,)
        if "base_acceleration" in flags.get("derivatives", ()):
            flags.setdefault("base_acceleration", True)
        if "tool_wrench" in flags.get("derivatives", ()):  # the input's name is that of its array
            flags["derivatives"] = tuple("wrench" if one == "tool_wrench" else one for one in flags["derivatives"])
            flags.setdefault("tool_wrench", True)
        if not isinstance(flags.get("frame"), tuple | None):
            flags["frame"] = self.frames[choose("frame", flags["frame"], self.frames)]
        options = replace(self.options, **flags)
        if options not in self._variants:
            # Friction does not change the ranking; a robot with several tips has no method until it has a frame.
            placed = bool(options.frames) or (options.frame is not None and self.options.frame is None)
            searched = options.derivatives or options.parameters != self.options.parameters or placed
            method = self._asked_method if searched else self.method
            self._variants[options] = self._like(options, method, self.dtype)
        return self._variants[options]

    def _solved_by(self, solver: Any) -> Kernel:
        """Forward dynamics by composite bodies with this solver of H q̈ = τ - b."""
        from armdyn.formulations.forward_dynamics import SOLVERS  # all formulations of this quantity

        asked = self._asked_method
        if self.quantity != "forward_dynamics" or asked not in ("auto", *SOLVERS.values()):
            of = self.quantity if asked == "auto" else f"{self.quantity} by {asked}"
            raise InputError(f"{of} takes no solver; forward_dynamics by composite does: {', '.join(SOLVERS)}")
        return self._like(self.options, SOLVERS[choose("solver", solver, SOLVERS)], self.dtype)

    def _placed(self, names: Any) -> tuple[tuple[int, Placement], ...]:
        """Frames by their names."""
        listed = (names,) if isinstance(names, str) else names
        return tuple(self.frames[choose("frame", name, self.frames)] for name in listed)

    def _must_be_known(self, name: str) -> None:
        if name not in self.option_names:
            choose(f"option of {self.quantity}", name, (*self._ports, "out", "threads", *self.option_names))

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

    def jax(self, device_form: bool = False, **choices: Any) -> Any:
        """The same as a function of JAX arrays: jit, vmap and derivatives of any order.

        On the CPU it is machine code, on other devices a Pallas kernel; ``device_form=True`` is that kernel on the CPU,
        interpreted, to try it.
        """
        from armdyn.bridges import jax_

        return jax_.function(self.variant(**choices), device_form)

    def torch(self, device_form: bool = False, **choices: Any) -> Any:
        """The same as a function of PyTorch tensors: autograd, vmap and torch.compile.

        On the CPU it is machine code, on other devices operations of PyTorch, which torch.compile fuses;
        ``device_form=True`` is this form on the CPU, too.
        """
        from armdyn.bridges import torch_

        return torch_.function(self.variant(**choices), device_form)

    def sympy(self, parameters: str = "numbers", **choices: Any) -> Any:
        """The same as readable SymPy expressions; ``parameters="symbols"`` gives symbols to lengths, masses etc."""
        from armdyn.bridges import sympy_

        if parameters in ("runtime", "geometry"):
            return sympy_.expressions(self.variant(parameters=parameters, **choices))
        return sympy_.expressions(self.variant(**choices), parameters)

    def derivation(self, parameters: str = "numbers", **choices: Any) -> Any:
        """The same as a derivation: intermediate values by the papers' names, each defined once, then the results.

        ``parameters="symbols"`` gives symbols to lengths, masses etc. It prints as text, and as LaTeX in notebooks.
        """
        from armdyn.bridges import derivation

        return derivation.derivation(self.variant(**choices), parameters, self._asked_method)

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
        from armdyn.codegen.gpu.webgpu import DeviceArray

        takes = self.assembly.inputs
        of = f"{self.quantity} of this arm (n = {self.chain.n})"
        if len(arrays) != len(takes):
            names = ", ".join(name for name, _ in takes)
            return InputError(f"{of} takes {len(takes)} arrays ({names}), got {len(arrays)}")
        batches = []
        for array, (name, shape) in zip(arrays, takes, strict=True):
            try:
                value = array if isinstance(array, DeviceArray) else np.asarray(array)
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


def precision(dtype: Any) -> str | None:
    """The name of the precision to compute in; None if the inputs decide."""
    if dtype is None:
        return None
    try:
        name = np.dtype(dtype).name
    except TypeError:
        name = str(dtype)
    return choose("dtype", name, ("float32", "float64"))


def _are_single(arrays: tuple[Any, ...]) -> bool:
    """Whether NumPy's own functions of these arrays would compute in single precision."""
    for x in arrays:
        if type(x) is not _ARRAY or x.dtype != _SINGLE[0]:
            break
    else:
        return bool(arrays)
    if not arrays or not all(isinstance(x, np.ndarray | np.generic) for x in arrays):
        return False
    return np.result_type(*[x.dtype for x in arrays]) in _SINGLE


def _plain(x: Any) -> Any:
    """Another library's array (one with `__array_ufunc__` or `__dlpack__`) as a NumPy array."""
    if isinstance(x, np.ndarray | np.generic) or not (hasattr(x, "__array_ufunc__") or hasattr(x, "__dlpack__")):
        return x
    return np.asarray(x) if hasattr(x, "__array__") else np.from_dlpack(x)


def _last(choices: dict[str, Any]) -> tuple[Any, ...]:
    """The arrays given as options, in the order of the inputs they become: wrench, base, parameters or geometry."""
    values, base = choices.get("parameters"), choices.get("base_acceleration")
    moving = () if base is None or isinstance(base, bool) else (base,)
    return (*_wrench(choices), *moving, *(() if values is None or isinstance(values, str) else (values,)))


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


def _rows(rows: Any) -> tuple[tuple[int, ...], ...]:
    """Rows per frame, from rows that are the same for all, or from a sequence of rows per frame."""
    try:
        each = [rows] if all(np.ndim(row) == 0 for row in rows) and len(rows) else rows
        return tuple(tuple(operator.index(row) for row in one) for one in each)
    except TypeError:
        raise InputError(f"rows are numbers 0 to 5, or a sequence of them per frame; got {rows!r}") from None


def _damping(damping: Any) -> float:
    if isinstance(damping, bool) or not isinstance(damping, int | float | np.number) or not 0 <= damping < np.inf:
        raise InputError(f"damping must be a number from 0, got {damping!r}")
    return float(damping)


def _joined(wrenches: dict[str, Any]) -> Any:
    """One array of wrenches (force, torque), one per frame; None if they are no such vectors of doubles."""
    each = [*wrenches.values()]
    for one in each:
        if type(one) is not _ARRAY or one.dtype is not _DOUBLE or one.shape != (6,):
            break
    else:
        try:
            return np.frombuffer(b"".join(each))  # the quickest way
        except TypeError:  # a strided vector is none of bytes
            pass
    try:
        rows = np.array(each)
    except ValueError:  # of different shapes, say
        return None
    return rows.reshape(-1) if rows.shape == (len(wrenches), 6) and rows.dtype is _DOUBLE else None


def _flag(wrench: Any) -> Any:
    """The option that selects the program: whether there is a wrench, or the names of the frames of several."""
    if isinstance(wrench, Mapping):
        return tuple(wrench)
    return wrench if wrench is None or isinstance(wrench, bool | tuple) else True


_FLAGS = {"tool_wrench": _flag, "base_acceleration": _flag, "parameters": _parameters}
