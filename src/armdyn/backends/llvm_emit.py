"""Program -> LLVM assembly: the arithmetic of one block, a lane a configuration.

`body(in, out, context)` reads one vector an input number and writes one vector a distinct output
number. Angles come first: they are laid side by side, one loop takes their sines and cosines, and
the rest is straight-line code without a branch. Packing arrays into vectors and back is
`llvm_block`'s business.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from armdyn.backends.contract import contract
from armdyn.backends.llvm_text import Writer, function, splat
from armdyn.backends.llvm_trig import fused, trig_loop
from armdyn.graph.node import Node
from armdyn.graph.program import Program

TRIG = ("sin", "cos")


def _sign(w: Writer, x: str) -> str:
    """-1 or 1 where x is not zero; zero and NaN stay what they are."""
    v, lanes = w.vector, w.lanes
    up = w.let(f"fcmp ogt {v} {x}, zeroinitializer")
    down = w.let(f"fcmp olt {v} {x}, zeroinitializer")
    value = w.let(f"select <{lanes} x i1> {up}, {v} {w.constant(1)}, {v} {x}")
    return w.let(f"select <{lanes} x i1> {down}, {v} {w.constant(-1)}, {v} {value}")


def _positive(w: Writer, x: str) -> str:
    """1 where x is positive, NaN elsewhere."""
    up = w.let(f"fcmp ogt {w.vector} {x}, zeroinitializer")
    return w.let(f"select <{w.lanes} x i1> {up}, {w.vector} {w.constant(1)}, {w.vector} {w.constant(math.nan)}")


# One entry an operation: (writer, fused multiply-add in hardware, arguments) -> name of the result.
EMIT: dict[str, Callable[..., str]] = {
    "add": lambda w, fma, a, b: w.let(f"fadd {w.vector} {a}, {b}"),
    "sub": lambda w, fma, a, b: w.let(f"fsub {w.vector} {a}, {b}"),
    "mul": lambda w, fma, a, b: w.let(f"fmul {w.vector} {a}, {b}"),
    "div": lambda w, fma, a, b: w.let(f"fdiv {w.vector} {a}, {b}"),
    "neg": lambda w, fma, a: w.let(f"fneg {w.vector} {a}"),
    "fma": fused,
    "sqrt": lambda w, fma, a: w.let(f"call {w.vector} @llvm.sqrt.v{w.lanes}f64({w.vector} {a})"),
    "sign": lambda w, fma, a: _sign(w, a),
    "positive": lambda w, fma, a: _positive(w, a),
}


@dataclass
class Body:
    """A program cut for emission: contracted, ordered, each distinct output in a slot of its own."""

    program: Program
    lanes: int
    fma: bool

    @cached_property
    def contracted(self) -> Program:
        """The program with its fused multiply–adds."""
        return contract(self.program)

    @cached_property
    def slots(self) -> dict[int, int]:
        """Serial number of an output node -> its slot; entries that are one node share it."""
        outputs = [node.serial for port in self.contracted.outputs for node in port.nodes]
        return {serial: slot for slot, serial in enumerate(dict.fromkeys(outputs))}

    @cached_property
    def layers(self) -> tuple[tuple[Node, ...], ...]:
        """What sines and cosines are taken of: first angles free of sines and cosines, then those made of them."""
        depth: dict[int, int] = {}
        layers: dict[int, dict[int, Node]] = {}
        for node in self.contracted.order:
            depth[node.serial] = max((depth[a.serial] for a in node.args), default=0)
            if node.op in TRIG:
                layers.setdefault(depth[node.serial], {})[node.args[0].serial] = node.args[0]
                depth[node.serial] += 1
        return tuple(tuple(layers[level].values()) for level in sorted(layers))

    @cached_property
    def constants(self) -> dict[Fraction, int]:
        """Every constant with its place in a table of vectors.

        From there an instruction takes it as its operand; LLVM's own choice for a constant in every lane
        is an instruction apart that fills a register.
        """
        values = [node.value for node in self.contracted.order if node.op == "const"]
        return {value: place for place, value in enumerate(dict.fromkeys(values))}

    def text(self) -> str:
        """The functions `trig` and `body`, and the table of constants."""
        w = Writer(self.lanes)
        w.label("entry")
        names: dict[int, str] = {}
        slot = 0
        for port in self.contracted.inputs:
            for node in port.nodes:
                names[node.serial] = f"in {slot}"
                slot += 1
        users = {(node.op, node.args[0].serial): node.serial for node in self.contracted.order if node.op in TRIG}
        for level, angles in enumerate(self.layers):
            self._trig(w, names, level, angles, users)
        if self.by_hand:
            return self._straight(w, names)
        for node in self.contracted.order:
            self._value(w, node, names)
            if node.serial in self.slots:
                w.store(names[node.serial], "%out", self.slots[node.serial])
        w.do("ret void")
        head = "internal void @body(ptr noalias %in, ptr noalias %out, ptr %context) noinline"
        trig = trig_loop(self.lanes, self.fma) if self.layers else ""
        return self._table(w) + trig + function(head, w.lines)

    by_hand = True
    def _straight(self, w, names):
        from armdyn.backends import x86
        homes={serial:(name.split()[0],int(name.split()[1])) for serial,name in names.items() if " " in name}
        for port in self.contracted.inputs:
            for node in port.nodes: pass
        slot=0
        for port in self.contracted.inputs:
            for node in port.nodes:
                homes[node.serial]=("in",slot); slot+=1
        low=x86.Lowering(self.contracted.order, homes, self.slots)
        alloc=x86.Allocator(low.instructions, low.homes, self.slots)
        windows=x86.addresses(alloc.lines)
        lines=x86.text(alloc.lines, windows)
        rows = ", ".join(f"{w.vector} {splat('double', value, self.lanes)}" for value in low.constants)
        table = f"@constants = internal constant [{len(low.constants)} x {w.vector}] [{rows}], align {8 * w.lanes}\n"
        w.scratch("spill", alloc.slots)
        pointers=[]
        for array, window in windows:
            pointers.append("ptr "+w.at("@constants" if array=="constants" else f"%{array}", x86.BYTES*(x86.WINDOW*window)+x86.BYTES*x86.WINDOW//2))
        body="\\0A".join(lines)
        constraints=",".join(["r"]*len(windows)+[f"~{{ymm{k}}}" for k in range(16)]+["~{memory}"])
        w.do(f'call void asm sideeffect "{body}", "{constraints}"({", ".join(pointers)})')
        w.do("ret void")
        head = "internal void @body(ptr noalias %in, ptr noalias %out, ptr %context) noinline"
        trig = trig_loop(self.lanes, self.fma) if self.layers else ""
        self.alloc=lambda: alloc
        return table + trig + function(head, w.lines)

    def _table(self, w: Writer) -> str:
        rows = ", ".join(f"{w.vector} {w.constant(value)}" for value in self.constants)
        kind = f"[{len(self.constants)} x {w.vector}]"
        return f"@constants = internal constant {kind} [{rows}], align {8 * w.lanes}\n"

    def _trig(
        self,
        w: Writer,
        names: dict[int, str],
        level: int,
        angles: tuple[Node, ...],
        users: dict[tuple[str, int], int],
    ) -> None:
        """Lay angles side by side and take their sines and cosines."""
        angles_at = w.scratch(f"angles{level}", len(angles))
        trig_at = w.scratch(f"trig{level}", 2 * len(angles))
        for place, angle in enumerate(angles):
            for node in _needed(angle):
                self._value(w, node, names)
            w.store(names[angle.serial], angles_at, place)
            for which, op in enumerate(TRIG):
                if (op, angle.serial) in users:
                    names[users[op, angle.serial]] = f"{trig_at[1:]} {2 * place + which}"
        w.do(f"call void @trig(ptr {angles_at}, ptr {trig_at}, i64 {len(angles)}, ptr %context)")

    def _value(self, w: Writer, node: Node, names: dict[int, str]) -> None:
        """Write one node; inputs, sines and cosines are loaded where they are first needed."""
        name = names.get(node.serial)
        if node.op == "const":
            names[node.serial] = w.constant(node.value)
        elif name is None:
            names[node.serial] = EMIT[node.op](w, self.fma, *(self._operand(w, a, names) for a in node.args))
        elif " " in name:
            array, slot = name.split()
            names[node.serial] = w.load(f"%{array}", int(slot))

    def _operand(self, w: Writer, node: Node, names: dict[int, str]) -> str:
        return w.load("@constants", self.constants[node.value]) if node.op == "const" else names[node.serial]


def _needed(node: Node) -> list[Node]:
    """A node and everything it is made of, arguments first."""
    done: dict[int, Node] = {}
    stack = [node]
    while stack:
        last = stack[-1]
        missing = [a for a in last.args if a.serial not in done]
        if missing:
            stack.extend(missing)
        else:
            done[stack.pop().serial] = last
    return list(done.values())
