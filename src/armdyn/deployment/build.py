"""Compiler and emulator options per processor, and the Makefile that builds and runs the test programs of objects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_COMMON = "-std=c99 -O1 -Wall -Wextra -ffreestanding -fno-builtin-printf -nostdlib -static"


@dataclass(frozen=True)
class Build:
    """A cross compiler and an emulator with their options, and the Debian packages that provide them."""

    compiler: str
    flags: str
    emulator: str
    run: str  # the emulator's options, before the program
    packages: str

    @property
    def sources(self) -> str:
        """The source file of the test harness for this processor."""
        return "harness/cortex_m.c" if self.emulator == "qemu-system-arm" else "harness/linux.c"


_SYSTEM = (
    "-display none -monitor none -serial none -chardev stdio,id=text -semihosting-config enable=on,chardev=text -kernel"
)


def _cortex_m(cpu: str, unit: str, board: str) -> Build:
    return Build(
        "arm-none-eabi-gcc",
        f"-mthumb -mcpu={cpu} -mfpu={unit} -mfloat-abi=hard -T harness/cortex_m.ld -Wl,-z,noexecstack",
        "qemu-system-arm",
        f"-M {board} {_SYSTEM}",
        "gcc-arm-none-eabi qemu-system-arm",
    )


def _riscv(bits: int, arch: str, abi: str) -> Build:
    return Build(
        "riscv64-unknown-elf-gcc",
        f"-march={arch} -mabi={abi} -mcmodel=medany",
        f"qemu-riscv{bits}",
        "",
        "gcc-riscv64-unknown-elf qemu-user",
    )


BUILDS: dict[str, Build] = {
    "cortex-m4f": _cortex_m("cortex-m4", "fpv4-sp-d16", "mps2-an386"),
    "cortex-m7": _cortex_m("cortex-m7", "fpv5-d16", "mps2-an500"),
    "aarch64": Build("aarch64-linux-gnu-gcc", "", "qemu-aarch64", "", "gcc-aarch64-linux-gnu qemu-user"),
    "rv32f": _riscv(32, "rv32imafc", "ilp32f"),
    "rv32": _riscv(32, "rv32gc", "ilp32d"),
    "rv64": _riscv(64, "rv64gc", "lp64d"),
}


def makefile(name: str, objects: Sequence[tuple[str, str]]) -> str:
    """The Makefile of a folder with one object per (processor, precision)."""
    lines = [
        "# make test: the test program of every processor whose cross compiler is found, built and run under QEMU.",
        f"FLAGS := {_COMMON}",
        "",
        f"test: {' '.join(f'test-{cpu}' for cpu, _ in objects)}",
        "",
    ]
    for cpu, dtype in objects:
        lines += [*_rule(name, cpu, dtype, BUILDS[cpu]), ""]
    builds = " ".join(f"test-{cpu}.elf" for cpu, _ in objects)
    phony = " ".join(f"test-{cpu}" for cpu, _ in objects)
    return "\n".join([*lines, "clean:", f"\trm -f {builds}", "", f".PHONY: test clean {phony}", ""])


def _rule(name: str, cpu: str, dtype: str, build: Build) -> list[str]:
    variable = cpu.upper().replace("-", "_")
    compiler, emulator, program = f"$(CC_{variable})", f"$(QEMU_{variable})", f"test-{cpu}.elf"
    inputs = f"{dtype}/test_{name}.c {dtype}/{name}_{cpu}.o harness/printf.c {build.sources}"
    run = " ".join(part for part in (emulator, build.run, f"./{program}") if part)
    compile = f"{compiler} $(FLAGS) {build.flags} -I{dtype} -Iharness -o {program} {inputs}"
    return [
        f"CC_{variable} ?= {build.compiler}",
        f"QEMU_{variable} ?= {build.emulator}",
        f"test-{cpu}:",
        f"\t@for tool in {compiler} {emulator}; do \\",
        '\tcommand -v $$tool >/dev/null || missing="$$missing $$tool"; done; \\',
        '\tif [ -n "$$missing" ]; then \\',
        f'\techo "{cpu}: not tested, missing:$$missing (Debian: {build.packages})"; else \\',
        f"\t{' '.join(compile.split())} && \\",
        f'\tprintf "{cpu} ({dtype}): " && {run}; fi',
    ]
