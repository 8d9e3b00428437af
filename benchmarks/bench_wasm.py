"""WebAssembly in Node: against the NumPy kernels on 10⁵ random states, and beside the same program in JavaScript.

Run: python benchmarks/bench_wasm.py [ARM ...] [--states 100000]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import armdyn
from armdyn.codegen.text.expressions import Language, write
from armdyn.formulations import QUANTITIES
from armdyn.graph.program import Program
from armdyn.kernels.wasm_emission import wasm_module

JAVASCRIPT = Language(
    constant=repr,
    entry=lambda name, k: f"{name}[{k}]",
    functions={
        "sin": "Math.sin({})", "cos": "Math.cos({})", "sqrt": "Math.sqrt({})",
        "sign": "Math.sign({})", "positive": "(({}) > 0 ? 1 : NaN)",
    },
)  # fmt: skip
TIMED = ("inertia_matrix", "inverse_dynamics", "forward_dynamics")
RUN = """
import { readFileSync, writeFileSync } from "node:fs";
import { plain } from "./plain.mjs";
const job = JSON.parse(readFileSync("job.json"));
const instance = new WebAssembly.Instance(new WebAssembly.Module(readFileSync("module.wasm")));
const made = instance.exports, first = made.heap.value / 8, times = {};
for (const { name, inputs, outputs, states } of job) {
  let end = made.heap.value;
  const at = [...inputs, ...outputs].map((count) => { const here = end; end += 8 * count; return here; });
  const file = readFileSync(name + ".in"), given = new Float64Array(file.buffer, file.byteOffset, file.byteLength / 8);
  const width = inputs.reduce((a, b) => a + b, 0), size = outputs.reduce((a, b) => a + b, 0);
  const memory = new Float64Array(made.memory.buffer), results = new Float64Array(states * size);
  for (let k = 0; k < states; k++) {
    memory.set(given.subarray(k * width, (k + 1) * width), first);
    made[name](...at);
    results.set(memory.subarray(first + width, first + width + size), k * size);
  }
  writeFileSync(name + ".out", Buffer.from(results.buffer));
  if (!plain[name]) continue;
  const arrays = [...inputs, ...outputs].map((count, k) => new Float64Array(made.memory.buffer, at[k], count).slice());
  const best = (call) => {
    let least = Infinity;
    for (let round = 0; round < 15; round++) {
      const start = process.hrtime.bigint();
      for (let k = 0; k < 20000; k++) call();
      least = Math.min(least, Number(process.hrtime.bigint() - start) / 2e7);
    }
    return least;
  };
  times[name] = [best(() => made[name](...at)), best(() => plain[name](...arrays))];
}
console.log(JSON.stringify(times));
"""


def javascript(name: str, program: Program) -> str:
    """The program as a function of arrays in plain JavaScript."""
    text = write(program, JAVASCRIPT)
    names = ", ".join(port.name for port in (*program.inputs, *program.outputs))
    lines = [f"const {variable} = {value};" for variable, value in text.assignments]
    for port, values in zip(program.outputs, text.outputs, strict=True):
        lines += [f"{port.name}[{k}] = {value};" for k, value in enumerate(values)]
    return f"{name}({names}) {{ {' '.join(lines)} }}"


def measure(arm: armdyn.Arm, states: int) -> tuple[dict[str, float], dict[str, list[float]], int]:
    """The largest relative error per quantity, microseconds of WebAssembly and JavaScript, and the module's bytes."""
    rng = np.random.default_rng(0)
    low, high = np.clip(arm.limits, -np.pi, np.pi).T
    kernels = {quantity: arm.kernel(quantity, backend="numpy") for quantity in QUANTITIES}
    programs = {quantity: kernel.program for quantity, kernel in kernels.items()}
    with tempfile.TemporaryDirectory() as folder:
        where, job, truths = Path(folder), [], {}
        module = wasm_module(programs)
        (where / "module.wasm").write_bytes(module)
        for quantity, kernel in kernels.items():
            inputs = [
                rng.uniform(low, high, (states, arm.n)) if name == "q" else rng.normal(size=(states, *shape))
                for name, shape in kernel.assembly.inputs
            ]
            np.hstack(inputs).tofile(where / f"{quantity}.in")
            found = kernel(*inputs)
            flat = [x.reshape(states, -1) for x in (found if isinstance(found, tuple) else (found,))]
            truths[quantity] = flat
            sizes = [x.shape[1] for x in flat]
            job.append({"name": quantity, "inputs": [arm.n] * len(inputs), "outputs": sizes, "states": states})
        (where / "job.json").write_text(json.dumps(job))
        text = ", ".join(javascript(name, programs[name]) for name in TIMED)
        (where / "plain.mjs").write_text(f"export const plain = {{ {text} }};")
        (where / "run.mjs").write_text(RUN)
        done = subprocess.run(["node", "run.mjs"], cwd=where, check=True, capture_output=True, text=True)
        errors = {quantity: _error(where, quantity, flat) for quantity, flat in truths.items()}
    return errors, json.loads(done.stdout), len(module)


def _error(where: Path, quantity: str, truth: list[Any]) -> float:
    """The largest difference at any state, relative to the largest entry of that state's result.

    A single number that may pass zero (an energy) is compared with its largest value over all states.
    """
    ends = np.cumsum([x.shape[1] for x in truth])[:-1]
    got = np.split(np.fromfile(where / f"{quantity}.out").reshape(len(truth[0]), -1), ends, axis=1)
    worst = 0.0
    for value, exact in zip(got, truth, strict=True):
        largest = np.maximum(np.max(np.abs(exact), axis=1 if exact.shape[1] > 1 else None), 1e-300)
        worst = max(worst, float(np.max(np.max(np.abs(value - exact), axis=1) / largest)))
    return worst


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("arms", nargs="*", default=["puma560", "panda"])
    parser.add_argument("--states", type=int, default=100_000)
    asked = parser.parse_args()
    for name in asked.arms:
        errors, times, size = measure(armdyn.load(name), asked.states)
        worst = max(errors, key=lambda key: errors[key])
        print(f"{name}: {size} bytes, {len(errors)} quantities, {asked.states} states each")
        print(f"  largest error {errors[worst]:.1e} of the result's largest entry ({worst})")
        for quantity, (compiled, plain) in times.items():
            print(f"  {quantity}: WebAssembly {compiled:.3f} µs, JavaScript {plain:.3f} µs per call")


if __name__ == "__main__":
    main()
