"""The target `object`: relocatable objects for embedded processors, made without a cross compiler."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from importlib.resources import files as resources

from armdyn.codegen.embedded.cpus import CPUS, Cpu
from armdyn.codegen.embedded.objects import Object, compile_object
from armdyn.codegen.llvm.trig import LIMIT
from armdyn.codegen.text.c import Package, c_type, files, identifier, signature
from armdyn.deployment.build import BUILDS, makefile
from armdyn.deployment.controllers import STRUCTS, header, header_name
from armdyn.deployment.readme import Readme, readme
from armdyn.deployment.request import Files, Request, Target
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
                f"or name processors that have it: {others}"
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
    end = "SI units; the arrays of a call must not overlap; no allocation, no library, no symbol from outside."
    which = [f"For the objects in this folder, which are of {dtype} precision; see ABI.md."] if dtype else []
    return "\n".join([head, *rest[:-1], end, *which])


def _readme(package: Package, made: Sequence[Object], controllers: bool) -> Readme:
    name = identifier(package.name)
    dtypes = list(dict.fromkeys(one.dtype for one in made))
    kinds = " and ".join(dtypes)
    named = {
        f"{one.dtype}/{name}_{one.cpu.name}.o": f"{one.cpu.summary}, {one.dtype} ({len(one.code)} bytes as a file)"
        for one in made
    }
    named |= {f"{dtype}/{name}.h": f"the functions of the objects beside it, in {dtype}" for dtype in dtypes}
    named |= {f"{dtype}/test_{name}.c": "a program that checks them against vectors of armdyn" for dtype in dtypes}
    named |= {f"{dtype}/{name}_controllers.h": STRUCTS for dtype in dtypes if controllers}
    named |= {
        "ABI.md": "what a linker and a caller must know: calling convention, float ABI, alignment, symbols",
        "harness/": "what the test programs run on without a C library; not needed by your controller",
        "Makefile": "`make test` builds and runs the test programs under QEMU, for every cross compiler it finds",
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
        f"Include `{one.dtype}/{name}.h` and give the object of your processor to the linker:\n\n"
        f"```console\n$ {command}\n```"
    )


def _footprints(made: Sequence[Object]) -> str:
    far = f"{LIMIT:g}"
    lines = [
        "## Flash, stack and instructions",
        "",
        "- **flash**: bytes of the function's own sections in the object (code and constants), read from its section "
        "headers. What functions share (sine, cosine, their bits of 2/π, the parameters) is counted once, in the "
        "last row.",
        "- **stack**: worst case in bytes of the function with everything it calls, from the frames that LLVM's unwind "
        "directives state; there is no recursion and no allocation of variable size.",
        "- **instructions**: counted in the object, not measured: every instruction of the function once, and those of "
        "the sine and cosine once per angle. The code has no loop, so this is the most that a call executes with "
        f"angles up to {far} rad; in brackets with every angle beyond. They are instructions, not cycles.",
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
            f"# ABI of the objects of {name}",
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
    "Every argument is a pointer, so no floating-point number is passed in a register. The objects still say which "
    "float ABI they have, and linkers insist that all objects agree.",
    "Arrays are aligned as their numbers are; those of one call must not overlap. Inputs are only read.",
    "Required symbols: none. Sine, cosine and square root are inside; nothing is taken from libm, libgcc or libc.",
    "Defined symbols: the functions of the header and, with run-time parameters, the array of their present values. "
    "Everything else is local.",
    "No variables: the objects have no section that is written to. The functions are reentrant, and may be called from "
    "interrupts if the floating-point registers are saved there, as the hardware or your system does.",
    "One section per function (`.text.*`, `.rodata.*`): `--gc-sections` drops what is not called.",
    "The code is position-independent on AArch64 and RISC-V; on Cortex-M the constants are at fixed addresses.",
    "The floating-point unit must be switched on before the first call (Cortex-M: CPACR; RISC-V: mstatus.FS), and "
    "round to nearest. Denormal numbers are used where the unit has them; flushing them to zero does no harm.",
    "The stack is aligned at the call as the convention asks: 8 bytes for Cortex-M, 16 bytes elsewhere.",
    f"Sines and cosines are within 2 units in the last place up to {LIMIT:g} rad and within 3 beyond, at every finite "
    "angle; not a number and infinities give not a number.",
)

TARGET = Target("object", "relocatable objects for Cortex-M, AArch64 and RISC-V, header, ABI note", object_folder)
