"""The target `fmu`: FMI 3.0 co-simulation and model exchange of the arm's forward dynamics in one file."""

from __future__ import annotations

import io
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

from armdyn.codegen.text.c import Package, c_type, files, identifier
from armdyn.deployment.fmu_description import SOURCES, build_description, model_description, token
from armdyn.deployment.fmu_model import Model
from armdyn.deployment.fmu_readme import fmu_readme
from armdyn.deployment.fmu_vectors import vectors
from armdyn.deployment.request import PAYLOAD, Files, Request, Target
from armdyn.errors import ComputationError, InputError

HEADERS = ("fmu.h", "fmi3PlatformTypes.h", "fmi3FunctionTypes.h", "fmi3Functions.h")
FLAGS = ("-std=c99", "-O2", "-fPIC", "-shared", "-fvisibility=hidden")
EPOCH = (1980, 1, 1, 0, 0, 0)  # the time of every file in the archive, so that the same arm gives the same bytes


def fmu_folder(request: Request) -> Files:
    """The folder's files by name."""
    model = _model(request)
    package = replace(request, quantities=("forward_dynamics",), friction=False).package()
    name = identifier(package.name)
    sources = _sources(model, package, name)
    if request.progress:
        request.progress(0, 1, "compiling")
    binary = _binary(name, sources)
    inside = {"modelDescription.xml": _description(model, package, name)}
    inside |= {f"sources/{file}": text.encode() for file, text in sources.items()} | binary
    texts = {f"sources/{file}": text for file, text in sources.items()}
    texts["modelDescription.xml"] = inside["modelDescription.xml"].decode()
    texts["test_fmu.c"] = _resource("test_fmu.c")
    texts["vectors.h"] = vectors(model)
    texts["Makefile"] = _makefile(name)
    texts["README.md"] = fmu_readme(model, package, list(binary))
    return {f"{name}.fmu": _archive(inside)} | {file: text.encode() for file, text in texts.items()}


def _model(request: Request) -> Model:
    """What the FMU is of; what it cannot be of is refused."""
    arm = request.arm
    if request.quantities is not None:
        raise InputError("an FMU is of the forward dynamics; quantities are for the other targets")
    if request.dtype is not None and c_type(request.dtype) != "double":
        raise InputError(f"an FMU computes in double precision; got dtype {request.dtype}")
    if request.functions:
        raise InputError("an FMU is of the forward dynamics; further functions are for the other targets")
    if arm.floating:
        raise InputError(f"{arm.name} has a floating base; an FMU takes robots whose base is fixed")
    if request.frame is not None and request.parameters != "runtime":
        raise InputError("the frame is where the FMU's payload is held, which needs parameters='runtime'")
    return Model(arm, PAYLOAD in request.wanted, request.friction, request.frame)


def _resource(file: str) -> str:
    return (resources("armdyn.deployment") / "fmi" / file).read_text(encoding="utf-8")


def _description(model: Model, package: Package, name: str) -> bytes:
    from armdyn import __version__

    return model_description(model, package.name, name, __version__).encode()


def _sources(model: Model, package: Package, name: str) -> dict[str, str]:
    written = files(package)
    texts = {file: written[file] for file in (f"{name}.h", f"{name}.c")}
    texts["model.h"] = _header(model, package, name)
    texts |= {file: _resource(file) for file in (*HEADERS, *SOURCES)}
    texts["buildDescription.xml"] = build_description(name)
    return texts


def _header(model: Model, package: Package, name: str) -> str:
    """``model.h``: what the general sources must know of this arm."""
    along = [k for _, k, _ in model.rubbing]
    ratios = [repr(ratio) for _, _, ratio in model.rubbing]
    starts = [repr(float(v.start or 0.0)) for v in model.variables]
    runtime = bool(package.parameters)
    forward = f"{name}_forward_dynamics(q, qd, tau, {'values, ' if runtime else ''}qdd)"
    if model.payload:
        compute = [f"    {name}_payload_parameters(mass, com, inertia, {name}_parameters, values);"]
    elif runtime:
        compute = ["    int k;", f"    for (k = 0; k < P; ++k) values[k] = {name}_parameters[k];"]
    else:
        compute = ["    (void)values;"]
    unused = [] if model.payload else ["    (void)mass, (void)com, (void)inertia;"]
    return "\n".join(
        [
            "/* This arm: its size, the start values of its variables, and its dynamics. */",
            "#ifndef MODEL_H",
            "#define MODEL_H",
            "",
            f'#include "{name}.h"',
            "",
            f'#define TOKEN "{token(model, name)}"',
            f"#define N {model.n} /* degrees of freedom */",
            f"#define P {len(package.parameters)} /* parameters at run time */",
            f"#define PAYLOAD {int(model.payload)} /* whether there are variables for a payload */",
            f"#define JOINTS {len(along)} /* joints with variables for friction */",
            f"#define SETTINGS {sum(v.causality == 'parameter' for v in model.variables)}",
            "",
            "/* Of each joint with friction: along which degree of freedom it moves, and how fast beside it. */",
            f"static const int ALONG[JOINTS + 1] = {{{', '.join(map(str, [*along, 0]))}}};",
            f"static const double RATIO[JOINTS + 1] = {{{', '.join([*ratios, '0.0'])}}};",
            "",
            "static const double START[] = {",
            *(f"    {start}, /* {v.name} */" for start, v in zip(starts, model.variables, strict=True)),
            "};",
            "",
            "static inline void parameters(const double *mass, const double *com, const double *inertia, "
            "double *values)",
            "{",
            *compute,
            *unused,
            "}",
            "",
            "static inline void forward_dynamics(const double *q, const double *qd, const double *tau,",
            "                                    const double *values, double *qdd)",
            "{",
            *([] if runtime else ["    (void)values;"]),
            f"    {forward};",
            "}",
            "",
            "#endif",
            "",
        ]
    )


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
    """The shared library for this machine, by its path in the archive; nothing where there is no C compiler."""
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
            raise ComputationError(f"{command} could not compile the FMU: {done.stderr.strip()[-500:]}")
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
        "test_fmu: test_fmu.c vectors.h $(SOURCES)\n"
        "\t$(CC) $(CFLAGS) -Isources -I. -o $@ test_fmu.c $(SOURCES) -lm\n\n"
        "# The library for this machine, put into the FMU beside what it holds.\n"
        f"PLATFORM ?= {platform_tuple()}\n"
        "fmu: $(SOURCES)\n"
        "\tmkdir -p binaries/$(PLATFORM)\n"
        f"\t$(CC) {' '.join(FLAGS)} -Isources -o binaries/$(PLATFORM)/{name}.so $(SOURCES) -lm\n"
        f"\tzip -q {name}.fmu binaries/$(PLATFORM)/{name}.so\n\n"
        "clean:\n\trm -rf test_fmu binaries\n\n.PHONY: test fmu clean\n"
    )


TARGET = Target("fmu", "FMI 3.0 co-simulation and model exchange of the forward dynamics", fmu_folder)
