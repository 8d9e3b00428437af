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

from armdyn.codegen import x86
from armdyn.codegen.contract import contract
from armdyn.codegen.llvm_block import ask
from armdyn.codegen.llvm_text import Writer, double, function
from armdyn.codegen.llvm_trig import LIMIT, TRIG, below, fused, trig_far, trig_loop
from armdyn.codegen.registers import BYTES, Place
from armdyn.codegen.target import Target
from armdyn.graph.node import Node
from armdyn.graph.program import Program

AHEAD = 2  # blocks from one whose results are asked for to the one in hand
SHARED = "parameters"  # an input of this name is one for a batch, where it counts
LONGEST_WHOLE = 1600  # nodes; beside more arithmetic the rows take little


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


@dataclass(frozen=True)
class Body:
    """A program cut for emission: contracted, ordered, each distinct output in a slot of its own."""

    program: Program
    target: Target

    @property
    def lanes(self) -> int:
        """Configurations a vector."""
        return self.target.lanes

    @property
    def fma(self) -> bool:
        """Does the processor fuse multiply–adds."""
        return self.target.fma

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
        homes = dict(names)
        for level, angles in enumerate(self.layers):
            homes.update(self._trig(w, names, level, angles))
        if self.by_hand:
            self._straight(w, homes)
        else:
            self._by_llvm(w, names)
        w.do("ret void")
        head = "internal void @body(ptr noalias %in, ptr noalias %out, ptr %context) noinline"
        trig = trig_far(self.lanes) if self.layers else ""
        trig += trig_loop(self.lanes, self.fma) if self.layers and not self.by_hand else ""
        return "".join(w.tables) + trig + function(head, w.lines)

    @property
    def by_hand(self) -> bool:
        """Can the code be `x86.straight`; angles made of other angles' sines are left to LLVM."""
        able = self.target.x86 and self.target.fma and "+avx2" in self.target.features.split(",")
        return able and self.lanes == x86.LANES and len(self.layers) <= 1

    @cached_property
    def near(self) -> dict[int, float] | None:
        """How large the numbers of an input may be for all angles to lie within `LIMIT`; None: there is no `whole`.

        An angle that is an input may be as large as the limit. One that is made of inputs has room for what
        is added, or it is not known to be within.
        """
        ports = (*self.contracted.inputs, *self.contracted.outputs)
        few = len(ports) <= x86.MOST_ARRAYS and len(self.slots) <= x86.NARROW
        if not (self.by_hand and few and len(self.contracted.order) <= LONGEST_WHOLE):
            return None
        if min(len(port.nodes) for port in ports if port.name != SHARED) < self.lanes:
            return None
        angles = [angle for layer in self.layers for angle in layer]
        limit = LIMIT if all(angle.op == "input" for angle in angles) else LIMIT / 2
        if any(_magnitude(angle, limit) > LIMIT for angle in angles):
            return None
        found = {node.serial for angle in angles for node in _needed(angle)}
        inputs = enumerate(self.contracted.inputs)
        return {index: limit for index, port in inputs if found & {node.serial for node in port.nodes}}

    @property
    def shared(self) -> tuple[int, ...]:
        """The inputs that `whole` takes to be the same for all configurations."""
        return tuple(index for index, port in enumerate(self.contracted.inputs) if port.name == SHARED)

    def whole(self) -> str:
        """`whole(in0, …, out0, …, count, ahead)`: blocks from rows to rows, up to one with too large a number."""
        if self.near is None:
            return ""
        code = x86.whole(self.contracted, self.shared)
        ports = {f"in{k}": port for k, port in enumerate(self.contracted.inputs)}
        ports |= {f"out{k}": port for k, port in enumerate(self.contracted.outputs)}
        w = Writer(self.lanes)
        w.label("entry")
        w.do("br label %block")
        w.label("block")
        w.do("%done = phi i64 [0, %entry], [%next, %asked]")
        for array in ports:
            w.do(f"%{array} = phi ptr [%first_{array}, %entry], [%next_{array}, %asked]")
        near = "true"
        for index, largest in self.near.items():
            found = below(w, f"%in{index}", len(self.contracted.inputs[index].nodes), largest)
            near = w.let(f"and i1 {near}, {found}")
        w.do(f"br i1 {near}, label %near, label %end, !prof !2")
        w.label("near")
        w.do("br i1 %ahead, label %ask, label %asked")
        w.label("ask")
        for array, size in ((array, BYTES * len(port.nodes)) for array, port in ports.items() if array[:3] == "out"):
            ask(w, w.at(f"%{array}", AHEAD * size), size)
        w.do("br label %asked")
        w.label("asked")
        _inline(w, code, "whole")
        for array, port in ports.items():
            further = 0 if port.name == SHARED else BYTES * len(port.nodes)
            w.do(f"%next_{array} = getelementptr i8, ptr %{array}, i64 {further}")
        w.do("%next = add i64 %done, 1")
        w.do(f"br i1 {w.let('icmp ult i64 %next, %count')}, label %block, label %end")
        w.label("end")
        w.do("%blocks = phi i64 [%done, %block], [%next, %asked]")
        w.do("ret i64 %blocks")
        firsts = "".join(f"ptr %first_{array}, " for array in ports)
        return "".join(w.tables) + function(f"internal i64 @whole({firsts}i64 %count, i1 %ahead) noinline", w.lines)

    def _by_llvm(self, w: Writer, names: dict[int, str]) -> None:
        """The arithmetic, its registers and order left to LLVM."""
        for node in self.contracted.order:
            self._value(w, node, names)
            if node.serial in self.slots:
                w.store(names[node.serial], "%out", self.slots[node.serial])
        w.table("constants", [double(value) for value in self.constants])

    def _straight(self, w: Writer, homes: dict[int, str]) -> None:
        """The arithmetic as inline assembly."""
        outputs = {serial: ("out", BYTES * slot) for serial, slot in self.slots.items()}
        code = x86.straight(self.contracted.order, {node: _place(home) for node, home in homes.items()}, outputs)
        _inline(w, code, "body")

    def _trig(self, w: Writer, names: dict[int, str], level: int, angles: tuple[Node, ...]) -> dict[int, str]:
        """Take the sines and cosines of angles; where those are."""
        angles_at = w.scratch(f"angles{level}", len(angles))
        trig_at = w.scratch(f"trig{level}", 2 * len(angles))
        homes = {}
        users = {(node.op, node.args[0].serial): node.serial for node in self.contracted.order if node.op in TRIG}
        places = []
        for number, angle in enumerate(angles):
            places.append(names.get(angle.serial, ""))
            if not (self.by_hand and " " in places[-1]):  # an input can be taken where it is
                for node in _needed(angle):
                    self._value(w, node, names)
                w.store(names[angle.serial], angles_at, number)
                places[-1] = f"{angles_at[1:]} {number}"
            for which, op in enumerate(TRIG):
                if (op, angle.serial) in users:
                    homes[users[op, angle.serial]] = f"{trig_at[1:]} {2 * number + which}"
        if self.by_hand:
            _sines(w, [_place(place) for place in places], trig_at)
        else:
            w.do(f"call void @trig(ptr {angles_at}, ptr {trig_at}, i64 {len(angles)}, ptr %context)")
        names.update(homes)
        return homes

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
        if node.op != "const":
            return names[node.serial]
        # by hand the table is not LLVM's, and what is left to LLVM is the little that angles need
        return w.constant(node.value) if self.by_hand else w.load("@constants", self.constants[node.value])


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


