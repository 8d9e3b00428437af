"""Rows of the papers' tables: the printed polynomials, the formulation that reproduces them, and its counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from types import MappingProxyType
from typing import Any

from armdyn.algebra import Operations
from armdyn.chain.chain import generic_chain
from armdyn.formulations.composite_bodies.minimal import composite_bodies
from armdyn.formulations.steps import steps
from armdyn.graph.program import trace
from armdyn.graph.simplify import simplify
from armdyn.programs import cost
from armdyn.studies import lin_1991
from armdyn.studies.polynomial import CountPolynomial

MAX_JOINTS = 12
Count = Callable[[str], Operations]
Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class PaperRow:
    """One row of a table; without `counted` it is quoted, not executed."""

    label: str
    kind: int  # 1 or 2
    mul: CountPolynomial
    add: CountPolynomial
    counted: Count | None = None
    compiled: Count | None = None
    samples: dict[int, Pair] = field(default_factory=dict)  # values at some n, printed next to the polynomials
    note: str = ""

    @property
    def least(self) -> int:
        """The smallest n the polynomials hold for."""
        return 3 if self.kind == 1 else 4

    def kinds(self, n: int) -> str:
        """The joint types of the arm whose operations are counted."""
        return "R" * n if self.kind == 1 else "RRP" + "R" * (n - 3)

    def printed(self, n: int) -> tuple[float, float]:
        """The printed polynomials at n."""
        return float(self.mul(n)), float(self.add(n))

    def count(self, n: int) -> Operations | None:
        """The operations executed for an arm with n joints."""
        return self.counted(self.kinds(n)) if self.counted else None

    def compile(self, n: int) -> Operations | None:
        """The operations of the compiled program."""
        return self.compiled(self.kinds(n)) if self.compiled else None

    @property
    def executed(self) -> tuple[CountPolynomial, CountPolynomial] | None:
        """The polynomials through every executed count from `least` to 12."""
        if self.counted is None:
            return None
        found = {n: self.counted(self.kinds(n)) for n in range(self.least, MAX_JOINTS + 1)}
        mul = CountPolynomial.through({n: count.mul for n, count in found.items()})
        add = CountPolynomial.through({n: count.add for n, count in found.items()})
        return (mul, add) if mul and add else None

    @property
    def difference(self) -> tuple[CountPolynomial, CountPolynomial] | None:
        """Executed minus printed."""
        executed = self.executed
        return (executed[0] - self.mul, executed[1] - self.add) if executed else None


@dataclass(frozen=True, slots=True)
class PaperTable:
    """A table of a paper."""

    key: str
    title: str
    source: str
    rows: tuple[PaperRow, ...]
    compiled: str  # what the compiled column counts


@dataclass(frozen=True, slots=True)
class PaperEntry:
    """One row at one n, with None for missing values."""

    label: str
    kind: int
    n: int
    printed: tuple[float, float]
    sample: Pair | None  # the value printed next to the polynomial
    counted: Operations | None
    compiled: Operations | None

    @property
    def difference(self) -> tuple[float, float] | None:
        """Executed minus printed."""
        if self.counted is None:
            return None
        return self.counted.mul - self.printed[0], self.counted.add - self.printed[1]


def entries(table: PaperTable, joints: tuple[int, ...] = (4, 6, 8), compiled: bool = True) -> list[PaperEntry]:
    """Every row of a table at these numbers of joints; compiling takes about a second per row."""
    return [
        PaperEntry(
            row.label,
            row.kind,
            n,
            row.printed(n),
            row.samples.get(n),
            row.count(n),
            row.compile(n) if compiled else None,
        )
        for row in table.rows
        for n in joints
        if n >= row.least
    ]


@lru_cache(maxsize=1024)
def _published(kinds: str, method: str, quantity: str = "inertia_matrix", **variant: Any) -> cost.Published:
    chain = replace(generic_chain(kinds), gravity=lin_1991.TILTED)  # a general direction; H does not depend on it
    return cost.published(chain, quantity, method, **variant)


def _stage(kinds: str, method: str, stage: str) -> Operations:
    return _published(kinds, method).stages[stage]


@lru_cache(maxsize=64)
def table_ii_counts(kinds: str) -> Operations:
    """Lin 1991, Table II, by execution."""
    return lin_1991.total(len(kinds))


@lru_cache(maxsize=256)
def compiled_counts(kinds: str, quantity: str, method: str) -> Operations:
    """The operations of a general arm's program."""
    return cost.compiled(generic_chain(kinds), quantity, method)


