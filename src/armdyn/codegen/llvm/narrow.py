"""The program of single calls, one lane wide, where the same in every lane of a wide vector would take longer.

`single(in, out, context)` does what `body` does, with the same bits, on plain numbers: a long program then moves an
eighth of the memory. Sines are taken by the wide function `trig`, several angles in one vector.
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
    """The arithmetic of one configuration; `wide` is the number of lanes of the function `trig`."""

    wide: int = 1
    name: ClassVar[str] = "single"
    table: ClassVar[str] = "constants_single"

    def _sine_arrays(self, w: Writer, level: int, count: int) -> tuple[str, str]:
        """Arrays of whole wide vectors; the spare lanes of the last one are at zero."""
        vectors = -(-count // self.wide)
        angles = w.stack_array(f"angles{level}", vectors * self.wide, 8 * self.wide)
        for spare in range(count, vectors * self.wide):
            w.store(w.constant(0), angles, spare)
        return angles, w.stack_array(f"trig{level}", 2 * vectors * self.wide, 8 * self.wide)

    def _take_sines(self, w: Writer, angles: str, results: str, count: int) -> None:
        super()._take_sines(w, angles, results, -(-count // self.wide))

    def _sine_functions(self) -> str:
        return ""  # those of the wide program

    def _sines_wanted(self, angles: tuple[Node, ...], results: str) -> dict[int, Slot]:
        """Where sines and cosines will be: a vector of sines, a vector of cosines, and so on."""
        number = {angle.serial: k for k, angle in enumerate(angles)}
        found = {}
        for node in self.contracted.order:
            if node.op in TRIG and node.args[0].serial in number:
                vector, lane = divmod(number[node.args[0].serial], self.wide)
                found[node.serial] = Slot(results, (2 * vector + TRIG.index(node.op)) * self.wide + lane)
        return found
