"""Straight-line code for x86 processors with AVX2 and fused multiply–adds, as inline assembly in LLVM functions.

Calling conventions, object files and everything around the arithmetic are left to LLVM.
"""

from __future__ import annotations

from armdyn.codegen import tuning
from armdyn.codegen.avx2.allocate import BYTES, Memory
from armdyn.codegen.avx2.assembly import ADDRESS_REGISTERS, WINDOW, InlineAssembly
from armdyn.codegen.avx2.select import block_code, rows_code, sine_code
from armdyn.codegen.llvm.ir import Slot, Writer
from armdyn.codegen.llvm.rows import input_limits, rows_loop
from armdyn.codegen.llvm.straight_line import Emitter, RowsToRows, StraightLine, ancestors
from armdyn.codegen.llvm.trig import trig_far
from armdyn.graph.node import Node

MOST_ARRAYS = len(ADDRESS_REGISTERS) - 2  # besides constants and spill slots


class Avx2Code(StraightLine):
    """The arithmetic of a block as AVX2 instructions; no angle may depend on another angle's sine or cosine."""

    def _write(self, w: Writer) -> str:
        locations = dict(self.inputs)
        for angles in self.trig_layers:
            locations |= self._sines(w, angles)
        memory = {value: _memory(slot) for value, slot in locations.items()}
        outputs = {value: Memory("out", BYTES * slot) for value, slot in self.slots.items()}
        _inline(w, block_code(self.contracted.order, memory, outputs), "body")
        return trig_far(self.lanes) if self.trig_layers else ""

    def _sines(self, w: Writer, angles: tuple[Node, ...]) -> dict[int, Slot]:
        """Write the sines and cosines of angles (C library for lanes beyond the limit); returns their locations."""
        angles_at = w.stack_array("angles0", len(angles))
        results = w.stack_array("trig0", 2 * len(angles))
        emit = Emitter(w, self.target.fma, self.inputs, lambda node: w.constant(node.value))
        places = []
        for number, angle in enumerate(angles):
            location = emit.locations.get(angle.serial)
            if not isinstance(location, Slot):  # an input is read in place
                for node in ancestors(angle):
                    emit.value(node)
                location = Slot(angles_at, number)
                w.store(emit.value(angle), *location)
            places.append(location)
        beyond_at = w.stack_array("beyond", 1)
        code = sine_code([_memory(place) for place in places], results[1:], Memory("beyond", 0))
        _inline(w, code, "sines")
        beyond = w.let(f"load i{64 * w.lanes}, ptr {beyond_at}")
        w.do(f"br i1 {w.let(f'icmp ne i{64 * w.lanes} {beyond}, 0')}, label %far, label %near, !prof !0")
        w.label("far")
        for number, (array, slot) in enumerate(places):
            result = w.at(results, 2 * BYTES * number)
            w.do(f"call void @trig_far(ptr {w.at(array, BYTES * slot)}, ptr {result}, ptr %context)")
        w.do("br label %near")
        w.label("near")
        return self._sines_wanted(angles, results)

    def rows_to_rows(self) -> RowsToRows | None:
        """Code from rows to rows, for short programs whose arrays all have at least as many numbers as lanes."""
        program = self.contracted
        ports = (*program.inputs, *program.outputs)
        rows = [port for index, port in enumerate(ports) if index not in self.uniform]
        short = len(self.slots) <= tuning.MOST_RESULTS_SCHEDULED and len(program.order) <= tuning.LONGEST_ROWS_TO_ROWS
        if not short or len(ports) > MOST_ARRAYS or min(len(port.nodes) for port in rows) < self.lanes:
            return None
        limits = input_limits(program)
        if limits is None:
            return None
        code = rows_code(program, self.uniform)
        text = rows_loop(program, self.lanes, self.uniform, limits, lambda w: _inline(w, code, "rows"))
        return RowsToRows(text, self.uniform)


def _memory(slot: Slot) -> Memory:
    return Memory(slot.array.removeprefix("%"), BYTES * slot.number)


def _inline(w: Writer, code: InlineAssembly, name: str) -> None:
    """Write a piece of inline assembly, with its constants and its spill slots."""
    w.stack_array(f"spill_{name}", code.spill_slots)
    w.constant_table(f"constants_{name}", code.constants)
    arrays = {"constants": f"@constants_{name}", "spill": f"%spill_{name}"}
    pointers = []
    for array, number in code.windows:
        middle = WINDOW * number + WINDOW // 2
        pointers.append("ptr " + w.at(arrays.get(array, f"%{array}"), middle))
    w.do(f'call void asm sideeffect "{code.text}", "{code.constraints}"({", ".join(pointers)})')
