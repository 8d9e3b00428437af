"""Straight-line code in plain LLVM IR: order and registers are left to LLVM."""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property

from armdyn.codegen.llvm.ir import Writer, double
from armdyn.codegen.llvm.straight_line import Emitter, StraightLine, ancestors
from armdyn.codegen.llvm.trig import trig_far, trig_loop


class PlainCode(StraightLine):
    """The arithmetic of a block for any processor."""

    @cached_property
    def constants(self) -> dict[Fraction, int]:
        """Every constant with its place in a table of vectors.

        From there an instruction takes it as its operand; LLVM's own choice for a constant in every lane
        is a separate instruction that fills a register.
        """
        values = [node.value for node in self.contracted.order if node.op == "const"]
        return {value: place for place, value in enumerate(dict.fromkeys(values))}

    def _write(self, w: Writer) -> str:
        emit = Emitter(w, self.target.fma, self.inputs, lambda node: w.load("@constants", self.constants[node.value]))
        for level, angles in enumerate(self.trig_layers):
            angles_at = w.stack_array(f"angles{level}", len(angles))
            results = w.stack_array(f"trig{level}", 2 * len(angles))
            for number, angle in enumerate(angles):
                for node in ancestors(angle):
                    emit.value(node)
                w.store(emit.value(angle), angles_at, number)
            w.do(f"call void @trig(ptr {angles_at}, ptr {results}, i64 {len(angles)}, ptr %context)")
            emit.locations.update(self._sines_wanted(angles, results))
        for node in self.contracted.order:
            name = emit.value(node)
            if node.serial in self.slots:
                w.store(name, "%out", self.slots[node.serial])
        w.constant_table("constants", [double(value) for value in self.constants])
        return trig_far(self.lanes) + trig_loop(self.lanes, self.target.fma) if self.trig_layers else ""
