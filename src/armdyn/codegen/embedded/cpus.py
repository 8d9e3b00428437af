"""The supported embedded processors: their names in LLVM, and the ABI to link with."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from armdyn.codegen.target import LLVM_LOCK, binding
from armdyn.errors import ComputationError


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
