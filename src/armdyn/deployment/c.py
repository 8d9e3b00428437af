"""The target `c`: C99 without allocation, with a test program, a Makefile and a read-me file."""

from __future__ import annotations

from armdyn.codegen.text.c import Package, files, identifier, signature
from armdyn.deployment.controllers import header, header_name
from armdyn.deployment.readme import Readme, readme
from armdyn.deployment.request import Files, Request, Target


def c_folder(request: Request) -> Files:
    """The folder's files by name."""
    package = request.package()
    texts = files(package)
    structs = {header_name(request.arm): header(request.arm, request.controllers, package.dtype)}
    texts |= structs if request.controllers else {}
    texts["README.md"] = readme(_readme(package, bool(request.controllers)))
    return {name: text.encode() for name, text in texts.items()}


def _readme(package: Package, controllers: bool) -> Readme:
    name = identifier(package.name)
    calls = {key: signature(name, key, f.program, package.dtype) for key, f in package.functions.items()}
    return Readme(
        package=package,
        language="C99",
        files={
            f"{name}.h": "the functions, each with what it takes and what it costs",
            f"{name}.c": "the functions; compile it with your controller",
            f"test_{name}.c": "a program that checks them against vectors that armdyn computed",
            "Makefile": "`make test` builds and runs the test program",
        }
        | (
            {f"{name}_controllers.h": "the controllers with structs for memory, gains, inputs, outputs"}
            if controllers
            else {}
        ),
        signatures=calls,
        call=_call(name, package),
    )


def _call(name: str, package: Package) -> str:
    """A few lines that call the first function."""
    key, function = next(iter(package.functions.items()))
    program, dtype = function.program, package.dtype
    size = {port.name: max(1, len(port.nodes)) for port in (*program.inputs, *program.outputs)}
    arrays = [p.name for p in program.inputs if p.name != "parameters"]
    given = [f"{name}_parameters" if p.name == "parameters" else p.name for p in program.inputs]
    outs = [p.name if p.name not in size or p.name not in arrays else f"{p.name}_out" for p in program.outputs]
    lines = [f'#include "{name}.h"', ""]
    lines += [f"{dtype} {label}[{size[label]}] = {{0}};" for label in arrays]
    lines += [f"{dtype} {out}[{size[port.name]}];" for out, port in zip(outs, program.outputs, strict=True)]
    lines += [f"{name}_{key}({', '.join([*given, *outs])});"]
    return "\n".join(["```c", *lines, "```"])


TARGET = Target("c", "C99: header, source, test program, Makefile", c_folder)
