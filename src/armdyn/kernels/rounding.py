"""Bounds of a program's rounding errors in float or double, over boxes of inputs.

Idea: the computed program is the exact one with an error added to the result of every operation, at most one unit
roundoff of its magnitude (IEEE 754, to nearest). By the mean-value theorem the outputs then differ by Σ |error| ×
|derivative of the output with respect to it|, at some intermediate point. Magnitudes and derivatives are enclosed over
a box of positions by `Form`s, which hold at every intermediate point because they are widened by the rounding of every
operation.

A form is a polynomial in some inputs of a program, whose coefficients are intervals: NumPy arrays, one entry per box.
The dynamics are polynomials of low degree in velocities and accelerations. Keeping them as such preserves correlations:
a vector that is rotated from frame to frame does not grow, as it would if each of its entries were an interval. The
intervals cover the remaining inputs, the positions, within a box.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import numpy as np

from armdyn.algebra.interval import FORMATS, FloatFormat, Rounded
from armdyn.errors import InputError, choose
from armdyn.graph.node import Node
from armdyn.graph.program import Program

UNIT = 2.0**-50  # bound of the relative rounding error of the arithmetic in this module
TRIG = 2.0**-49

Monomial = tuple[int, ...]
Coefficient = tuple[Any, Any]  # centre, radius


class Form:
    """Σ coefficient × product of inputs; a product is the sorted tuple of the inputs' numbers."""

    __slots__ = ("terms",)

    def __init__(self, terms: Mapping[Monomial, Coefficient]) -> None:
        self.terms = terms

    @classmethod
    def number(cls, centre: Any, radius: Any = 0.0) -> Form:
        """A form without inputs: an interval."""
        return cls({(): (centre, radius)})

    def largest(self, inputs: Any) -> Any:
        """A bound of its magnitude, if that of input k is at most inputs[k]."""
        total: Any = 0.0
        for key, (c, r) in self.terms.items():
            total = total + (np.abs(c) + r) * float(np.prod([inputs[k] for k in key]))
        return total * (1 + UNIT)

    def __neg__(self) -> Form:
        return Form({key: (-c, r) for key, (c, r) in self.terms.items()})

    def __add__(self, other: Form) -> Form:
        terms = dict(self.terms)
        for key, (c, r) in other.terms.items():
            if key in terms:
                a, s = terms[key]
                c, r = a + c, r + s + (np.abs(a) + np.abs(c)) * UNIT
            terms[key] = c, r
        return Form(terms)

    def __sub__(self, other: Form) -> Form:
        return self + -other

    def __mul__(self, other: Form) -> Form:
        terms: dict[Monomial, Coefficient] = {}
        for one, (a, r) in self.terms.items():
            for two, (b, s) in other.terms.items():
                key = tuple(sorted(one + two))
                size_a, size_b = np.abs(a), np.abs(b)
                c, radius = a * b, size_a * s + r * (size_b + s) + size_a * size_b * UNIT
                if key in terms:
                    c, radius = terms[key][0] + c, terms[key][1] + radius + np.abs(terms[key][0]) * UNIT
                terms[key] = c, radius
        return Form(terms)

    def sin(self) -> Form:
        """Sine of a number."""
        centre, radius = self.terms[()]
        return _turned(np.sin(centre), np.cos(centre), radius)

    def cos(self) -> Form:
        """Cosine of a number."""
        centre, radius = self.terms[()]
        return _turned(np.cos(centre), np.sin(centre), radius)

    def widened(self, relative: float, absolute: float) -> Form:
        """The form enlarged by a relative error and an absolute error."""
        terms = {key: (c, r + (np.abs(c) + r) * relative) for key, (c, r) in self.terms.items()}
        c, r = terms.get((), (0.0, 0.0))
        return Form({**terms, (): (c, r + absolute)})


def _turned(value: Any, slope: Any, radius: Any) -> Form:
    """As in `algebra.interval`: within h of (1 - h) value, plus slope sin δ."""
    s, c = np.sin(radius / 2), np.cos(radius / 2)
    h = s * s
    return Form.number(value - h * value, np.abs(value) * h + 2 * np.abs(slope) * (s * c) + TRIG)


OPERATIONS = ("add", "sub", "mul", "neg", "sin", "cos", "sign")
DIVIDING = ("div", "sqrt", "positive")  # `positive` guards a divisor
BATCH = 2048  # boxes at a time
WIDEST = math.pi / 2  # the largest radius of an angle's interval
SLACK = 1e-9  # relative allowance for the rounding of sums of non-negative numbers

Progress = Callable[[float, float, str], None]


