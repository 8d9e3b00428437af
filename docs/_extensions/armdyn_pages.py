"""Directives that write parts of pages from the package itself, so that the pages cannot be out of date.

``.. formulations:: QUANTITY``  every formulation: paper, idea, claimed, executed and compiled cost
``.. paper-tables::``           the papers' tables: printed, counted, compiled
``.. conclusions::``            what the papers conclude, checked
``.. printed-figures::``        every printed figure: executed as printed, differing, or not to be executed
``.. small-processor::``        the Stanford arm's inverse dynamics on the smallest processor
``.. parallel-machines::``      the critical paths of programs
``.. commands::``               the command line, command by command
``.. catalogue::``              the arms that come along
``.. quantities::``             what an arm computes, one page per quantity
"""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import armdyn
from armdyn.algebra import Operations
from armdyn.codegen.embedded import CPUS, compile_object
from armdyn.errors import ArmdynError
from armdyn.formulations import DERIVATIVES, QUANTITIES
from armdyn.names import NAMES
from armdyn.studies import intel_8087, parallel, printed, tables
from armdyn.studies.conclusions import verdicts

GENERAL = "RRRRRR"
PRISMATIC = "RRPRRR"
NOT_COUNTED = "reference"  # of the bias: exact derivatives of the energies, thousands of operations

# The row of a paper's table that claims a formulation's cost; two are added where the paper counts in two parts.
CLAIMS = {
    "lin_fang_1": [("VIII", "Formulation 1")],
    "lin_fang_2": [("VIII", "Formulation 2")],
    "lin_fang_3": [("VI", "Formulation 3"), ("VII", "MLC algorithm")],
    "lin_fang_4": [("VI", "Formulation 4"), ("VII", "MLC algorithm")],
    "lin_fang_5": [("VI", "Formulation 5"), ("VII", "MLC algorithm")],
    "lin_1991": [("Lin I", "Lin 1991")],
    "renaud": [("Lin I", "Renaud")],
    "walker_orin": [("Lin I", "Walker & Orin")],
    "gibbs_appell": [("GAH 1", "GAH")],
}

OUTCOMES = (printed.AS_PRINTED, printed.DIFFERS, printed.NOT_EXECUTED)


def list_table(headers: Sequence[str], rows: Iterable[Sequence[str]], css: str = "", title: str = "") -> str:
    """A table in reStructuredText."""
    lines = [f".. list-table:: {title}".rstrip(), "   :header-rows: 1"]
    lines += [f"   :class: {css}"] if css else []
    lines.append("")
    for row in (headers, *rows):
        for k, cell in enumerate(row):
            lines.append(("   * - " if k == 0 else "     - ") + (re.sub(r"[ \n]+", " ", cell) or "\\ "))
    return "\n".join([*lines, ""])


def counts(found: Any) -> str:
    """A count as text, in one line: 319M 250A."""
    return "" if found is None else str(Operations(found.mul, found.add, found.div)).replace(" ", "\N{NO-BREAK SPACE}")


@cache
def general(kinds: str) -> armdyn.Arm:
    return armdyn.generic_arm(kinds)


@cache
def cost(kinds: str, quantity: str, method: str) -> Any:
    """The cost on an arm in general position; None where the formulation refuses its joints."""
    try:
        return armdyn.cost(general(kinds), quantity, method)
    except ArmdynError:
        return None


def claimed(method: str, n: int = len(GENERAL)) -> str:
    """The paper's own count for n revolute joints."""
    mul = add = 0.0
    for table, label in CLAIMS[method]:
        row = next(r for r in tables.TABLES[table].rows if r.label == label and r.kind == 1)
        m, a = row.printed(n)
        mul, add = mul + m, add + a
    return f"{mul:g}M\N{NO-BREAK SPACE}{add:g}A"


def escaped(text: str) -> str:
    """Plain text, with `code` in it as code."""
    return text.replace("|", "\\|").replace("*", "\\*").replace("`", "``")


class Generated(SphinxDirective):
    """A directive that writes reStructuredText and reads it."""

    has_content = False

    def text(self) -> str:
        raise NotImplementedError

    def run(self) -> list[nodes.Node]:
        return self.parse_text_to_nodes(self.text(), allow_section_headings=True)


