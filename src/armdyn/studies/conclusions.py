"""The papers' claims about which formulation is cheaper, checked on the printed and on the executed counts.

Cheaper means fewer multiplications and additions in total, unless the claim is about only one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from armdyn.studies.table_rows import PaperRow
from armdyn.studies.tables import TABLES

Expected = tuple[float | None, float | None]  # M, A; None where the claim is silent
Price = Callable[[str, str, int, int], tuple[float, float]]  # (table, label, type, n) -> (M, A)


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim of a paper, and a check that returns the cases in which it fails."""

    source: str
    text: str
    failures: Callable[[Price], Iterable[str]]


@dataclass(frozen=True, slots=True)
class ClaimVerdict:
    """The cases in which a claim fails, empty if it holds."""

    claim: Claim
    printed: tuple[str, ...]
    counted: tuple[str, ...]


def verdicts() -> list[ClaimVerdict]:
    """Check every claim on the printed polynomials and on the executed counts (quoted rows stay as printed)."""
    return [ClaimVerdict(claim, tuple(claim.failures(_printed)), tuple(claim.failures(_counted))) for claim in CLAIMS]


def _row(table: str, label: str, kind: int) -> PaperRow:
    return next(row for row in TABLES[table].rows if (row.label, row.kind) == (label, kind))


def _printed(table: str, label: str, kind: int, n: int) -> tuple[float, float]:
    return _row(table, label, kind).printed(n)


def _counted(table: str, label: str, kind: int, n: int) -> tuple[float, float]:
    row = _row(table, label, kind)
    count = row.count(n)
    return (count.mul, count.add) if count else row.printed(n)


FORMS = tuple(f"Formulation {k}" for k in range(1, 6))


def _cheapest(
    table: str, label: str, rivals: Iterable[str], kind: int, joints: Iterable[int]
) -> Callable[[Price], list[str]]:
    """`label` takes no more operations than any rival."""

    def failures(price: Price) -> list[str]:
        faults = []
        for n in joints:
            best = min((r for r in rivals if r != label), key=lambda r: sum(price(table, r, kind, n)))
            mine, other = sum(price(table, label, kind, n)), sum(price(table, best, kind, n))
            if mine > other:
                faults.append(f"type {kind}, n = {n}: {label} {mine:.0f}, {best} {other:.0f}")
        return faults

    return failures


def _most_expensive(
    label: str, rivals: tuple[str, ...], kind: int, joints: Iterable[int]
) -> Callable[[Price], list[str]]:
    def failures(price: Price) -> list[str]:
        faults = []
        for n in joints:
            mine, others = sum(price("VI", label, kind, n)), {r: sum(price("VI", r, kind, n)) for r in rivals}
            dearer = [f"{r} {cost:.0f}" for r, cost in others.items() if cost > mine]
            if dearer:
                faults.append(f"type {kind}, n = {n}: {label} {mine:.0f}, {', '.join(dearer)}")
        return faults

    return failures


def _both(*checks: Callable[[Price], list[str]]) -> Callable[[Price], list[str]]:
    return lambda price: [text for check in checks for text in check(price)]


def _more(
    table: str,
    dear: str,
    cheap: str,
    kinds: tuple[int, int],
    expected: Callable[[int], tuple[float | None, float | None]],
) -> Callable[[Price], list[str]]:
    """`dear` (for an arm of type kinds[0]) exceeds `cheap` (for kinds[1]) by exactly `expected` M and A."""

    def failures(price: Price) -> list[str]:
        faults = []
        for n in range(4, 13):
            a, b = price(table, dear, kinds[0], n), price(table, cheap, kinds[1], n)
            extra = (a[0] - b[0], a[1] - b[1])
            wanted = expected(n)
            if any(w is not None and x != w for x, w in zip(extra, wanted, strict=True)):
                faults.append(f"n = {n}: {extra[0]:.0f}M {extra[1]:.0f}A")
        return faults

    return failures


def _exactly(table: str, label: str, expected: tuple[float, float]) -> Callable[[Price], list[str]]:
    """`label` is `expected` for every n of type 1."""

    def failures(price: Price) -> list[str]:
        found = {n: price(table, label, 1, n) for n in range(4, 13)}
        return [f"n = {n}: {m:.0f}M {a:.0f}A" for n, (m, a) in found.items() if (m, a) != expected]

    return failures


_LF, _LIN, _PRO = "Lin & Fang 1999", "Lin 1991", "Provenzano et al."
_LIN_I = tuple(row.label for row in TABLES["Lin I"].rows)

