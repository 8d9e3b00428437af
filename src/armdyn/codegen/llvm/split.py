"""Long straight-line code split into a sequence of short functions that pass values through memory.

LLVM's compile time grows faster than linearly with a function's length, and LLVM spills more values in longer
functions. A function loads a value of an earlier one at its first use, and stores a value that a later one needs where
it is computed: results at their final location, all other values in temporary slots, which are reused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from armdyn.codegen import tuning
from armdyn.codegen.llvm.ir import Slot, function
from armdyn.codegen.llvm.straight_line import Emitter
from armdyn.graph.node import Node


@dataclass(frozen=True)
class Parts:
    """LLVM IR of the functions, their names in order, and the number of temporary slots they share."""

    text: str
    names: tuple[str, ...]
    temporaries: int


def split(
    order: Sequence[Node],
    locations: dict[int, Slot],
    results: dict[int, Slot],
    arguments: str,
    emitter: Callable[[dict[int, Slot]], Emitter],
    name: str,
) -> Parts:
    """Split the nodes of `order` into functions `name_0`, `name_1`, … of `arguments`, which include `%temporaries`.

    `locations` gives the locations of values computed before, `results` those of the results; `emitter` makes the
    emitter of a function.
    """
    size = tuning.NODES_PER_FUNCTION
    parts = [order[start : start + size] for start in range(0, len(order), size)]
    last_use = _last_uses(parts)
    memory = Temporaries()
    known, texts, names = dict(locations), [], []
    for number, nodes in enumerate(parts):
        emit = emitter(known)
        emit.w.label("entry")
        for node in nodes:
            value = emit.value(node)
            if node.serial in results:
                known[node.serial] = results[node.serial]
            elif last_use.get(node.serial, number) > number:
                known[node.serial] = Slot("%temporaries", memory.take(until=last_use[node.serial]))
            else:
                continue
            emit.w.store(value, *known[node.serial])
        memory.release(number)
        emit.w.do("ret void")
        names.append(f"@{name}_{number}")
        texts.append(function(f"internal void {names[-1]}({arguments}) noinline", emit.w.lines))
    return Parts("".join(texts), tuple(names), memory.size)


def _last_uses(parts: Sequence[Sequence[Node]]) -> dict[int, int]:
    """The index of the last part that uses each node."""
    return {argument.serial: number for number, nodes in enumerate(parts) for node in nodes for argument in node.args}


class Temporaries:
    """Temporary slots, each reused after the last part that needs it."""

    def __init__(self) -> None:
        self.size = 0
        self._free: list[int] = []
        self._ends: dict[int, list[int]] = {}

    def take(self, until: int) -> int:
        """A slot reserved until the end of a part."""
        if self._free:
            slot = self._free.pop()
        else:
            slot, self.size = self.size, self.size + 1
        self._ends.setdefault(until, []).append(slot)
        return slot

    def release(self, part: int) -> None:
        """Free the slots that were reserved until this part."""
        self._free.extend(self._ends.pop(part, ()))
