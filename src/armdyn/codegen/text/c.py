"""Programs as C99 for controllers: one header, one source, a test program with test vectors, a Makefile.

The code has no allocation, no recursion, no loops, and no dependency but libm; its local variables bound the stack.
The files also compile as C++.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from armdyn.codegen.text.expressions import Language, write
from armdyn.codegen.text.names import identifier
from armdyn.errors import choose
from armdyn.graph import Port, Program

DTYPES = {"double": "double", "float": "float", "float64": "double", "float32": "float"}  # accepted name -> type in C
TOLERANCES = {"double": 1e-10, "float": 1e-3}  # of a result's largest entry, in the test programs


@dataclass(frozen=True)
class Function:
    """One quantity to write: its program, its comment, and vectors for the test program."""

    program: Program
    comment: str
    inputs: tuple[Any, ...]  # arrays (vectors, *shape), one per port
    outputs: tuple[Any, ...]
    units: Mapping[str, str] = field(default_factory=dict)  # by the port's name


@dataclass(frozen=True)
class Struct:
    """A struct of numbers that calls are made with: name, what it is, and the fields (name, entries, words)."""

    name: str
    words: str
    fields: tuple[tuple[str, int, str], ...]  # 0 entries: one number


@dataclass(frozen=True)
class Package:
    """The content of the files of one arm."""

    name: str
    comment: str
    functions: Mapping[str, Function]
    constants: Mapping[str, int]  # N and the like, as macros
    parameters: Sequence[tuple[str, float]] = ()  # run-time parameters: name and current value
    dtype: str = "double"
    structs: Sequence[Struct] = ()


def c_type(dtype: str) -> str:
    """The C type of a dtype, which is named as in C or as in NumPy."""
    return DTYPES[choose("dtype", dtype, DTYPES)]


def files(package: Package) -> dict[str, str]:
    """File name -> text."""
    name = identifier(package.name)
    return {
        f"{name}.h": _header(name, package),
        f"{name}.c": _source(name, package),
        f"test_{name}.c": _test(name, package),
        "Makefile": _makefile(name),
    }


def _language(dtype: str) -> Language:
    f = "f" if dtype == "float" else ""
    zero, one = f"0.0{f}", f"1.0{f}"
    return Language(
        constant=lambda x: literal(x, dtype),
        entry=lambda port, k: f"{port}[{k}]",
        functions={
            "sin": f"sin{f}({{}})",
            "cos": f"cos{f}({{}})",
            "sqrt": f"sqrt{f}({{}})",
            "sign": f"(({{}}) > {zero} ? {one} : ({{}}) < {zero} ? -{one} : ({{}}))",
            "positive": f"(({{}}) > {zero} ? {one} : ({'float' if f else 'double'})NAN)",
        },
    )


def literal(x: float, dtype: str) -> str:
    """A C literal: the shortest decimal that rounds to the same number."""
    if dtype == "double":
        return repr(float(x))
    text = repr(float(str(np.float32(x))))
    return f"{text}f"


def signature(name: str, quantity: str, program: Program, dtype: str) -> str:
    """The declaration of a function, without the semicolon."""
    inputs = [f"const {dtype} *{port.name}" for port in program.inputs]
    outputs = [f"{dtype} *{out_name(port, program)}" for port in program.outputs]
    return f"void {name}_{quantity}({', '.join(inputs + outputs)})"


def out_name(port: Port, program: Program) -> str:
    """The output's name, changed if an input has the same name (tau may be both)."""
    taken = {p.name for p in program.inputs}
    return f"{port.name}_out" if port.name in taken else port.name


def doc(function: Function) -> str:
    """The comment of a function: what it computes, its operation count, its inputs and outputs."""
    program = function.program
    ops = program.operations
    ports = [(port, "in ", port.name) for port in program.inputs]
    ports += [(port, "out", out_name(port, program)) for port in program.outputs]
    lines = [f" * {line}" for line in function.comment.splitlines()]
    lines.append(
        f" * {ops.mul} multiplications, {ops.add} additions, {ops.div} divisions, {ops.trig} sines and cosines."
    )
    for port, way, label in ports:
        shape = "".join(f"[{size}]" for size in port.shape) or " (one number)"
        unit = f", {function.units[port.name]}" if port.name in function.units else ""
        lines.append(f" *   {way} {label}{shape}{', row-major' if len(port.shape) > 1 else ''}{unit}")
    return "/*\n" + "\n".join(lines) + "\n */"


def _header(name: str, package: Package) -> str:
    guard = f"{name.upper()}_H"
    lines = [banner(package.comment), f"#ifndef {guard}", f"#define {guard}", ""]
    lines += [f"#define {name.upper()}_{key} {value}" for key, value in package.constants.items()]
    lines += ["", "#ifdef __cplusplus", 'extern "C" {', "#endif", ""]
    if package.parameters:
        lines += [
            "/* The arm's minimal parameters, from its file: pass these, or your own, as `parameters`. */",
            f"extern const {package.dtype} {name}_parameters[{len(package.parameters)}];",
            "",
        ]
    for struct in package.structs:
        lines += [f"/* {struct.words} */", "typedef struct {"]
        lines += [f"    {package.dtype} {key}{f'[{n}]' if n else ''}; /* {words} */" for key, n, words in struct.fields]
        lines += [f"}} {name}_{struct.name};", ""]
    for quantity, function in package.functions.items():
        lines += [doc(function), signature(name, quantity, function.program, package.dtype) + ";", ""]
    lines += ["#ifdef __cplusplus", "}", "#endif", "", f"#endif /* {guard} */", ""]
    return "\n".join(lines)


