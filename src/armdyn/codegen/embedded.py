"""Programs as one relocatable object for an embedded processor, compiled by LLVM without a cross compiler.

Here are the supported processors (names in LLVM, the ABI to link with), and memory use and instruction counts of
objects.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from armdyn.codegen import tuning
from armdyn.codegen.elf import Elf, instructions
from armdyn.codegen.llvm.scalar import PRECISIONS, Precision, ScalarWriter, intrinsics, scalar_function, scalar_trig
from armdyn.codegen.target import LLVM_LOCK, binding
from armdyn.errors import ComputationError
from armdyn.graph.program import Program


@dataclass(frozen=True)
class Cpu:
    """A processor, or a family of processors that runs the same code.

    `dtypes` are the precisions of its floating-point unit, the widest (the default) first.
    """

    name: str
    summary: str
    triple: str
    cpu: str
    features: str
    dtypes: tuple[str, ...]
    abi: str  # LLVM's name of the calling convention, "" if the triple implies it
    convention: str  # in words, for the ABI note
    relocation: str


_THUMB = "thumbv7em-none-unknown-eabihf"
_AAPCS = "AAPCS with hard float (`-mfloat-abi=hard`)"

CPUS: dict[str, Cpu] = {
    cpu.name: cpu
    for cpu in (
        Cpu(
            "cortex-m4f",
            "Arm Cortex-M4 with its single-precision unit (ARMv7E-M, FPv4-SP); runs on a Cortex-M7 as well",
            _THUMB,
            "cortex-m4",
            "",
            ("float",),
            "",
            f"{_AAPCS}, `-mcpu=cortex-m4 -mfpu=fpv4-sp-d16`",
            "static",
        ),
        Cpu(
            "cortex-m7",
            "Arm Cortex-M7 with its double-precision unit (ARMv7E-M, FPv5-D16)",
            _THUMB,
            "cortex-m7",
            "",
            ("double", "float"),
            "",
            f"{_AAPCS}, `-mcpu=cortex-m7 -mfpu=fpv5-d16`",
            "static",
        ),
        Cpu(
            "aarch64",
            "any 64-bit Arm processor (ARMv8-A and later, LP64)",
            "aarch64-none-unknown-elf",
            "generic",
            "",
            ("double", "float"),
            "",
            "AAPCS64 (LP64)",
            "pic",
        ),
        Cpu(
            "rv32f",
            "32-bit RISC-V with a single-precision unit (RV32IMAFC)",
            "riscv32-unknown-unknown-elf",
            "generic-rv32",
            "+m,+a,+f,+c",
            ("float",),
            "ilp32f",
            "RISC-V ELF psABI, `-march=rv32imafc -mabi=ilp32f`",
            "pic",
        ),
        Cpu(
            "rv32",
            "32-bit RISC-V with a double-precision unit (RV32IMAFDC, that is RV32GC)",
            "riscv32-unknown-unknown-elf",
            "generic-rv32",
            "+m,+a,+f,+d,+c",
            ("double", "float"),
            "ilp32d",
            "RISC-V ELF psABI, `-march=rv32gc -mabi=ilp32d`",
            "pic",
        ),
        Cpu(
            "rv64",
            "64-bit RISC-V as Linux and most distributions have it (RV64GC)",
            "riscv64-unknown-unknown-elf",
            "generic-rv64",
            "+m,+a,+f,+d,+c",
            ("double", "float"),
            "lp64d",
            "RISC-V ELF psABI, `-march=rv64gc -mabi=lp64d`",
            "pic",
        ),
    )
}


@lru_cache(maxsize=1)
def _all_targets() -> Any:
    llvm = binding()
    with LLVM_LOCK:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
    return llvm


def machine(cpu: Cpu, level: int) -> Any:
    """LLVM's target machine for a processor; `level` is the optimisation level of its code generator."""
    llvm = _all_targets()
    try:
        target = llvm.Target.from_triple(cpu.triple)
    except RuntimeError as error:
        raise ComputationError(
            f"this build of llvmlite has no code generator for {cpu.name} ({error}); the wheels of llvmlite have one, "
            f"builds of distributions may leave it out"
        ) from error
    return target.create_target_machine(
        cpu=cpu.cpu, features=cpu.features, opt=level, reloc=cpu.relocation, codemodel="small", abiname=cpu.abi
    )


@dataclass(frozen=True)
class Footprint:
    """The resource use of one function.

    `flash` is its code and constants, without code shared by several functions; `stack` is the worst case, with
    everything it calls. `instructions` counts every instruction of the function once, and those of sine and cosine once
    per angle: the code has no loops, so this is an upper bound per call (`large`: with every angle beyond
    `trig.LIMIT`).
    """

    flash: int
    stack: int
    instructions: int
    large: int


