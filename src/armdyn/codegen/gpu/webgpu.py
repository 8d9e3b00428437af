"""WebGPU devices, arrays on them, and programs as functions of arrays that run there (package wgpu)."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from armdyn.codegen.gpu import wgsl
from armdyn.errors import ComputationError, InputError
from armdyn.graph.program import Program
from armdyn.values import cached_property

Shapes = tuple[tuple[str, tuple[int, ...]], ...]
BYTES = 4  # of a number in single precision
MOST_GROUPS = 65535  # of threads along one axis of the grid, as every device allows
RAISED = ("max-storage-buffer-binding-size", "max-buffer-size", "max-storage-buffers-per-shader-stage")
_LOCK = threading.RLock()  # around every use of the library
_DEVICES: list[Device] = []


class NoDevice(ComputationError):  # noqa: N818 - a public name
    """There is no device that armdyn can compute on, or no library that reaches it."""


@dataclass(eq=False)
class Device:
    """A graphics processor (or its emulation on the CPU) as WebGPU shows it."""

    name: str
    kind: str  # DiscreteGPU, IntegratedGPU, CPU, ...
    backend: str  # Vulkan, Metal, D3D12
    adapter: Any = field(repr=False)
    lost: str = field(default="", repr=False)  # why it can no longer be used
    _pipelines: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def emulated(self) -> bool:
        """Whether the CPU emulates this device."""
        return self.kind == "CPU"

    @property
    def largest_array(self) -> int:
        """The most bytes that an array may have here."""
        limits = self.handle.limits
        return int(min(limits[RAISED[0]], limits[RAISED[1]]))

    @cached_property
    def handle(self) -> Any:
        """The opened device."""
        available = self.adapter.limits
        with _LOCK:
            try:
                return self.adapter.request_device_sync(required_limits={name: available[name] for name in RAISED})
            except Exception as error:  # the library passes on whatever the driver says
                raise NoDevice(f"the device {self.name} ({self.backend}) cannot be opened: {error}") from error

    def run(self, what: str, work: Any) -> Any:
        """`work(handle)`; errors of the library say what failed on which device."""
        if self.lost:
            raise ComputationError(f"{what}: the device {self.name} was lost ({self.lost}); start the program again")
        handle = self.handle
        with _LOCK:
            try:
                return work(handle)
            except MemoryError as error:
                raise ComputationError(f"{what}: out of memory on {self.name}") from error
            except Exception as error:
                raise self._explained(what, error) from error

    def _explained(self, what: str, error: Exception) -> Exception:
        text = f"{type(error).__name__}: {error}"
        if "OutOfMemory" in text or "not enough memory" in text.lower():
            return ComputationError(f"{what}: not enough memory on {self.name}; use a smaller batch")
        if "lost" in text.lower() or ("is invalid" in text.lower() and "Device" in text):
            self.lost = str(error).strip().splitlines()[-1]
            return ComputationError(f"{what}: the device {self.name} was lost ({self.lost}); start the program again")
        return ComputationError(f"{what} failed on {self.name}: {text}")

    def pipeline(self, program: Program) -> Any:
        """The compiled shader of a program, kept for the next call."""
        return self.shader(program.name, wgsl.source(program), [way for _, _, way in wgsl.ports(program)])

    def shader(self, name: str, text: str, access: Sequence[str]) -> Any:
        """A compiled shader, kept for the next call; `access` to its arrays, behind the one that all shaders read."""
        made = self._pipelines.get(text)
        if made is None:
            needed, allowed = len(access) + 1, self.handle.limits[RAISED[2]]
            if needed > allowed:
                raise InputError(f"{name} has {needed - 1} arrays; {self.name} takes at most {allowed - 1}")
            made = self.run(f"compiling {name}", lambda handle: _compiled(handle, text, access))
            self._pipelines[text] = made
        return made

    def buffer(self, size: int, what: str) -> Any:
        """Memory for `size` bytes."""
        if size > self.largest_array:
            raise ComputationError(
                f"{what} takes {size / 2**20:.0f} MiB; an array on {self.name} has at most "
                f"{self.largest_array / 2**20:.0f} MiB: compute the batch in parts, or pass NumPy arrays, "
                "which armdyn computes in parts"
            )
        usage = _wgpu().BufferUsage
        kinds = usage.STORAGE | usage.COPY_SRC | usage.COPY_DST
        return self.run(what, lambda handle: handle.create_buffer(size=max(size, BYTES), usage=kinds))


def _wgpu() -> Any:
    try:
        import wgpu
    except (ImportError, OSError) as error:
        raise NoDevice(
            f'graphics processors are reached through the package wgpu ({error}): pip install "armdyn[gpu]"'
        ) from error
    return wgpu


def devices() -> list[Device]:
    """The devices, real ones first; an empty list where there is none."""
    wgpu = _wgpu()
    with _LOCK:
        if not _DEVICES:
            found = [
                Device(a.info["device"], a.info["adapter_type"], a.info["backend_type"], a)
                for a in wgpu.gpu.enumerate_adapters_sync()
                if a.info["backend_type"] != "OpenGL"  # the same devices again, without storage buffers on many
            ]
            order = ("DiscreteGPU", "IntegratedGPU", "VirtualGPU", "Unknown", "CPU")
            _DEVICES.extend(sorted(found, key=lambda d: order.index(d.kind) if d.kind in order else 3))
        return list(_DEVICES)


def device(asked: Device | int | str | None = None) -> Device:
    """A device by its number in `devices()` or a part of its name; the first one by default."""
    if isinstance(asked, Device):
        return asked
    found = devices()
    listed = "; ".join(f"{k}: {one.name} ({one.kind}, {one.backend})" for k, one in enumerate(found))
    if not found:
        raise NoDevice(
            "no graphics device was found: a Vulkan, Metal or DirectX 12 driver is needed (on Debian, "
            "mesa-vulkan-drivers has one that computes on the CPU); backend='llvm' needs none"
        )
    if asked is None:
        return found[0]
    if isinstance(asked, int) and not isinstance(asked, bool) and 0 <= asked < len(found):
        return found[asked]
    if isinstance(asked, str):
        named = [one for one in found if asked.lower() in one.name.lower()]
        if named:
            return named[0]
    raise InputError(f"unknown device {asked!r}; available: {listed}")


def _compiled(handle: Any, text: str, access: Sequence[str]) -> Any:
    """The pipeline, with a layout of its own: the automatic one leaves out arrays that the program does not read."""
    module = handle.create_shader_module(code=text)
    kinds = {"read": "read-only-storage", "read_write": "storage"}
    visible = _wgpu().ShaderStage.COMPUTE
    entries = [
        {"binding": k, "visibility": visible, "buffer": {"type": kinds[way]}} for k, way in enumerate(("read", *access))
    ]
    layout = handle.create_pipeline_layout(bind_group_layouts=[handle.create_bind_group_layout(entries=entries)])
    return handle.create_compute_pipeline(layout=layout, compute={"module": module, "entry_point": "main"})


class DeviceArray:
    """An array of single-precision numbers in a device's memory; `numpy()` copies it to the host."""

    dtype = np.dtype(np.float32)

    def __init__(self, device: Device, shape: Sequence[int], buffer: Any) -> None:
        self.device, self.shape, self.buffer = device, tuple(shape), buffer

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of entries."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The bytes of all entries."""
        return BYTES * self.size

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("this array has no axes")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<array {self.shape} of float32 on {self.device.name}>"

    def numpy(self) -> np.ndarray:
        """A copy on the host, once everything before it is computed."""
        if not self.size:
            return np.empty(self.shape, dtype=np.float32)

        def read(handle: Any) -> Any:
            return handle.queue.read_buffer(self.buffer, 0, self.nbytes)

        data = self.device.run("copying an array from the device", read)
        return np.frombuffer(data, dtype=np.float32).reshape(self.shape).copy()

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        raise InputError(f"this array is on the device {self.device.name}: call its numpy() for a copy on the host")