def must_be_bounded(program: Program) -> None:
    """Raise an error for a program with an operation whose rounding is not modelled."""
    for node in program.order:
        if node.op not in ("const", "input", *OPERATIONS):
            what, known = "divides" if node.op in DIVIDING else f"contains {node.op}", ", ".join(OPERATIONS)
            raise InputError(f"{program.name} {what}; rounding errors are bounded for programs of {known}")
        if node.op == "sign" and node.args[0].op != "input":
            raise InputError(f"{program.name} takes the sign of a computed number, which rounding may change")


@dataclass(frozen=True)
class Analysis:
    """A program, the format it is computed in, and the ranges (inputs, 2) of its inputs, flattened."""

    program: Program
    precision: FloatFormat
    ranges: Any

    def __post_init__(self) -> None:
        must_be_bounded(self.program)

    @property
    def inputs(self) -> list[Node]:
        """The inputs' nodes."""
        return [node for port in self.program.inputs for node in port.nodes]

    def errors(self, low: Any, high: Any) -> Any:
        """(boxes, outputs) bounds over boxes (boxes, positions) of the first input, everything else in its range."""
        forms, added = self._values(low, high)
        largest = np.abs(self.ranges).max(axis=1)
        found = []
        for node in (node for port in self.program.outputs for node in port.nodes):
            total: Any = np.zeros(len(low))
            slopes: dict[int, Form] = {node.serial: Form.number(1.0)}
            for one in reversed(self.program.order):
                if one.serial in slopes:
                    slope = slopes.pop(one.serial)
                    total = total + added[one.serial] * slope.largest(largest)
                    _backwards(one, slope, forms, slopes)
            found.append(total * (1 + SLACK))
        return np.stack(found, axis=1)

    def _values(self, low: Any, high: Any) -> tuple[dict[int, Form], dict[int, Any]]:
        """For every node an enclosure of its computed value, and a bound of its rounding error."""
        largest = np.abs(self.ranges).max(axis=1)
        forms: dict[int, Form] = {}
        added: dict[int, Any] = {}
        for k, node in enumerate(self.inputs):
            added[node.serial] = 0.0
            if k < low.shape[1]:
                centre = low[:, k] + (high[:, k] - low[:, k]) / 2
                forms[node.serial] = Form.number(centre, np.nextafter((high[:, k] - low[:, k]) / 2, np.inf) + 1e-15)
            else:
                forms[node.serial] = Form({(k,): (1.0, 0.0)})
        for node in self.program.order:
            if node.op != "input":
                forms[node.serial], added[node.serial] = self._operation(node, forms, largest)
        return forms, added

    def _operation(self, node: Node, forms: dict[int, Form], largest: Any) -> tuple[Form, Any]:
        unit, least = float(self.precision.unit), max(float(self.precision.least), 1e-300)
        if node.op == "const":
            off = float(abs(self.precision.written(node.value) - node.value)) * (1 + SLACK)
            return Form.number(float(node.value), off + abs(float(node.value)) * 2**-52), off
        exact = _exactly(node, [forms[arg.serial] for arg in node.args])
        if node.op in ("neg", "sign"):
            return exact, 0.0
        if node.op in ("sin", "cos"):
            relative = 2 * unit * float(self.precision.trig_ulps)  # a unit in the last place is at most two units
        else:
            factors = (Rounded(arg.value, 0, self.precision) for arg in node.args if arg.op == "const")
            relative = 0.0 if node.op == "mul" and any(f.exact_factor for f in factors) else unit
        size = exact.largest(largest)
        return exact.widened(relative, least), (
            np.minimum(size, 1.0) if node.op in ("sin", "cos") else size
        ) * relative + least


def _exactly(node: Node, arguments: list[Form]) -> Form:
    if node.op == "sign":
        return Form.number(0.0, 1.0)
    a = arguments[0]
    if len(arguments) == 1:
        return {"neg": a.__neg__, "sin": a.sin, "cos": a.cos}[node.op]()
    b = arguments[1]
    return a + b if node.op == "add" else a - b if node.op == "sub" else a * b


def _backwards(node: Node, slope: Form, forms: dict[int, Form], slopes: dict[int, Form]) -> None:
    """Add the contribution of a node to the derivatives with respect to its arguments."""
    for k, arg in enumerate(node.args):
        if node.op == "mul":
            part = slope * forms[node.args[1 - k].serial]
        elif node.op in ("sin", "cos"):
            part = slope * (forms[arg.serial].cos() if node.op == "sin" else -forms[arg.serial].sin())
        elif node.op == "sign":
            continue  # an exact input
        else:
            part = -slope if node.op == "neg" or (node.op == "sub" and k == 1) else slope
        slopes[arg.serial] = slopes[arg.serial] + part if arg.serial in slopes else part