class Formulations(Generated):
    required_arguments = 1
    option_spec: ClassVar[dict[str, Any]] = {"claims": directives.flag}

    def text(self) -> str:
        quantity = QUANTITIES[self.arguments[0]]
        with_claims = "claims" in self.options
        headers = ["method", "joints"]
        headers += ["6R: claimed"] if with_claims else []
        headers += ["executed" if with_claims else "6R: executed", "compiled", "2RP3R: compiled", "puma560: compiled"]
        rows = [self._row(quantity, formulation, with_claims) for formulation in quantity.methods]
        return list_table(headers, rows, css="costs")

    def _row(self, quantity: Any, formulation: Any, with_claims: bool) -> list[str]:
        key, name = formulation.key, quantity.name
        keys = [source.strip() for source in formulation.source.split(",") if source.strip()]
        paper = ", ".join(f":cite:t:`{source}`" for source in keys) or "armdyn"
        judge = key == NOT_COUNTED and name != "inertia_matrix"
        here = None if judge else cost(GENERAL, name, key)
        there = None if judge else cost(PRISMATIC, name, key)
        joints = "R, P" if there is not None or judge else "R"
        cells = [f"``{key}`` {escaped(formulation.summary)}. {paper}", joints]
        if with_claims:
            cells.append(claimed(key) if key in CLAIMS else "")
        puma = None if judge else armdyn.cost(armdyn.load("puma560"), name, key).compiled
        cells += [counts(here and here.published), counts(here and here.compiled), counts(there and there.compiled)]
        return [*cells, counts(puma)]


class PaperTables(Generated):
    def text(self) -> str:
        parts = []
        for table in tables.data((6,)):
            title = table["source"]
            numbers = {(entry["label"], entry["type"]): entry for entry in table["entries"]}
            rows = []
            for row in table["rows"]:
                entry = numbers[row["label"], row["type"]]
                counted = self._pair(row["counted"]) or "not executed"
                same = row["difference"] in (None, ["0", "0"])
                shown = [self._pair(entry[key], "") for key in ("printed", "counted", "compiled")]
                label = f"{escaped(row['label'])}, type {row['type']}"
                counted = "as printed" if same and row["counted"] else counted
                rows.append([label, self._pair(row["printed"]), counted, *shown])
            headers = ["row", "printed", "counted", "n = 6: printed", "counted", "compiled"]
            parts += [
                title,
                "-" * len(title),
                "",
                f"*{escaped(table['title'])}*",
                "",
                list_table(headers, rows, css="costs"),
            ]
            parts += [f"Compiled: {table['compiled_column']}.", ""]
            noted = [row for row in table["rows"] if row["note"]]
            notes = [f"- {escaped(row['label'])}, type {row['type']}: {escaped(row['note'])}" for row in noted]
            parts += [*notes, ""]
        return "\n".join(parts)

    @staticmethod
    def _pair(pair: Any, around: str = "()") -> str:
        if not pair:
            return ""
        mul, add = (x.replace(" ", "").replace("-", "−") if isinstance(x, str) else f"{x:g}" for x in pair)
        return f"({mul})M ({add})A" if around else f"{mul}M {add}A"


class Conclusions(Generated):
    def text(self) -> str:
        rows = []
        for verdict in verdicts():
            found = [self._verdict(verdict.printed), self._verdict(verdict.counted)]
            rows.append([escaped(verdict.claim.source), escaped(verdict.claim.text), *found])
        return list_table(["paper", "claim", "by its own polynomials", "executed"], rows)

    @staticmethod
    def _verdict(failures: Sequence[str]) -> str:
        return "holds" if not failures else f"**fails**: {escaped(failures[0])}" + (" …" if len(failures) > 1 else "")