def array(values: Any, device: Device | int | str | None = None) -> DeviceArray:
    """A copy of an array in a device's memory, in single precision."""
    at = globals()["device"](device)
    return uploaded(at, single(values, "an array for the device"))


def single(values: Any, what: str) -> np.ndarray:
    """Numbers as a float32 array in C order; others, and finite ones beyond its range, are refused."""
    if isinstance(values, DeviceArray):
        raise InputError(f"{what} is on {values.device.name} already; numpy() copies it to the host")
    given = np.asarray(values)
    if not np.can_cast(given.dtype, np.float64, "same_kind"):
        raise InputError(f"{what} must be real numbers, got {given.dtype}; they are computed in float32")
    with np.errstate(over="ignore"):
        result = np.ascontiguousarray(given, dtype=np.float32).reshape(given.shape)
    if given.dtype.kind == "f" and given.dtype.itemsize > BYTES and (np.isinf(result) & np.isfinite(given)).any():
        raise InputError(f"{what} has numbers beyond the range of single precision (3.4e38)")
    return result


def uploaded(at: Device, values: np.ndarray) -> DeviceArray:
    """A float32 array in C order, copied to a device."""
    buffer = at.buffer(values.nbytes, f"an array of the shape {values.shape}")
    if values.size:
        at.run("copying an array to the device", lambda handle: handle.queue.write_buffer(buffer, 0, values))
    return DeviceArray(at, values.shape, buffer)