def largest_errors(analysis: Analysis, positions: int, boxes: int, progress: Progress | None = None) -> Any:
    """(outputs,) bounds over the ranges, subdivided into this many boxes of positions where the bounds are largest."""
    low, high = _first_boxes(analysis, positions)
    errors = _in_batches(analysis, low, high)
    while len(low) < boxes:
        if progress:
            progress(len(low), boxes, "cutting ranges")
        worst = np.argsort(-(errors / np.maximum(errors.max(axis=0), 1e-300)).max(axis=1))
        chosen = worst[: min(BATCH, boxes - len(low), len(low))]
        parts = _halves(analysis, low[chosen], high[chosen])
        found = np.minimum(_in_batches(analysis, *parts), np.tile(errors[chosen], (2, 1)))
        rest = np.setdiff1d(np.arange(len(low)), chosen)
        low, high = (np.concatenate([old[rest], new]) for old, new in zip((low, high), parts, strict=True))
        errors = np.concatenate([errors[rest], found])
    return errors.max(axis=0)


def _in_batches(analysis: Analysis, low: Any, high: Any) -> Any:
    return np.concatenate([analysis.errors(low[k : k + BATCH], high[k : k + BATCH]) for k in range(0, len(low), BATCH)])


def _angles(analysis: Analysis, positions: int) -> Any:
    """The positions that the program uses, and which of them are angles (arguments of sine and cosine only)."""
    nodes = analysis.inputs[:positions]
    users: dict[int, set[str]] = {node.serial: set() for node in nodes}
    for node in analysis.program.order:
        for arg in node.args:
            if arg.serial in users:
                users[arg.serial].add(node.op)
    matter = np.array([bool(users[node.serial]) for node in nodes])
    return matter, np.array([bool(users[node.serial]) and users[node.serial] <= {"sin", "cos"} for node in nodes])


def _first_boxes(analysis: Analysis, positions: int) -> tuple[Any, Any]:
    """The ranges of the positions, split to widths that interval sine and cosine allow; of a longer range, one turn."""
    matter, angles = _angles(analysis, positions)
    pieces = []
    for (low, high), matters, angle in zip(analysis.ranges[:positions], matter, angles, strict=True):
        if angle and high - low > 2 * math.pi:
            low, high = (low + high) / 2 - math.pi, (low + high) / 2 + math.pi
        count = max(1, math.ceil((high - low) / (2 * WIDEST))) if matters else 1
        pieces.append(list(pairwise(np.linspace(low, high, count + 1))))
    ends = np.array(list(product(*pieces))).reshape(-1, positions, 2)
    return ends[..., 0], ends[..., 1]


def _halves(analysis: Analysis, low: Any, high: Any) -> tuple[Any, Any]:
    """Both halves of every box, bisected along its longest side."""
    matter, _ = _angles(analysis, low.shape[1])
    along = np.argmax((high - low) * matter, axis=1)
    rows = np.arange(len(low))
    middle = (low[rows, along] + high[rows, along]) / 2
    left, right = high.copy(), low.copy()
    left[rows, along] = right[rows, along] = middle
    return np.concatenate([low, right]), np.concatenate([left, high])


def precision(dtype: str, trig_ulps: float) -> FloatFormat:
    """A floating-point format, and the largest error of the library's sine and cosine in units in the last place."""
    format = FORMATS[choose("dtype", dtype, FORMATS)]
    if not 0.5 <= trig_ulps <= 1000:
        raise InputError(f"trig_ulps must be between 0.5 (correctly rounded) and 1000, got {trig_ulps}")
    return replace(format, trig_ulps=Fraction(trig_ulps))


def assumptions(dtype: str, trig_ulps: float) -> tuple[str, ...]:
    """The assumptions of the bounds, in words."""
    suffix = "f" if dtype == "float" else ""
    return (
        f"arithmetic is IEEE 754 {dtype}, rounded to nearest, with subnormal numbers, evaluated in {dtype}",
        "the compiler neither contracts nor reorders operations: -ffp-contract=off, no -ffast-math",
        f"sin{suffix} and cos{suffix} are off by at most {trig_ulps:g} units in the last place",
        f"the inputs are exact {dtype} numbers; the arm's constants are those in its file, taken as exact",
    )


__all__ = ["FORMATS", "Analysis", "assumptions", "largest_errors", "must_be_bounded", "precision"]
