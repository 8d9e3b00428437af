"""The target `fmu`: FMI 3.0 co-simulation and model exchange of the arm's forward dynamics in one file."""

from __future__ import annotations

import io
import math
import os
import platform
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from importlib.resources import files as resources
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from armdyn.codegen.text.c import Function, Package, c_type, files
from armdyn.codegen.text.names import identifier
from armdyn.codegen.text.numpy import compile_numpy
from armdyn.deployment.fmu_description import SOURCES, build_description, model_description, token
from armdyn.deployment.fmu_model import FmuModel
from armdyn.deployment.fmu_readme import fmu_readme
from armdyn.deployment.fmu_vectors import vectors
from armdyn.deployment.request import PAYLOAD, CodeTarget, Files, Request
from armdyn.deployment.trial import first_message
from armdyn.errors import ComputationError, InputError
from armdyn.graph.program import Program, trace
from armdyn.programs.stepping import stage_programs
from armdyn.simulation.programs import couplings, lockable_dynamics

HEADERS = ("armdyn_fmu.h", "fmi3PlatformTypes.h", "fmi3FunctionTypes.h", "fmi3Functions.h")
FLAGS = ("-std=c99", "-O2", "-fPIC", "-shared", "-fvisibility=hidden")
DYNAMICS, FORCES, SCHEME = "lockable_dynamics", "joint_forces", "RK4"
EPOCH = (1980, 1, 1, 0, 0, 0)  # the time of every file in the archive, so that the same arm gives the same bytes


def fmu_folder(request: Request) -> Files:
    """The folder's files by name."""
    model = _model(request)
    beside = {DYNAMICS: _dynamics(model, request.parameters == "runtime")}
    beside |= {FORCES: _joint_forces(model)} if model.pushed else {}
    beside |= {program.name: _function(program, f"{SCHEME}: {where}") for program, where in _stages(model)}
    package = replace(request, quantities=(), friction=False, functions=beside).package()
    name = identifier(package.name)
    sources = _sources(model, package, name)
    if request.binary and request.progress:
        request.progress(0, 1, "compiling")
    binary = _binary(name, sources) if request.binary else {}
    inside = {"modelDescription.xml": _description(model, package, name)}
    inside |= {f"sources/{file}": text.encode() for file, text in sources.items()} | binary
    texts = {f"sources/{file}": text for file, text in sources.items()}
    texts["modelDescription.xml"] = inside["modelDescription.xml"].decode()
    texts["armdyn_test.c"] = _resource("armdyn_test.c")
    texts["armdyn_vectors.h"] = vectors(model)
    texts["Makefile"] = _makefile(name)
    texts["README.md"] = fmu_readme(model, package, list(binary))
    return {f"{name}.fmu": _archive(inside)} | {file: text.encode() for file, text in texts.items()}


def _model(request: Request) -> FmuModel:
    """The model of the FMU; an error if the request does not suit an FMU."""
    arm = request.arm
    if request.quantities is not None:
        raise InputError("an FMU contains the forward dynamics only; quantities are for the other targets")
    if request.dtype is not None and c_type(request.dtype) != "double":
        raise InputError(f"an FMU computes in double precision; got dtype {request.dtype}")
    if request.functions:
        raise InputError("an FMU contains the forward dynamics only; further functions are for the other targets")
    arm.must_suit("an FMU")
    if request.frame is not None and request.parameters != "runtime":
        raise InputError("the frame is where the FMU's payload is attached, which requires parameters='runtime'")
    return FmuModel(arm, PAYLOAD in request.wanted, request.friction, request.frame)


def _dynamics(model: FmuModel, runtime: bool) -> Function:
    """Accelerations with joints that may be held; the FMU adds friction and decides which joints are held."""
    comment = "accelerations of the joints with free = 1; joints with free = 0 are held, and left is the holding force"
    return _function(lockable_dynamics(model.arm.chain, runtime), comment)


def _stages(model: FmuModel) -> list[tuple[Program, str]]:
    """The arithmetic of a step, stage by stage, with what each is for."""
    programs = stage_programs(SCHEME, model.n, model.n)
    words = [f"from the slopes of {k} stage{'s' * (k > 1)} to the next one" for k in range(1, len(programs))]
    return list(zip(programs, [*words, "from the slopes of all stages to the end of the step"], strict=True))


def _next_stage(model: FmuModel, name: str) -> str:
    """The cases of `next_stage` in C."""
    lines = []
    for k, (program, _) in enumerate(_stages(model), 1):
        slopes = ", ".join(f"rates[{i}], accelerations[{i}]" for i in range(k))
        lines.append(f"    case {k}: {name}_{program.name}(q, qd, {slopes}, &h, q_next, qd_next); break;")
    return "\n".join(lines)


def _joint_forces(model: FmuModel) -> Function:
    """The motor torques that springs, offsets, ripple and asymmetric friction require, as a program."""
    chain = model.arm.chain.rationals
    coupled = couplings(chain) if model.friction else None

    def function(q: list[Any], qd: list[Any]) -> list[Any]:
        found = [along.forces(x, v) for along, x, v in zip(model.along, q, qd, strict=True)]
        if coupled is None:
            return found
        return [f + c for f, c in zip(found, coupled(chain, q, qd), strict=True)]

    made = trace(FORCES, function, {"q": (model.n,), "qd": (model.n,)}, [("tau", (model.n,))])
    return _function(made, "springs, torque offsets, torque ripple and the asymmetry of viscous friction")


def _function(made: Program, comment: str) -> Function:
    """A program to be written; the FMU has vectors of its own, so one of ones is enough."""
    inputs = tuple(np.ones((1, *port.shape)) for port in made.inputs)
    outputs = compile_numpy(made)(*inputs)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    return Function(made, comment, inputs, tuple(np.asarray(x) for x in outputs))


