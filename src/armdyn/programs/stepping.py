"""One step of a fixed-step integration method: its coefficients, and its arithmetic over any scalar.

A step is written once. `step` runs over numbers and nodes, so that it can be evaluated, traced, and compiled by every
backend (`step_program`); the compiled loop of `simulate` runs its parts over SIMD lanes, a simulation under a Python
function runs them over arrays, and `stage_programs` writes them for the C code of FMUs and for WebAssembly. What a step
does when joints come to rest or meet their stops is decided around it: the modes of the joints are constant in here.

Sources: Kutta 1901 (RK4); Dormand and Prince 1980, the fifth-order weights (RK5); Adams and Bashforth 1883 (AB4);
Kennedy and Carpenter 2003, ARK4(3)6L[2]SA (ARK4).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import combinations_with_replacement, product
from typing import Any, TypeVar

from armdyn.algebra import sqrt
from armdyn.errors import choose
from armdyn.formulations.coordinates import pose_rate
from armdyn.graph.program import Program, flatten, inline, trace
from armdyn.options import ADAPTIVE, FIXED
from armdyn.values import cached_property

IN_FLOATS = 1e-13  # of a condition of order, whose terms are at most about 10; exactly they are tested
POSE, TWIST = 7, 6  # the numbers of a floating base: position and quaternion, linear and angular velocity
QUATERNION = slice(3, POSE)
Fused = Callable[[Any, Any, Any], Any]  # (a, x, y) -> a x + y
Slope = tuple[Sequence[Any], Sequence[Any]]  # the rates of the coordinates, and the accelerations
Coefficients = tuple[tuple[Any, ...], ...]
Documented = TypeVar("Documented", bound=Any)
Tree = tuple[Any, ...]  # a rooted tree: its subtrees, each with the part (0 or 1) of the pair that leads to it


# --- the methods as data that checks itself ------------------------------------------------------------------------


@dataclass(frozen=True)
class Scheme:
    """A method: y_i = y + h Σ a_ij k_j, y⁺ = y + h Σ b_i k_i, with k_i the slope at y_i.

    An implicit scheme has a second set of coefficients, `implicit`, one longer per row than `a`: the last is the
    stage's own. Stiff terms are taken at those stage values, everything else at the values of `a`
    (semi-implicit Runge-Kutta, Boscarino, Filbet and Russo 2016).
    """

    name: str
    order: int
    a: Coefficients
    b: tuple[Any, ...]
    past: tuple[Any, ...] = ()  # weights of earlier slopes, newest first
    velocity_first: bool = False  # semi-implicit: the new velocity moves the position
    implicit: Coefficients = ()

    def __post_init__(self) -> None:
        if any(len(row) != i for i, row in enumerate(self.a)) or len(self.a) != len(self.b):
            raise ValueError(f"{self.name}: not an explicit tableau")
        for name, residual in self.residuals(float):
            if abs(residual) > IN_FLOATS:
                raise ValueError(f"{self.name} is not of order {self.order}: {name} is off by {float(residual):.3g}")

    @cached_property
    def nodes(self) -> tuple[Fraction, ...]:
        """The stages' times as fractions of a step: row sums of a."""
        return tuple(sum(row, Fraction(0)) for row in self.a)

    @cached_property
    def rows(self) -> tuple[tuple[float, tuple[float, ...]], ...]:
        """Every stage's time and weights in floats."""
        return tuple((float(c), tuple(map(float, row))) for c, row in zip(self.nodes, self.a, strict=True))

    @cached_property
    def weights(self) -> tuple[float, ...]:
        """The weights of the stages in the step, in floats."""
        return tuple(map(float, self.b))

    @property
    def stages(self) -> int:
        """Evaluations per step."""
        return len(self.b)

    @property
    def single_step(self) -> Scheme:
        """The method itself; for one with a past, the first explicit one-step method of its order, which starts it."""
        able = (one for one in SCHEMES.values() if one.order >= self.order and not (one.past or one.implicit))
        return next(able) if self.past else self

    def residuals(self, number: Callable[[Any], Any] = Fraction) -> Iterator[tuple[str, Any]]:
        """The conditions of the method's order by name, each with its residual, in fractions or floats: all are 0."""
        b, zero = [number(x) for x in self.b], number(0)
        if self.past:  # a multistep method integrates polynomials of lower degree exactly
            for degree in range(self.order):
                total = sum((w * (-k) ** degree for k, w in enumerate([*b, *map(number, self.past)])), zero)
                yield f"the integral of t^{degree}", total - number(Fraction(1, degree + 1))
            return
        tableaus = [
            [[*map(number, row), *[zero] * (self.stages - len(row))] for row in rows]
            for rows in (self.a, self.implicit)
            if rows
        ]
        for i, (row, other) in enumerate(zip(tableaus[0], tableaus[-1], strict=True)):
            yield f"the time of stage {i}", sum(row, zero) - sum(other, zero)
        for size in range(1, self.order + 1):
            for tree in rooted_trees(size, len(tableaus)):
                weights = _elementary(tree, tableaus)
                total = sum((w * x for w, x in zip(b, weights, strict=True)), zero)
                yield f"the condition of the tree {_drawn(tree)}", total - number(Fraction(1, _density(tree)))


