"""The folding rules: one per line, tried in order when an operation is created.

Each rule begins with the kinds of arguments it applies to, so that `rules` tries only those that can apply: the kind of
a node is its operation, that of a constant is "zero", "one", "positive" or "negative"; "const" is any of these four,
and "_" is anything.

A rule takes the graph and the arguments (nodes; constants are const nodes) and returns a node, a
number, or None where it does not apply. Negations are moved outwards (they are free), so that a sum and its negative
are one node. The rules assume finite arithmetic: 0·x is 0 even if x is NaN or infinite, and the sign of zero is not
preserved (docs/adr/0002-operations-and-folds.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from armdyn.algebra.scalar import Rational

Rule = Callable[..., Any]
ZERO = Rational(0)
CONSTANTS = ("zero", "one", "positive", "negative")


def kind_of_constant(value: Rational) -> str:
    """The kind of a constant: "positive" is any positive number but one."""
    if value.numerator <= 0:
        return "negative" if value.numerator else "zero"
    return "one" if value.numerator == value.denominator else "positive"


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


def _scale(g: Any, c: Any, b: Any) -> Any:
    """c₁·(c₂·x) = (c₁c₂)·x: the outer product never costs more, the inner one may become unused."""
    inner = _factor(b)
    return g.binary("mul", c.value * inner[0], inner[1]) if inner else None


def _move(g: Any, a: Any, c: Any) -> Any:
    """(x + c₁) + c₂ = x + (c₁ + c₂)."""
    inner = _term(a)
    return g.binary("add", inner[0], inner[1] + c) if inner else None


def _like(g: Any, a: Any, b: Any, sign: int) -> Any:
    """c₁·x ± c₂·x = (c₁ ± c₂)·x; not x + x, where an addition is as good as a multiplication."""
    (c, x), (d, y) = _factor(a) or (1, a), _factor(b) or (1, b)
    return g.binary("mul", c + sign * d, x) if x is y and (a is not b) else None


def _rest(g: Any, a: Any, b: Any) -> Any:
    """The difference a - b where one is a sum that contains the other, or None."""
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
        ("const const", lambda g, a, b: a.value + b.value),  # exact, off-line
        ("zero _", lambda g, a, b: b),  # 0 + b = b
        ("_ zero", lambda g, a, b: a),  # a + 0 = a
        ("negative|neg negative|neg", lambda g, a, b: -(_minus(g, a) + _minus(g, b))),  # -a + -b = -(a + b)
        ("_ negative|neg", lambda g, a, b: g.binary("sub", a, _minus(g, b))),  # a + -b = a - b
        ("negative|neg _", lambda g, a, b: g.binary("sub", b, _minus(g, a))),  # -a + b = b - a
        ("add|sub const", lambda g, a, b: _move(g, a, b.value)),  # (x + c₁) + c₂ = x + (c₁ + c₂)
        ("const add|sub", lambda g, a, b: _move(g, b, a.value)),  # c₂ + (x + c₁) = x + (c₁ + c₂)
        ("sub _, _ sub", _whole),  # (x - b) + b = x
        ("mul _, _ mul", lambda g, a, b: _like(g, a, b, 1)),  # c₁·x + c₂·x = (c₁ + c₂)·x
    ),
    "sub": (
        ("const const", lambda g, a, b: a.value - b.value),  # exact, off-line
        ("_ zero", lambda g, a, b: a),  # a - 0 = a
        ("zero _", lambda g, a, b: -b),  # 0 - b = -b
        ("_ negative|neg", lambda g, a, b: g.binary("add", a, _minus(g, b))),  # a - -b = a + b
        ("negative|neg _", lambda g, a, b: -(g.binary("add", _minus(g, a), b))),  # -a - b = -(a + b)
        ("add|sub const", lambda g, a, b: _move(g, a, -b.value)),  # (x + c₁) - c₂ = x + (c₁ - c₂)
        ("_ _", lambda g, a, b: ZERO if a is b else None),  # a - a = 0
        ("add|sub _, _ add|sub", _rest),  # (b + y) - b = y, a - (a - y) = y
        ("mul _, _ mul", lambda g, a, b: _like(g, a, b, -1)),  # c₁·x - c₂·x = (c₁ - c₂)·x
        ("_ _", lambda g, a, b: -g.raw("sub", (b, a)) if a.serial > b.serial else None),  # one order of the pair
    ),
    "mul": (
        ("const const", lambda g, a, b: a.value * b.value),  # exact, off-line
        ("zero _, _ zero", lambda g, a, b: ZERO),  # 0·b = 0
        ("one _", lambda g, a, b: b),  # 1·b = b
        ("_ one", lambda g, a, b: a),  # a·1 = a
        ("negative|neg _", lambda g, a, b: -(g.binary("mul", _minus(g, a), b))),  # (-a)·b = -(a·b)
        ("_ negative|neg", lambda g, a, b: -(g.binary("mul", a, _minus(g, b)))),  # a·(-b) = -(a·b)
        ("const mul", _scale),  # c₁·(c₂·x) = (c₁c₂)·x
        ("mul const", lambda g, a, b: _scale(g, b, a)),  # (c₂·x)·c₁ = (c₁c₂)·x
    ),
    "div": (
        ("zero _", lambda g, a, b: ZERO),  # 0/b = 0
        ("_ one|positive|negative", lambda g, a, b: g.binary("mul", a, 1 / b.value)),  # a/c = (1/c)·a
        ("negative|neg _", lambda g, a, b: -(g.binary("div", _minus(g, a), b))),  # (-a)/b = -(a/b)
        ("_ neg", lambda g, a, b: -(g.binary("div", a, _minus(g, b)))),  # a/(-b) = -(a/b)
    ),
    "neg": (
        ("const", lambda g, a: -a.value),
        ("neg", lambda g, a: a.args[0]),  # --a = a
    ),
    "sin": (
        ("const", lambda g, a: Rational(math.sin(a.value))),
        ("neg", lambda g, a: -(a.args[0].sin())),  # sin(-a) = -sin a
    ),
    "cos": (
        ("const", lambda g, a: Rational(math.cos(a.value))),
        ("neg", lambda g, a: a.args[0].cos()),  # cos(-a) = cos a
    ),
    "sqrt": (("const", lambda g, a: Rational(math.sqrt(a.value))),),
    "sign": (
        ("const", lambda g, a: Rational((a.value > 0) - (a.value < 0))),
        ("neg", lambda g, a: -(a.args[0].sign())),  # odd
    ),
    "positive": (("one|positive", lambda g, a: Rational(1)),),
}


def rules(op: str, *kinds: str) -> tuple[Rule, ...]:
    """The rules that apply to an operation on arguments of these kinds, in order."""
    return tuple(rule for patterns, rule in FOLDS[op] if any(_fits(one, kinds) for one in patterns.split(", ")))


def _fits(pattern: str, kinds: tuple[str, ...]) -> bool:
    wanted = [{*words.split("|"), *(CONSTANTS if words == "const" else ())} for words in pattern.split()]
    return all("_" in words or kind in words for words, kind in zip(wanted, kinds, strict=True))
