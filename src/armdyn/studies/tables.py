"""All tables of operation counts in the papers: as printed, as counted by execution, and as compiled.

A type 1 arm has n revolute joints; in a type 2 arm joint 3 is prismatic. Both have a general geometry, with the base
frame at the first frame (`generic_chain`). Every row is executed. docs/papers/errata.md explains every difference.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from armdyn.algebra import Operations
from armdyn.studies.polynomial import CountPolynomial
from armdyn.studies.standard_frames import saved
from armdyn.studies.table_rows import (
    PaperEntry,
    PaperRow,
    PaperTable,
    bias_row,
    bodies_row,
    both_row,
    compiled_counts,
    entries,
    formulation_row,
    forward_row,
    step_row,
    table_ii_counts,
    tensor_row,
    whole_row,
)


def data(
    joints: tuple[int, ...] = (6,), compiled: bool = True, keys: tuple[str, ...] | None = None
) -> list[dict[str, Any]]:
    """The tables as plain data: polynomials printed and counted, their difference, and the numbers at some n."""
    return [
        {
            "table": table.key,
            "title": table.title,
            "source": table.source,
            "compiled_column": table.compiled,
            "rows": [_plain(row) for row in table.rows],
            "entries": [_plain_entry(entry) for entry in entries(table, joints, compiled)],
        }
        for table in (TABLES[key] for key in keys or TABLES)
    ]


def _plain(row: PaperRow) -> dict[str, Any]:
    executed, difference = row.executed, row.difference
    return {
        "label": row.label,
        "type": row.kind,
        "printed": [str(row.mul), str(row.add)],
        "counted": [str(x) for x in executed] if executed else None,
        "difference": [str(x) for x in difference] if difference else None,
        "misprints": {str(n): list(pair) for n, pair in row.samples.items() if pair != (row.mul(n), row.add(n))},
        "note": row.note,
    }


def _plain_entry(entry: PaperEntry) -> dict[str, Any]:
    return {
        "label": entry.label,
        "type": entry.kind,
        "n": entry.n,
        "printed": list(entry.printed),
        "counted": [entry.counted.mul, entry.counted.add] if entry.counted else None,
        "compiled": [entry.compiled.mul, entry.compiled.add] if entry.compiled else None,
    }


_SLIP = "the print has 1M less, in D₁₂ or (L)₃₃ of body 1"
_SIMILARITY = "the arrangement of the similarity is lost in the scan: two plane products, 36M 18A"
_STEPS = "the paper does not print its steps: ours"

TABLE_VI = PaperTable(
    "VI",
    "Five formulations when the composite bodies are on hand",
    "Lin & Fang 1999, Table VI",
    (
        formulation_row(1, 1, "10n²-18n+10", "6n²-10n+4", n4="98 60", n6="262 160", n11="1022 620"),
        formulation_row(1, 2, "11.5n²-27.5n+16", "8n²-18n+10", n4="90 66", n6="265 190", n11="1105 780"),
        formulation_row(1, 3, "12.5n²-28.5n+16", "8n²-18n+10", n4="102 66", n6="295 190", n11="1215 780"),
        formulation_row(
            1, 4, "4.5n²+48.5n-108", "4n²+24n-56", "the row for uᵢ⟨n⟩ is on hand already, 4M are a slip",
            n4="158 104", n6="345 232", n11="970 692",
        ),
        formulation_row(
            1, 5, "10n²-18n+14", "6n²-6n+2", "1016 at n = 11 is a misprint of 1026",
            n4="102 74", n6="266 182", n11="1016 662",
        ),
        formulation_row(2, 1, "10n²-18n", "6n²-10n", n6="252 156", n8="496 304", n9="648 396"),
        formulation_row(
            2, 2, "11.5n²-40.5n+60", "8n²-29n+46", "its own rows add up to 3M 3A less",
            n6="231 160", n8="472 326", n9="627 433",
        ),
        formulation_row(
            2, 3, "12.5n²-43.5n+65", "8n²-29n+45", "a constant rotation saves 1M in ³₂ŝ",
            n6="254 159", n8="517 325", n9="686 432",
        ),
        formulation_row(
            2, 4, "4.5n²+48.5n-114", "4n²+24n-62", "as for type 1", n6="339 226", n8="562 386", n9="687 478"
        ),
        formulation_row(
            2, 5, "10n²-18n+4", "6n²-6n-7", "-f × s belongs to revolute joints only (eq. B8)",
            n6="256 173", n8="500 329", n9="652 425",
        ),
    ),
    "what the formulation adds to the compiled composite bodies",
)  # fmt: skip

TABLE_VII = PaperTable(
    "VII",
    "First moments and inertia tensors of composite bodies",
    "Lin & Fang 1999, Table VII",
    (bodies_row(1, "32n-47", "33n-57"), bodies_row(2, "32n-45", "33n-59")),
    "the composite bodies alone",
)

TABLE_VIII = PaperTable(
    "VIII",
    "The inertia matrix with its composite bodies",
    "Lin & Fang 1999, Table VIII",
    (
        whole_row(
            1, "Formulation 1", "10n²+14n-37", "6n²+23n-53", "lin_fang_1", n4="179 135", n6="407 301", n8="715 515"
        ),
        whole_row(
            1, "Formulation 2", "11.5n²+4.5n-31", "8n²+15n-47", "lin_fang_2", n4="171 141", n6="410 331", n8="741 585"
        ),
        whole_row(
            1, "Kawasaki et al. I", "11n²+15n-41", "7n²+32n-66", "kawasaki",
            f"{_SLIP}; 194 at n = 4 is a misprint of 195",
            n4="194 174", n6="445 378", n8="783 638",
        ),
        whole_row(
            1, "Kawasaki et al. II", "11n²+9n-35", "7n²+23n-57", "kawasaki", _SLIP, {"masses": False},
            n4="177 147", n6="415 333", n8="741 575",
        ),
        whole_row(
            2, "Formulation 1", "10n²+14n-45", "6n²+23n-59", "lin_fang_1", n4="171 129", n6="399 295", n8="707 509"
        ),
        whole_row(
            2, "Formulation 2", "11.5n²-8.5n+15", "8n²+4n-13", "lin_fang_2", "its own rows add up to 3M 3A less",
            n4="165 131", n6="378 299", n8="683 531",
        ),
    ),
    "the whole matrix",
)  # fmt: skip

LIN_I = PaperTable(
    "Lin I",
    "Algorithms for the inertia matrix",
    "Lin 1991, Table I",
    (
        whole_row(
            1, "Walker & Orin", "11n²+53n-74", "8n²+52n-62", "walker_orin", _STEPS,
            n4="314 274", n6="640 538", n8="1054 866",
        ),
        whole_row(
            1, "Renaud", "13.5n²+22.5n-68", "9n²+26n-64", "renaud", _SIMILARITY,
            n4="238 184", n6="553 416", n8="976 720",
        ),
        whole_row(
            1, "Lin, earlier work", "7/6n³+33/2n²-107/3n+19", "n³+13.5n²-28.5n+14", "lin_cubic",
            "a pair of joint and link takes 4M less by the print, whose arrangement is not known",
            n4="215 180", n6="651 545", n8="1387 1162",
        ),
        whole_row(
            1, "Fijany & Bejczy", "4.5n²+115.5n-175", "4n²+88n-134", "fijany_bejczy",
            "the rows of the linear terms are not printed: ours; frame 2",
            n4="359 282", n6="680 538", n8="1037 826",
        ),
        whole_row(
            1, "Lin 1991", "10.5n²+38.5n-85", "6n²+39n-70", "lin_1991", _SIMILARITY,
            n4="237 182", n6="524 380", n8="895 626",
        ),
    ),
    "the whole matrix",
)  # fmt: skip

LIN_II = PaperTable(
    "Lin II",
    "Algorithms for the bias vector",
    "Lin 1991, Table II",
    (
        bias_row(
            "Khalil & Kleinfinger", "101n-129", "90n-118", "khalil_kleinfinger",
            "natural parameters take 105M a link; the print's arrangement is not known",
            n4="275 242", n6="477 422", n8="679 602",
        ),
        bias_row(
            "Balafoutis et al.", "93n-69", "81n-66", "balafoutis",
            "per link as printed (one addition less without acceleration); more is left out at the base",
            n4="303 258", n6="489 420", n8="675 582",
        ),
        PaperRow("Lin 1991", 1, CountPolynomial.of("12.5n²+5.5n+3"), CountPolynomial.of("9n²+n"),
            table_ii_counts, partial(compiled_counts, quantity="bias", method="lin_1991"),
            {4: (225, 148), 6: (486, 330), 8: (847, 584)},
            "beyond the inertia matrix; docs/papers/lin-1991-table-2.md reads the rows"),
    ),
    "the whole bias vector, with what it shares with the inertia matrix",
)  # fmt: skip

GAH = PaperTable(
    "GAH 1",
    "Comparison of complexities",
    "Provenzano et al., Table 1",
    (
        whole_row(1, "Walker & Orin", "12n²+56n-27", "7n²+67n-53", "walker_orin", _STEPS, n6="741 601"),
        whole_row(
            1, "Angeles & Ma", "n³+17n²-21n+8", "n³+14n²-16n+5", "angeles_ma",
            "cubic terms as printed; the print's n² terms fit 8M 5A for a rotation and no product with √m",
            n6="710 629",
        ),
        whole_row(
            1, "GAH", "11.5n²+19.5n-49", "8.5n²+31.5n-69", "gibbs_appell",
            "rows (17), (18) are printed as totals: 30M 32A and 13M 8A as arranged here", n6="482 426",
        ),
    ),
    "the whole matrix",
)  # fmt: skip

GAH_STEPS = PaperTable(
    "GAH steps",
    "The steps of GAH, each as often as the matrix takes it",
    "Provenzano et al., Steps 2-7",
    (
        step_row("eq. (10)", "vectors between origins", "4n²-4n", "2n²-2n"),
        step_row("eq. (11)", "their sums", "0", "1.5n²-4.5n+3"),
        step_row("eq. (14)", "axes", "4n²-12n+8", "2n²-6n+4"),
        step_row("eq. (15)", "first moments, turned", "8n-8", "4n-4"),
        step_row("eq. (16)", "first moments", "0", "3n-3"),
        step_row("eq. (17)", "tensors", "31n-62", "40n-80", "30M 32A each as arranged here; the print has a total"),
        step_row("eq. (18)", "tensor of the first body", "13", "11", "13M 8A as arranged here; the print has a total"),
        step_row("eq. (20)", "entries", "3.5n²-3.5n", "3n²-3n"),
    ),
    "no program forms one step alone",
)  # fmt: skip

SECTION_4 = PaperTable(
    "LF 4",
    "The tensor of one composite body from the next",
    "Lin & Fang 1999, section 4",
    (
        tensor_row("MLC, third column", "24", "27", "lin_fang_1", Operations(mul=8, add=4 + 2)),  # R ĉ, and k
        tensor_row("Kawasaki et al. I", "30", "37", "kawasaki", Operations(mul=8 + 3, add=4 + 2 + 3)),  # m̂ s too
        tensor_row("Kawasaki et al. II", "27", "34", "kawasaki", Operations(mul=8, add=4 + 2), masses=False),
    ),
    "no program forms one tensor alone",
)

LIN_BOTH = PaperTable(
    "Lin H+b",
    "The inertia matrix and the bias vector together",
    "Lin 1991, after Fig. 3",
    (
        both_row(
            "Lin 1991", "23n²+44n-82", "15n²+40n-70", "lin_1991",
            "the n² terms are the paper's; body 1 and the first frames take less",
        ),
    ),
    "the whole matrix and vector",
)  # fmt: skip

LIN_FRAMES = PaperTable(
    "Lin DH",
    "What frames on the joints save over standard Denavit-Hartenberg frames",
    "Lin 1991, Algorithm",
    (
        PaperRow(
            "Walker & Orin, saved", 1, CountPolynomial.of("45"), CountPolynomial.of("28"), saved,
            note="one body more is carried inwards: 36M 18A, 8M 7A; the print's arrangement is not known",
        ),
    ),
    "no program is compared",
)  # fmt: skip

SAHA = PaperTable(
    "Saha 7",
    "Forward dynamics by recursion; M are multiplications and divisions",
    "Saha 1999, section 7",
    (
        forward_row(
            "Saha", "201n-335", "193n-361", "denoc",
            "the algorithm is Saha 1997's, which the paper does not print: H = U D Uᵀ as printed, the rest ours",
        ),
        forward_row(
            "Featherstone", "199n-198", "174n-173", "articulated_body",
            "quoted there without its steps: ours, whose arrangement takes more",
        ),
    ),
    "the whole of forward dynamics",
)  # fmt: skip

TABLES: dict[str, PaperTable] = {
    table.key: table
    for table in (TABLE_VI, TABLE_VII, TABLE_VIII, SECTION_4, LIN_I, LIN_II, LIN_BOTH, LIN_FRAMES, GAH, GAH_STEPS, SAHA)
}