def _resource(file: str) -> str:
    return (resources("armdyn.deployment") / "fmi" / file).read_text(encoding="utf-8")


def _description(model: FmuModel, package: Package, name: str) -> bytes:
    from armdyn import __version__

    return model_description(model, package.name, name, __version__).encode()


def _sources(model: FmuModel, package: Package, name: str) -> dict[str, str]:
    written = files(package)
    texts = {file: written[file] for file in (f"{name}.h", f"{name}.c")}
    texts["armdyn_model.h"] = _header(model, package, name)
    texts |= {file: _resource(file) for file in (*HEADERS, *SOURCES)}
    texts["buildDescription.xml"] = build_description(name)
    return texts


def _header(model: FmuModel, package: Package, name: str) -> str:
    """The text of ``armdyn_model.h``, the part of the sources that is specific to this arm."""
    runtime = bool(package.parameters)
    if model.payload:
        compute = f"{name}_payload_parameters(mass, com, inertia, {name}_parameters, values);"
    else:
        compute = f"for (int k = 0; k < P; ++k) values[k] = {name}_parameters[k];" if runtime else ""
    return Template(_resource("armdyn_model.h.template")).substitute(
        name=name,
        token=token(model, name),
        n=model.n,
        p=len(package.parameters),
        payload=int(model.payload),
        joints=len(model.rubbing),
        settings=sum(v.causality == "parameter" for v in model.variables),
        along=", ".join([*(str(k) for _, k, _ in model.rubbing), "0"]),
        ratios=", ".join([*(repr(ratio) for _, _, ratio in model.rubbing), "0.0"]),
        exponents=", ".join([*(str(joint.forces.stribeck_exponent) for joint, _, _ in model.rubbing), "0"]),
        losses=", ".join(repr(float(along.own.load_friction)) for along in model.along),
        stops=int(model.stops),
        lower=", ".join(_limit(x) for x, _ in model.arm.limits),
        upper=", ".join(_limit(x) for _, x in model.arm.limits),
        starts="\n".join(f"    {float(v.start or 0.0)!r}, /* {v.name} */" for v in model.variables if not v.discrete),
        parameters=compute,
        forces=f"{name}_{FORCES}(q, qd, forces);" if model.pushed else "for (int k = 0; k < N; ++k) forces[k] = 0.0;",
        scheme=SCHEME,
        stages=len(_stages(model)),
        next=_next_stage(model, name),
        forward=f"{name}_{DYNAMICS}(q, qd, tau, free, {'values, ' if runtime else ''}qdd, left);",
    )


def _limit(x: float) -> str:
    return repr(float(x)) if math.isfinite(x) else "INFINITY" if x > 0 else "-INFINITY"


def platform_tuple() -> str:
    """FMI's name for this machine, such as x86_64-linux."""
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine().lower(), platform.machine().lower())
    return f"{machine}-{platform.system().lower()}"


def compiler() -> str | None:
    """The C compiler of this machine, if there is one that makes a shared library by the flags of gcc."""
    if os.name == "nt":
        return None
    return next((found for name in ("cc", "gcc", "clang") if (found := shutil.which(name))), None)


def _binary(name: str, sources: Mapping[str, str]) -> dict[str, bytes]:
    """The shared library for this machine, by its path in the archive; nothing if there is no C compiler."""
    command = compiler()
    if command is None:
        return {}
    suffix = "dylib" if platform.system() == "Darwin" else "so"
    with tempfile.TemporaryDirectory() as folder:
        for file, text in sources.items():
            Path(folder, file).write_text(text, encoding="utf-8")
        line = [command, *FLAGS, "-o", f"{name}.{suffix}", f"{name}.c", *SOURCES, "-lm"]
        done = subprocess.run(line, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise ComputationError(
                f"{command} cannot compile the FMU for this machine, so nothing was written: "
                f"{first_message(done.stderr.splitlines())} (binary=False, --no-binary, leaves the library out)"
            )
        return {f"binaries/{platform_tuple()}/{name}.{suffix}": Path(folder, f"{name}.{suffix}").read_bytes()}


def _archive(contents: Mapping[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for file, content in contents.items():
            info = zipfile.ZipInfo(file, EPOCH)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = 0o644 << 16
            archive.writestr(info, content)
    return out.getvalue()


def _makefile(name: str) -> str:
    objects = " ".join(f"sources/{file}" for file in (f"{name}.c", *SOURCES))
    return (
        "CFLAGS ?= -std=c99 -O2 -Wall -Wextra -Wpedantic\n"
        f"SOURCES := {objects}\n\n"
        "test: test_fmu\n\t./test_fmu\n\n"
        "test_fmu: armdyn_test.c armdyn_vectors.h $(SOURCES)\n"
        "\t$(CC) $(CFLAGS) -Isources -I. -o $@ armdyn_test.c $(SOURCES) -lm\n\n"
        "# Builds the library for this machine and adds it to the FMU.\n"
        f"PLATFORM ?= {platform_tuple()}\n"
        "fmu: $(SOURCES)\n"
        "\tmkdir -p binaries/$(PLATFORM)\n"
        f"\t$(CC) {' '.join(FLAGS)} -Isources -o binaries/$(PLATFORM)/{name}.so $(SOURCES) -lm\n"
        f"\tzip -q {name}.fmu binaries/$(PLATFORM)/{name}.so\n\n"
        "clean:\n\trm -rf test_fmu binaries\n\n.PHONY: test fmu clean\n"
    )


TARGET = CodeTarget(
    "fmu",
    fmu_folder,
    ("make", "cc"),
    quick=("CFLAGS=-std=c99 -O0",),
    binary=True,
)
