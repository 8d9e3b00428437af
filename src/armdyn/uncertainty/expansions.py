"""Compiled Taylor expansion of one entry of a quantity about any configuration, and its coefficients of the motion.

For a fixed configuration, joint forces are linear in accelerations and quadratic in velocities:
f(q, q̇, q̈) = Σ_j H_j(q) q̈_j + Σ_jk B_jk(q) q̇_j q̇_k + g(q). The coefficients are obtained by differentiating the
entry's program, whatever its formulation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from armdyn.algebra import scalar
from armdyn.algebra.cached import cached_property
from armdyn.algebra.interval import Interval, size
from armdyn.algebra.rounding import FORMATS, Rounded
from armdyn.codegen.compile import load_or_compile
from armdyn.formulations import energies
from armdyn.graph.derive import inline, jacobian
from armdyn.graph.program import Port, Program, interpret, trace
from armdyn.kernels.enclosure import EVALUATE, Enclosure
from armdyn.uncertainty.modes import MOST_JOINTS, Series, factorials, grid, monomials

ORDER, ROW_ORDER = 4, 3  # of the remainders: the entry is expanded to third order, H and B_jj to second
NEARLY_STRAIGHT = Fraction(1, 10**9)  # added to a curvature to avoid division by zero
MOST_RATES = 10  # joints, for 2^10 corners of their velocities
QUADRATIC = ("inverse_dynamics", "bias")  # quadratic in qd and linear in qdd
OF_POSITIONS = ("gravity_load", "inertia_matrix", "potential_energy", "pose", "jacobian", "centre_of_mass")


def expandable(kernel: Any) -> bool:
    """Whether the quantity is made of trigonometric polynomials, at most quadratic in the rates."""
    return kernel.quantity in (*QUADRATIC, *OF_POSITIONS) and kernel.chain.plain


class Expansion:
    """One entry of a kernel: derivatives by the joint angles, coefficients of velocities and accelerations."""

    def __init__(self, kernel: Any, entry: int, ranges: dict[str, Any]) -> None:
        whole = kernel.program
        self.program = Program(whole.name, whole.inputs, (Port("f", (1,), (whole.outputs[0].nodes[entry],)),))
        self.asked = (kernel.chain, kernel.quantity, kernel.method, kernel.options, entry)
        self.ranges = ranges
        self.n = len(ranges["q"])
        self.names = [port.name for port in whole.inputs]
        needed = {node.serial for node in self.program.order}
        angles = next(port for port in whole.inputs if port.name == "q")
        self.angles = np.flatnonzero([node.serial in needed for node in angles.nodes])
        self.pairs = list(combinations_with_replacement(range(self.n), 2))

    @property
    def suits(self) -> bool:
        """Whether the entry can be expanded: it depends on revolute joints only, and not on too many."""
        turning = all(self.asked[0].joints[k].revolute for k in self.angles)
        return turning and 0 < self.joints <= MOST_JOINTS and self.n <= MOST_RATES

    @property
    def joints(self) -> int:
        """The number of joint angles that the entry depends on."""
        return len(self.angles)

    def _shapes(self, *names: str) -> dict[str, tuple[int, ...]]:
        return dict.fromkeys(names, (self.n,))

    @cached_property
    def coefficients(self) -> Program:
        """The coefficients as functions of q: H (n) of q̈_j, B (n (n + 1) / 2) of q̇_j q̇_k, and g (1)."""
        n, still = self.n, [[0] * self.n for name in self.names if name != "q"]

        def function(q: list[Any]) -> tuple[list[Any], list[Any], list[Any]]:
            H, B = [0] * n, [0] * len(self.pairs)
            if "qdd" in self.names:
                H = inline(jacobian(self.program, ("qdd",)), q, *still)[0]
            if "qd" in self.names:
                twice = inline(jacobian(jacobian(self.program, ("qd",)), ("qd",)), q, *still)[0]
                B = [twice[j * n + k] / 2 if j == k else twice[j * n + k] for j, k in self.pairs]
            return H, B, inline(self.program, q, *still)[0]

        outputs = [("H", (n,)), ("B", (len(self.pairs),)), ("g", (1,))]
        return trace("coefficients", function, self._shapes("q"), outputs)

    @cached_property
    def series(self) -> Series:
        """The Fourier series of all coefficients: H, B, g."""
        points = np.zeros((5**self.joints, self.n))
        points[:, self.angles] = grid(self.joints)
        compiled = load_or_compile(("coefficients", self.asked), lambda: self.coefficients)
        assert compiled is not None  # n is not 0
        error = np.concatenate(errors(self.coefficients, {}, 7.0))
        return Series.of(np.concatenate(compiled(points), axis=-1), self.joints, error)

    def weights(self, qd: Any, qdd: Any) -> Any:
        """(motions, coefficients) factors of the coefficients for given motions."""
        products = np.stack([qd[:, j] * qd[:, k] for j, k in self.pairs], axis=1)
        return np.concatenate([qdd, products, np.ones((len(qd), 1))], axis=1)

    @property
    def still(self) -> bool:
        """Whether the quantity depends on positions only."""
        return self.names == ["q"]

    @cached_property
    def enclosure(self) -> Enclosure:
        """Interval enclosure of the entry, sharper than an expansion on large boxes."""
        return Enclosure(self.program, [(0, 0)])

    @cached_property
    def limit(self) -> Enclosure | None:
        """For a gravity load, the square of the joint force under the worst direction of gravity; otherwise None."""
        chain, quantity, *_, entry = self.asked
        if quantity != "gravity_load":
            return None
        function = partial(energies.squared_gravity_limits, chain)
        limits = trace("gravity_limits", function, self._shapes("q"), [("limits", (self.n,))])
        return Enclosure(limits, [(0, entry)])

    @cached_property
    def row(self) -> Program:
        """The coefficients whose signs matter, H (n) and B_jj (n), as functions of q."""
        squares = [k for k, (i, j) in enumerate(self.pairs) if i == j]
        H, B, _ = (port.nodes for port in self.coefficients.outputs)
        return Program("row", self.coefficients.inputs, (Port("row", (2 * self.n,), (*H, *(B[k] for k in squares))),))

    @cached_property
    def row_remainders(self) -> Any:
        """(2n, monomials) remainder polynomials of the row."""
        squares = [self.n + k for k, (i, j) in enumerate(self.pairs) if i == j]
        chosen = np.eye(self.series.coefficients.shape[1])[[*range(self.n), *squares]]
        return self.series.remainders(chosen, ROW_ORDER)

    @cached_property
    def _programs(self) -> tuple[dict[tuple[int, ...], Program], dict[tuple[int, ...], Program]]:
        used = [int(k) for k in self.angles]
        return partials(self.program, used, ORDER), partials(self.row, used, ROW_ORDER)

    @cached_property
    def bound(self) -> Any:
        """The bound of sign × entry over boxes of angles, for one corner of the velocities and all accelerations.

        (q, r, qd; sign, remainder, row_remainders, middle, half, square) -> bound, value at the centre, contribution of
        each angle, code of the chosen accelerations. `middle` and `half` are the centres and half-widths of the
        acceleration ranges, `square` the squared half-widths of the velocity ranges.
        """
        n, d = self.n, self.joints
        more, more_in_row = len(monomials(ORDER, d)), len(monomials(ROW_ORDER, d))
        shapes = {**self._shapes("q", "r", "qd"), "sign": (1,), "remainder": (more,)}
        shapes |= {"row_remainders": (2 * n, more_in_row), **self._shapes("middle", "half", "square")}
        outputs = [("above", (1,)), ("value", (1,)), ("each", (d,)), ("key", (1,))]
        make = partial(trace, "bound", self._bound, shapes, outputs)
        return load_or_compile(("bound", self.asked), make, uniform=tuple(shapes)[3:])

    def _bound(self, q: Any, r: Any, qd: Any, sign: Any, remainder: Any, rows: Any, *ranges: Any) -> Any:
        middle, half, square = ranges
        of_entry, of_row = self._programs
        r = [r[k] for k in self.angles]
        row = {key: [sign[0] * x for x in inline(p, q)[0]] for key, p in of_row.items()}
        ups = [scalar.sign(x) for x in row[()][: self.n]]
        qdd = [m + h * up for m, h, up in zip(middle, half, ups, strict=True)]
        given = [{"qd": qd, "qdd": qdd}[name] for name in self.names[1:]]
        entry = {key: sign[0] * inline(p, q, *given)[0][0] for key, p in of_entry.items()}
        each = [_parabola(entry[k,], entry[k, k], r[k]) for k in range(self.joints)]
        rest = {key: x for key, x in entry.items() if len(set(key)) > 1 or len(key) > 2}
        each = _spread(_spread(each, _taylor(rest), r), _table(remainder, ORDER, self.joints), r)
        above = entry[()] + sum(each, 0)
        for j in range(2 * self.n):
            slopes = _taylor({key: x[j] for key, x in row.items() if key})
            reach = _spread(_spread([0] * self.joints, slopes, r), _table(rows[j], ROW_ORDER, self.joints), r)
            # The other end of an acceleration range if H may change sign; the chord if a square may be concave.
            weight, at = (2 * half[j], size(row[()][j])) if j < self.n else (square[j - self.n], row[()][j])
            excess = sum(reach, 0) - at
            above = above + weight * _positive(excess)
            there = weight * ((1 + scalar.sign(excess)) / 2)
            each = [total + there * part for total, part in zip(each, reach, strict=True)]
        return [above], [entry[()]], each, [sum(((up + 1) * 3**j for j, up in enumerate(ups)), 0)]

    def lost(self, radii: Any) -> Any:
        """Bound of the rounding error of the bound, on boxes with radii up to `radii` (joints,)."""
        rates = {name: self.ranges[name] for name in self.names if name != "q"}
        most = float(np.abs(self.ranges["q"]).max()) + 7
        of_entry, of_row = self._programs
        widths = [float(x) for name in ("qdd", "qd") for x in np.ptp(rates.get(name, np.zeros((self.n, 2))), axis=1)]
        weights = np.array(widths) * np.array([1.0] * self.n + [w / 4 for w in widths[self.n :]])
        total = 0.0
        for programs, ranges, weight in ((of_entry, rates, np.ones(1)), (of_row, {}, weights)):
            for key, one in programs.items():
                total += float(errors(one, ranges, most)[0] @ weight) * math.prod(radii[k] for k in key)
        return total


def partials(program: Program, used: list[int], order: int) -> dict[tuple[int, ...], Program]:
    """Partial derivatives of all outputs by the used angles, below the given order, keyed by the angles."""
    n = len(next(port for port in program.inputs if port.name == "q").nodes)
    found: dict[tuple[int, ...], Program] = {(): program}
    for key in [()] + [one for below in range(1, order - 1) for one in monomials(below, len(used))]:
        port, slopes = found[key].outputs[0], jacobian(found[key], ("q",)).outputs[0].nodes
        for k in range(key[-1] if key else 0, len(used)):
            nodes = tuple(slopes[m * n + used[k]] for m in range(len(port.nodes)))
            found[*key, k] = Program(program.name, program.inputs, (Port(port.name, port.shape, nodes),))
    return found


def _parabola(slope: Any, curvature: Any, r: Any) -> Any:
    """An upper bound of slope δ + curvature δ² / 2 for |δ| <= r; if concave, by a tangent near the maximum.

    Every tangent is a valid bound, so rounding of the point of contact does no harm.
    """
    slope, up, down = size(slope), _positive(curvature), _positive(-curvature)
    top = slope / (down + NEARLY_STRAIGHT)
    touching = (r + top - size(r - top)) / 2
    return down * (touching * touching) / 2 + r * _positive(slope - down * touching) + up * (r * r) / 2


def _positive(x: Any) -> Any:
    """max(x, 0)."""
    return (x + size(x)) / 2


def _taylor(derivatives: dict[tuple[int, ...], Any]) -> dict[tuple[int, ...], Any]:
    """The polynomial in the radii that bounds the Taylor terms of these partial derivatives."""
    return {key: size(x) * Fraction(1, factorials(key)) for key, x in derivatives.items()}


def _table(coefficients: Any, order: int, joints: int) -> dict[tuple[int, ...], Any]:
    return dict(zip(monomials(order, joints), coefficients, strict=True))


def _spread(each: list[Any], polynomial: dict[tuple[int, ...], Any], r: list[Any]) -> list[Any]:
    """The contribution of each angle: the terms of a polynomial in the radii are split among the angles in them."""
    each = list(each)
    for key, coefficient in polynomial.items():
        term = coefficient
        for k in key:
            term = term * r[k]
        for k in set(key):
            each[k] = each[k] + term * Fraction(key.count(k), len(key))
    return each


@dataclass(frozen=True)
class _AnyAngle:
    """An angle of which only the largest magnitude is known, so that sine and cosine lie between -1 and 1."""

    largest: float

    def sin(self) -> Rounded:
        """Sine, with its own rounding error and that of the angle if a constant was added to it."""
        return Rounded(Interval(0.0, 1.0), 2.0**-50 * (2 + self.largest), FORMATS["double"])

    cos = sin

    def __add__(self, other: Any) -> _AnyAngle:
        return self

    __sub__ = __radd__ = __rsub__ = __add__

    def __neg__(self) -> _AnyAngle:
        return self


def errors(program: Program, ranges: dict[str, Any], largest: float) -> list[Any]:
    """Bounds of the outputs' rounding errors in double, for angles up to `largest` and rates within their ranges."""
    double = FORMATS["double"]
    inputs: list[list[Any]] = []
    for port in program.inputs:
        if port.name == "q":
            inputs.append([_AnyAngle(largest) for _ in port.nodes])
        else:
            ends = [(float(low), float(high)) for low, high in ranges[port.name]]
            inputs.append([Rounded(Interval((a + b) / 2, (b - a) / 2 * (1 + 1e-15)), 0.0, double) for a, b in ends])
    found = interpret(program, EVALUATE, lambda x: Rounded.constant(x, double), *inputs)
    return [np.array([float(x.bound) for x in port]) for port in found]