def _magnitude(node: Node, largest: float) -> float:
    """A bound on |node| where no input is larger than `largest`."""
    bounds: dict[int, float] = {}
    for one in _needed(node):
        parts = [bounds[a.serial] for a in one.args]
        if one.op in ("mul", "fma"):
            bounds[one.serial] = parts[0] * parts[1] + sum(parts[2:])
        elif one.op in ("add", "sub", "neg"):
            bounds[one.serial] = sum(parts)
        elif one.op == "const":
            bounds[one.serial] = abs(float(one.value))
        else:
            bounds[one.serial] = largest if one.op == "input" else math.inf
    return bounds[node.serial]


def _place(home: str) -> Place:
    """Where a number lies, from "array slot"."""
    array, slot = home.split()
    return array, BYTES * int(slot)


def _inline(w: Writer, code: x86.Straight, name: str) -> None:
    """A piece of assembly, with its constants and what it spills."""
    w.scratch(f"spill_{name}", code.spill_slots)
    w.table(f"constants_{name}", code.constants)
    arrays = {"constants": f"@constants_{name}", "spill": f"%spill_{name}"}
    pointers = []
    for array, number in code.windows:
        middle = x86.WINDOW * number + x86.WINDOW // 2
        pointers.append("ptr " + w.at(arrays.get(array, f"%{array}"), middle))
    w.do(f'call void asm sideeffect "{code.text}", "{code.constraints}"({", ".join(pointers)})')


def _sines(w: Writer, angles: list[Place], trig_at: str) -> None:
    """Sines and cosines of all angles; the C library is asked about lanes that are far off."""
    far_at = w.scratch("far", 1)
    _inline(w, x86.sines(angles, trig_at[1:], ("far", 0)), "sines")
    far = w.let(f"load i{64 * w.lanes}, ptr {far_at}")
    w.do(f"br i1 {w.let(f'icmp ne i{64 * w.lanes} {far}, 0')}, label %beyond, label %near, !prof !0")
    w.label("beyond")
    for number, (array, offset) in enumerate(angles):
        result = w.at(trig_at, 2 * BYTES * number)
        w.do(f"call void @trig_far(ptr {w.at(f'%{array}', offset)}, ptr {result}, ptr %context)")
    w.do("br label %near")
    w.label("near")
