"""The target `object`: relocatable objects for embedded processors, made without a cross compiler."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from importlib.resources import files as resources

from armdyn.codegen.embedded import CPUS, Cpu, Object, compile_object
from armdyn.codegen.llvm.trig import LIMIT
from armdyn.codegen.text.c import Package, c_type, files, signature
from armdyn.codegen.text.names import identifier
from armdyn.deployment.build import BUILDS, makefile
from armdyn.deployment.controllers import STRUCTS, header, header_name
from armdyn.deployment.readme import Readme, readme
from armdyn.deployment.request import CodeTarget, Files, Request
from armdyn.errors import InputError, choose

HARNESS = ("harness.h", "stdio.h", "math.h", "printf.c", "cortex_m.c", "cortex_m.ld", "linux.c")


def object_folder(request: Request) -> Files:
    """The folder's files by name."""
    wanted = _wanted(request.cpus, request.dtype)
    package = request.package("machine code")
    name = identifier(package.name)
    made = list(_objects(package, wanted, request))
    texts: dict[str, str] = {}
    for dtype in dict.fromkeys(one.dtype for one in made):
        headed = replace(package, dtype=dtype, comment=_comment(package, dtype))
        written = files(headed)
        texts |= {f"{dtype}/{file}": written[file] for file in (f"{name}.h", f"test_{name}.c")}
        if request.controllers:
            texts[f"{dtype}/{header_name(request.arm)}"] = header(request.arm, request.controllers, dtype)
    texts |= {f"harness/{file}": _harness(file) for file in HARNESS}
    texts["Makefile"] = makefile(name, [(one.cpu.name, one.dtype) for one in made])
    texts["ABI.md"] = _abi(name, made)
    about = replace(package, comment=_comment(package, ""))
    texts["README.md"] = readme(_readme(about, made, bool(request.controllers)))
    objects = {f"{one.dtype}/{name}_{one.cpu.name}.o": one.code for one in made}
    return {file: text.encode() for file, text in texts.items()} | objects


def _wanted(names: Sequence[str], dtype: str | None) -> list[tuple[Cpu, str]]:
    """The processors with their precisions: the requested one, or the widest that the hardware has."""
    cpus = [CPUS[choose("cpu", name, CPUS)] for name in dict.fromkeys(names)] or list(CPUS.values())
    asked = None if dtype is None else c_type(dtype)
    for cpu in cpus:
        if asked is not None and asked not in cpu.dtypes:
            others = ", ".join(one.name for one in CPUS.values() if asked in one.dtypes)
            raise InputError(
                f"{cpu.name} has no {asked} precision in hardware, only {', '.join(cpu.dtypes)}; leave out the dtype, "
                f"or choose processors that have it: {others}"
            )
    return [(cpu, asked or cpu.dtypes[0]) for cpu in cpus]


def _objects(package: Package, wanted: Sequence[tuple[Cpu, str]], request: Request) -> Iterable[Object]:
    programs = {key: function.program for key, function in package.functions.items()}
    parameters = [value for _, value in package.parameters]
    for k, (cpu, dtype) in enumerate(wanted):
        if request.progress:
            request.progress(k, len(wanted), cpu.name)
        yield compile_object(identifier(package.name), programs, parameters, cpu, dtype)


def _harness(file: str) -> str:
    return (resources("armdyn.deployment") / "harness" / file).read_text(encoding="utf-8")


def _comment(package: Package, dtype: str) -> str:
    """The comment of the package, with its last line about C replaced by one about objects."""
    head, *rest = package.comment.splitlines()
    end = "SI units. The arrays of a call must not overlap. No memory allocation, no library, no external symbols."
    which = [f"This header is for the objects in this folder, which compute in {dtype}; see ABI.md."] if dtype else []
    return "\n".join([head, *rest[:-1], end, *which])


def _readme(package: Package, made: Sequence[Object], controllers: bool) -> Readme:
    name = identifier(package.name)
    dtypes = list(dict.fromkeys(one.dtype for one in made))
    kinds = " and ".join(dtypes)
    named = {
        f"{one.dtype}/{name}_{one.cpu.name}.o": f"{one.cpu.summary}, {one.dtype} (file size {len(one.code)} bytes)"
        for one in made
    }
    named |= {
        f"{dtype}/{name}.h": f"declarations of the functions in the objects of this folder, in {dtype}"
        for dtype in dtypes
    }
    named |= {
        f"{dtype}/test_{name}.c": "test program: compares the functions with test vectors computed by armdyn"
        for dtype in dtypes
    }
    named |= {f"{dtype}/{name}_controllers.h": STRUCTS for dtype in dtypes if controllers}
    named |= {
        "ABI.md": "calling convention, float ABI, alignment and symbols of the objects",
        "harness/": "support code for running the test programs without a C library; not needed by your controller",
        "Makefile": "`make test` builds the test programs with every cross compiler it finds and runs them under QEMU",
    }
    return Readme(
        package=package,
        language=f"relocatable objects ({kinds})",
        files=named,
        signatures={key: signature(name, key, f.program, dtypes[0]) for key, f in package.functions.items()},
        call=_call(name, made[0]),
        more=_footprints(made),
    )


