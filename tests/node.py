"""What the tests of WebAssembly share: a module run over many states in Node."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="no Node on this machine")
RUN = """
const fs = require("fs"), job = JSON.parse(fs.readFileSync("job.json"));
const made = new WebAssembly.Instance(new WebAssembly.Module(fs.readFileSync("module.wasm"))).exports;
for (const { name, inputs, outputs, states } of job) {
  let end = made.heap.value;
  const at = [...inputs, ...outputs].map((count) => { const here = end; end += 8 * count; return here; });
  const file = fs.readFileSync(name + ".in");
  const given = new Float64Array(file.buffer, file.byteOffset, file.byteLength / 8);
  const width = inputs.reduce((a, b) => a + b, 0), size = outputs.reduce((a, b) => a + b, 0);
  const results = new Float64Array(states * size), memory = new Float64Array(made.memory.buffer);
  const first = made.heap.value / 8;
  for (let k = 0; k < states; k++) {
    memory.set(given.subarray(k * width, (k + 1) * width), first);
    made[name](...at);
    results.set(memory.subarray(first + width, first + width + size), k * size);
  }
  fs.writeFileSync(name + ".out", Buffer.from(results.buffer));
}
"""


def run_modules(module: bytes, calls: dict[str, tuple[list[np.ndarray], list[tuple[int, ...]]]], where: Path):
    """Name -> results: each function at every state; `calls` has its inputs (states, ...) and its outputs' shapes."""
    (where / "module.wasm").write_bytes(module)
    job = []
    for name, (inputs, shapes) in calls.items():
        states = len(inputs[0])
        rows = [x.reshape(states, -1) for x in inputs]
        np.hstack(rows).astype("<f8").tofile(where / f"{name}.in")
        sizes = [int(np.prod(shape)) for shape in shapes]
        job.append({"name": name, "inputs": [r.shape[1] for r in rows], "outputs": sizes, "states": states})
    (where / "job.json").write_text(json.dumps(job))
    node(RUN, where)
    results = {}
    for name, (inputs, shapes) in calls.items():
        flat = np.fromfile(where / f"{name}.out", "<f8").reshape(len(inputs[0]), -1)
        ends = np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1]
        parts = np.split(flat, ends, axis=1)
        results[name] = [part.reshape(-1, *shape) for part, shape in zip(parts, shapes, strict=True)]
    return results


def node(script: str, where: Path, name: str = "run.cjs") -> str:
    """What a script prints."""
    assert NODE is not None
    (where / name).write_text(script)
    done = subprocess.run([NODE, name], cwd=where, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout
