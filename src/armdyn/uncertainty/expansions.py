"""Compiled Taylor expansion of one entry of a quantity about any configuration, and its coefficients of the motion.

The coefficients are obtained by differentiating the entry's program, whatever its formulation; the remainder comes from
the entry's Fourier series in the joint angles. The theory is at the head of this folder.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import lru_cache, partial
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np

from armdyn.algebra import scalar
from armdyn.algebra.interval import FORMATS, Interval, Rounded, size
from armdyn.codegen.compile import load_or_compile
from armdyn.formulations import energies
from armdyn.graph.derive import jacobian
from armdyn.graph.program import Port, Program, inline, interpret, trace
from armdyn.uncertainty.search import BATCH, EVALUATE, Enclosure, Pieces
from armdyn.values import cached_property

DEGREE = 2
ANGLES = 2 * DEGREE + 1
FREQUENCIES = np.array([0, 1, 2, -2, -1])  # in the order of the discrete Fourier transform
MOST_JOINTS = 7  # 5^7 coefficients
SLACK = 1e-9  # relative; exceeds the rounding error of sums of nonnegative numbers
UNIT = 2.0**-53


def grid(joints: int) -> Any:
    """(5^joints, joints) angles at which samples determine a series."""
    angles = 2 * math.pi * np.arange(ANGLES) / ANGLES
    return _tuples(angles, joints)


def monomials(order: int, joints: int) -> list[tuple[int, ...]]:
    """The monomials of a homogeneous polynomial in the radii, as tuples of joints."""
    return list(combinations_with_replacement(range(joints), order))


def factorials(one: tuple[int, ...]) -> int:
    """The divisor of the partial derivative by these joints in a Taylor expansion."""
    return math.prod(math.factorial(one.count(k)) for k in set(one))


@dataclass(frozen=True)
class Series:
    """Fourier coefficients (5^joints, functions) of functions of angles, with error bounds (functions,)."""

    joints: int
    coefficients: Any
    error: Any  # (functions,)

    @classmethod
    def of(cls, samples: Any, joints: int, error: Any) -> Series:
        """The series of functions from their values on the `grid`, (5^joints, functions), with errors up to `error`.

        The transform is a product with a 5 x 5 matrix per joint, each with a rounding error of a few units of the
        largest value. Grid points are rounded too: a derivative is at most the degree times the largest value
        (Bernstein), which is at most 2^joints times the largest value on the grid.
        """
        turn = np.exp(-2j * math.pi * np.outer(FREQUENCIES, np.arange(ANGLES)) / ANGLES) / ANGLES
        table = samples.reshape(*[ANGLES] * joints, -1).astype(complex)
        for axis in range(joints):
            table = np.moveaxis(np.tensordot(turn, table, axes=(1, axis)), 0, axis)
        lost = joints * (40 * UNIT + 8 * UNIT * DEGREE * 2**joints) * np.abs(samples).max(axis=0, initial=0)
        return cls(joints, table.reshape(ANGLES**joints, -1), error + lost)

    def at(self, q: Any) -> Any:
        """The functions at one configuration (joints,)."""
        return np.real(np.exp(1j * _tuples(FREQUENCIES, self.joints) @ q) @ self.coefficients)

    def remainders(self, weights: Any, order: int) -> Any:
        """(combinations, monomials) remainder polynomials of linear combinations (combinations, functions)."""
        rows, starts, sizes = _half(self.joints)
        table = _remainder_table(sizes, order)
        amplitudes = np.abs(self.coefficients[rows] @ weights.T.astype(complex))
        together = 2 * np.add.reduceat(amplitudes, starts, axis=0)  # of the frequencies that differ only in signs
        how_many = 2 * np.diff([*starts, len(rows)])
        errors = how_many[:, None] * (np.abs(weights) @ self.error)
        return ((together + errors).T @ table) * (1 + SLACK)


def _tuples(values: Any, joints: int) -> Any:
    return np.array(list(product(values, repeat=joints))).reshape(-1, joints)


@lru_cache(maxsize=4)
def _half(joints: int) -> tuple[Any, Any, Any]:
    """Rows of one of every two conjugate nonzero frequencies, grouped by magnitudes.

    Also returns the start of each group and its magnitudes (groups, joints).
    """
    frequencies = _tuples(FREQUENCIES, joints)
    leading = np.array([next((x for x in row if x), 0) for row in frequencies])
    rows = np.flatnonzero(leading > 0)
    codes = np.abs(frequencies[rows]) @ 3 ** np.arange(joints)
    rows = rows[np.argsort(codes, kind="stable")]
    _, starts = np.unique(np.sort(codes), return_index=True)
    return rows, starts, np.abs(frequencies[rows[starts]]).astype(float)


def _remainder_table(sizes: Any, order: int) -> Any:
    """(groups, monomials): the remainder for coefficients of total size 1, Π |a_k|^e_k / e_k! for each monomial r^e."""
    columns = [
        np.prod([sizes[:, k] for k in one], axis=0) / factorials(one) for one in monomials(order, sizes.shape[1])
    ]
    return np.stack(columns, axis=1)


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
    programs: dict[tuple[int, ...], Program] = {(): program}
    for key in [()] + [one for below in range(1, order - 1) for one in monomials(below, len(used))]:
        port, slopes = programs[key].outputs[0], jacobian(programs[key], ("q",)).outputs[0].nodes
        for k in range(key[-1] if key else 0, len(used)):
            nodes = tuple(slopes[m * n + used[k]] for m in range(len(port.nodes)))
            programs[*key, k] = Program(program.name, program.inputs, (Port(port.name, port.shape, nodes),))
    return programs


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


MOST_HALVINGS = 10  # down to 0.003 rad, so that the rounding of centres stays far below SLACK times the radius
MOST_CORNERS = 5000  # of the velocity boxes


@dataclass(frozen=True)
class Corners(Pieces):
    """Boxes of angles, each with one velocity corner: centres and numbers of halvings per side (pieces, n).

    They are split along an angle. `value` is the value at the centre.
    """

    centre: Any
    level: Any
    corner: Any
    value: Any


class Remainders:
    """A remainder polynomial in the radii that is valid for every motion seen so far."""

    def __init__(self, expansion: Expansion) -> None:
        self.expansion = expansion
        self.polynomial: Any = np.zeros(len(monomials(ORDER, expansion.joints)))
        self._known: set[tuple[float, ...]] = set()

    def grown(self, qd: Any, qdd: Any) -> bool:
        """Extend the polynomial to motions (motions, n); returns whether any of them was new."""
        new = [row for row in np.concatenate([qd, qdd], axis=1) if tuple(row) not in self._known]
        if not new:
            return False
        self._known.update(map(tuple, new))
        weights = self.expansion.weights(*np.split(np.array(new), 2, axis=1))
        rows = self.expansion.series.remainders(weights, ORDER)
        self.polynomial = np.maximum(self.polynomial, rows.max(axis=0))
        return True


class MotionRegion:
    """Bounds of sign × entry over boxes of angles, for all motions."""

    def __init__(self, expansion: Expansion, sign: float, remainders: Remainders, parts: int = 1) -> None:
        """The velocity ranges are split into `parts`; all of their corners are searched."""
        self.expansion, self.sign, self.remainders, self.parts = expansion, sign, remainders, parts
        self.n = n = expansion.n
        q = expansion.ranges["q"]
        self.middle, self.radius = (q[:, 0] + q[:, 1]) / 2, np.zeros(n)
        half = np.minimum((q[:, 1] - q[:, 0]) / 2, math.pi)  # at most one full turn
        self.radius[expansion.angles] = np.nextafter(half, np.inf)[expansion.angles]
        self.qd, self.qdd = (expansion.ranges.get(name, np.zeros((n, 2))) for name in ("qd", "qdd"))
        self.corners = self._corners()
        # Accelerations are computed as centre ± half-width of their range, which rounds the ends.
        ends = np.abs(self.qdd).max(axis=1) * 2.0**-50 @ np.abs(expansion.series.coefficients[:, :n]).sum(axis=0)
        self.lost = (expansion.lost(self.radius[expansion.angles]) + float(ends)) * (1 + SLACK)
        squares = (np.ptp(self.qd, axis=1) / (2 * parts)) ** 2 * (1 + SLACK)
        self._accelerating = self.qdd.mean(axis=1), np.ptp(self.qdd, axis=1) / 2, squares
        self._halvings = 0.5 ** np.arange(MOST_HALVINGS + 2)
        self.limit = expansion.limit
        self._seen: set[int] = set()

    def _corners(self) -> Any:
        """The corners (corners, n) of the velocity box; only one of two opposite corners, which are equivalent."""
        nodes = self.expansion.coefficients.outputs[1].nodes
        there = [
            pair for pair, node in zip(self.expansion.pairs, nodes, strict=True) if node.op != "const" or node.value
        ]
        matters = {joint for pair in there for joint in pair}
        cuts = [np.unique(np.linspace(low, high, self.parts + 1)) for low, high in self.qd]
        ends = [cuts[j].tolist() if j in matters else [self.qd[j, 0]] for j in range(self.n)]
        corners = np.array(list(product(*ends)))
        if not np.array_equal(self.qd[:, 0], -self.qd[:, 1]):
            return corners
        first = [next((x for j, x in enumerate(row) if j in matters and x), 0) >= 0 for row in corners]
        return corners[first]

    def start(self) -> Corners:
        """The whole range of angles, once for every corner."""
        count = len(self.corners)
        level = np.zeros((count, self.n), dtype=np.int8)
        return self._bounded(np.tile(self.middle, (count, 1)), level, np.arange(count, dtype=np.int16))

    def cut(self, pieces: Corners, enough: float) -> Corners:
        """Both halves of every box."""
        rows = np.arange(len(pieces))
        level = pieces.level.copy()
        level[rows, pieces.along] += 1
        shift = np.zeros_like(pieces.centre)
        shift[rows, pieces.along] = self.radius[pieces.along] * 0.5 ** level[rows, pieces.along]
        halves = []
        for centre in (pieces.centre - shift, pieces.centre + shift):
            for at in range(0, len(pieces), BATCH):
                some = slice(at, at + BATCH)
                part = self._bounded(centre[some], level[some], pieces.corner[some], enough)
                halves.append(
                    replace(part, above=np.minimum(part.above, pieces.above[some]))
                )  # no worse than the whole
        return Corners(*(np.concatenate([getattr(h, f.name) for h in halves]) for f in fields(Corners)))

    def best(self, pieces: Corners) -> tuple[float, Any]:
        """The largest value at a centre."""
        k = int(np.argmax(pieces.value))
        one = pieces[k : k + 1]
        _, value, _, key = self._evaluated(one.centre, one.level, one.corner)
        motion = {"q": one.centre, "qd": self.corners[one.corner], "qdd": self._accelerations(key[:, 0])}
        return float(value[0, 0]), np.concatenate([motion[name][0] for name in self.expansion.names])

    def refined(self) -> MotionRegion | None:
        """The same with the velocity ranges split in two, where chords are closer to concave squares."""
        parts = 2 * self.parts
        if not np.ptp(self.qd).any() or (parts + 1) ** int((np.ptp(self.qd, axis=1) > 0).sum()) > MOST_CORNERS:
            return None
        return MotionRegion(self.expansion, self.sign, self.remainders, parts)

    def _accelerations(self, keys: Any) -> Any:
        """(motions, n) accelerations decoded from the keys that the bound's program returns."""
        signs = keys.astype(int)[:, None] // 3 ** np.arange(self.n) % 3 - 1
        return self.qdd.mean(axis=1) + np.ptp(self.qdd, axis=1) / 2 * signs

    def _evaluated(self, centre: Any, level: Any, corner: Any) -> Any:
        """Evaluate the bound's program on these pieces."""
        radius = self.radius * self._halvings[level] * (1 + SLACK)
        given = self.remainders.polynomial, self.expansion.row_remainders, *self._accelerating
        return self.expansion.bound(centre, radius, self.corners[corner], np.array([self.sign]), *given)

    def _bounded(self, centre: Any, level: Any, corner: Any, enough: float = math.inf) -> Corners:
        """The pieces with their bounds, the values at their centres, and the angles to split."""
        above, value, each, key = self._evaluated(centre, level, corner)
        motions = np.unique(corner.astype(np.int64) * 3**self.n + key[:, 0].astype(np.int64))
        new = np.array([one for one in motions.tolist() if one not in self._seen], dtype=np.int64)
        if len(new):
            self._seen.update(new.tolist())
            keys = new % 3**self.n
            if self.remainders.grown(self.corners[new // 3**self.n], self._accelerations(keys)):
                above, value, each, key = self._evaluated(centre, level, corner)
        above = above[:, 0] + np.abs(above[:, 0] - value[:, 0]) * SLACK + self.lost
        if self.expansion.still:
            radius = self.radius * self._halvings[level] * (1 + SLACK)
            small = (radius <= math.pi / 2 + 1e-9).all(axis=1)  # as the interval enclosure requires
            low, high = self.expansion.enclosure(centre - radius, centre + radius)
            above = np.where(small, np.minimum(above, (high if self.sign > 0 else -low)[:, 0]), above)
        if self.limit is not None:
            above, each = self._limited(self.limit, centre, level, above, each, enough)
        each[level[:, self.expansion.angles] >= MOST_HALVINGS] = -1
        along = self.expansion.angles[np.argmax(each, axis=1)].astype(np.int8)
        along[each.max(axis=1) < 0] = -1
        return Corners(above, along, centre, level, corner, value[:, 0].astype(np.float32))

    def _limited(
        self, limit: Enclosure, centre: Any, level: Any, above: Any, each: Any, enough: float
    ) -> tuple[Any, Any]:
        """Bounds no larger than the force under the worst direction of gravity, and the angles to split.

        Where this limit is the active bound and may still fall below `enough`, the angles it depends on are split.
        """
        used = limit.used
        radius = self.radius * self._halvings[level] * (1 + SLACK) * used
        ends = limit(centre - radius, centre + radius)
        least, most = (np.sqrt(np.maximum(end[:, 0], 0)) * (1 + SLACK) for end in ends)
        most = np.where((radius <= math.pi / 2 + 1e-9).all(axis=1), most, np.inf)  # as the enclosure requires
        decides = (most < above) & (least <= enough) & used.any()
        each = np.where(decides[:, None], radius[:, self.expansion.angles], each)
        return np.minimum(above, most), each