@dataclass(frozen=True)
class Object:
    """A relocatable object and its functions' resource use; `shared` is the flash of sine, cosine and parameters."""

    cpu: Cpu
    dtype: str
    code: bytes
    functions: Mapping[str, Footprint]
    shared: int


def compile_object(
    prefix: str, programs: Mapping[str, Program], parameters: Sequence[float], cpu: Cpu, dtype: str
) -> Object:
    """Compile the programs to functions ``prefix_name`` of one object, which has no undefined symbols."""
    precision = PRECISIONS[dtype]
    level = 2 if max(len(program.order) for program in programs.values()) <= tuning.LARGEST_OPTIMISED else 0
    text = _module(prefix, programs, parameters, cpu, precision)
    with LLVM_LOCK:
        target = machine(cpu, level)
        with binding().parse_assembly(text.format(attributes="nounwind")) as module:
            code = bytes(target.emit_object(module))
        with binding().parse_assembly(text.format(attributes="nounwind uwtable")) as module:
            frames = frame_sizes(target.emit_assembly(module))
    elf = Elf(code)
    if elf.undefined:
        raise ComputationError(
            f"the object for {cpu.name} has undefined symbols ({', '.join(elf.undefined)}); please report this bug"
        )
    return _measured(prefix, programs, cpu, dtype, code, elf, frames)


def _module(
    prefix: str, programs: Mapping[str, Program], parameters: Sequence[float], cpu: Cpu, precision: Precision
) -> str:
    trig = f"{prefix}_sine_cosine"
    parts = [f'target triple = "{cpu.triple}"\n']
    if parameters:
        w = ScalarWriter(precision)
        rows = ", ".join(f"{precision.kind} {w.constant(value)}" for value in parameters)
        parts.append(
            f"@{prefix}_parameters = constant [{len(parameters)} x {precision.kind}] [{rows}], "
            f'section ".rodata.{prefix}_parameters", align {precision.size}\n'
        )
    if any(program.operations.trig for program in programs.values()):
        parts.append(scalar_trig(trig, precision))
    parts += [scalar_function(f"{prefix}_{name}", program, precision, trig) for name, program in programs.items()]
    text = "\n".join([*parts, intrinsics(precision)])
    return text.replace("{", "{{").replace("}", "}}") + "attributes #0 = {{ {attributes} }}\n"


def _measured(
    prefix: str, programs: Mapping[str, Program], cpu: Cpu, dtype: str, code: bytes, elf: Elf, frames: Mapping[str, int]
) -> Object:
    trig = f"{prefix}_sine_cosine"
    counts = {symbol: instructions(elf, symbol) for symbol in elf.functions}
    sine = counts.get(trig, 0)
    far = sine + counts.get(f"{trig}_reduction", 0)
    below = frames.get(trig, 0) + frames.get(f"{trig}_reduction", 0)
    found = {}
    for name, program in programs.items():
        symbol = f"{prefix}_{name}"
        angles = {node.args[0].serial for node in program.order if node.op in ("sin", "cos")}
        found[name] = Footprint(
            flash=elf.allocated(f".text.{symbol}", f".rodata.{symbol}", f".ARM.exidx.text.{symbol}"),
            stack=frames[symbol] + (below if angles else 0),
            instructions=counts[symbol] + len(angles) * sine,
            large=counts[symbol] + len(angles) * far,
        )
    return Object(cpu, dtype, code, found, elf.allocated() - sum(one.flash for one in found.values()))


_FUNCTION = re.compile(r"^(\w+):", re.MULTILINE)


def frame_sizes(assembly: str) -> dict[str, int]:
    """Frame size in bytes per function, from LLVM's unwind directives, which describe every push and allocation."""
    starts = list(_FUNCTION.finditer(assembly))
    ends = [found.start() for found in starts[1:]] + [len(assembly)]
    return {found[1]: _frame(assembly[found.end() : end]) for found, end in zip(starts, ends, strict=True)}


def _frame(body: str) -> int:
    """The largest DWARF offset of the canonical frame address, or the sum of Arm's `.save`, `.vsave` and `.pad`."""
    offsets = [int(n) for n in re.findall(r"\.cfi_def_cfa_offset (\d+)", body)]
    saved: list[int] = [4 * registers.count(",") + 4 for registers in re.findall(r"\.save\s+\{(.*)\}", body)]
    saved += [8 * registers.count(",") + 8 for registers in re.findall(r"\.vsave\s+\{(.*)\}", body)]
    saved += [int(n) for n in re.findall(r"\.pad\s+#(\d+)", body)]
    return max(offsets, default=0) + sum(saved)
