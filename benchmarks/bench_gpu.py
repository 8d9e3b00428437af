"""Kernels on graphics processors in figures: `python benchmarks/bench_gpu.py [ARM...] [--derivatives] [--batch N]`.

Three tables. What nvcc makes of the CUDA text (operations of the program, registers, bytes spilled, seconds to compile,
size of the header), beside XLA's count for frax where it is installed; GRiD's generator is not. Configurations per
second on every adapter that WebGPU finds, emulated ones labelled, copies included and not. And for four devices what
their memory and their arithmetic allow at most: numbers from data sheets and a division, not measurements.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import armdyn

QUANTITIES = ("inertia_matrix", "inverse_dynamics", "forward_dynamics", "jacobian")
DERIVATIVES = ("inverse_dynamics_derivatives", "forward_dynamics_derivatives")
# Memory in GB/s and single precision in Tflop/s, of the makers' data sheets.
DEVICES = {
    "NVIDIA H100 SXM": (3350, 67),
    "NVIDIA RTX 4090": (1008, 83),
    "AMD Radeon RX 7900 XTX": (960, 61),
    "Apple M3 Max, 40 cores": (400, 14),
}


def compiled(name: str, quantities: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Quantity, operations, registers, bytes spilled, seconds of nvcc, kilobytes of the header."""
    arm = armdyn.load(name)
    for quantity in quantities:
        operations = getattr(arm, quantity).program.operations
        registers = spilled = seconds = "-"
        with tempfile.TemporaryDirectory(prefix="armdyn-bench-") as folder:
            options: dict[str, Any] = {"parameters": "baked", "friction": False, "build": False}
            armdyn.deploy(arm, folder, "cuda", (quantity,), **options)
            size = sum(path.stat().st_size for path in Path(folder).glob("*.cuh"))
            if shutil.which("nvcc"):
                start = time.perf_counter()
                done = subprocess.run(["make", "resources"], cwd=folder, capture_output=True, text=True, check=True)
                seconds = f"{time.perf_counter() - start:.2f}"
                found = re.search(r"_batch +(\d+) registers +(\d+) bytes spilled", done.stdout)
                registers, spilled = found.groups() if found else ("?", "?")
        total = operations.total + operations.trig
        yield name, quantity, str(total), frax(arm, quantity), registers, spilled, seconds, f"{size / 1024:.0f}"


def frax(arm: Any, quantity: str) -> str:
    """The operations that XLA counts for frax's function, "-" where there is none."""
    if find_spec("frax") is None or quantity not in QUANTITIES[:3]:
        return "-"
    import jax

    from bench_bridges import frax_functions

    with tempfile.TemporaryDirectory(prefix="armdyn-bench-") as folder:
        arm.to_urdf(Path(folder) / "arm.urdf")
        functions = frax_functions(str(Path(folder) / "arm.urdf"), list(arm.joint_names))
    one = [np.zeros(arm.n, np.float32)] * (1 if quantity == "inertia_matrix" else 3)
    return f"{jax.jit(functions[quantity]).lower(*one).cost_analysis().get('flops', 0):.0f}"


def best(function: Callable[[], Any], rounds: int = 5) -> float:
    """The least seconds of some calls, after one that compiles."""
    function()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def measured(name: str, quantities: tuple[str, ...], batch: int) -> Iterator[tuple[str, ...]]:
    """Adapter, quantity, configurations per second with arrays on the device and with NumPy arrays, and on the CPU."""
    arm, rng = armdyn.load(name), np.random.default_rng(0)
    for device in armdyn.gpu.devices():
        for quantity in quantities:
            plain = getattr(arm, quantity)
            kernel = arm.kernel(quantity, backend="gpu", device=device)
            given = [rng.uniform(-1, 1, (batch, *shape)).astype(np.float32) for _, shape in plain.ports[0]]
            there = [armdyn.gpu.array(x, device) for x in given]

            def on_device(kernel: Any = kernel, there: Any = there) -> None:
                found = kernel(*there)
                small = armdyn.gpu.DeviceArray(found.device, (1,), found.buffer)
                small.numpy()  # waits

            rates = [
                batch / best(on_device),
                batch / best(lambda k=kernel, x=given: k(*x)),
                batch / best(lambda k=plain, x=given: k(*x)),
            ]
            label = f"{device.name} ({'emulated on the CPU' if device.emulated else device.kind})"
            yield name, label, quantity, *(f"{rate / 1e6:.2f}" for rate in rates)


def bounds(name: str) -> Iterator[tuple[str, ...]]:
    """Device, quantity, and the millions of configurations per second that memory and arithmetic allow at most."""
    arm = armdyn.load(name)
    for device, (memory, arithmetic) in DEVICES.items():
        for quantity in QUANTITIES:
            kernel = getattr(arm, quantity)
            size = 4 * sum(int(np.prod(shape)) for side in kernel.ports for _, shape in side)
            operations = kernel.program.operations
            total = operations.total + 20 * operations.trig  # a sine or cosine takes some 20 operations
            yield name, device, quantity, f"{1e3 * memory / size:.0f}", f"{1e6 * arithmetic / total:.0f}"


def table(head: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> None:
    """Print rows as they come, as Markdown."""
    print(f"\n| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for row in rows:
        print(f"| {' | '.join(row)} |", flush=True)


def main() -> None:
    """Measure, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("arms", nargs="*", default=["ur5", "panda"])
    parser.add_argument("--derivatives", action="store_true", help="these, too: nvcc takes some seconds for each")
    parser.add_argument("--batch", type=int, default=65536, help="configurations per call")
    given = parser.parse_args()
    wanted = QUANTITIES + (DERIVATIVES if given.derivatives else ())
    if not shutil.which("nvcc"):
        print("no nvcc: registers and spills are left out")
    head = ("arm", "quantity", "operations", "frax", "registers", "spilled [B]", "nvcc [s]", "header [kB]")
    for arm in given.arms:
        table(head, compiled(arm, wanted))
    if find_spec("wgpu") and armdyn.gpu.devices():
        head = ("arm", "adapter", "quantity", "there [10⁶/s]", "with copies [10⁶/s]", "CPU, one thread [10⁶/s]")
        for arm in given.arms:
            table(head, measured(arm, QUANTITIES, given.batch))
    else:
        print("\nno adapter, or no package wgpu: nothing was run on a device")
    print("\nAt most, by the data sheets; not measured:")
    for arm in given.arms:
        table(("arm", "device", "quantity", "by memory [10⁶/s]", "by arithmetic [10⁶/s]"), bounds(arm))


if __name__ == "__main__":
    main()
