"""The targets `cuda`, `opencl` and `wgsl`: batches on graphics processors, with tests that need none of them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from string import Template

import numpy as np

from armdyn.codegen.gpu import c_like, wgsl
from armdyn.codegen.text.c import TOLERANCES, Function, Package, banner, c_type, doc, literal, vectors
from armdyn.codegen.text.names import identifier
from armdyn.deployment import gpu_tests
from armdyn.deployment.readme import Readme, readme
from armdyn.deployment.request import CodeTarget, Files, Request
from armdyn.errors import ArmdynError, InputError
from armdyn.formulations.registry import Options
from armdyn.graph.program import StagedProgram
from armdyn.kernels import emission
from armdyn.programs.program import derivatives_in_stages

Stages = Callable[[str], StagedProgram | None]
NOT_RUN = {
    "cuda": "armdyn compiles such files with nvcc and runs them on the CPU, not on a real NVIDIA device: "
    "run `make test-device` on one.",
    "opencl": "armdyn runs such files on PoCL, which computes on the CPU, and as C: "
    "run `make test-device` on your device.",
    "wgsl": "armdyn runs such files on Mesa's software Vulkan; `make test` runs them on the first device.",
}


def _package(request: Request, language: str) -> tuple[Package, str]:
    if request.dtype is not None and c_type(request.dtype) != "float":
        raise InputError(f"{language} is written in single precision; got dtype {request.dtype}")
    package = replace(request, dtype="float").package(language)
    comment = package.comment.replace(" No memory allocation, no dependency except libm.", "")
    return replace(package, comment=comment), identifier(package.name)


def _text(package: Package, name: str, dialect: c_like.Dialect, stages: Stages) -> str:
    guard = f"{name.upper()}_GPU_H"
    programs = {key: function.program for key, function in package.functions.items()}
    docs = {key: doc(function) for key, function in package.functions.items()}
    lines = [banner(package.comment), f"#ifndef {guard}", f"#define {guard}", ""]
    lines += [f"#define {name.upper()}_{key} {value}" for key, value in package.constants.items()]
    if package.parameters:
        values = ", ".join(literal(value, "float") for _, value in package.parameters)
        lines += ["", "/* The arm's minimal parameters, from its file: pass these, or your own, as `parameters`. */"]
        lines += [f"#define {name.upper()}_PARAMETERS {{{values}}}"]
    text = c_like.source(name, programs, docs, dialect, stages)
    return "\n".join([*lines, "", text, f"#endif /* {guard} */", ""])


def _stages(request: Request) -> Stages:
    """The program of a function in stages, by the function's name, where there is one."""
    links = request.arm.own_links
    asked = emission.requests(request.wanted, request.parameters, request.friction, request.place, links)

    def stages(key: str) -> StagedProgram | None:
        quantity, options = asked.get(key, ("", Options()))
        return derivatives_in_stages(request.arm.chain, quantity, options) if options.derivatives else None

    return stages


def _data(package: Package) -> list[str]:
    """The test vectors as constant arrays."""
    return [line for key, one in package.functions.items() for line in vectors(key, one, "float")]


def cuda_folder(request: Request) -> Files:
    """One header for CUDA, its test program, a Makefile and a README."""
    package, name = _package(request, "CUDA")
    texts = {
        f"{name}.cuh": _text(package, name, c_like.CUDA, _stages(request)),
        f"test_{name}.cu": gpu_tests.cuda(name, package, _data(package), TOLERANCES["float"]),
        "Makefile": Template(gpu_tests.CUDA_MAKEFILE).substitute(name=name, awk=gpu_tests.AWK),
    }
    about = {
        f"{name}.cuh": "device functions, kernels over a batch and their launchers; include it in your .cu files",
        f"test_{name}.cu": "test program: compares the kernels with test vectors computed by armdyn",
        "Makefile": "`make test` runs the test on the CPU, `make test-device` on an NVIDIA device; `make resources` "
        "prints registers and spills",
    }
    key, function = next(iter(package.functions.items()))
    passed = [f"{array}, 1, count" for _, array in c_like.arrays(function.program)]
    call = (
        f'```c\n#include "{name}.cuh"\n\n/* Structure of arrays: entry k of configuration i at [i + k * count]. */\n'
        f"{name}_{key}_launch(count, {', '.join(passed)}, stream);\n```\n\n{STEPS}"
    )
    texts["README.md"] = readme(_readme(package, "CUDA", about, call, _declared(name, package), "cuda"))
    return {file: text.encode() for file, text in texts.items()}


