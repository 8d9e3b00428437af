"""Programs as text: the common part of the C and NumPy backends.

A node that is used once is written into the expression that uses it, as long as that stays readable; other nodes get a
name. Parentheses preserve the graph's order of operations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from armdyn.graph import Node, Program

WIDEST = 90  # characters of an expression before its parts get names
_PRECEDENCE = {"add": 1, "sub": 1, "mul": 2, "div": 2, "neg": 3}
_BINARY = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
_ATOM = 4


@dataclass(frozen=True)
class Language:
    """How a language writes a constant, an entry of an input and each unary function."""

    constant: Callable[[float], str]
    entry: Callable[[str, int], str]
    functions: Mapping[str, str]  # op -> template with {}


@dataclass(frozen=True)
class Text:
    """A program's assignments in order, and the expression of every output entry."""

    assignments: tuple[tuple[str, str], ...]
    outputs: tuple[tuple[str, ...], ...]


def write(program: Program, language: Language) -> Text:
    """Write a program in a language."""
    entries = {
        node.serial: language.entry(port.name, k) for port in program.inputs for k, node in enumerate(port.nodes)
    }
    # A negation is written into the expression that uses it, so its argument counts as used there.
    uses: Counter[int] = Counter(arg.serial for node in program.order for arg in node.args)
    uses.update(node.serial for port in program.outputs for node in port.nodes)
    texts: dict[int, tuple[str, int]] = {}
    assignments: list[tuple[str, str]] = []
    for node in program.order:
        if node.op == "input":
            texts[node.serial] = (entries[node.serial], _ATOM)
            continue
        text, precedence = _expression(node, texts, language)
        cheap = node.op in ("const", "neg")
        if not cheap and (uses[node.serial] > 1 or len(text) > WIDEST or node.op in language.functions):
            name = f"t{len(assignments)}"
            assignments.append((name, text))
            text, precedence = name, _ATOM
        texts[node.serial] = (text, precedence)
    outputs = tuple(tuple(texts[node.serial][0] for node in port.nodes) for port in program.outputs)
    return Text(tuple(assignments), outputs)


def _expression(node: Node, texts: Mapping[int, tuple[str, int]], language: Language) -> tuple[str, int]:
    if node.op == "const":
        text = language.constant(float(node.value))
        return text, 3 if text.startswith("-") else _ATOM
    own = _PRECEDENCE.get(node.op, _ATOM)
    if node.op in _BINARY:
        left, right = (texts[arg.serial] for arg in node.args)
        a = left[0] if left[1] >= own else f"({left[0]})"
        b = right[0] if own < right[1] != 3 else f"({right[0]})"
        return f"{a} {_BINARY[node.op]} {b}", own
    text, precedence = texts[node.args[0].serial]
    if node.op == "neg":
        return (f"-{text}" if precedence == _ATOM else f"-({text})"), own
    return language.functions[node.op].replace("{}", text), _ATOM
