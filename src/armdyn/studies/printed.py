"""Every figure that the papers print about operations, times and errors, and what became of it here.

Rows of tables and claims are executed when asked for; only what cannot be executed, or is executed by a study with
a page of its own, is written down.
"""

from __future__ import annotations

from dataclasses import dataclass

from armdyn.studies.conclusions import verdicts
from armdyn.studies.polynomial import CountPolynomial
from armdyn.studies.tables import TABLES

AS_PRINTED, DIFFERS, NOT_EXECUTED = "executed as printed", "executed, differs", "cannot be executed"
Pair = tuple[CountPolynomial, CountPolynomial]


@dataclass(frozen=True, slots=True)
class Printed:
    """One printed figure or claim: where, what, its outcome (one of three), and why it is not as printed."""

    place: str
    what: str
    printed: str
    outcome: str
    reason: str = ""


ELSEWHERE = (
    Printed(
        "Provenzano et al., Table 2", "errors on the straight line", "position: at most 2.24e-3 m", DIFFERS,
        "because start, payload, precision and step control are not printed; the study of the line tries them",
    ),
    Printed(
        "Provenzano et al., Table 2", "computing times", "CRBM, ABM, GAH in seconds", DIFFERS,
        "because the processor is another; the study times the same methods in turn",
    ),
    Printed(
        "Lin 1991, Conclusion", "integration of simulations", "AB4 is preferable", DIFFERS,
        "because it is more accurate than RK4 at equal evaluations for most motions, but not than DOP853, and loses "
        "stability first; the study of integrators counts",
    ),
    Printed(
        "Lin 1991, Conclusion", "solution of the linear equations", "LDLᵀ is preferable", DIFFERS,
        "because UDUᵀ takes no more operations and fewer where the wrist has constant inertias; accuracy is the same",
    ),
    Printed(
        "Saha 1999, Introduction", "accelerations of O(n) methods (after Cloutier et al.)",
        "smooth, so that integration is faster", DIFFERS,
        "because both methods take the same steps, except where rounding errors meet the solver's tolerance",
    ),
    Printed(
        "Lin 1991, Algorithm", "Newton-Euler for the Stanford arm on an 8086/8087, 5 MHz", "under 17 ms",
        NOT_EXECUTED, "because it was measured on a computer of the time, with a program that is not printed; "
        "the papers' tables page bounds it by the processor's published clock counts",
    ),
)  # fmt: skip


def figures() -> list[Printed]:
    """All figures: rows of tables, the numbers beside them that are misprints, claims, and the rest."""
    return [*_rows(), *_claims(), *ELSEWHERE]


def _rows() -> list[Printed]:
    figures = []
    for table in TABLES.values():
        for row in table.rows:
            what, printed, executed = f"{row.label}, type {row.kind}", (row.mul, row.add), row.executed
            if executed is None:
                outcome, reason = NOT_EXECUTED, f"because {row.note}"
            elif executed == printed:
                outcome, reason = AS_PRINTED, ""
            else:
                outcome, reason = DIFFERS, f"{pair(executed)}, because {row.note}"
            figures.append(Printed(table.source, what, pair(printed), outcome, reason))
            for n, (mul, add) in row.samples.items():
                if (mul, add) != row.printed(n):
                    right = row.printed(n)
                    reason = f"{right[0]:g}M {right[1]:g}A by the polynomial beside it, because it is a misprint"
                    figures.append(Printed(table.source, f"{what}, n = {n}", f"{mul}M {add}A", DIFFERS, reason))
    return figures


def _claims() -> list[Printed]:
    figures = []
    for verdict in verdicts():
        failed = verdict.counted
        reason = f"because it fails in {len(failed)} of the cases, first at {failed[0]}" if failed else ""
        outcome = DIFFERS if failed else AS_PRINTED
        figures.append(Printed(verdict.claim.source, verdict.claim.text, "claim", outcome, reason))
    return figures


def pair(counts: Pair) -> str:
    """Two polynomials as one text."""
    mul, add = (str(x).replace(" ", "") for x in counts)
    return f"({mul})M ({add})A"
