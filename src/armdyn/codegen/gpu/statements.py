"""The statements of a program for a device: loads, one operation each, stores, in an order with few live values."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from armdyn.codegen.gpu.trig import literal
from armdyn.errors import InputError
from armdyn.graph.node import Node
from armdyn.graph.program import Port, Program

INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
TRIG = ("sin", "cos")


@dataclass(frozen=True)
class KernelLanguage:
    """How a language writes what differs: declarations, functions, loads and stores.

    `declare` takes {name} and {value}; `load` and `store` the port's {port} and the {entry}, `store` also {value};
    `pair` is the declaration of the sine and cosine of {angle}, whose parts are {name}`sine` and {name}`cosine`.
    """

    declare: str
    pair: str
    sine: str
    cosine: str
    load: str
    store: str
    functions: Mapping[str, str]  # sqrt, sign, positive; with {}


def statements(program: Program, language: KernelLanguage, order: tuple[Node, ...]) -> Iterator[str]:
    """The lines of a program in an order of its nodes.

    Inputs are loaded where the order has them, outputs are stored as soon as they are known.
    """
    entry = {node.serial: (port, k) for port in program.inputs for k, node in enumerate(port.nodes)}
    stores: dict[int, list[tuple[Port, int]]] = {}
    for port in program.outputs:
        for k, node in enumerate(port.nodes):
            stores.setdefault(node.serial, []).append((port, k))
    text: dict[int, str] = {}
    pairs: dict[int, str] = {}
    for node in order:
        name = f"t{node.serial}"
        if node.op == "const":
            text[node.serial] = constant(program, node)
        elif node.op == "input":
            port, k = entry[node.serial]
            text[node.serial] = name
            yield language.declare.format(name=name, value=language.load.format(port=port.name, entry=k))
        elif node.op in TRIG:
            angle = node.args[0]
            if angle.serial not in pairs:
                pairs[angle.serial] = pair = f"a{angle.serial}"
                yield language.pair.format(name=pair, angle=text[angle.serial])
            part = language.sine if node.op == "sin" else language.cosine
            text[node.serial] = pairs[angle.serial] + part
        elif node.op == "neg":
            text[node.serial] = f"(-{text[node.args[0].serial]})"
        else:
            yield language.declare.format(name=name, value=_expression(node, text, language))
            text[node.serial] = name
        for port, k in stores.get(node.serial, ()):
            yield language.store.format(port=port.name, entry=k, value=text[node.serial])


def _expression(node: Node, text: Mapping[int, str], language: KernelLanguage) -> str:
    if node.op in INFIX:
        left, right = (text[argument.serial] for argument in node.args)
        return f"{left} {INFIX[node.op]} {right}"
    return language.functions[node.op].replace("{}", text[node.args[0].serial])


def constant(program: Program, node: Node) -> str:
    """A constant in single precision; one that is too large for it is refused, since it would be infinite."""
    value = float(node.value)
    with np.errstate(over="ignore"):
        single = float(np.float32(value))
    if math.isinf(single):
        raise InputError(f"{program.name}: the constant {value:g} is beyond the range of single precision (3.4e38)")
    return literal(value) if value >= 0 else f"({literal(value)})"
