"""Minimal linear combinations of an arm's inertial parameters (base parameters): those identifiable from its motion.

Source: Lin 1994: Theorem 5 (actuator forces), Theorem 4 (gravity load), Theorem 3 (inertia matrix),
Theorem 2 (their union).

Without gravity, the elements of Theorem 5 are not all independent, and eqs. (60), (61) do not give the reduction; mimic
joints make more of them dependent. In these cases exact elimination among the theorem's elements finds the
combinations. In a tree the theorems hold path by path.

The way back, from minimal parameters to links that have them, with many zeros: each element is assigned to the natural
parameter of its own link, and every revolute link gets minus the parameters that its outer neighbours regroup into it
(mass, m c_z, I_yy), so that nothing is regrouped further inwards. In an all-revolute arm the links are then (0, kx, ky,
0, U11-22, U12, 0, U13, U23, U33). The map is linear in the values, which may be of any scalar type.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

from armdyn.algebra import Angle, Scalar, Sym3, Vec3, exact
from armdyn.chain import Chain, Link
from armdyn.chain.joint import MASSLESS, NATURAL, Mimic
from armdyn.errors import InputError
from armdyn.parameters.elimination import exact_combinations, solved_for
from armdyn.parameters.energy import EnergySamples, ParameterColumns
from armdyn.parameters.expression import (
    Expression,
    Polynomial,
    element_polynomials,
    row_of,
    symbol,
    symbolic_chain,
    terms_of,
)
from armdyn.parameters.structure import (
    Constants,
    Element,
    Structure,
    first_axis,
    inertia_constants,
    is_nonzero,
    regrouped,
    structure,
    theorem_4,
    theorem_5,
)
from armdyn.values import cached_property

NOTHING = Constants(MASSLESS.mass, MASSLESS.moment, MASSLESS.inertia)


def realised(chain: Chain, at: Structure, values: Mapping[Element, Scalar]) -> tuple[Link, ...]:
    """Links whose elements have these values; other elements are arbitrary."""
    links = [MASSLESS] * chain.bodies
    carried = [NOTHING] * chain.bodies
    for i in reversed(range(chain.bodies)):
        joint, parent = chain.joints[i], chain.parents[i]
        own = _free(carried[i], values) if joint.free else _OWN[joint.kind](i, carried[i], at.axis[i], values)
        links[i] = own
        if parent >= 0:
            total = Constants(own.mass, own.moment, own.inertia) + carried[i]
            carried[parent] = carried[parent] + regrouped(joint, total)
    return tuple(links)


def _free(carried: Constants, values: Mapping[Element, Scalar]) -> Link:
    """The link of a floating base: each of its ten elements, minus the contributions of its children."""

    def own(kind: str) -> Scalar:
        element = Element(kind, 0)
        return values[element] - element.of(carried, None) if element in values else 0

    moment = Vec3(own("kx"), own("ky"), own("kz"))
    return Link(own("m"), moment, Sym3(own("U11"), own("U12"), own("U22"), own("U13"), own("U23"), own("U33")))


def _revolute(i: int, carried: Constants, axis: Vec3 | None, values: Mapping[Element, Scalar]) -> Link:
    def own(kind: str, brought: Scalar) -> Scalar:
        element = Element(kind, i)
        return values[element] - brought if element in values else 0

    k, U = carried.k, carried.U
    moment = Vec3(own("kx", k.x), own("ky", k.y), -k.z)
    inertia = Sym3(own("U11-22", U.xx), own("U12", U.xy), -U.yy, own("U13", U.xz), own("U23", U.yz), own("U33", U.zz))
    return Link(-carried.mass, moment, inertia)


def _prismatic(i: int, carried: Constants, axis: Vec3 | None, values: Mapping[Element, Scalar]) -> Link:
    def own(kind: str) -> Scalar:
        element = Element(kind, i)
        return values[element] - element.of(carried, axis) if element in values else 0

    if axis is not None and Element("kappa1", i) in values:
        across = axis.x * axis.x + axis.y * axis.y
        first = own("kappa1") / across
        moment = Vec3(-axis.y * first, axis.x * first, own("kappa2") / across)
    else:
        moment = Vec3(own("kx"), own("ky"), own("kz"))
    return Link(own("m"), moment, MASSLESS.inertia)


_OWN = {"revolute": _revolute, "prismatic": _prismatic}


Combination = tuple[tuple[Element, Fraction], ...]  # first the element that gives the name, with factor 1


@dataclass(frozen=True)
class MinimalParameters:
    """A set of minimal parameters of a chain: names, formulas, values, and the matrix from natural parameters."""

    chain: Chain
    kind: str
    combinations: tuple[Combination, ...]

    def __repr__(self) -> str:
        names = ", ".join(self.names[:6]) + (", …" if len(self.names) > 6 else "")
        return f"<{len(self.names)} minimal parameters ({self.kind}): {names}>"

    def __rich__(self) -> Any:
        from rich.table import Table

        table = Table("parameter", "value [SI]", "formula", title=repr(self)[1:-1])
        for name, value, formula in zip(self.names, self.values, self.expressions, strict=True):
            table.add_row(name, f"{float(value):.6g}", str(formula))
        return table

    def _repr_html_(self) -> str:
        from html import escape

        rows = "".join(
            f"<tr><td>{escape(name)}</td><td>{float(value):.6g}</td><td>{escape(str(formula))}</td></tr>"
            for name, value, formula in zip(self.names, self.values, self.expressions, strict=True)
        )
        table = f"<table><tr><th>parameter</th><th>value [SI]</th><th>formula</th></tr>{rows}</table>"
        return f"{table}<p>{escape(self.summary)}</p>"

    @cached_property
    def influence(self) -> tuple[tuple[int, ...], ...]:
        """Per body: 1 for natural parameters that determine the motion alone, 2 only in combination, 0 not at all."""
        kinds = [0] * (10 * self.chain.bodies)
        for row in self.matrix:
            used = [k for k, factor in enumerate(row) if factor != 0]
            for k in used:
                kinds[k] = 2 if len(used) > 1 else max(kinds[k], 1)
        return tuple(tuple(kinds[k : k + 10]) for k in range(0, len(kinds), 10))

    @property
    def summary(self) -> str:
        """In words: how many natural parameters determine the motion alone, only in combination, and which do not."""
        of = self.influence
        alone, together, none = (sum(row.count(kind) for row in of) for kind in (1, 2, 0))
        idle = [
            f"link {k}: {', '.join(name for name, kind in zip(NATURAL, row, strict=True) if kind == 0)}"
            for k, row in enumerate(of, 1)
            if 0 in row
        ]
        listed = f" ({'; '.join(idle)})" if idle else ""
        return (
            f"Of {10 * len(of)} inertial parameters {alone} determine the motion alone, {together} only in combination,"
            f" {none} not at all{listed}."
        )

    @property
    def names(self) -> tuple[str, ...]:
        """As in the paper: ``U33_1``, ``U11-22_2``, ``kx_2``, ``m_3``, ``kappa1_2``."""
        return tuple(combination[0][0].name for combination in self.combinations)

    def __len__(self) -> int:
        return len(self.combinations)

    @cached_property
    def matrix(self) -> tuple[tuple[Fraction, ...], ...]:
        """The exact p × 10 N matrix for N bodies: values = matrix · natural parameters, in Pinocchio's order."""
        return tuple(row_of(polynomial, self.chain.bodies) for polynomial in _numbers(self))

    @cached_property
    def array(self) -> Any:
        """The matrix as a NumPy array of floats."""
        import numpy as np

        return np.array([[float(x) for x in row] for row in self.matrix]).reshape(len(self), 10 * self.chain.bodies)

    @cached_property
    def exact_values(self) -> tuple[Scalar, ...]:
        """The values in the scalar type of the links (rational for a chain from a file)."""
        constants = inertia_constants(self.chain)
        axis = chain_structure(self.chain).axis
        values = []
        for combination in self.combinations:
            value = 0
            for element, factor in combination:
                value = value + element.of(constants[element.link], axis[element.link]) * factor
            values.append(value)
        return tuple(values)

    @cached_property
    def values(self) -> tuple[float, ...]:
        """The values as floats."""
        return tuple(float(x) for x in self.exact_values)

    @cached_property
    def expressions(self) -> tuple[Expression, ...]:
        """Each parameter as a formula in the natural parameters, with numbers and with symbols for the geometry.

        Coefficients from exact elimination are numbers in both.
        """
        symbolic = element_polynomials(symbolic_chain(self.chain), chain_structure(self.chain))
        formulas = [_combined(combination, symbolic) for combination in self.combinations]
        return tuple(
            Expression(name, numbers, symbols)
            for name, numbers, symbols in zip(self.names, _numbers(self), formulas, strict=True)
        )

    def as_dict(self) -> dict[str, Any]:
        """The set as plain numbers and text, for files."""
        return {
            "kind": self.kind,
            "parameters": [
                {
                    "name": e.name,
                    "value": value,
                    "expression": e.text,
                    "symbolic": e.symbolic,
                    "latex": e.symbolic_latex,
                }
                for e, value in zip(self.expressions, self.values, strict=True)
            ],
            "matrix": [[float(x) for x in row] for row in self.matrix],
        }

    @cached_property
    def realisation(self) -> tuple[tuple[Fraction, ...], ...]:
        """The exact, sparse 10 N × p matrix that maps minimal parameters to natural parameters that have them."""
        return _realisation(exact_geometry(self.chain), self.combinations)

    def links(self, values: Sequence[Scalar]) -> tuple[Link, ...]:
        """Links with many zeros that have these minimal parameters; the values may be of any scalar type."""
        given: dict[Element, Scalar] = {element: 0 for combination in self.combinations for element, _ in combination}
        for combination, value in sorted(zip(self.combinations, values, strict=True), key=lambda pair: len(pair[0])):
            own, *others = combination  # elements that stand alone come first: others may depend on them
            for element, factor in others:
                value = value - factor * given[element]
            given[own[0]] = value
        chain = exact_geometry(self.chain)
        return realised(chain, _structure(chain), given)


