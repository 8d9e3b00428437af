"""Other sets of minimal parameters, and the transformation from one set to another.

Source: Lin 1994, Corollary 6: two sets with the same number of elements determine the same forces if and only if they
are related by a nonsingular constant matrix M, b = M a. Gautier & Khalil 1990: regrouped parameters, each one natural
parameter plus multiples of those that are eliminated.

With the drives (rotor inertia, viscous and Coulomb friction, offset) the set is larger. A drive term that is linearly
dependent on rigid-body parameters is merged into them: the rotor of the first joint rotates as its link does. Exact
elimination on the energies finds these terms: a rotor adds ½ I q̇², an offset -τ q; friction is odd in q̇ and always
independent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

from armdyn.algebra import Scalar
from armdyn.chain import Chain
from armdyn.chain.joint import NATURAL
from armdyn.errors import InputError, choose
from armdyn.parameters.elimination import Row, exact_combinations, plus, solved_for, sparse
from armdyn.parameters.energy import EnergySamples, ParameterColumns
from armdyn.parameters.minimal import MinimalParameters, chain_structure, exact_geometry, minimal_parameters
from armdyn.parameters.structure import Structure

Matrix = tuple[tuple[Fraction, ...], ...]


class Named(Protocol):
    """A set of parameters: names, and the matrix that maps natural parameters to them."""

    @property
    def names(self) -> tuple[str, ...]:
        """One per parameter."""

    @property
    def matrix(self) -> Matrix:
        """As many rows as names, ten columns per body."""


@dataclass(frozen=True)
class ParameterSet:
    """Linear combinations of natural parameters, by name."""

    names: tuple[str, ...]
    matrix: Matrix


@dataclass(frozen=True)
class Equivalence:
    """b = matrix · a, or the reason why there is no such nonsingular matrix."""

    matrix: Matrix | None
    reason: str

    def __bool__(self) -> bool:
        return self.matrix is not None


def equivalence(set_a: Any, set_b: Any, tolerance: float = 0.0) -> Equivalence:
    """The nonsingular M with b = M a (Lin 1994, Corollary 6), or the reason why there is none.

    An arm in place of a set stands for its minimal parameters.

    Sets with rounded entries (from a QR decomposition, say) need a `tolerance`: the largest error of an entry of b that
    is attributed to rounding.
    """
    set_a, set_b = (_parameters_of(one) for one in (set_a, set_b))
    a, b = [sparse(row) for row in set_a.matrix], [sparse(row) for row in set_b.matrix]
    if len(a) != len(b):
        return Equivalence(None, f"the first set has {len(a)} elements, the second {len(b)}")
    width = max((k for row in (*a, *b) for k in row), default=0) + 1
    pivots = solved_for([{**row, width + i: Fraction(1)} for i, row in enumerate(a)], range(width))
    if len(pivots) < len(a):
        return Equivalence(None, "the elements of the first set are not linearly independent")
    rows = []
    for name, row in zip(set_b.names, b, strict=True):
        rest: Row = dict(row)
        for column, line in pivots.items():
            if column in row:
                rest = plus(rest, -row[column], line)
        if any(abs(x) > tolerance for k, x in rest.items() if k < width):
            return Equivalence(None, f"{name} of the second set cannot be obtained from the first")
        rows.append({k - width: -x for k, x in rest.items() if k >= width})
    if len(solved_for(rows, range(len(a)))) < len(a):
        return Equivalence(None, "the elements of the second set are not linearly independent")
    return Equivalence(tuple(tuple(row.get(k, Fraction(0)) for k in range(len(a))) for row in rows), "")


def _parameters_of(given: Any) -> Named:
    """The set of parameters, or the minimal ones of an arm."""
    found = getattr(given, "minimal_parameters", given)
    if not (hasattr(found, "names") and hasattr(found, "matrix")):
        raise InputError(
            f"equivalence takes sets of parameters (arm.minimal_parameters, ParameterSet(names, matrix)) or arms, got "
            f"{given!r:.80}"
        )
    chosen: Named = found
    return chosen


def with_columns(parameters: Named, columns: Sequence[int], mark: str = "") -> ParameterSet:
    """The equivalent set in which each element is one natural parameter plus multiples of the others.

    `columns` are the natural parameters to keep (from 0, ten per body in Pinocchio's order), such as those from a
    pivoted QR decomposition of the regressor; `mark` goes into each one's name (``IxxR_2``).
    """
    rows = [sparse(row) for row in parameters.matrix]
    pivots = solved_for(rows, columns)
    if len(columns) != len(rows) or set(pivots) != set(columns):
        missing = [natural_name(c) for c in columns if c not in pivots]
        raise InputError(
            f"a set has {len(rows)} elements; the {len(columns)} natural parameters given do not determine one"
            + (f" ({', '.join(missing)} follow from the others)" if missing else "")
        )
    width = len(parameters.matrix[0]) if rows else 0
    matrix = tuple(tuple(pivots[c].get(k, Fraction(0)) for k in range(width)) for c in columns)
    return ParameterSet(tuple(natural_name(c, mark) for c in columns), matrix)


def natural_name(column: int, mark: str = "") -> str:
    """The name of a natural parameter by its column: ``Ixx_2``."""
    return f"{NATURAL[column % 10]}{mark}_{column // 10 + 1}"


def regrouped_parameters(chain: Chain) -> ParameterSet:
    """The regrouped parameters of Gautier & Khalil: ``IzzR_1``, ``IxxR_2``, …, link by link.

    I_yy, m c_z and m of a revolute link and the inertia of a prismatic one are regrouped with the previous link; before
    joint s only the parameters that act about the first axis remain.
    """
    parameters = minimal_parameters(chain)
    if parameters.kind != "theorem 5" or chain.floating:
        raise InputError(
            "the rules of Gautier & Khalil assume gravity, a fixed base and independent joints; "
            f"the minimal parameters of this robot are of the kind {parameters.kind!r}"
        )
    at = chain_structure(chain)
    columns = [10 * i + k for i in range(chain.bodies) for k in _kept(chain, at, i)]
    return with_columns(parameters, columns, "R")


def _kept(chain: Chain, at: Structure, i: int) -> list[int]:
    """Which of link i's ten parameters are kept."""
    m, x, y, z, xx, xy, _, xz, yz, zz = range(10)
    if chain.joints[i].revolute:
        if at.beyond[i]:
            return [x, y, xx, xy, xz, yz, zz]
        return [x, y, zz] if at.delta[i] else [zz]
    if at.beyond[i]:
        return [m, x, y, z]
    u: Any = at.axis[i]
    if not at.sigma[i] or u is None:
        return [m]
    # Moving a mass along u_r has no effect: the component of m c along it is eliminated.
    dropped = z if u.z != 0 else (x if u.x != 0 else y)
    return [m, *(k for k in (x, y, z) if k != dropped)]


TERMS = ("rotor", "viscous", "coulomb", "offset")


@dataclass(frozen=True, slots=True)
class DriveTerm:
    """A term of a joint's drive; joints are counted from 0."""

    kind: str
    joint: int

    @property
    def name(self) -> str:
        """``rotor_3``, counted from 1."""
        return f"{self.kind}_{self.joint + 1}"


@dataclass(frozen=True)
class ExtendedParameters:
    """The identifiable parameters of links and drives."""

    rigid: MinimalParameters
    alone: tuple[DriveTerm, ...]
    merged: dict[DriveTerm, tuple[tuple[str, Fraction], ...]]  # term -> (parameter it is merged into, factor)

    @property
    def names(self) -> tuple[str, ...]:
        """The rigid-body parameters, then the independent drive terms."""
        return (*self.rigid.names, *(term.name for term in self.alone))

    def __len__(self) -> int:
        return len(self.rigid) + len(self.alone)

    def columns(self, qd: Sequence[Scalar], qdd: Sequence[Scalar]) -> list[list[Scalar]]:
        """N rows with one column per independent drive term, to append to the regressor's.

        `qd` and `qdd` are one scalar (or array over samples) per joint.
        """
        rows: list[list[Scalar]] = [[0] * len(self.alone) for _ in qd]
        for k, term in enumerate(self.alone):
            rows[term.joint][k] = _COLUMN[term.kind](qd[term.joint], qdd[term.joint])
        return rows


def _sign(x: Any) -> Any:
    return x.sign() if hasattr(x, "sign") else (x > 0) * 1 - (x < 0) * 1


_COLUMN = {
    "rotor": lambda qd, qdd: qdd,
    "viscous": lambda qd, qdd: qd,
    "coulomb": lambda qd, qdd: _sign(qd),
    "offset": lambda qd, qdd: 0 * qd + 1,
}


def extended_parameters(arm: Any, terms: Sequence[str] = TERMS) -> ExtendedParameters:
    """The minimal parameters of an arm (or a chain) with those of the drives; `terms` selects the drive terms."""
    chain = getattr(arm, "chain", arm)
    if not isinstance(chain, Chain):
        raise InputError(f"extended_parameters takes an Arm, got {arm!r:.80}; armdyn.load(...) returns one")
    for term in terms:
        choose("drive term", term, TERMS)
    rigid = minimal_parameters(chain)
    candidates = [DriveTerm(kind, i) for kind in ("offset", "rotor") if kind in terms for i in range(chain.n)]
    found = exact_combinations(_rows(rigid, candidates), len(rigid) + len(candidates))
    every = [*rigid.names, *(term.name for term in candidates)]
    merged = {
        term: tuple(
            (every[kept], line[column]) for kept, line in zip(found.kept, found.matrix, strict=True) if line[column]
        )
        for column, term in enumerate(candidates, len(rigid))
        if column not in found.kept
    }
    listed = (DriveTerm(kind, i) for i in range(chain.n) for kind in TERMS if kind in terms)
    return ExtendedParameters(rigid, tuple(term for term in listed if term not in merged), merged)


def _rows(rigid: MinimalParameters, candidates: list[DriveTerm]) -> Any:
    """Rows of kinetic and potential energies in turn, with a column per rigid-body parameter and candidate term."""
    samples = EnergySamples(exact_geometry(rigid.chain))
    columns = ParameterColumns(MinimalParameters(samples.chain, rigid.kind, rigid.combinations).realisation)

    def row(k: int, prime: int) -> list[int]:
        sample, kinetic = samples.at(k // 2, prime), k % 2 == 0
        energy = columns.of(sample.kinetic if kinetic else sample.potential, prime)
        own, adds = ("rotor", sample.speeds) if kinetic else ("offset", sample.moves)
        return energy + [adds[term.joint] if term.kind == own else 0 for term in candidates]

    return row