class PrintedFigures(Generated):
    def text(self) -> str:
        figures = printed.figures()
        count = {outcome: sum(figure.outcome == outcome for figure in figures) for outcome in OUTCOMES}
        total = "; ".join(f"{outcome}: {number}" for outcome, number in count.items())
        rows = []
        for figure in figures:
            outcome = f"**{figure.outcome}**" if figure.outcome != printed.AS_PRINTED else figure.outcome
            outcome += f": {escaped(figure.reason)}" if figure.reason else ""
            rows.append([escaped(figure.place), escaped(figure.what), escaped(figure.printed), outcome])
        return f"{total}.\n\n" + list_table(["paper", "figure", "printed", "outcome"], rows)


class ParallelMachines(Generated):
    def text(self) -> str:
        return list_table(parallel.HEADS, parallel.table([general(GENERAL), armdyn.load("puma560")]))


class SmallProcessor(Generated):
    def text(self) -> str:
        kernel = armdyn.load("stanford").kernel("inverse_dynamics")
        compiled = compile_object("stanford", {"inverse_dynamics": kernel.program}, [], CPUS["cortex-m4f"], "float")
        found, operations = compiled.functions["inverse_dynamics"], kernel.program.operations
        return (
            f"Inverse dynamics of the Stanford arm (``{kernel.method}``) takes {counts(operations)} and "
            f"{operations.trig} sines and cosines here. As an object for a Cortex-M4F in single precision it has "
            f"{found.instructions} instructions, those of sine and cosine included, counted in the object and not "
            f"measured.\n\n{SmallProcessor.times(operations)}\n"
        )

    @staticmethod
    def times(ours: Any) -> str:
        classic = armdyn.cost(armdyn.load("stanford"), "inverse_dynamics", "newton_euler").published
        rows = [
            [program, counts(found), *(f"{time:.1f} ms" for time in intel_8087.milliseconds(found))]
            for program, found in (("here, as compiled", ours), ("``newton_euler``, as published", classic))
        ]
        return list_table(["program", "operations", "at least", "at most"], rows)


class Commands(Generated):
    def text(self) -> str:
        return "\n".join(section(*found) for found in commands())


def commands() -> list[tuple[str, Any]]:
    """Every command with its full name, groups taken apart."""
    from typer.main import get_command

    from armdyn.cli import app

    found = []
    for name, command in get_command(app).commands.items():  # type: ignore[attr-defined]
        inner = getattr(command, "commands", None)
        found += [(f"{name} {k}", c) for k, c in inner.items()] if inner else [(name, command)]
    return found


def section(name: str, command: Any) -> str:
    """One command: what it does, its example, its arguments and options."""
    title = f"armdyn {name}"
    epilog = command.epilog or ""
    rows = []
    for parameter in command.params:
        if getattr(parameter, "hidden", False) or parameter.name == "help":
            continue
        argument = parameter.param_type_name == "argument"
        names = parameter.metavar or parameter.name.upper() if argument else ", ".join(parameter.opts)
        if not argument and parameter.secondary_opts:
            names += ", " + ", ".join(parameter.secondary_opts)
        default = parameter.default
        shown = "" if default in (None, False, "", ()) or argument or callable(default) else f" Default: {default}."
        rows.append([f"``{names}``", escaped(f"{parameter.help or ''}{shown}")])
    example = epilog.removeprefix("Example: ")
    parts = [title, "-" * len(title), "", escaped(command.help or ""), "", ".. code-block:: console", ""]
    parts += [f"   $ {example}", "", list_table(["argument", "meaning"], rows, css="named") if rows else ""]
    return "\n".join(parts)


class Catalogue(Generated):
    def text(self) -> str:
        rows = []
        for name in armdyn.catalogue():
            arm = armdyn.load(name)
            minimal = len(arm.minimal_parameters)
            rows.append([f"``{name}``", arm.kinds, f"{arm.mass:.2f}", str(minimal), escaped(arm.source)])
        return list_table(["name", "joints", "mass, kg", "minimal parameters", "source"], rows, css="named")


