"""Time per configuration of the kernels, compared with a plain copy of the result and with other libraries.

Everything is measured on one thread in one run. The best of several repeats counts, because other load on the machine
can only add time. A kernel processes a batch in one call; another library is called in a Python loop, or with a batch
if it offers that. Single calls are made from Python on both sides. The adapters are in benchmarks/peers.py.
"""

from __future__ import annotations

import platform
import time
import timeit
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from armdyn.arm import Arm
from armdyn.errors import ComputationError

Calls = dict[str, Callable[..., Any]]  # by quantity: another library's function
Makers = Mapping[str, Callable[[Arm], Calls]]  # by the library's name
NOBODY: Makers = MappingProxyType({})

BATCH = 16_384
QUANTITIES = (
    "inertia_matrix",
    "inverse_dynamics",
    "forward_dynamics",
    "regressor",
    "inverse_dynamics_derivatives",
    "forward_dynamics_derivatives",
)
COMPARED = ("inertia_matrix", "inverse_dynamics", "forward_dynamics")  # results that must agree
VERSIONS = ("armdyn", "numpy", "llvmlite", "pin", "mujoco", "roboticstoolbox-python")


@dataclass(frozen=True)
class SpeedRow:
    """Nanoseconds per configuration by library (`times`), for a batch or for single calls (`way`: "batch", "call")."""

    arm: str
    quantity: str
    way: str
    times: dict[str, float]

    def ratio(self, who: str) -> float:
        """The time of another library relative to armdyn's."""
        return self.times[who] / self.times["armdyn"] if who in self.times else float("nan")


def best(function: Callable[[], Any], seconds: float, inner: int = 1) -> float:
    """The shortest time per call in seconds, over repeats for `seconds`; `inner` calls are timed together."""
    function()
    shortest, end = float("inf"), time.perf_counter() + seconds
    while True:
        start = time.perf_counter()
        for _ in range(inner):
            function()
        now = time.perf_counter()
        shortest = min(shortest, (now - start) / inner)
        if now > end:
            return shortest


def run(
    arms: Iterable[Arm],
    quantities: Sequence[str] = QUANTITIES,
    batch: int = BATCH,
    seconds: float = 0.3,
    beside: Makers = NOBODY,
    beside_in_batches: Makers = NOBODY,
) -> list[SpeedRow]:
    """Two rows per arm and quantity: a batch, and one configuration per call.

    `beside` are other libraries' functions of one configuration, `beside_in_batches` those that take a batch.
    """
    return [
        row
        for arm in arms
        for quantity in quantities
        for row in _measure(
            arm, quantity, batch, seconds, peers(arm, quantity, beside), peers(arm, quantity, beside_in_batches)
        )
    ]


def _measure(arm: Arm, quantity: str, batch: int, seconds: float, singly: Calls, in_batches: Calls) -> list[SpeedRow]:
    kernel = getattr(arm, quantity)
    rng = np.random.default_rng(0)
    arrays = [rng.uniform(-2, 2, (batch, *shape)) for _, shape in kernel.assembly.inputs]
    rows = list(zip(*arrays, strict=True))
    some = rows[:256]  # a longer loop would be interrupted more often than a kernel call
    result = kernel(*arrays)
    out = result if isinstance(result, tuple) else (result,)
    copies = tuple(np.empty_like(o) for o in out)

    def copy() -> None:
        for target, source in zip(copies, out, strict=True):
            np.copyto(target, source)

    times = {"armdyn": best(lambda: kernel.compiled(*arrays, out=out), seconds) / batch}
    calls = {"armdyn": single_call(kernel, rows[0], seconds)}
    for name, call in in_batches.items():
        _must_agree(f"{arm.name}, {quantity}, {name}", call(*arrays), out[0])
        times[name] = best(partial(call, *arrays), seconds) / batch
    for name, call in singly.items():
        if quantity in COMPARED:
            _must_agree(f"{arm.name}, {quantity}, {name}", call(*rows[0]), out[0][0])

        def loop(call: Callable[..., Any] = call) -> None:
            for row in some:
                call(*row)

        times[name] = best(loop, seconds) / len(some)
        calls[name] = single_call(call, rows[0], seconds)
    times["copy"] = best(copy, seconds) / batch
    return [
        SpeedRow(arm.name, quantity, way, {who: 1e9 * t for who, t in found.items()})
        for way, found in (("batch", times), ("call", calls))
    ]


def single_call(call: Callable[..., Any], row: tuple[Any, ...], seconds: float) -> float:
    """Seconds per call with one configuration, timed without overhead between calls."""
    names = [f"x{k}" for k in range(len(row))]
    timer = timeit.Timer(f"call({', '.join(names)})", globals={"call": call, **dict(zip(names, row, strict=True))})
    return best(lambda: timer.timeit(200), seconds) / 200


def peers(arm: Arm, quantity: str, makers: Makers) -> Calls:
    """The functions of other libraries that are installed, offer the quantity and accept the arm."""
    found = {}
    for name, make in makers.items():
        try:
            calls = make(arm)
        except (ImportError, ValueError):  # MuJoCo refuses links with physically impossible inertia
            continue
        if quantity in calls:
            found[name] = calls[quantity]
    return found


def _must_agree(what: str, theirs: Any, ours: Any) -> None:
    theirs = np.array(theirs)
    if theirs.ndim == 2 and theirs.shape[0] == theirs.shape[1]:  # Pinocchio fills the upper triangle
        theirs, ours = np.triu(theirs), np.triu(ours)
    if not np.allclose(theirs, ours, rtol=1e-8, atol=1e-8):
        raise ComputationError(f"{what}: the results differ, so the times cannot be compared")


def machine() -> str:
    """The processor and the software versions, to state with measured times."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [
            line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")
        ]
        cpu = names[0] if names else cpu
    versions = [f"Python {platform.python_version()}"]
    for package in VERSIONS:
        try:
            versions.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            continue
    return f"{cpu}, one thread; {', '.join(versions)}"


def table(rows: Sequence[SpeedRow]) -> str:
    """The rows as text: nanoseconds per configuration, and the ratios of the others to armdyn."""
    named = dict.fromkeys(who for row in rows for who in row.times if who not in ("armdyn", "copy"))
    others = [*named, "copy"]
    heads = ["arm", "quantity", "way", "armdyn ns", *(f"{name} ns" for name in others), *(f"{n} ×" for n in others)]
    lines = [heads]
    for row in rows:
        times = [f"{row.times[who]:.1f}" if who in row.times else "-" for who in ("armdyn", *others)]
        ratios = [f"{row.ratio(who):.2f}" if who in row.times else "-" for who in others]
        lines.append([row.arm, row.quantity, row.way, *times, *ratios])
    widths = [max(len(line[k]) for line in lines) for k in range(len(heads))]

    def aligned(line: list[str]) -> str:
        cells = enumerate(zip(line, widths, strict=True))
        return "  ".join(cell.ljust(width) if k < 3 else cell.rjust(width) for k, (cell, width) in cells)

    return "\n".join(map(aligned, lines))
