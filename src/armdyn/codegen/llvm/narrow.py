"""Scalar code for single calls of long programs, where broadcasting to all lanes of a wide vector is slower.

`single(in, out, context)` computes what `body` computes, bitwise equal, on scalars: a long program then moves an eighth
of the memory. Sines and cosines come from the vector function `trig`, several angles per vector.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from armdyn.codegen.llvm.ir import Slot, Writer
from armdyn.codegen.llvm.plain import PlainCode
from armdyn.codegen.llvm.trig import TRIG
from armdyn.graph.node import Node


@dataclass(frozen=True)
class NarrowCode(PlainCode):
    """The scalar arithmetic of one configuration; `wide` is the number of lanes of the function `trig`."""

    wide: int = 1
    name: ClassVar[str] = "single"
    table: ClassVar[str] = "constants_single"

    def _sine_arrays(self, w: Writer, level: int, count: int) -> tuple[str, str]:
        """Arrays of whole wide vectors; the spare lanes of the last one are zero."""
        vectors = -(-count // self.wide)
        angles = w.stack_array(f"angles{level}", vectors * self.wide, 8 * self.wide)
        for spare in range(count, vectors * self.wide):
            w.store(w.constant(0), angles, spare)
        return angles, w.stack_array(f"trig{level}", 2 * vectors * self.wide, 8 * self.wide)

    def _take_sines(self, w: Writer, angles: str, results: str, count: int) -> None:
        super()._take_sines(w, angles, results, -(-count // self.wide))

    def _sine_functions(self) -> str:
        return ""  # the vector program defines them

    def _sines_wanted(self, angles: tuple[Node, ...], results: str) -> dict[int, Slot]:
        """The locations of the sines and cosines: a vector of sines, a vector of cosines, and so on."""
        number = {angle.serial: k for k, angle in enumerate(angles)}
        found = {}
        for node in self.contracted.order:
            if node.op in TRIG and node.args[0].serial in number:
                vector, lane = divmod(number[node.args[0].serial], self.wide)
                found[node.serial] = Slot(results, (2 * vector + TRIG.index(node.op)) * self.wide + lane)
        return found