@lru_cache(maxsize=32)
def rooted_trees(size: int, parts: int = 1) -> tuple[Tree, ...]:
    """The rooted trees with so many nodes, in which every edge belongs to one of the parts of a method.

    Butcher 1963; for pairs of methods see Hairer, Lubich and Wanner 2006, section III.2.
    """
    if size == 1:
        return ((),)
    trees: dict[Tree, None] = {}
    for sizes in _partitions(size - 1):
        for subtrees in product(*(rooted_trees(k, parts) for k in sizes)):
            for edges in product(range(parts), repeat=len(sizes)):
                trees[tuple(sorted(zip(edges, subtrees, strict=True), key=repr))] = None
    return tuple(trees)


def _partitions(total: int) -> Iterator[tuple[int, ...]]:
    for count in range(1, total + 1):
        yield from (p for p in combinations_with_replacement(range(1, total + 1), count) if sum(p) == total)


def _elementary(tree: Tree, parts: Sequence[Sequence[Sequence[Any]]]) -> list[Any]:
    """The elementary weights of a tree at every stage."""
    weights: list[Any] = [1] * len(parts[0])
    for edge, subtree in tree:
        inner = _elementary(subtree, parts)
        weights = [
            w * sum(a * x for a, x in zip(row, inner, strict=True)) for w, row in zip(weights, parts[edge], strict=True)
        ]
    return weights


def _nodes(tree: Tree) -> int:
    return 1 + sum(_nodes(subtree) for _, subtree in tree)


def _density(tree: Tree) -> int:
    total = _nodes(tree)
    for _, subtree in tree:
        total *= _density(subtree)
    return total


def _drawn(tree: Tree) -> str:
    return "[" + "".join("ae"[edge] + _drawn(subtree) for edge, subtree in tree) + "]"


RK4 = Scheme(
    "RK4",
    4,
    ((), (Fraction(1, 2),), (Fraction(0), Fraction(1, 2)), (Fraction(0), Fraction(0), Fraction(1))),
    (Fraction(1, 6), Fraction(1, 3), Fraction(1, 3), Fraction(1, 6)),
)
RK5 = Scheme(
    "RK5",
    5,
    (
        (),
        (Fraction(1, 5),),
        (Fraction(3, 40), Fraction(9, 40)),
        (Fraction(44, 45), Fraction(-56, 15), Fraction(32, 9)),
        (Fraction(19372, 6561), Fraction(-25360, 2187), Fraction(64448, 6561), Fraction(-212, 729)),
        (Fraction(9017, 3168), Fraction(-355, 33), Fraction(46732, 5247), Fraction(49, 176), Fraction(-5103, 18656)),
    ),
    (Fraction(35, 384), Fraction(0), Fraction(500, 1113), Fraction(125, 192), Fraction(-2187, 6784), Fraction(11, 84)),
)
_ARK4_WEIGHTS = (
    Fraction(82889, 524892),
    Fraction(0),
    Fraction(15625, 83664),
    Fraction(69875, 102672),
    Fraction(-2260, 8211),
    Fraction(1, 4),
)
# The implicit half of the pair: row i has the coefficients of the stages before and its own, 1/4.
_ARK4_IMPLICIT = (
    (),
    (Fraction(1, 4), Fraction(1, 4)),
    (Fraction(8611, 62500), Fraction(-1743, 31250), Fraction(1, 4)),
    (Fraction(5012029, 34652500), Fraction(-654441, 2922500), Fraction(174375, 388108), Fraction(1, 4)),
    (
        Fraction(15267082809, 155376265600),
        Fraction(-71443401, 120774400),
        Fraction(730878875, 902184768),
        Fraction(2285395, 8070912),
        Fraction(1, 4),
    ),
    _ARK4_WEIGHTS,
)
ARK4 = Scheme(
    "ARK4",
    4,
    (
        (),
        (Fraction(1, 2),),
        (Fraction(13861, 62500), Fraction(6889, 62500)),
        (
            Fraction(-116923316275, 2393684061468),
            Fraction(-2731218467317, 15368042101831),
            Fraction(9408046702089, 11113171139209),
        ),
        (
            Fraction(-451086348788, 2902428689909),
            Fraction(-2682348792572, 7519795681897),
            Fraction(12662868775082, 11960479115383),
            Fraction(3355817975965, 11060851509271),
        ),
        (
            Fraction(647845179188, 3216320057751),
            Fraction(73281519250, 8382639484533),
            Fraction(552539513391, 3454668386233),
            Fraction(3354512671639, 8306763924573),
            Fraction(4040, 17871),
        ),
    ),
    _ARK4_WEIGHTS,
    implicit=_ARK4_IMPLICIT,
)
# The velocity's new value moves the position.
EULER = Scheme("semi_implicit_euler", 1, ((),), (Fraction(1),), velocity_first=True)
# Newest first; started by a one-step method of its order.
AB4 = Scheme(
    "AB4", 4, ((),), (Fraction(55, 24),), past=(Fraction(-59, 24), Fraction(37, 24), Fraction(-9, 24)),
)  # fmt: skip

