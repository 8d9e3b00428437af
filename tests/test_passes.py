"""The passes of the compiler: their order, their counts, and that debug mode finds what a broken pass makes."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest

from armdyn.codegen import compile as compiler
from armdyn.codegen import registers, tuning
from armdyn.codegen.llvm import module, plain, straight_line
from armdyn.codegen.llvm.straight_line import check_slots
from armdyn.codegen.target import Target, binding
from armdyn.graph import passes
from armdyn.graph.passes import PASSES, MalformedError, compiler_pass
from armdyn.graph.program import Program, trace
from armdyn.graph.simplify import simplify

PLAIN = Target(binding().get_process_triple(), "x86-64", "", 2, False)
AVX2 = Target(binding().get_process_triple(), "haswell", "+avx,+avx2,+fma", 4, True)


def dense(size: int = 9) -> Program:
    """A program with many live values, sines, and factors to share."""

    def function(x):
        products = [x[i] * x[j] + x[(i + j) % size] * x[i] for i in range(size) for j in range(i)]
        total = sum(products)
        return [p * total - x[k % size].sin() for k, p in enumerate(products)]

    return trace("dense", function, {"x": (size,)}, [("y", (size * (size - 1) // 2,))])


@pytest.fixture
def debugging(monkeypatch):
    """Debug mode, and functions of ten nodes."""
    monkeypatch.setattr(passes, "DEBUG", True)
    monkeypatch.setattr(tuning, "LONGEST_FUNCTION", 20)
    monkeypatch.setattr(tuning, "NODES_PER_FUNCTION", 10)


def test_passes_run_in_the_order_of_the_table_and_say_what_they_made(debugging, capsys):
    program = simplify(dense())
    for target in (PLAIN, AVX2):
        compiler.object_code(program, target)
    said = re.findall(r"^armdyn (\w+): (.*\d.*)$", capsys.readouterr().err, flags=re.MULTILINE)
    order = list(dict.fromkeys(name for name, _ in said))
    assert sorted(order) == sorted(PASSES)
    at = [list(PASSES).index(name) for name, _ in said]
    first = at.index(list(PASSES).index("assemble"))
    for one in (at[: first + 1], at[first + 1 :]):  # the program for either target
        assert list(dict.fromkeys(one)) == sorted(set(one))


def test_without_debug_mode_nothing_is_said(capsys):
    compiler.object_code(dense(4), AVX2)
    assert capsys.readouterr().err == ""


def broken_contract(monkeypatch):
    monkeypatch.setattr(straight_line, "_minus", lambda graph, node: graph.raw("neg", (node, node)))
    return PLAIN, "after contract: .* neg takes 1 arguments"


def broken_split(monkeypatch):
    real = plain._last_uses
    monkeypatch.setattr(plain, "_last_uses", lambda parts: {k: max(n - 1, 0) for k, n in real(parts).items()})
    return PLAIN, "after split: function .* is not in its slot"


def broken_schedule(monkeypatch):
    monkeypatch.setattr(registers, "_dependencies", without_some(registers._dependencies))
    return AVX2, "after schedule: .* comes before the values"


def without_some(real):
    """Dependencies without those of the last instructions."""

    def dependencies(instructions):
        arguments, users = real(instructions)
        for k in range(len(instructions) // 2, len(instructions)):
            for argument in arguments[k]:
                users[argument] = [user for user in users[argument] if user != k]
            arguments[k] = []
        return arguments, users

    return dependencies


def broken_spills(monkeypatch):
    def always_the_first(self):
        self.spill_slots = 1
        return 0

    monkeypatch.setattr(registers.Allocation, "_take_spill_slot", always_the_first)
    return AVX2, "after allocate: "


def broken_operands(monkeypatch):
    real = registers.Allocation._encode

    def encode(self, one, locations, register):
        if "sub" in one.operation and not one.fused:
            a, b = one.arguments
            locations = {a: locations[b], b: locations[a]}
        real(self, one, locations, register)

    monkeypatch.setattr(registers.Allocation, "_encode", encode)
    return AVX2, "after allocate: .* takes the values"


@pytest.mark.parametrize("broken", [broken_contract, broken_split, broken_schedule, broken_spills, broken_operands])
def test_debug_mode_names_the_pass_that_is_broken(broken, debugging, monkeypatch):
    target, message = broken(monkeypatch)
    with pytest.raises(MalformedError, match=message):
        compiler.object_code(dense(), target)


def test_slots_are_checked_like_nodes():
    code = module.straight_line(dense(3), PLAIN)
    assert check_slots(code) is code
    first, second, *_ = code.slots
    for wrong in ({**code.slots, first: code.slots[second]}, {**code.slots, first: 99}, {first: 0}):
        with pytest.raises(MalformedError, match="are not slots for"):
            check_slots(SimpleNamespace(contracted=code.contracted, slots=wrong, inputs=code.inputs))
    same = dict.fromkeys(code.inputs, next(iter(code.inputs.values())))
    with pytest.raises(MalformedError, match="two inputs"):
        check_slots(SimpleNamespace(contracted=code.contracted, slots=code.slots, inputs=same))


def test_a_pass_that_the_table_does_not_have_is_refused():
    with pytest.raises(ValueError, match="unknown pass 'sharpen'; available: trace, simplify"):
        compiler_pass("sharpen", counts=str)