CLAIMS: tuple[Claim, ...] = (
    Claim(
        _LF, "Formulation 1 is the cheapest of the five for type 1 with 5 ≤ n ≤ 11",
        _cheapest("VI", "Formulation 1", FORMS, 1, range(5, 12)),
    ),
    Claim(
        _LF, "Formulation 1 is the cheapest of the five for type 2 with 9 ≤ n ≤ 11",
        _cheapest("VI", "Formulation 1", FORMS, 2, range(9, 12)),
    ),
    Claim(
        _LF, "Formulation 2 is the cheapest of the five for n ≤ 4, both types",
        _both(
            _cheapest("VI", "Formulation 2", FORMS, 1, (3, 4)), _cheapest("VI", "Formulation 2", FORMS, 2, (4,))
        ),
    ),
    Claim(
        _LF, "Formulation 2 is the cheapest of the five for type 2 with n ≤ 8",
        _cheapest("VI", "Formulation 2", FORMS, 2, range(4, 9)),
    ),
    Claim(
        _LF, "Formulation 2 is always cheaper than Formulation 3",
        _both(
            *(_cheapest("VI", "Formulation 2", ("Formulation 3",), k, range(4, 13)) for k in (1, 2))
        ),
    ),
    Claim(
        _LF, "Formulation 3 takes n(n-1) more multiplications than 2 for type 1",
        _more("VI", "Formulation 3", "Formulation 2", (1, 1), lambda n: (n * (n - 1), None)),
    ),
    Claim(
        _LF, "Formulation 3 takes n(n-3) more multiplications than 2 for type 2",
        _more("VI", "Formulation 3", "Formulation 2", (2, 2), lambda n: (n * (n - 3), None)),
    ),
    Claim(
        _LF, "Formulation 1 is always cheaper than Formulation 5",
        _both(*(_cheapest("VI", "Formulation 1", ("Formulation 5",), k, range(4, 13)) for k in (1, 2))),
    ),
    Claim(
        _LF, "Formulation 5 requires 4n more additions than 1 (type 1)",
        _more("VI", "Formulation 5", "Formulation 1", (1, 1), lambda n: (None, 4 * n)),
    ),
    Claim(
        _LF, "Formulation 4 is the most expensive of 1, 4 and 5 for n ≤ 11",
        _both(*(_most_expensive("Formulation 4", ("Formulation 1", "Formulation 5"), k, range(4, 12)) for k in (1, 2))),
    ),
    Claim(
        _LF, "from type 1 to type 2 Formulation 1 saves 10M 4A",
        _more("VI", "Formulation 1", "Formulation 1", (1, 2), lambda n: (10, 4)),
    ),
    Claim(
        _LF, "from type 1 to type 2 Formulation 2 saves (13n-44)M (11n-36)A",
        _more("VI", "Formulation 2", "Formulation 2", (1, 2), lambda n: (13 * n - 44, 11 * n - 36)),
    ),
    Claim(
        _LF, "with composite bodies, Formulation 1 is cheaper than Kawasaki et al. I and II (type 1)",
        _cheapest("VIII", "Formulation 1", ("Kawasaki et al. I", "Kawasaki et al. II"), 1, range(4, 13)),
    ),
    Claim(
        _LF, "with composite bodies, Formulation 2 is cheaper than both for n < 8",
        _cheapest("VIII", "Formulation 2", ("Kawasaki et al. I", "Kawasaki et al. II"), 1, range(4, 8)),
    ),
    Claim(
        _LF, "the third column of a tensor takes less than Kawasaki et al.'s tensors (24M 27A, 27M 34A, 30M 37A)",
        _cheapest("LF 4", "MLC, third column", ("Kawasaki et al. I", "Kawasaki et al. II"), 1, range(4, 13)),
    ),
    Claim(
        _LF, "a tensor takes 3M 3A more by Kawasaki et al. I than by II",
        _more("LF 4", "Kawasaki et al. I", "Kawasaki et al. II", (1, 1), lambda n: (3, 3)),
    ),
    Claim(
        _LIN, "frames on the joints save Walker & Orin's method 45M 28A over standard Denavit-Hartenberg",
        _exactly("Lin DH", "Walker & Orin, saved", (45, 28)),
    ),
    Claim(
        _LIN, "the new method is the cheapest of Table I for n ≥ 5",
        _cheapest("Lin I", "Lin 1991", _LIN_I, 1, range(5, 13)),
    ),
    Claim(
        _LIN, "the author's earlier method is preferable for n ≤ 4",
        _cheapest("Lin I", "Lin, earlier work", _LIN_I, 1, (3, 4)),
    ),
    Claim(
        _LIN, "Fijany & Bejczy's is not cheaper than Renaud's (n ≤ 8, as tabulated)",
        _cheapest("Lin I", "Renaud", ("Fijany & Bejczy",), 1, range(3, 9)),
    ),
    Claim(
        _LIN, "the bias vector is cheaper than by recursive Newton-Euler for n ≤ 6",
        _cheapest("Lin II", "Lin 1991", ("Khalil & Kleinfinger", "Balafoutis et al."), 1, range(3, 7)),
    ),
    Claim(
        _PRO, "GAH is the cheapest of Table 1",
        _cheapest("GAH 1", "GAH", ("Walker & Orin", "Angeles & Ma"), 1, range(3, 13)),
    ),
)  # fmt: skip