SCHEMES = {scheme.name: scheme for scheme in (RK4, RK5, AB4, ARK4, EULER)}
if set(SCHEMES) != set(FIXED):
    raise ImportError(f"methods without coefficients or without a line in options.FIXED: {set(SCHEMES) ^ set(FIXED)}")
METHODS = (*FIXED, *ADAPTIVE)


def one_step_methods() -> tuple[str, ...]:
    """The explicit methods that need nothing but the state: a step of these is one program."""
    return tuple(name for name, scheme in SCHEMES.items() if not scheme.past and not scheme.implicit)


def without_past() -> tuple[str, ...]:
    """The methods that torques which jump from step to step may have."""
    return tuple(name for name, scheme in SCHEMES.items() if not scheme.past)


def listing_methods(function: Documented) -> Documented:
    """Fill the names of all methods into a docstring, for {FIXED}, {ADAPTIVE} and {WITHOUT_PAST}."""
    lists = {"FIXED": FIXED, "ADAPTIVE": ADAPTIVE, "WITHOUT_PAST": without_past()}
    for place, names in lists.items():
        function.__doc__ = (function.__doc__ or "").replace("{" + place + "}", ", ".join(names))
    return function


# --- the arithmetic of a step, over any scalar ---------------------------------------------------------------------


def multiply_add(factor: Any, x: Any, term: Any) -> Any:
    """The sum of factor · x and term, rounded twice."""
    return factor * x + term


def combined(start: Any, h: Any, terms: Iterable[tuple[Any, Any]], fused: Fused = multiply_add) -> Any:
    """The sum start + h Σ weight · slope over scalars or arrays; slopes of weight 0 are left out."""
    total = None
    for weight, slope in terms:
        if weight:
            total = weight * slope if total is None else fused(weight, slope, total)
    return start if total is None else fused(h, total, start)


def rates(q: Sequence[Any], qd: Sequence[Any]) -> list[Any]:
    """The rates of the coordinates: the velocities, behind those of a floating base's pose."""
    if len(q) == len(qd):
        return list(qd)
    return [*pose_rate(list(q[:POSE]), list(qd[:TWIST])), *qd[TWIST:]]


def normalised(q: Sequence[Any], floating: bool) -> list[Any]:
    """The coordinates with a quaternion of length 1."""
    if not floating:
        return list(q)
    x, y, z, w = q[QUATERNION]
    length = sqrt(x * x + y * y + z * z + w * w)
    return [*q[: QUATERNION.start], *(part / length for part in (x, y, z, w)), *q[POSE:]]


def moved(
    y: Sequence[Any], h: Any, weights: Sequence[Any], slopes: Sequence[Sequence[Any]], fused: Fused = multiply_add
) -> list[Any]:
    """The entries of y + h Σ weight · slope."""
    return [combined(x, h, [(w, k[j]) for w, k in zip(weights, slopes, strict=True)], fused) for j, x in enumerate(y)]


