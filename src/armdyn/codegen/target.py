"""The processor that a kernel is compiled for, and its vector width."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from armdyn.codegen.llvm.ir import VectorType
from armdyn.errors import ComputationError

LLVM_LOCK = threading.RLock()  # held around every entry to llvmlite, and across a fork

# Doubles per vector register, widest first: (CPU feature, lanes).
WIDTHS = (("avx512f", 8), ("avx", 4), ("neon", 2), ("sse2", 2))


@dataclass(frozen=True)
class Target:
    """A processor: LLVM's name for it, its features, its vector width and whether it fuses multiply–adds."""

    triple: str
    cpu: str
    features: str
    lanes: int
    fma: bool
    number: str = "double"  # of which a register holds so many: "double" or "float"

    @property
    def x86(self) -> bool:
        """Whether this is a 64-bit x86 processor."""
        return self.triple.startswith(("x86_64", "amd64"))

    @property
    def avx2(self) -> bool:
        """Whether it has AVX2 and fused multiply–adds, but no wider vectors (AVX-512)."""
        return self.x86 and self.fma and self.vector == VectorType(4) and "+avx2" in self.features.split(",")

    @property
    def vector(self) -> VectorType:
        """The type of a vector register."""
        return VectorType(self.lanes, self.number)

    @property
    def widest(self) -> bool:
        """Whether vectors have 64 bytes, as with AVX-512."""
        return self.lanes * self.vector.size == 64

    def of(self, number: str) -> Target:
        """The same processor for programs of "double" or "float"."""
        size = self.vector.size * self.lanes
        return replace(self, lanes=size // VectorType(1, number).size, number=number)

    def machine(self, level: int = 2) -> Any:
        """LLVM's target machine; `level` is the optimisation level of its code generator.

        Position-independent code of the small code model addresses its constants relative to the program counter;
        LLVM's default for JIT code loads a 64-bit address for each.
        """
        llvm = binding()
        target = llvm.Target.from_triple(self.triple)
        return target.create_target_machine(
            cpu=self.cpu, features=self.features, opt=level, reloc="pic", codemodel="small", jit=True
        )


@lru_cache(maxsize=1)
def binding() -> Any:
    """`llvmlite.binding`, initialised for this machine on first use.

    It is imported under the lock: if another thread forked meanwhile, the import would stay locked in the child.
    """
    with LLVM_LOCK:
        try:
            import llvmlite.binding as llvm
        except (ImportError, OSError) as error:
            raise ComputationError(f"the llvm backend needs llvmlite ({error}); backend='numpy' does not") from error
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        llvm.initialize_native_asmparser()
    return llvm


@lru_cache(maxsize=1)
def host() -> Target:
    """The processor armdyn runs on."""
    llvm = binding()
    with LLVM_LOCK:
        features = llvm.get_host_cpu_features()
        triple, cpu = llvm.get_process_triple(), llvm.get_host_cpu_name()
    arm64 = triple.startswith(("aarch64", "arm64"))
    on = {name for name, present in features.items() if present} | ({"neon", "fma"} if arm64 else set())
    lanes = next((width for feature, width in WIDTHS if feature in on), 2)
    return Target(triple, cpu, features.flatten(), lanes, "fma" in on)


@lru_cache(maxsize=1)
def baseline() -> Target:
    """The baseline 64-bit x86 processor: two lanes, no fused multiply–add. For tests."""
    return Target(host().triple, "x86-64", "", 2, False)


@lru_cache(maxsize=1)
def avx2() -> Target | None:
    """The host restricted to AVX2, or None if it lacks AVX2 or fused multiply–adds. For tests and benchmarks."""
    target = host()
    if not target.x86 or not {"+avx2", "+fma"} <= set(target.features.split(",")):
        return None
    return Target(target.triple, "haswell", "+avx,+avx2,+fma", 4, True)


# If one thread forked while another compiled, llvmlite's own lock would stay held for ever in the child.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=LLVM_LOCK.acquire, after_in_parent=LLVM_LOCK.release, after_in_child=LLVM_LOCK.release)
