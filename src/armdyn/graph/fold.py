"""The folding rules: one per line, tried in order when an operation is made.

In front of each rule stand the operations of which one must be among the arguments for it to apply ("" if any will
do), so that `rules` tries only what can apply.

A rule takes the graph and the arguments (nodes; constants are const nodes) and returns a node, a
number, or None where it does not apply. Signs are pulled outwards (and are free), so that a sum
and its negative are one node. The rules assume finite arithmetic: 0·x is 0 also where x is NaN or
infinite, and the sign of zero is not kept (docs/adr/0002-operations-and-folds.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

Rule = Callable[..., Any]


def _is(a: Any, value: int) -> bool:
    found: bool = a.op == "const" and a.value == value
    return found


def _both(a: Any, b: Any) -> bool:
    found: bool = a.op == "const" and b.op == "const"
    return found


def _negative(a: Any) -> bool:
    found: bool = a.op == "neg" or (a.op == "const" and a.value.numerator < 0)
    return found


def _factor(a: Any) -> Any:
    """The constant c and the node x of a product c·x, or None."""
    if a.op != "mul":
        return None
    x, y = a.args
    return (x.value, y) if x.op == "const" else (y.value, x) if y.op == "const" else None


def _term(a: Any) -> Any:
    """The node x and the constant c of a sum x + c (x - c gives -c), or None; c - x is left alone."""
    if a.op not in ("add", "sub"):
        return None
    x, y = a.args
    if y.op == "const":
        return x, y.value if a.op == "add" else -y.value
    return (y, x.value) if x.op == "const" and a.op == "add" else None


def _scale(g: Any, a: Any, b: Any) -> Any:
    """c₁·(c₂·x) = (c₁c₂)·x: the outer product never costs more, the inner one may die."""
    if a.op != "const":
        a, b = b, a
    inner = _factor(b) if a.op == "const" else None
    return g.make("mul", a.value * inner[0], inner[1]) if inner else None


def _move(g: Any, a: Any, b: Any) -> Any:
    """(x + c₁) + c₂ = x + (c₁ + c₂)."""
    if a.op == "const":
        a, b = b, a
    inner = _term(a) if b.op == "const" else None
    return g.make("add", inner[0], inner[1] + b.value) if inner else None


def _like(g: Any, a: Any, b: Any, sign: int) -> Any:
    """c₁·x ± c₂·x = (c₁ ± c₂)·x; not x + x, which one addition does as well as one multiplication."""
    if a.op != "mul" and b.op != "mul":
        return None
    (c, x), (d, y) = _factor(a) or (1, a), _factor(b) or (1, b)
    return g.make("mul", c + sign * d, x) if x is y and (a is not b) else None


def _rest(g: Any, a: Any, b: Any) -> Any:
    """What is left of a - b where one is a sum that holds the other, or None."""
    if a.op in ("add", "sub"):
        x, y = a.args
        if x is b:
            return y if a.op == "add" else -y  # (b + y) - b = y
        if y is b and a.op == "add":
            return x
    if b.op in ("add", "sub"):
        x, y = b.args
        if x is a:
            return -y if b.op == "add" else y  # a - (a - y) = y
        if y is a and b.op == "add":
            return -x
    return None


def _whole(g: Any, a: Any, b: Any) -> Any:
    """(x - b) + b = x."""
    if a.op == "sub" and a.args[1] is b:
        return a.args[0]
    return b.args[0] if b.op == "sub" and b.args[1] is a else None


def _minus(g: Any, a: Any) -> Any:
    """The argument of a negation, or the positive constant of a negative one."""
    return a.args[0] if a.op == "neg" else g.const(-a.value)


FOLDS: dict[str, tuple[tuple[str, Rule], ...]] = {
    "add": (
        ("const", lambda g, a, b: a.value + b.value if _both(a, b) else None),  # constants: exact, off-line
        ("const", lambda g, a, b: b if _is(a, 0) else None),  # 0 + b = b
        ("const", lambda g, a, b: a if _is(b, 0) else None),  # a + 0 = a
        # -a + -b = -(a + b)
        ("const neg", lambda g, a, b: -(_minus(g, a) + _minus(g, b)) if _negative(a) and _negative(b) else None),
        ("const neg", lambda g, a, b: g.make("sub", a, _minus(g, b)) if _negative(b) else None),  # a + -b = a - b
        ("const neg", lambda g, a, b: g.make("sub", b, _minus(g, a)) if _negative(a) else None),  # -a + b = b - a
        ("const", _move),  # (x + c₁) + c₂ = x + (c₁ + c₂)
        ("sub", _whole),  # (x - b) + b = x
        ("mul", lambda g, a, b: _like(g, a, b, 1)),  # c₁·x + c₂·x = (c₁ + c₂)·x
    ),
    "sub": (
        ("const", lambda g, a, b: a.value - b.value if _both(a, b) else None),  # constants: exact, off-line
        ("const", lambda g, a, b: a if _is(b, 0) else None),  # a - 0 = a
        ("const", lambda g, a, b: -b if _is(a, 0) else None),  # 0 - b = -b
        ("const neg", lambda g, a, b: g.make("add", a, _minus(g, b)) if _negative(b) else None),  # a - -b = a + b
        ("const neg", lambda g, a, b: -(g.make("add", _minus(g, a), b)) if _negative(a) else None),  # -a - b = -(a + b)
        # (x + c₁) - c₂ = x + (c₁ - c₂)
        ("const", lambda g, a, b: _move(g, a, g.const(-b.value)) if b.op == "const" else None),
        ("", lambda g, a, b: Fraction(0) if a is b else None),  # a - a = 0
        ("add sub", _rest),  # (b + y) - b = y, a - (a - y) = y
        ("mul", lambda g, a, b: _like(g, a, b, -1)),  # c₁·x - c₂·x = (c₁ - c₂)·x
        ("", lambda g, a, b: -g.raw("sub", (b, a)) if a.serial > b.serial else None),  # one order of the pair
    ),
    "mul": (
        ("const", lambda g, a, b: a.value * b.value if _both(a, b) else None),  # constants: exact, off-line
        ("const", lambda g, a, b: Fraction(0) if _is(a, 0) or _is(b, 0) else None),  # 0·b = 0
        ("const", lambda g, a, b: b if _is(a, 1) else None),  # 1·b = b
        ("const", lambda g, a, b: a if _is(b, 1) else None),  # a·1 = a
        ("const neg", lambda g, a, b: -(g.make("mul", _minus(g, a), b)) if _negative(a) else None),  # (-a)·b = -(a·b)
        ("const neg", lambda g, a, b: -(g.make("mul", a, _minus(g, b))) if _negative(b) else None),  # a·(-b) = -(a·b)
        ("const", _scale),  # c₁·(c₂·x) = (c₁c₂)·x
    ),
    "div": (
        ("const", lambda g, a, b: Fraction(0) if _is(a, 0) else None),  # 0/b = 0
        # a/c = (1/c)·a
        ("const", lambda g, a, b: g.make("mul", a, 1 / b.value) if b.op == "const" and b.value else None),
        ("const neg", lambda g, a, b: -(g.make("div", _minus(g, a), b)) if _negative(a) else None),  # (-a)/b = -(a/b)
        ("const neg", lambda g, a, b: -(g.make("div", a, _minus(g, b))) if _negative(b) else None),  # a/(-b) = -(a/b)
    ),
    "neg": (
        ("const", lambda g, a: -a.value),  # constants
        ("neg", lambda g, a: a.args[0]),  # --a = a
    ),
    "sin": (
        ("const", lambda g, a: Fraction(math.sin(a.value))),  # constants
        ("neg", lambda g, a: -(a.args[0].sin())),  # sin(-a) = -sin a
    ),
    "cos": (
        ("const", lambda g, a: Fraction(math.cos(a.value))),  # constants
        ("neg", lambda g, a: a.args[0].cos()),  # cos(-a) = cos a
    ),
    "sqrt": (("const", lambda g, a: Fraction(math.sqrt(a.value))),),  # constants
    "sign": (
        ("const", lambda g, a: Fraction((a.value > 0) - (a.value < 0))),  # constants
        ("neg", lambda g, a: -(a.args[0].sign())),  # odd
    ),
    "positive": (("const", lambda g, a: Fraction(1) if a.value > 0 else None),),  # constants
}


def rules(op: str, *kinds: str) -> tuple[Rule, ...]:
    """The rules that can apply to an operation on arguments of these kinds, in order."""
    return tuple(rule for needs, rule in FOLDS[op] if not needs or set(needs.split()) & set(kinds))
