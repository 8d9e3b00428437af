"""The target `cpp`: one C++17 header with a unit test, a Makefile and a README."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from armdyn.codegen.text.c import Package, literal
from armdyn.codegen.text.cpp import eigen_macro, files, namespace, signature, with_eigen
from armdyn.deployment.controllers_cpp import header, header_name
from armdyn.deployment.readme import HELD, Readme, readme
from armdyn.deployment.request import PAYLOAD, CodeTarget, Files, Request
from armdyn.deployment.stack import Stack, measured
from armdyn.graph import Port

EIGEN = (
    "If the macro `{macro}` is defined, the functions in the namespace `{name}::eigen` take and return fixed-size "
    "Eigen matrices:"
)


def cpp_folder(request: Request) -> Files:
    """The folder's files by name."""
    package = request.package("C++17")
    texts = files(package)
    name = namespace(package.name)
    if request.controllers:
        texts[header_name(request.arm)] = header(request.arm, request.controllers, package.dtype)
    stack = _stack(name, texts, package) if request.measure_stack else None
    texts["README.md"] = readme(_readme(package, stack, bool(request.controllers)))
    return {name: text.encode() for name, text in texts.items()}


def _stack(name: str, texts: Mapping[str, str], package: Package) -> Stack | None:
    """The stack frames of the functions; taking the address of an inline function makes the compiler emit it."""
    symbols = {key: f"{name}::{key}" for key in package.functions}
    calls = "".join(f"    keep(&{symbol});\n" for symbol in symbols.values())
    every = f'#include "{name}.hpp"\ntemplate <typename F> void keep(F*);\nvoid all()\n{{\n{calls}}}\n'
    return measured("g++", {**texts, "every.cpp": every}, "every.cpp", symbols)


def _readme(package: Package, stack: Stack | None, controllers: bool) -> Readme:
    name = namespace(package.name)
    return Readme(
        package=package,
        language="C++17",
        fence="cpp",
        files={
            f"{name}.hpp": "all functions; include this header in your controller",
            f"test_{name}.cpp": "test program: compares the functions with test vectors computed by armdyn",
            "Makefile": "`make test` builds and runs the test program, with Eigen if it is installed",
        }
        | ({f"{name}_controllers.hpp": "the controllers, as classes with gains and memory"} if controllers else {}),
        signatures={key: signature(key, function.program) for key, function in package.functions.items()},
        call=_call(name, package),
        more=stack.section if stack else "",
    )


def _call(name: str, package: Package) -> str:
    """Examples that call the first function, with arrays and with Eigen, and one that sets a payload."""
    key, function = next(iter(package.functions.items()))
    program = function.program
    first = len(program.inputs[0].nodes)
    arrays = [port for port in program.inputs if port.name != "parameters"]
    present = f"{name}::present_parameters"
    given = ", ".join(present if port.name == "parameters" else port.name for port in program.inputs)
    outs = [f"{port.name}_out" for port in program.outputs]
    views = (
        "`std::array` and C arrays convert to the arguments; an array of the wrong size does not compile. For a "
        f"`std::vector`, write `{name}::input<{first}>(vector.data())`. The functions neither allocate memory nor "
        "throw, so they may be called from `update` of a ros2_control controller or `updateHook` of an Orocos "
        "component."
    )
    plain = [_array(name, port, port.name) for port in arrays]
    plain += [_array(name, port, out) for port, out in zip(program.outputs, outs, strict=True)]
    parts = [views, _code(name, [*plain, f"{name}::{key}({given}, {', '.join(outs)});"])]
    if with_eigen(program):
        mapped = given.replace(present, f"{name}::eigen::map({name}::input<{name}::P>({present}))")
        of = f"{name}::eigen::Vector"
        vectors = [f"{of}<{len(port.nodes)}> {port.name} = {of}<{len(port.nodes)}>::Zero();" for port in arrays]
        call = f"const auto {outs[0]} = {name}::eigen::{key}({mapped});"
        macro = eigen_macro(name)
        parts += [EIGEN.format(macro=macro, name=name), _code(name, [*vectors, call], f"#define {macro}")]
    if PAYLOAD in package.functions and package.parameters:
        held = [
            f"const {name}::payload held{{1, {{0, 0, {literal(0.1, package.dtype)}}}, {{}}}};",
            f"std::array<{name}::scalar, {name}::P> mine;",
            f"{name}::{PAYLOAD}(held.mass, held.com, held.inertia, {present}, mine);",
        ]
        parts += [HELD.format(mine="mine", struct=f"{name}::payload"), _code(name, held)]
    return "\n\n".join(parts)


def _array(name: str, port: Port, label: str) -> str:
    return f"std::array<{name}::scalar, {len(port.nodes)}> {label}{{}};"


def _code(name: str, lines: Sequence[str], *before: str) -> str:
    return "\n".join(["```cpp", *before, f'#include "{name}.hpp"', "", *lines, "```"])


TARGET = CodeTarget(
    "cpp",
    cpp_folder,
    ("make", "g++"),
    quick=("CXXFLAGS=-std=c++17 -O0", "EIGEN="),
    controllers=True,
    error_bound=True,
)