def opencl_folder(request: Request) -> Files:
    """One file of OpenCL C, its test program, a Makefile and a README."""
    package, name = _package(request, "OpenCL C")
    texts = {
        f"{name}.cl": _text(package, name, c_like.OPENCL, _stages(request)),
        f"test_{name}.c": gpu_tests.opencl(name, package, _data(package), TOLERANCES["float"]),
        "Makefile": Template(gpu_tests.OPENCL_MAKEFILE).substitute(name=name),
    }
    about = {
        f"{name}.cl": "functions and kernels over a batch; build it at run time with clBuildProgram",
        f"test_{name}.c": "test program: compares the kernels with test vectors computed by armdyn",
        "Makefile": "`make test` runs the test on the CPU, `make test-device` on the first OpenCL device",
    }
    key, function = next(iter(package.functions.items()))
    listed = ", ".join(f"{array}, {array}_row, {array}_entry" for _, array in c_like.arrays(function.program))
    call = (
        f"Arguments of the kernel `{name}_{key}_batch`, in this order: count, {listed}: buffers of `float`, `count` "
        f"and rows of the type `cl_long`, entries of the type `cl_int`. Any number of work items will do: each takes "
        f"every n-th configuration.\n\n{STEPS}"
    )
    texts["README.md"] = readme(_readme(package, "OpenCL C", about, call, _declared(name, package), "opencl"))
    return {file: text.encode() for file, text in texts.items()}


STEPS = (
    "Entry k of configuration i is read and written at `array[i * array_row + k * array_entry]`. With row 1 and entry "
    "`count` (structure of arrays), neighbouring threads use neighbouring words. With row 0 one configuration serves "
    "all, such as run-time parameters. Arrays that are written must not overlap others. Sine and cosine are armdyn's "
    "own; do not build with options that let compilers reassociate (`-cl-fast-relaxed-math`, `-ffast-math`)."
)


def wgsl_folder(request: Request) -> Files:
    """One compute shader per function, a description for the host, a test program, a Makefile and a README."""
    package, name = _package(request, "WGSL")
    texts = {
        f"{name}_{key}.wgsl": f"{banner(package.comment)}\n{doc(one)}\n{wgsl.source(one.program)}"
        for key, one in package.functions.items()
    }
    files = {f"{name}_{key}.wgsl": f"compute shader of `{key}`" for key in package.functions}
    texts |= {
        f"{name}.json": json.dumps({key: _described(name, key, one) for key, one in package.functions.items()}),
        f"test_{name}.py": gpu_tests.wgsl(name, TOLERANCES["float"], wgsl.WORKGROUP),
        "Makefile": f"PYTHON ?= python3\n\ntest:\n\t$(PYTHON) test_{name}.py\n\n.PHONY: test\n",
    }
    files |= {
        f"{name}.json": "names, bindings and shapes of the arrays, and test vectors",
        f"test_{name}.py": "test program, which shows how to call the shaders (Python, package wgpu)",
        "Makefile": "`make test` runs the test program on the first device",
    }
    call = (
        "Binding 0 is a buffer of `u32`: the number of configurations, the threads per row of the grid (64 times the "
        "workgroups along x), 0, the number of axes of the batch (1), their lengths (the number of configurations), "
        "and for every array, in the order of the bindings, its offset and its step from row to row. "
        f"The other bindings are buffers of `f32` in the order of `{name}.json`; "
        f"{wgsl.WORKGROUP} configurations are one workgroup."
    )
    bindings = {key: f"@compute fn main(); // {_bindings(one)}" for key, one in package.functions.items()}
    texts["README.md"] = readme(_readme(package, "WGSL", files, call, bindings, "wgsl"))
    return {file: text.encode() for file, text in texts.items()}


def _bindings(function: Function) -> str:
    listed = ["0: call", *(f"{k}: {label}" for k, (label, _, _) in enumerate(wgsl.ports(function.program), 1))]
    return ", ".join(listed)


def _described(name: str, key: str, function: Function) -> dict[str, object]:
    """What a host needs to call a shader, with test vectors."""
    program = function.program
    values = {f"in_{p.name}": x for p, x in zip(program.inputs, function.inputs, strict=True)}
    values |= {f"out_{p.name}": x for p, x in zip(program.outputs, function.outputs, strict=True)}
    bound = [
        {
            "name": label,
            "access": access,
            "shape": list(port.shape),
            "vectors": np.asarray(values[label], dtype=np.float32).reshape(len(function.outputs[0]), -1).tolist(),
        }
        for label, port, access in wgsl.ports(program)
    ]
    return {"file": f"{name}_{key}.wgsl", "entry": "main", "arrays": bound}


def _declared(name: str, package: Package) -> dict[str, str]:
    return {
        key: f"{name}_{key}_batch(count, "
        + ", ".join(f"{array}, {array}_row, {array}_entry" for _, array in c_like.arrays(one.program))
        + ")"
        for key, one in package.functions.items()
    }


def _readme(
    package: Package, language: str, files: dict[str, str], call: str, signatures: dict[str, str], target: str
) -> Readme:
    more = f"## What was run\n\n{NOT_RUN[target]}"
    return Readme(package, language, files, signatures, call, more)


def _no_device() -> str:
    """Why a WGSL folder cannot be tested here; "" if it can."""
    from armdyn.codegen.gpu.webgpu import devices

    try:
        return "" if devices() else "graphics device"
    except ArmdynError:
        return "package wgpu"


CUDA = CodeTarget("cuda", cuda_folder,
              ("make", "c++"), ("CXXFLAGS=-std=c++17 -O0",))  # fmt: skip
OPENCL = CodeTarget("opencl", opencl_folder,
                ("make", "cc"), ("CFLAGS=-std=c99 -O0",))  # fmt: skip
WGSL = CodeTarget("wgsl", wgsl_folder,
              ("make",), (f"PYTHON={sys.executable}",), missing=_no_device)  # fmt: skip
