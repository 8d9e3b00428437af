"""The target `wasm`: WebAssembly with an ES module, types, a test program for Node.js, a Makefile and a README."""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np

from armdyn.codegen.javascript import EsModule, es_module, types
from armdyn.codegen.text.c import TOLERANCES, Function, Package, c_type, out_name
from armdyn.codegen.text.names import identifier
from armdyn.codegen.wasm import can_be_stepped
from armdyn.deployment.readme import Readme, readme
from armdyn.deployment.request import CodeTarget, Files, Request
from armdyn.errors import InputError
from armdyn.kernels.wasm_emission import wasm_module

TEST = """\
// Compares the functions with test vectors that armdyn computed when it generated them. Run: make test
import { load } from "./%(name)s.mjs";

const VECTORS = %(vectors)s;
const arm = await load();
let passed = 0, failed = 0;
for (const [name, calls] of Object.entries(VECTORS)) {
  calls.forEach(({ inputs, outputs }, k) => {
    const results = outputs.length === 1 ? [arm[name](...inputs)] : arm[name](...inputs);
    const good = outputs.every((expected, j) => {
      const scale = Math.max(1, ...expected.map(Math.abs));
      return results[j].length === expected.length
        && expected.every((x, i) => Math.abs(results[j][i] - x) <= %(tolerance)s * scale);
    });
    if (good) { ++passed; return; }
    ++failed;
    console.log(`${name}: vector ${k} differs`);
  });
}
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed ? 1 : 0;
"""


def wasm_folder(request: Request) -> Files:
    """The folder's files by name."""
    if request.dtype is not None and c_type(request.dtype) != "double":
        raise InputError(f"WebAssembly is written in double precision; got dtype {request.dtype}")
    package = request.package("WebAssembly")
    name = identifier(package.name)
    programs = {key: function.program for key, function in package.functions.items()}
    summaries = {key: function.comment.splitlines()[0] for key, function in package.functions.items()}
    stepped = next((key for key, program in programs.items() if can_be_stepped(program)), None)
    module = EsModule(name, package.comment, programs, summaries, stepped, tuple(package.parameters))
    texts = {
        f"{name}.mjs": es_module(module),
        f"{name}.d.mts": types(module),
        f"test_{name}.mjs": TEST % {"name": name, "vectors": _vectors(package), "tolerance": TOLERANCES["double"]},
        "Makefile": f"test:\n\tnode test_{name}.mjs\n\n.PHONY: test\n",
        "README.md": readme(_readme(package, name)),
    }
    return {f"{name}.wasm": wasm_module(programs)} | {file: text.encode() for file, text in texts.items()}


def _vectors(package: Package) -> str:
    """The test vectors of every function as JSON."""
    return json.dumps({key: _calls(function) for key, function in package.functions.items()})


def _calls(function: Function) -> list[Mapping[str, list[list[float]]]]:
    count = len(np.asarray(function.outputs[0]))

    def numbers(arrays: tuple[object, ...], k: int) -> list[list[float]]:
        return [np.ravel(np.asarray(array, dtype=float)[k]).tolist() for array in arrays]

    return [{"inputs": numbers(function.inputs, k), "outputs": numbers(function.outputs, k)} for k in range(count)]


def _readme(package: Package, name: str) -> Readme:
    key, function = next(iter(package.functions.items()))
    inputs = [
        "Object.values(PARAMETERS)" if port.name == "parameters" else f"new Float64Array({len(port.nodes)})"
        for port in function.program.inputs
    ]
    imported = "load, PARAMETERS" if package.parameters else "load"
    return Readme(
        package=package,
        language="WebAssembly",
        fence="ts",
        files={
            f"{name}.wasm": "the functions",
            f"{name}.mjs": "ES module that loads them, for browsers and Node.js",
            f"{name}.d.mts": "TypeScript types",
            f"test_{name}.mjs": "test program: compares the functions with test vectors computed by armdyn",
            "Makefile": "`make test` runs the test program with Node.js",
        },
        signatures={
            key: f"{key}({', '.join(port.name for port in one.program.inputs)}): "
            f"{', '.join(out_name(port, one.program) for port in one.program.outputs)}"
            for key, one in package.functions.items()
        },
        call=f'```js\nimport {{ {imported} }} from "./{name}.mjs";\n\nconst arm = await load();\n'
        f"const result = arm.{key}({', '.join(inputs)});\n```",
    )


TARGET = CodeTarget("wasm", wasm_folder, ("make", "node"))