def minimal_parameters(chain: Chain) -> MinimalParameters:
    """The minimal parameters of the actuator forces: Lin 1994, Theorem 5, in its order."""
    kind, combinations = _for_forces(exact_geometry(chain))
    return MinimalParameters(chain, kind, combinations)


def inertia_matrix_parameters(chain: Chain) -> MinimalParameters:
    """The minimal parameters of the inertia matrix alone (Lin 1994, Theorem 3): those without gravity."""
    _, combinations = _for_forces(replace(exact_geometry(chain), gravity=Vec3(0, 0, 0)))
    return MinimalParameters(chain, "theorem 3, inertia matrix alone: exact elimination", combinations)


def gravity_parameters(chain: Chain) -> MinimalParameters:
    """The minimal parameters of the gravity load alone: Lin 1994, Theorem 4, in its order."""
    geometry = exact_geometry(chain)
    elements = theorem_4(geometry, _structure(geometry))
    return MinimalParameters(chain, "theorem 4, gravity load alone", _each(elements))


def union(a: MinimalParameters, b: MinimalParameters) -> MinimalParameters:
    """The linearly independent elements of two sets (Lin 1994, Theorem 2)."""
    elements = list(dict.fromkeys(e for s in (a, b) for combination in s.combinations for e, _ in combination))
    column = {element: k for k, element in enumerate(elements)}
    kept: list[Combination] = []
    for combination in (*a.combinations, *b.combinations):
        rows = [{column[e]: f for e, f in c} for c in (*kept, combination)]
        if len(solved_for(rows, range(len(elements)))) > len(kept):
            kept.append(combination)
    return MinimalParameters(a.chain, f"theorem 2, union of ({a.kind}) and ({b.kind})", tuple(kept))