def advanced(
    scheme: Scheme, q: Sequence[Any], qd: Sequence[Any], h: Any, slopes: Sequence[Slope], fused: Fused = multiply_add
) -> tuple[list[Any], list[Any]]:
    """(q, q̇) after a step with the slopes of its stages, then of earlier steps; the quaternion is not normalised."""
    own, past = slopes[: scheme.stages], slopes[scheme.stages :]
    after = moved(qd, h, scheme.b, [qdd for _, qdd in own], fused)
    if scheme.velocity_first:
        return moved(q, h, (1,), [rates(q, after)], fused), after
    before = moved(q, h, scheme.b, [rate for rate, _ in own], fused)
    for weight, (rate, qdd) in zip(scheme.past, past, strict=True):
        before, after = moved(before, h, (weight,), [rate], fused), moved(after, h, (weight,), [qdd], fused)
    return before, after


def step(
    scheme: Scheme, q: Sequence[Any], qd: Sequence[Any], h: Any, accelerations: Callable[..., Any]
) -> tuple[list[Any], list[Any]]:
    """(q⁺, q̇⁺) of an explicit one-step method; `accelerations(stage, q, qd)` gives q̈ at a stage."""
    slopes: list[Slope] = []
    for stage, row in enumerate(scheme.a):
        q_at, qd_at = (moved(x, h, row, [slope[k] for slope in slopes]) for k, x in enumerate((q, qd)))
        slopes.append((rates(q_at, qd_at), accelerations(stage, q_at, qd_at)))
    after, velocities = advanced(scheme, q, qd, h, slopes)
    return normalised(after, len(q) != len(qd)), velocities


# --- steps as programs ---------------------------------------------------------------------------------------------


def step_program(dynamics: Program, method: str) -> Program:
    """One step with constant torques as one program, for any backend.

    `dynamics` gives accelerations: its inputs begin with q and qd, and its only output is qdd, as of
    ``arm.kernel("forward_dynamics", parameters="runtime", friction=True).program``. The step has the same inputs and
    its length `h`; its outputs are `q1` and `qd1`. Torques, run-time parameters and all else are the same in every
    stage. Nothing sticks or stops: dry friction changes its sign with the velocity.
    """
    scheme = SCHEMES[choose("method of one step", method, one_step_methods())]
    if [port.name for port in dynamics.inputs[:2]] != ["q", "qd"] or [p.name for p in dynamics.outputs] != ["qdd"]:
        raise ValueError(f"a step needs a program with inputs q, qd, ... and output qdd, got {dynamics!r}")
    q, qd, *others = dynamics.inputs

    def function(q: Any, qd: Any, *given: Any) -> Any:
        *rest, h = given
        fixed = [flatten(x) for x in rest]
        return step(scheme, q, qd, h, lambda stage, x, v: inline(dynamics, x, v, *fixed)[0])

    inputs = {port.name: port.shape for port in (q, qd, *others)}
    outputs = [("q1", q.shape), ("qd1", qd.shape)]
    return trace(f"{method}_step", function, inputs | {"h": ()}, outputs)


def stage_programs(method: str, nq: int, nv: int) -> list[Program]:
    """The arithmetic between the evaluations of a step: one program per stage after the first, and one for the end.

    The program of stage k takes q, qd, then per earlier stage the rates of q (`r0`, ...) and the accelerations (`a0`,
    ...), and h; its outputs are q and qd of the stage (`q1`, `qd1`). The last one gives those of the step's end.
    """
    scheme = SCHEMES[choose("method of one step", method, one_step_methods())]

    def made(count: int, function: Callable[..., Any]) -> Program:
        slopes = {f"{name}{k}": (size,) for k in range(count) for name, size in (("r", nq), ("a", nv))}
        name = f"stage_{count}" if count < scheme.stages else "end_of_step"
        ports = {"q": (nq,), "qd": (nv,), **slopes, "h": ()}
        return trace(name, function, ports, [("q1", (nq,)), ("qd1", (nv,))])

    def stage(q: Any, qd: Any, *given: Any) -> Any:
        *slopes, h = given
        row = scheme.a[len(slopes) // 2]
        return moved(q, h, row, slopes[::2]), moved(qd, h, row, slopes[1::2])

    def end(q: Any, qd: Any, *given: Any) -> Any:
        *slopes, h = given
        after, velocities = advanced(scheme, q, qd, h, list(zip(slopes[::2], slopes[1::2], strict=True)))
        return normalised(after, nq != nv), velocities

    return [*(made(k, stage) for k in range(1, scheme.stages)), made(scheme.stages, end)]