class DeviceFunction:
    """A program on a device, as a function of arrays that broadcasts as a NumPy gufunc does.

    NumPy arrays are copied to the device, and the results back; if one input is on a device, the results stay there.
    """

    quiet = True

    def __init__(self, program: Program, asked: Device | int | str | None = None) -> None:
        self.program = program
        self.asked = None if asked is None else device(asked)
        self.inputs: Shapes = tuple((port.name, port.shape) for port in program.inputs)
        self.outputs: Shapes = tuple((port.name, port.shape) for port in program.outputs)

    def __call__(self, *arrays: Any, out: Any = None) -> Any:
        """The results: NumPy arrays, or arrays on the device if one of the inputs is there."""
        if len(arrays) != len(self.inputs):
            raise TypeError(f"{self.program.name} takes {len(self.inputs)} arrays, got {len(arrays)}")
        at = self._device(arrays)
        stays = any(isinstance(x, DeviceArray) for x in arrays)
        values: list[Any] = [
            x if isinstance(x, DeviceArray) else self._finite(single(x, f"{self.program.name}: {name}"), name, shape)
            for x, (name, shape) in zip(arrays, self.inputs, strict=True)
        ]
        batch = np.broadcast_shapes(*(_batch(x, shape) for x, (_, shape) in zip(values, self.inputs, strict=True)))
        if stays:
            if out is not None:
                raise InputError(
                    f"{self.program.name}: out= is for NumPy arrays; results of arrays on a device are new"
                )
            results: tuple[Any, ...] = self._launch(at, values, batch)
        else:
            results = self._in_parts(at, values, batch, out)
        return results[0] if len(results) == 1 else results

    def _device(self, arrays: tuple[Any, ...]) -> Device:
        """The device to compute on: the one asked for, or the one of the arrays; they must agree."""
        wanted = self.asked
        for x, (name, _) in zip(arrays, self.inputs, strict=True):
            if isinstance(x, DeviceArray):
                if wanted is not None and x.device is not wanted:
                    raise InputError(
                        f"{self.program.name}: {name} is on {x.device.name} ({x.device.backend}), the computation on "
                        f"{wanted.name} ({wanted.backend}); copy it there: armdyn.gpu.array({name}.numpy(), device=...)"
                    )
                wanted = x.device
        return wanted or device()

    def _finite(self, values: np.ndarray, name: str, shape: tuple[int, ...]) -> np.ndarray:
        """The array, unless it has entries that are not finite, of which WGSL promises nothing."""
        odd = ~np.isfinite(values)
        if odd.any():
            row = np.unravel_index(int(np.argmax(odd)), values.shape)[: values.ndim - len(shape)]
            where = f" in row {', '.join(map(str, row))} of the batch" if row else ""
            raise InputError(
                f"{self.program.name}: {name} is not finite{where}; graphics devices promise nothing about NaN and "
                "infinity: leave such rows out, or compute them with backend='llvm'"
            )
        return values

    def _launch(self, at: Device, values: Sequence[Any], batch: tuple[int, ...]) -> tuple[DeviceArray, ...]:
        """The results of one launch, on the device."""
        name = self.program.name
        results = tuple(
            DeviceArray(at, (*batch, *shape), at.buffer(BYTES * math.prod((*batch, *shape)), f"{port} of {name}"))
            for port, shape in self.outputs
        )
        count = math.prod(batch)
        if count == 0 or all(result.size == 0 for result in results):
            return results
        placed = [x if isinstance(x, DeviceArray) else uploaded(at, x) for x in values]
        pipeline = at.pipeline(self.program)
        bound = [
            (x, _batch(x, shape), math.prod(shape))
            for x, (_, shape) in zip((*placed, *results), (*self.inputs, *self.outputs), strict=True)
            if math.prod(shape)
        ]
        launch(at, name, pipeline, bound, batch)
        return results

    def _in_parts(self, at: Device, values: list[np.ndarray], batch: tuple[int, ...], out: Any) -> tuple[Any, ...]:
        """The results on the host; a batch that exceeds the device's largest array is computed in parts."""
        given = (None,) * len(self.outputs) if out is None else out if isinstance(out, tuple) else (out,)
        results = [_checked(o, (*batch, *shape)) for o, (_, shape) in zip(given, self.outputs, strict=True)]
        count = math.prod(batch)
        largest = max([BYTES * math.prod(shape) for _, shape in (*self.inputs, *self.outputs)] + [BYTES])
        rows = max(1, at.largest_array // largest)
        if count <= rows:
            for result, made in zip(results, self._launch(at, values, batch), strict=True):
                np.copyto(result, made.numpy(), casting="same_kind")
            return tuple(results)
        for first in range(0, count, rows):
            index = np.unravel_index(np.arange(first, min(first + rows, count)), batch)
            part = [_rows(v, shape, index) for v, (_, shape) in zip(values, self.inputs, strict=True)]
            for result, made in zip(results, self._launch(at, part, index[0].shape), strict=True):
                result[index] = made.numpy()
        return tuple(results)


def launch(
    at: Device,
    name: str,
    pipeline: Any,
    bound: Sequence[tuple[DeviceArray, tuple[int, ...], int]],
    batch: tuple[int, ...],
) -> None:
    """Run a shader over a batch: one thread per row. `bound` are its arrays, their own batches, their sizes per row."""
    call, groups = _call(math.prod(batch), batch, [(own, size) for _, own, size in bound])

    def submit(handle: Any) -> None:
        where = handle.create_buffer_with_data(data=call, usage=_wgpu().BufferUsage.STORAGE)
        entries = [
            {"binding": k, "resource": {"buffer": b, "offset": 0, "size": b.size}}
            for k, b in enumerate([where, *(x.buffer for x, _, _ in bound)])
        ]
        encoder = handle.create_command_encoder()
        run = encoder.begin_compute_pass()
        run.set_pipeline(pipeline)
        run.set_bind_group(0, handle.create_bind_group(layout=pipeline.get_bind_group_layout(0), entries=entries))
        run.dispatch_workgroups(*groups)
        run.end()
        handle.queue.submit([encoder.finish()])

    at.run(name, submit)


def rollout(
    at: Device, step: Program, state: Sequence[DeviceArray], inputs: DeviceArray, clock: np.ndarray
) -> tuple[DeviceArray, ...]:
    """Many steps in one launch, one thread per row: positions and velocities after every `clock[1]`-th step.

    `state` are positions (..., nq) and velocities (..., nv), `inputs` the step's u (..., steps, size); `clock` has the
    number of steps, how many of them one result is apart, the length of a step, and u's distance from step to step.
    """
    sizes = [math.prod(port.shape) for port in step.inputs[:3]]
    given = (*((x, tuple(x.shape[:-1])) for x in state), (inputs, tuple(inputs.shape[:-2])))
    batch = np.broadcast_shapes(*(own for _, own in given))
    stored = int(clock[0]) // int(clock[1])
    results = tuple(
        DeviceArray(at, (*batch, stored, size), at.buffer(BYTES * math.prod((*batch, stored, size)), "a rollout"))
        for size in sizes[:2]
    )
    if math.prod(batch) and stored:
        names, text = wgsl.rollout(step)
        rows = [*given, (uploaded(at, clock), ()), *((result, batch) for result in results)]
        of_row = [*sizes[:2], math.prod(inputs.shape[-2:]), 0, *(stored * size for size in sizes[:2])]
        bound = [
            (x, own, size) for (x, own), size, name in zip(rows, of_row, wgsl.ROLLOUT, strict=True) if name in names
        ]
        access = ["read_write" if name.startswith("out_") else "read" for name in names]
        launch(at, step.name, at.shader(step.name, text, access), bound, batch)
    return results


def _checked(out: Any, shape: tuple[int, ...]) -> np.ndarray:
    if out is None:
        return np.empty(shape, dtype=np.float32)
    if not isinstance(out, np.ndarray) or out.shape != shape:
        got = getattr(out, "shape", type(out).__name__)
        raise InputError(f"out must be a NumPy array of shape {shape}, got {got}")
    return out


def _rows(values: np.ndarray, shape: tuple[int, ...], index: tuple[np.ndarray, ...]) -> np.ndarray:
    """The rows of an array that broadcasts, for rows of the batch; one that is the same for all stays as it is."""
    axes = values.ndim - len(shape)
    if math.prod(values.shape[:axes]) == 1:
        return values.reshape(shape)
    own = index[len(index) - axes :]
    cut = tuple(np.zeros_like(k) if length == 1 else k for k, length in zip(own, values.shape[:axes], strict=True))
    return np.ascontiguousarray(values[cut])


def _batch(value: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    axes = value.ndim - len(shape)
    if axes < 0 or value.shape[axes:] != shape:
        raise ValueError(f"expected shape (..., {', '.join(map(str, shape))}), got {value.shape}")
    return tuple(value.shape[:axes])


def _call(
    count: int, batch: tuple[int, ...], arrays: list[tuple[tuple[int, ...], int]]
) -> tuple[np.ndarray, tuple[int, int]]:
    """The numbers that a launch reads (see `wgsl`), and the groups of threads along both axes of the grid."""
    steps = [_steps(own, batch, size) for own, size in arrays]
    lengths, merged = _merged(list(batch), steps)
    groups = -(-count // wgsl.WORKGROUP)
    wide = min(groups, MOST_GROUPS)
    head = [count, wide * wgsl.WORKGROUP, 0, len(lengths), *lengths]
    body = [number for one in merged for number in (0, *one)]
    return np.array([*head, *body], dtype=np.uint32), (wide, -(-groups // wide))


def _steps(own: tuple[int, ...], batch: tuple[int, ...], size: int) -> list[int]:
    """The step of an array along every axis of the batch, 0 where it broadcasts."""
    padded = (1,) * (len(batch) - len(own)) + own
    steps, step = [], size
    for length in reversed(padded):
        steps.append(step if length > 1 else 0)
        step *= length
    return steps[::-1]


def _merged(lengths: list[int], steps: list[list[int]]) -> tuple[list[int], list[list[int]]]:
    """The same batch with as few axes as possible: neighbours along which every array advances evenly become one."""
    kept: list[int] = []
    taken: list[list[int]] = [[] for _ in steps]
    for axis, length in enumerate(lengths):
        if length == 1:
            continue
        if kept and all(t[-1] == s[axis] * length for t, s in zip(taken, steps, strict=True)):
            kept[-1] *= length
            for t, s in zip(taken, steps, strict=True):
                t[-1] = s[axis]
            continue
        kept.append(length)
        for t, s in zip(taken, steps, strict=True):
            t.append(s[axis])
    return kept, taken