@lru_cache(maxsize=64)
def _compiled_bodies(kinds: str) -> Operations:
    """The composite bodies alone, as a program."""
    chain = generic_chain(kinds)

    def function(q: list[object]) -> list[object]:
        bodies = composite_bodies(chain, steps(chain, q))
        return [x for body in bodies for x in (*body.moment, *body.column)]

    n = len(kinds)
    return simplify(trace("composite_bodies", function, {"q": (n,)}, (("bodies", (6 * n,)),))).operations


def _compiled_beyond_bodies(kinds: str, method: str) -> Operations:
    return compiled_counts(kinds, "inertia_matrix", method) - _compiled_bodies(kinds)


def whole_row(
    kind: int,
    label: str,
    mul: str,
    add: str,
    method: str,
    note: str = "",
    variant: Mapping[str, Any] = MappingProxyType({}),
    **samples: str,
) -> PaperRow:
    """A row about the whole inertia matrix; samples are given as n4="98 60"."""
    counted = partial(_published, method=method, **variant)
    compiled = partial(compiled_counts, quantity="inertia_matrix", method=method)
    return PaperRow(
        label, kind, CountPolynomial.of(mul), CountPolynomial.of(add), counted, compiled, _samples(samples), note
    )


def bias_row(label: str, mul: str, add: str, method: str, note: str, **samples: str) -> PaperRow:
    """A row about the whole bias vector."""
    counted = partial(_published, method=method, quantity="bias")
    compiled = partial(compiled_counts, quantity="bias", method=method)
    return PaperRow(
        label, 1, CountPolynomial.of(mul), CountPolynomial.of(add), counted, compiled, _samples(samples), note
    )


def both_row(label: str, mul: str, add: str, method: str, note: str) -> PaperRow:
    """A row about the inertia matrix and the bias vector together."""
    counted = partial(_published, method=method, quantity="equations_of_motion")
    compiled = partial(compiled_counts, quantity="equations_of_motion", method=method)
    return PaperRow(label, 1, CountPolynomial.of(mul), CountPolynomial.of(add), counted, compiled, note=note)


def forward_row(label: str, mul: str, add: str, method: str, note: str) -> PaperRow:
    """A row about forward dynamics, whose M are multiplications and divisions."""

    def counted(kinds: str) -> Operations:
        return _with_divisions(_published(kinds, method, "forward_dynamics"))

    def compiled(kinds: str) -> Operations:
        return _with_divisions(compiled_counts(kinds, "forward_dynamics", method))

    return PaperRow(label, 1, CountPolynomial.of(mul), CountPolynomial.of(add), counted, compiled, note=note)


def _with_divisions(found: Operations) -> Operations:
    return Operations(mul=found.mul + found.div, add=found.add)


def tensor_row(label: str, mul: str, add: str, method: str, moment: Operations, **variant: Any) -> PaperRow:
    """A row about one more composite body's tensor: what a joint adds to the bodies, without its first `moment`."""

    def counted(kinds: str) -> Operations:
        more, fewer = (_published(k, method, **variant).stages["composite bodies"] for k in (kinds + "R", kinds))
        return more - fewer - moment

    return PaperRow(label, 1, CountPolynomial.of(mul), CountPolynomial.of(add), counted)


def step_row(step: str, what: str, mul: str, add: str, note: str = "") -> PaperRow:
    """A row about one equation of GAH, of which the paper prints the cost of a single evaluation."""
    counted = partial(_stage, method="gibbs_appell", stage=step)
    return PaperRow(f"{step}, {what}", 1, CountPolynomial.of(mul), CountPolynomial.of(add), counted, note=note)


def _samples(texts: dict[str, str]) -> dict[int, Pair]:
    return {int(name[1:]): (int(text.split()[0]), int(text.split()[1])) for name, text in texts.items()}


def formulation_row(kind: int, form: int, mul: str, add: str, note: str = "", **samples: str) -> PaperRow:
    """A row of Table VI: a formulation without its composite bodies."""
    method = f"lin_fang_{form}"
    return PaperRow(
        f"Formulation {form}",
        kind,
        CountPolynomial.of(mul),
        CountPolynomial.of(add),
        partial(_stage, method=method, stage="formulation"),
        partial(_compiled_beyond_bodies, method=method),
        _samples(samples),
        note,
    )


def bodies_row(kind: int, mul: str, add: str) -> PaperRow:
    """A row of Table VII: the composite bodies."""
    return PaperRow(
        "MLC algorithm",
        kind,
        CountPolynomial.of(mul),
        CountPolynomial.of(add),
        partial(_stage, method="lin_fang_1", stage="composite bodies"),
        _compiled_bodies,
    )