def banner(comment: str) -> str:
    """The comment at the top of a file."""
    body = "\n".join(f" * {line}".rstrip() for line in comment.splitlines())
    return f"/*\n{body}\n */"


def _source(name: str, package: Package) -> str:
    lines = [banner(package.comment), f'#include "{name}.h"', "", "#include <math.h>", ""]
    if package.parameters:
        lines.append(f"const {package.dtype} {name}_parameters[{len(package.parameters)}] = {{")
        lines += [f"    {literal(value, package.dtype)}, /* {label} */" for label, value in package.parameters]
        lines += ["};", ""]
    for quantity, function in package.functions.items():
        lines += [*_body(name, quantity, function.program, package.dtype), ""]
    return "\n".join(lines)


def _body(name: str, quantity: str, program: Program, dtype: str) -> list[str]:
    return [signature(name, quantity, program, dtype), "{", *statements(program, dtype), "}"]


def statements(program: Program, dtype: str) -> list[str]:
    """The statements of a function: its temporaries, then its outputs."""
    text = write(program, _language(dtype))
    live = {node.serial for node in program.order}
    lines = [f"    const {dtype} {label} = {expression};" for label, expression in text.assignments]
    lines += [f"    (void){p.name};" for p in program.inputs if not any(node.serial in live for node in p.nodes)]
    for port, entries in zip(program.outputs, text.outputs, strict=True):
        lines += [f"    {out_name(port, program)}[{k}] = {entry};" for k, entry in enumerate(entries)]
    return lines


def array(label: str, values: Any, dtype: str) -> list[str]:
    """The definition of a constant array with the flattened values."""
    flat = [literal(float(x), dtype) for x in np.asarray(values, dtype=float).ravel()]
    rows = [", ".join(flat[k : k + 6]) for k in range(0, len(flat), 6)]
    return [f"static const {dtype} {label}[] = {{", *(f"    {row}," for row in rows), "};"]


def _test(name: str, package: Package) -> str:
    dtype = package.dtype
    tolerance = literal(TOLERANCES[dtype], dtype)
    fabs = "fabs" if dtype == "double" else "fabsf"
    one = literal(1.0, dtype)
    lines = [
        banner(f"Checks {name}.c against test vectors computed when it was generated.\nBuild and run: make test"),
        f'#include "{name}.h"',
        "",
        "#include <math.h>",
        "#include <stdio.h>",
        "",
        f"static int differs(const {dtype} *got, const {dtype} *expected, int size)",
        "{",
        f"    {dtype} scale = {one};",
        "    int k;",
        f"    for (k = 0; k < size; ++k) if ({fabs}(expected[k]) > scale) scale = {fabs}(expected[k]);",
        "    for (k = 0; k < size; ++k)",
        f"        if (!({fabs}(got[k] - expected[k]) <= {tolerance} * scale)) return 1;",
        "    return 0;",
        "}",
        "",
    ]
    calls: list[str] = []
    for quantity, function in package.functions.items():
        lines += vectors(quantity, function, dtype)
        calls += _calls(name, quantity, function, dtype)
    lines += ["", "int main(void)", "{", "    int k, failed = 0, passed = 0;", *calls]
    lines += ['    printf("%d passed, %d failed\\n", passed, failed);', "    return failed != 0;", "}", ""]
    return "\n".join(lines)


def vectors(quantity: str, function: Function, dtype: str) -> list[str]:
    """The test vectors of a function as constant arrays, whose names no function of a robot has."""
    lines = []
    for port, values in zip(function.program.inputs, function.inputs, strict=True):
        lines += array(f"armdyn_{quantity}_{port.name}", values, dtype)
    for port, values in zip(function.program.outputs, function.outputs, strict=True):
        lines += array(f"armdyn_{quantity}_expected_{port.name}", values, dtype)
    return lines


def _calls(name: str, quantity: str, function: Function, dtype: str) -> list[str]:
    program = function.program
    sizes = [(port, len(port.nodes)) for port in program.inputs]
    outs = [(port, len(port.nodes)) for port in program.outputs]
    arguments = [f"armdyn_{quantity}_{port.name} + k * {size}" for port, size in sizes]
    arguments += [f"got_{port.name}" for port, _ in outs]
    checks = " || ".join(
        f"differs(got_{port.name}, armdyn_{quantity}_expected_{port.name} + k * {size}, {size})" for port, size in outs
    )
    count = len(np.asarray(function.outputs[0]))
    return [
        f"    for (k = 0; k < {count}; ++k) {{",
        *(f"        {dtype} got_{port.name}[{size}];" for port, size in outs),
        f"        {name}_{quantity}({', '.join(arguments)});",
        f'        if ({checks}) {{ ++failed; printf("{quantity}: vector %d differs\\n", k); }} else ++passed;',
        "    }",
    ]


def _makefile(name: str) -> str:
    return (
        "CFLAGS ?= -std=c99 -O2 -Wall -Wextra -Wpedantic\n\n"
        f"test: test_{name}\n\t./test_{name}\n\n"
        f"test_{name}: test_{name}.c {name}.c {name}.h\n"
        f"\t$(CC) $(CFLAGS) -o $@ test_{name}.c {name}.c -lm\n\n"
        f"clean:\n\trm -f test_{name}\n\n.PHONY: test clean\n"
    )