def _each(elements: Sequence[Element]) -> tuple[Combination, ...]:
    return tuple(((element, Fraction(1)),) for element in elements)


@lru_cache(maxsize=64)
def _for_forces(geometry: Chain) -> tuple[str, tuple[Combination, ...]]:
    elements = theorem_5(geometry, _structure(geometry))
    gravity = is_nonzero(geometry.gravity)
    if any(joint.mimic for joint in geometry.joints):
        return "mimic joints: exact elimination", _eliminated(geometry, elements, gravity)
    if gravity or geometry.floating:  # every mass and first moment acts on a floating base, with or without gravity
        return "theorem 5", _each(elements)
    return "zero gravity: exact elimination", _eliminated(geometry, elements, gravity)


def _eliminated(geometry: Chain, elements: tuple[Element, ...], gravity: bool) -> tuple[Combination, ...]:
    """The elements that are independent in the energies, with the coefficients of the dependent ones."""
    # Later elements are merged into earlier ones: first moments into inertias, not the other way round.
    order = sorted(elements, key=lambda e: (e.kind.startswith("k"), e.kind in ("kx", "ky")))
    samples = EnergySamples(geometry)
    columns = ParameterColumns(MinimalParameters(samples.chain, "", _each(order)).realisation)

    def row(k: int, prime: int) -> list[int]:
        if not gravity:
            return columns.of(samples.at(k, prime).kinetic, prime)
        sample = samples.at(k // 2, prime)
        return columns.of(sample.potential if k % 2 else sample.kinetic, prime)

    combinations = exact_combinations(row, len(order))
    merged = {}
    for kept, line in zip(combinations.kept, combinations.matrix, strict=True):
        others = ((element, f) for k, (element, f) in enumerate(zip(order, line, strict=True)) if f and k != kept)
        merged[order[kept]] = ((order[kept], Fraction(1)), *others)
    return tuple(merged[element] for element in elements if element in merged)


@lru_cache(maxsize=64)
def _structure(geometry: Chain) -> Structure:
    return structure(geometry)


@lru_cache(maxsize=64)
def _realisation(geometry: Chain, combinations: tuple[Combination, ...]) -> tuple[tuple[Fraction, ...], ...]:
    """The links with symbols for values; their coefficients are the matrix."""
    names = [symbol((2, k), f"#{k}", f"#{k}") for k in range(len(combinations))]
    column = {name: k for k, name in enumerate(names)}
    links = MinimalParameters(geometry, "", combinations).links([Polynomial.of(name) for name in names])
    rows = []
    for x in (x for link in links for x in link.natural):
        row = [Fraction(0)] * len(names)
        for monomial, c in terms_of(x):
            row[column[monomial[0]]] = Fraction(c)
        rows.append(tuple(row))
    return tuple(rows)


def realisation_on(chain: Chain, parameters: MinimalParameters) -> list[list[Scalar]]:
    """`realisation` for another geometry, whose constants may be run-time inputs; entries of any scalar type."""
    if any(len(combination) > 1 for combination in parameters.combinations):
        raise InputError(
            f"these minimal parameters ({parameters.kind}) have coefficients that hold for one geometry only; with "
            "the geometry as an input, natural_regressor is available"
        )
    elements = [combination[0][0] for combination in parameters.combinations]
    at = chain_structure(parameters.chain)
    paths = (tuple(chain.joints[k] for k in chain.path(i)) for i in range(chain.bodies))
    seen = (None if u is None else first_axis(path) for u, path in zip(at.axis, paths, strict=True))
    at = replace(at, axis=tuple(seen))
    columns = []
    for element in elements:
        links = realised(chain, at, {one: int(one == element) for one in elements})
        columns.append([x for link in links for x in link.natural])
    return [list(row) for row in zip(*columns, strict=True)]


def chain_structure(chain: Chain) -> Structure:
    """The structure of a chain for Theorems 4 and 5; its constants may be rationals or floats."""
    return _structure(exact_geometry(chain))


def exact_geometry(chain: Chain) -> Chain:
    """The exact chain without links, tool and names: the same for every payload.

    Floats are converted back to rationals: lengths from their decimals, angles from their radians.
    """

    def angle(a: Angle) -> Angle:
        return Angle.of(a.radians) if isinstance(a.cos, float) else a

    joints = tuple(
        replace(
            joint,
            b=exact(joint.b),
            d=exact(joint.d),
            beta=angle(joint.beta),
            gamma=angle(joint.gamma),
            theta=angle(joint.theta),
            turn=angle(joint.turn),
            shift=exact(joint.shift),
            mimic=joint.mimic and Mimic(joint.mimic.joint, exact(joint.mimic.multiplier), exact(joint.mimic.offset)),
        )
        for joint in chain.joints
    )
    gravity = Vec3(*(exact(x) for x in chain.gravity_in_frame_0))
    return Chain(joints, (MASSLESS,) * len(joints), gravity, parents=chain.parents)


def _combined(combination: Combination, polynomials: dict[Element, Any]) -> Any:
    total: Any = 0
    for element, factor in combination:
        total = total + polynomials[element] * factor
    return total


def _numbers(parameters: MinimalParameters) -> list[Any]:
    """Each parameter as a polynomial in the natural parameters, with the arm's numbers."""
    geometry = exact_geometry(parameters.chain)
    polynomials = element_polynomials(geometry, _structure(geometry))
    return [_combined(combination, polynomials) for combination in parameters.combinations]


def realise(chain: Chain, values: Sequence[Scalar], nearest: bool = False) -> Chain:
    """The chain with links that have these minimal parameters, in the order of their names.

    By default the links have many zeros, need not be physically consistent, and the values may be of any scalar type.
    With `nearest` the natural parameters are those nearest to the present ones (least squares in SI units), and the
    values must be numbers.
    """
    parameters = minimal_parameters(chain)
    if len(values) != len(parameters):
        raise InputError(f"this arm has {len(parameters)} minimal parameters, got {len(values)} values")
    if not nearest:
        return chain.with_links(parameters.links(values))
    return chain.with_links(_nearest(parameters, [Fraction(x) for x in values]))


def _nearest(parameters: MinimalParameters, values: list[Fraction]) -> tuple[Link, ...]:
    """Least squares: x₀ + Bᵀ (B Bᵀ)⁻¹ (w - B x₀), B the matrix; the realisation corrects the rounding error."""
    natural = [Fraction(x) for link in parameters.chain.links for x in link.natural]
    B = [[float(b) for b in row] for row in parameters.matrix]
    missing = [float(w - v) for w, v in zip(values, parameters.exact_values, strict=True)]
    weights = _solved([[_dot(a, b) for b in B] for a in B], missing)
    moved = [x + Fraction(_dot(column, weights)) for x, column in zip(natural, zip(*B, strict=True), strict=True)]
    nearly = parameters.chain.with_links(_links(moved))
    reached = MinimalParameters(nearly, "", parameters.combinations).exact_values
    left = [w - v for w, v in zip(values, reached, strict=True)]
    exactly = parameters.links(left)
    return tuple(a + b for a, b in zip(nearly.links, exactly, strict=True))


def _links(natural: Sequence[Scalar]) -> tuple[Link, ...]:
    return tuple(Link.from_natural(tuple(natural[k : k + 10])) for k in range(0, len(natural), 10))


def _dot(a: Sequence[float], b: Sequence[float]) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))


def _solved(A: list[list[float]], b: list[float]) -> list[float]:
    """A⁻¹ b for a symmetric positive definite A, by A = L Lᵀ."""
    L: list[list[float]] = []
    for i, row in enumerate(A):
        line: list[float] = []
        for j in range(i):
            line.append((row[j] - _dot(line, L[j][:j])) / L[j][j])
        L.append([*line, (row[i] - _dot(line, line)) ** 0.5])
    y: list[float] = []
    for line, x in zip(L, b, strict=True):
        y.append((x - _dot(line[:-1], y)) / line[-1])
    for i in reversed(range(len(y))):
        y[i] = (y[i] - sum(L[k][i] * y[k] for k in range(i + 1, len(y)))) / L[i][i]
    return y