def quantity_pages(app: Sphinx) -> None:
    """One page per quantity, from the registry: what it is, what it is called elsewhere, inputs, options, result."""
    folder = Path(app.srcdir) / "reference" / "api" / "quantities"
    folder.mkdir(parents=True, exist_ok=True)
    wanted = {f"{name}.rst": quantity_page(name) for name in described()}
    for path in folder.iterdir():
        if path.name not in wanted:
            path.unlink()
    for name, text in wanted.items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def described() -> dict[str, str]:
    """Name -> summary of every quantity that is an attribute of an arm."""
    derivatives = {
        name: f"partial derivatives of {plain.replace('_', ' ')} in {', '.join(wrt)}"
        for name, (plain, wrt) in DERIVATIVES.items()
    }
    return {name: quantity.summary for name, quantity in QUANTITIES.items()} | derivatives


def quantity_page(name: str) -> str:
    title = f"{name}: {described()[name]}"
    document = inspect.getdoc(inspect.getattr_static(armdyn.Arm, name)) or ""
    # Words stand apart as well, so that a search for "gravity torque" finds gravity_torque.
    others = NAMES.get(name, ())
    words = [other if "_" not in other else f"{other} ({other.replace('_', ' ')})" for other in others]
    parts = [title, "=" * len(title), "", f".. py:attribute:: armdyn.Arm.{name}", "", indented(document), ""]
    parts += [f"Elsewhere called: {escaped(', '.join(words))}.", ""] if words else []
    found = QUANTITIES.get(name)
    if found is not None and len(found.methods) > 1:
        parts += ['Formulations, cheapest first for each arm with ``method="auto"``:', ""]
        parts += [f"- ``{m.key}``: {escaped(m.summary)}" for m in found.methods]
    return "\n".join([*parts, ""])


def indented(text: str) -> str:
    return "\n".join(f"   {line}".rstrip() for line in text.splitlines())


class Quantities(Generated):
    def text(self) -> str:
        rows = [[f":doc:`{name} <api/quantities/{name}>`", escaped(summary)] for name, summary in described().items()]
        pages = "\n".join(f"   api/quantities/{name}" for name in described())
        return f".. toctree::\n   :hidden:\n\n{pages}\n\n" + list_table(["attribute", "value"], rows, css="named")


# An index under an accented letter: docutils 0.22 puts it below the letter instead of beside it.
ACCENT = re.compile(
    r"<munderover>\s*(<mi>[^<]*</mi>)\s*((?:(?!<munderover>).)*?)\s*"
    r"(<mo stretchy=\"false\">[^<]*</mo>)\s*</munderover>",
    re.DOTALL,
)


def mathml(tex: str, block: bool) -> str:
    """A formula in MathML, which browsers show by themselves, offline too."""
    return ACCENT.sub(r"<msub><mover accent='true'>\1\3</mover>\2</msub>", str(tex2mathml(tex, as_block=block)))


def inline_math(writer: Any, node: Any) -> None:
    writer.body.append(mathml(node.astext(), block=False))
    raise nodes.SkipNode


def block_math(writer: Any, node: Any) -> None:
    parts = [part for part in node.astext().split("\n\n") if part.strip()]
    writer.body += [f'<div class="math">{mathml(part, block=True)}</div>' for part in parts]
    raise nodes.SkipNode


def live_page(app: Sphinx, failed: Exception | None) -> None:
    """The report's page of an arm, which the documentation shows in a frame."""
    if failed is None and app.builder.format == "html":
        where = Path(app.outdir) / "_static" / "puma560.html"
        subprocess.run([sys.executable, "-m", "armdyn", "report", "puma560", "-o", where, "--quiet"], check=True)


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_html_math_renderer("mathml", (inline_math, None), (block_math, None))
    app.add_directive("formulations", Formulations)
    app.add_directive("paper-tables", PaperTables)
    app.add_directive("conclusions", Conclusions)
    app.add_directive("printed-figures", PrintedFigures)
    app.add_directive("small-processor", SmallProcessor)
    app.add_directive("parallel-machines", ParallelMachines)
    app.add_directive("commands", Commands)
    app.add_directive("catalogue", Catalogue)
    app.add_directive("quantities", Quantities)
    app.connect("builder-inited", quantity_pages, priority=100)
    app.connect("build-finished", live_page)
    return {"parallel_read_safe": True, "version": armdyn.__version__}
