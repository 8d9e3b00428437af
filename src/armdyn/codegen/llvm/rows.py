"""From rows to rows: a loop over blocks that transposes in registers and never through memory.

`rows_to_rows(in0, …, out0, …, count, prefetching)` computes up to `count` blocks of contiguous arrays. It stops before
a block with an angle that may be too large for the polynomials, and returns how many blocks it has done. Uniform inputs
are passed as one vector per number, broadcast to all lanes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from typing import Any

from armdyn.codegen import tuning
from armdyn.codegen.llvm.ir import Writer, function, prefetch
from armdyn.codegen.llvm.straight_line import ancestors, trig_layers
from armdyn.codegen.llvm.trig import LIMIT, all_below
from armdyn.graph.node import Node
from armdyn.graph.program import Program


def input_limits(program: Program) -> dict[int, float] | None:
    """A bound on the magnitude of each input that keeps all angles within `LIMIT`; None if none is found.

    If all angles are inputs, the bound is `LIMIT` itself. Otherwise half of it is tried, which leaves room for the
    other terms of an angle.
    """
    angles = [angle for layer in trig_layers(program) for angle in layer]
    limit = LIMIT if all(angle.op == "input" for angle in angles) else LIMIT / 2
    if any(_magnitude(angle, limit) > LIMIT for angle in angles):
        return None
    found = {node.serial for angle in angles for node in ancestors(angle)}
    inputs = enumerate(program.inputs)
    return {index: limit for index, port in inputs if found & {node.serial for node in port.nodes}}


def _magnitude(node: Node, largest: float) -> float:
    """A bound on |node| if no input is larger than `largest`."""
    bounds: dict[int, float] = {}
    for one in ancestors(node):
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


def rows_loop(
    program: Program,
    lanes: int,
    uniform: Collection[int],
    limits: dict[int, float],
    write_block: Callable[[Writer], Any],
) -> str:
    """LLVM IR of `rows_to_rows`; `write_block` writes the code of one block, from `%in0`, … to `%out0`, …."""
    steps = {f"in{k}": 0 if k in uniform else len(port.nodes) for k, port in enumerate(program.inputs)}
    results = {f"out{k}": len(port.nodes) for k, port in enumerate(program.outputs)}
    steps |= results
    w = Writer(lanes)
    w.label("entry")
    w.do("br label %block")
    w.label("block")
    w.do("%done = phi i64 [0, %entry], [%next, %compute]")
    for array in steps:
        w.do(f"%{array} = phi ptr [%first_{array}, %entry], [%next_{array}, %compute]")
    within = "true"
    for index, limit in limits.items():
        within = w.let(f"and i1 {within}, {all_below(w, f'%in{index}', len(program.inputs[index].nodes), limit)}")
    w.do(f"br i1 {within}, label %within, label %end, !prof !2")
    w.label("within")
    w.do("br i1 %prefetching, label %prefetch, label %compute")
    w.label("prefetch")
    for array, size in results.items():
        prefetch(w, w.at(f"%{array}", tuning.PREFETCH_DISTANCE * 8 * lanes * size), 8 * lanes * size)
    w.do("br label %compute")
    w.label("compute")
    write_block(w)
    for array, size in steps.items():
        w.do(f"%next_{array} = getelementptr i8, ptr %{array}, i64 {8 * lanes * size}")
    w.do("%next = add i64 %done, 1")
    w.do(f"br i1 {w.let('icmp ult i64 %next, %count')}, label %block, label %end")
    w.label("end")
    w.do("%blocks = phi i64 [%done, %block], [%next, %compute]")
    w.do("ret i64 %blocks")
    firsts = "".join(f"ptr %first_{array}, " for array in steps)
    head = f"internal i64 @rows_to_rows({firsts}i64 %count, i1 %prefetching) noinline"
    return "".join(w.tables) + function(head, w.lines)
