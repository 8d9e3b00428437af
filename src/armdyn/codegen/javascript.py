"""The ES module and the TypeScript types around a WebAssembly module of programs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from armdyn.graph import Program

MODULE = """\
const FUNCTIONS = %(functions)s;
%(parameters)sconst where = (source) => source instanceof URL || typeof source === "string";

async function bytes(source) {
  const url = new URL(source, import.meta.url);
  if (url.protocol === "file:" && typeof process !== "undefined") return (await import("node:fs/promises")).readFile(url);
  const answer = await fetch(url);
  if (!answer.ok) throw new Error(`cannot read ${url}: ${answer.status} ${answer.statusText}`);
  return answer.arrayBuffer();
}

/** Make the functions; `source` is the address of the .wasm file or its bytes. */
export async function load(source = new URL(%(wasm)s, import.meta.url)) {
  const { instance } = await WebAssembly.instantiate(where(source) ? await bytes(source) : source, {});
  return wrap(instance.exports);
}

/** Make the functions from the exports of an instance. */
export function wrap(exports) {
  const arm = { exports };
  for (const [name, ports] of Object.entries(FUNCTIONS)) arm[name] = wrapped(exports, name, ports);
  return arm;
}

function wrapped(exports, name, { inputs, outputs, steps }) {
  let end = exports.heap.value;
  const places = [...inputs, ...outputs].map(([, shape]) => {
    const at = end, count = shape.reduce((a, b) => a * b, 1);
    end += 8 * count;
    return { at, count };
  });
  const missing = end - exports.memory.buffer.byteLength;
  if (missing > 0) exports.memory.grow(Math.ceil(missing / 65536));
  const array = ({ at, count }) => new Float64Array(exports.memory.buffer, at, count);
  const addresses = places.map(({ at }) => at);
  return (...values) => {
    const wanted = inputs.map(([port]) => port).concat(steps ? ["step", "count"] : []);
    if (values.length !== wanted.length) throw new TypeError(`${name} takes ${wanted.join(", ")}; got ${values.length} values`);
    inputs.forEach(([port], k) => {
      if (values[k].length !== places[k].count) throw new TypeError(`${name}: ${port} has ${places[k].count} numbers, got ${values[k].length}`);
      array(places[k]).set(values[k]);
    });
    if (steps) {
      const count = values.at(-1);
      if (!Number.isInteger(count) || count < 0) throw new TypeError(`${name}: count is a whole number of steps, got ${count}`);
      exports[name](...addresses, ...values.slice(inputs.length));
      return { q: array(places[0]).slice(), qd: array(places[1]).slice() };
    }
    exports[name](...addresses);
    const results = outputs.map((_, k) => array(places[inputs.length + k]).slice());
    return results.length === 1 ? results[0] : results;
  };
}
"""  # noqa: E501

TYPES = """\
export interface Arm {
  /** The instance itself: functions of addresses, `memory` and `heap`, its first free byte. */
  exports: WebAssembly.Exports;
%(functions)s
}
%(parameters)s/** Make the functions; `source` is the address of the .wasm file or its bytes. */
export function load(source?: URL | string | BufferSource): Promise<Arm>;
/** Make the functions from the exports of an instance. */
export function wrap(exports: WebAssembly.Exports): Arm;
"""


@dataclass(frozen=True)
class EsModule:
    """The content of the files: the module's name, a comment, the programs, those that can be stepped, parameters."""

    name: str
    comment: str
    programs: Mapping[str, Program]
    summaries: Mapping[str, str]
    stepped: str | None = None
    parameters: tuple[tuple[str, float], ...] = ()


def es_module(package: EsModule) -> str:
    """The text of the ES module."""
    functions = {
        name: {
            "inputs": [[port.name, list(port.shape)] for port in program.inputs],
            "outputs": [[port.name, list(port.shape)] for port in program.outputs],
        }
        for name, program in package.programs.items()
    }
    described: dict[str, object] = dict(functions)
    if package.stepped is not None:
        described["advance"] = {"inputs": functions[package.stepped]["inputs"], "outputs": [], "steps": True}
    values = {
        "functions": json.dumps(described),
        "parameters": _parameters(package, "export const PARAMETERS = ", ";\n"),
        "wasm": json.dumps(f"{package.name}.wasm"),
    }
    return _comment(package.comment) + MODULE % values


def types(package: EsModule) -> str:
    """The text of the TypeScript declarations."""
    lines = []
    for name, program in package.programs.items():
        results = ", ".join(["Float64Array"] * len(program.outputs))
        result = results if len(program.outputs) == 1 else f"[{results}]"
        lines += [f"  /** {_safe(package.summaries[name])}; {_shapes(program)} */"]
        lines += [f"  {name}({_arguments(program)}): {result};"]
    if package.stepped is not None:
        lines += ["  /** The state after `count` steps of the classical Runge-Kutta method, each of `step` seconds. */"]
        arguments = _arguments(package.programs[package.stepped])
        lines += [f"  advance({arguments}, step: number, count: number): {{ q: Float64Array; qd: Float64Array }};"]
    declared = "/** The minimal parameters and their values. */\nexport const PARAMETERS: Record<string, number>;\n"
    parameters = declared if package.parameters else ""
    return _comment(package.comment) + TYPES % {"functions": "\n".join(lines), "parameters": parameters}


def _parameters(package: EsModule, before: str, after: str) -> str:
    return f"{before}{json.dumps(dict(package.parameters))}{after}" if package.parameters else ""


def _arguments(program: Program) -> str:
    return ", ".join(f"{port.name}: ArrayLike<number>" for port in program.inputs)


def _shapes(program: Program) -> str:
    ports = (f"{port.name} {list(port.shape)}" for port in (*program.inputs, *program.outputs))
    return f"arrays in C order: {', '.join(ports)}"


def _comment(text: str) -> str:
    return "".join(f"// {line}\n" for line in text.splitlines())


def _safe(text: str) -> str:
    """Text escaped so that it cannot end a comment."""
    return text.replace("*/", "* /")
