"""The target `c`: C99 without allocation, with a test program, a Makefile and a README."""

from __future__ import annotations

from armdyn.codegen.text.c import Package, files, literal, out_name, signature
from armdyn.codegen.text.names import identifier
from armdyn.deployment.controllers import STRUCTS, header, header_name
from armdyn.deployment.readme import HELD, Readme, readme
from armdyn.deployment.request import PAYLOAD, CodeTarget, Files, Request
from armdyn.deployment.stack import Stack, measured


def c_folder(request: Request) -> Files:
    """The folder's files by name."""
    package = request.package()
    texts = files(package)
    name = identifier(package.name)
    if request.controllers:
        texts[header_name(request.arm)] = header(request.arm, request.controllers, package.dtype)
    symbols = {key: f"{name}_{key}" for key in package.functions}
    stack = measured("gcc", texts, f"{name}.c", symbols) if request.measure_stack else None
    texts["README.md"] = readme(_readme(package, stack, bool(request.controllers)))
    return {name: text.encode() for name, text in texts.items()}


def _readme(package: Package, stack: Stack | None, controllers: bool) -> Readme:
    name = identifier(package.name)
    calls = {key: signature(name, key, f.program, package.dtype) for key, f in package.functions.items()}
    return Readme(
        package=package,
        language="C99",
        files={
            f"{name}.h": "declarations of the functions, with arguments, units and operation counts",
            f"{name}.c": "the functions; compile this file with your controller",
            f"test_{name}.c": "test program: compares the functions with test vectors computed by armdyn",
            "Makefile": "`make test` builds and runs the test program",
        }
        | ({f"{name}_controllers.h": STRUCTS} if controllers else {}),
        signatures=calls,
        call=_call(name, package),
        more=stack.section if stack else "",
    )


def _call(name: str, package: Package) -> str:
    """An example that calls the first function, and one that sets a payload if the parameters are run-time inputs."""
    key, function = next(iter(package.functions.items()))
    program, dtype = function.program, package.dtype
    arrays = [port for port in program.inputs if port.name != "parameters"]
    given = [f"{name}_parameters" if port.name == "parameters" else port.name for port in program.inputs]
    outs = [out_name(port, program) for port in program.outputs]
    lines = [f'#include "{name}.h"', ""]
    lines += [f"{dtype} {port.name}[{len(port.nodes)}] = {{0}};" for port in arrays]
    lines += [f"{dtype} {out}[{len(port.nodes)}];" for out, port in zip(outs, program.outputs, strict=True)]
    lines += [f"{name}_{key}({', '.join([*given, *outs])});"]
    parts = ["```c", *lines, "```"]
    if PAYLOAD in package.functions and package.parameters:
        none, com, kilogram = (literal(x, dtype) for x in (0.0, 0.1, 1.0))
        held = [
            f"{name}_payload held = {{{kilogram}, {{{none}, {none}, {com}}}, {{{none}}}}};",
            f"{dtype} mine[{name.upper()}_P];",
            f"{name}_{PAYLOAD}(&held.mass, held.com, held.inertia, {name}_parameters, mine);",
        ]
        parts += [
            "",
            HELD.format(mine="mine", struct=f"{name}_payload"),
            "",
            "```c",
            f'#include "{name}.h"',
            "",
            *held,
            "```",
        ]
    return "\n".join(parts)


TARGET = CodeTarget(
    "c",
    c_folder,
    ("make", "cc"),
    quick=("CFLAGS=-std=c99 -O0",),
    controllers=True,
    error_bound=True,
)