def _call(name: str, one: Object) -> str:
    command = f"{BUILDS[one.cpu.name].compiler} ... controller.c {one.dtype}/{name}_{one.cpu.name}.o"
    return (
        f"Include `{one.dtype}/{name}.h` and link the object for your processor, for example:\n\n"
        f"```console\n$ {command}\n```"
    )


def _footprints(made: Sequence[Object]) -> str:
    far = f"{LIMIT:g}"
    lines = [
        "## Flash, stack and instructions",
        "",
        "- **flash**: size in bytes of the function's own sections (code and constants), read from the section headers "
        "of the object. Code and data shared by several functions (sine, cosine, the table of the bits of 2/π, the "
        "parameters) are counted once, in the last row.",
        "- **stack**: worst-case stack usage in bytes, including all called functions, from the frame sizes in LLVM's "
        "unwind directives. There is no recursion and no variable-size allocation.",
        "- **instructions**: counted in the object, not measured. Every instruction of the function counts once, "
        "those of the sine and cosine once per angle. The code has no loops, so this is the largest number of "
        f"instructions that a call executes if all angles are within ±{far} rad; the number in brackets "
        "is the maximum if every angle is larger. These are instructions, not clock cycles.",
    ]
    for one in made:
        lines += ["", f"### {one.cpu.name}, {one.dtype}", "", "| function | flash | stack | instructions |"]
        lines += ["|---|---:|---:|---:|"]
        for key, f in one.functions.items():
            large = f" ({f.large})" if f.large > f.instructions else ""
            lines.append(f"| `{key}` | {f.flash} | {f.stack} | {f.instructions}{large} |")
        lines += [f"| shared | {one.shared} | | |"]
    return "\n".join(lines)


def _abi(name: str, made: Sequence[Object]) -> str:
    rows = [
        f"| `{one.dtype}/{name}_{one.cpu.name}.o` | {one.cpu.summary} | {one.cpu.convention} | "
        f"{ {'double': 8, 'float': 4}[one.dtype] } |"
        for one in made
    ]
    return "\n".join(
        [
            f"# ABI of the {name} objects",
            "",
            "| object | processor | calling convention and compiler options | alignment of arrays in bytes |",
            "|---|---|---|---:|",
            *rows,
            "",
            *(f"- {text}" for text in _ABI_NOTES),
            "",
        ]
    )


_ABI_NOTES = (
    "Relocatable ELF objects, little-endian.",
    "Every argument is a pointer, so no floating-point values are passed in registers. The objects are nevertheless "
    "marked with their float ABI, and linkers require all objects to have the same one.",
    "Arrays need only the alignment of their elements. The arrays of one call must not overlap. Inputs are not "
    "modified.",
    "Undefined symbols: none. The objects contain sine, cosine and square root and need no libm, libgcc or libc.",
    "Global symbols: the functions in the header and, with run-time parameters, the array of the arm's own parameters. "
    "All other symbols are local.",
    "The objects have no writable sections, so the functions are reentrant. They may be called from "
    "interrupt handlers if the hardware or your operating system saves the floating-point registers.",
    "One section per function (`.text.*`, `.rodata.*`): `--gc-sections` removes functions that are not called.",
    "The code is position-independent on AArch64 and RISC-V; on Cortex-M the constants have absolute addresses.",
    "The floating-point unit must be enabled before the first call (Cortex-M: CPACR; RISC-V: mstatus.FS) and set to "
    "round to nearest. Flushing subnormal numbers to zero is harmless.",
    "The stack must be aligned at the call as the calling convention requires: 8 bytes for Cortex-M, 16 bytes "
    "otherwise.",
    f"Sines and cosines are accurate to 2 units in the last place for angles up to {LIMIT:g} rad, and to 3 for all "
    "larger finite angles. NaN and infinities give NaN.",
)

TARGET = CodeTarget(
    "object",
    object_folder,
    ("make",),
    controllers=True,
    cpus=True,
)
