"""A quantity as a derivation: the formulation's own intermediate values by their names, each defined once.

Inverses and long recursions have no closed form that could be read in one line. Their formulations say what the papers
call the values on the way (`armdyn.algebra.tally`); such a value becomes a symbol, defined by what came before, and
the results are written in those symbols. For the inverted inertia matrix this is Saha's: H, m̂, α, D, U, α′, U⁻¹, H⁻¹.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

from armdyn.algebra.tally import Group, Names, naming
from armdyn.bridges import ProgramSource
from armdyn.bridges.sympy_ import Evaluation, SymbolicConstants, lines, short, sp, symbolic
from armdyn.errors import InputError, choose
from armdyn.formulations import QUANTITIES
from armdyn.formulations.inertia_matrix.lin_fang_1 import inertia_matrix as by_bodies
from armdyn.formulations.inertia_matrix.meeting_frame import inertia_matrix as meeting_frame
from armdyn.formulations.inverse_dynamics.newton_euler import bias as by_recursion
from armdyn.formulations.reference import inertia_matrix as by_links
from armdyn.graph import Port, Program
from armdyn.graph.node import Node
from armdyn.graph.program import trace
from armdyn.parameters.expression import Polynomial, symbol, terms_of
from armdyn.programs.assemble import assemble

READABLE = 400  # characters of a line
TERMS = 400  # of a polynomial while a derivation is made
EXPANDED = 4  # bodies of an arm whose inertia matrix may be readable without composite bodies
SPLIT = 12  # terms from which values without a name are defined too, if a derivation is too long otherwise
# Whose intermediate values have names: what a quantity is derived by unless a method is asked for.
NAMED = ("composite", "newton_euler", "lin_fang_1", "first_moments")
LABELS = {("inertia_inverse", "W"): "H^-1"}
LETTERS = {"mhat": "m̂", "chat": "ĉ", "Jhat": "Ĵ", "Ihat": "Î", "Hhat": "Ĥ", "Mhat": "M̂", "ell": "ℓ", "psi": "ψ"}
LETTERS |= {"alphaprime": "α′", "alpha": "α", "omegadot": "ω̇", "omega": "ω", "phihat": "φ̂", "qddot": "q̈"}
TITLES = {"U^-1": "U⁻¹", "H^-1": "H⁻¹"}


@dataclass(frozen=True)
class Derivation:
    """Definitions in order, matrices made of them, and the results, as SymPy expressions.

    `parameters` maps the symbols of the arm's constants to their values.
    """

    quantity: str
    method: str
    definitions: tuple[tuple[Any, Any], ...]
    matrices: tuple[tuple[str, Any], ...]
    results: tuple[tuple[str, Any], ...]
    parameters: dict[Any, Any]

    def __str__(self) -> str:
        return "\n".join(self.lines())

    __repr__ = __str__

    def lines(self, latex: bool = False) -> Iterator[str]:
        """One line per definition and per nonzero entry of the results; matrices in several."""
        for name, expression in self.definitions:
            yield f"{_text(name, latex)} = {_text(expression, latex)}"
        for label, matrix in self.matrices:
            yield from _matrix(label, matrix, latex)
        for label, result in self.results:
            yield from _entries(label, result, latex)

    def _repr_latex_(self) -> str:
        rows = r" \\ ".join(line.replace(" = ", " &= ", 1) for line in self.lines(latex=True))
        return rf"$\displaystyle \begin{{aligned}}{rows}\end{{aligned}}$"

    @property
    def longest(self) -> int:
        """The number of characters in the longest line of text."""
        return max(map(len, self.lines()), default=0)

    def expanded(self) -> tuple[Any, ...]:
        """The results with every definition put in."""
        put_in: dict[Any, Any] = {}
        for name, expression in self.definitions:
            put_in[name] = expression.xreplace(put_in)
        return tuple(result.xreplace(put_in) for _, result in self.results)


def readable(kernel: ProgramSource, parameters: str = "numbers", latex: bool = False) -> Iterator[str]:
    """The quantity entry by entry if every entry is short, otherwise its derivation; line by line."""
    if "composite" not in {method.key for method in QUANTITIES[kernel.quantity].methods}:
        try:
            whole = list(lines(kernel, parameters))
        except InputError as error:
            if "too many" not in str(error):
                raise
        else:
            if max(map(len, whole), default=0) <= READABLE:
                yield from lines(kernel, parameters, latex) if latex else whole
                return
    yield from derivation(kernel, parameters).lines(latex)


def derivation(kernel: ProgramSource, parameters: str = "numbers", method: str = "auto") -> Derivation:
    """The derivation of a kernel's quantity by a method; "auto" takes one whose values have names.

    `parameters` is "numbers", or "symbols" for symbols in place of lengths, masses, inertias and gravity.
    """
    choose("parameters", parameters, ("numbers", "symbols"))
    constants = SymbolicConstants.of(kernel.chain if parameters == "symbols" else None)
    found: list[Derivation] = []
    tried = list(_candidates(kernel, method))
    whole = [(one, TERMS) for one in tried] if kernel.chain.bodies <= EXPANDED else []
    for (key, run), split in [*whole, (tried[-1], SPLIT)]:
        with naming() as names:
            program = _program(kernel, constants, key, run)
        reader = NamedEvaluation(kernel, program, constants, names, split)
        try:
            found.append(reader.derivation(key))
        except InputError:  # too many terms
            continue
        if split == SPLIT or found[-1].longest <= READABLE:
            break
    if not found:
        raise InputError(
            f"{kernel.quantity} of this arm has no derivation of readable length; print(kernel.program) shows it as "
            "code"
        )
    return found[-1] if len(found) == 1 else min(found, key=lambda one: one.longest)


def _program(kernel: ProgramSource, constants: SymbolicConstants, method: str, run: Callable[..., Any]) -> Program:
    """The expression graph of a formulation, with what it needs of others."""
    options = kernel.options
    plain = kernel.chain.plain and options.parameters == "baked" and not (options.derivatives or options.frame)
    if plain or constants.values:
        return symbolic(kernel, constants, run)
    parts = run.keywords if isinstance(run, partial) else {}
    made = assemble(kernel.chain, kernel.quantity, method, options, parts)
    return trace(kernel.quantity, made.function, dict(made.inputs), made.outputs)


def _candidates(kernel: ProgramSource, asked: str) -> Iterator[tuple[str, Callable[..., Any]]]:
    """(method, formulation) to try, those with the shortest definitions last."""
    chain, entry = kernel.chain, QUANTITIES[kernel.quantity]
    methods = {m.key: m for m in entry.methods if m.serves(chain)}
    keys = [asked] if asked != "auto" else [key for key in NAMED if key in methods] or [next(iter(methods))]
    for key in keys:
        method = methods[key] if key in methods else entry.formulation(key, chain)
        serial = all(parent == k - 1 for k, parent in enumerate(chain.parents))
        matrices = [by_links] * (chain.bodies <= EXPANDED) + [by_bodies if serial else meeting_frame]
        if "inertia_matrix" not in method.made_of:
            yield key, method.run
            continue
        for matrix in matrices:
            parts = {"inertia_matrix": matrix, "bias": by_recursion}
            yield key, partial(method.run, **{name: parts[name] for name in method.made_of})


class NamedEvaluation(Evaluation):
    """Evaluates a program on polynomials; a named value becomes a symbol, and its polynomial its definition.

    The values of a group are defined before their symbols come into use, so that H_22 is not written with H_33.
    """

    most = TERMS

    def __init__(
        self, kernel: ProgramSource, program: Program, constants: SymbolicConstants, names: Names, split: int = TERMS
    ) -> None:
        super().__init__(kernel, program, constants)
        self._names, self._split = names, split
        self._spare = {x.serial: name for x, name in reversed(names.spare) if isinstance(x, Node)}
        self._needed = {node.serial for node in program.order}
        self._at: dict[int, Any] = {}
        self._families: dict[int, set[str]] = {}  # the letters by which a node is known
        self.definitions: list[tuple[Any, Any]] = []
        self._taken = {*constants.values}

    def derivation(self, method: str) -> Derivation:
        """The definitions, the named matrices and the results."""
        for k, port in enumerate(self.program.inputs):
            self._at.update((node.serial, x) for node, x in zip(port.nodes, self.input(k, port), strict=True))
        matrices = []
        for note in self._names.notes:
            if isinstance(note, list):
                self._define(note)
            else:
                label, rows = note
                entries = [self.expression(self._value(x)) for row in rows for x in row]
                matrices.append((label, sp.ImmutableDenseMatrix(len(rows), len(rows[0]), entries)))
        results = []
        for port in self.program.outputs:
            flat = [_factored(self.expression(self._value(node))) for node in port.nodes]
            results.append((LABELS.get((self.kernel.quantity, port.name), port.name), _shaped(port, flat)))
        values = {sp.Symbol(name, real=True): value for name, value in self.constants.values.items()}
        made = tuple(self.definitions)
        return Derivation(self.kernel.quantity, method, made, tuple(matrices), tuple(results), values)

    def _value(self, x: Any) -> Any:
        """The polynomial of a node, computed on demand, or of a number."""
        if not isinstance(x, Node):
            return x
        needed, stack = set(), [x]
        while stack:
            node = stack.pop()
            if node.serial not in self._at and node not in needed:
                needed.add(node)
                stack += node.args
        for node in sorted(needed, key=lambda node: node.serial):
            if node.op == "const":
                self._at[node.serial] = node.value
            else:
                self._shorten(node)
                self._at[node.serial] = self.operations[node.op](*(self._at[a.serial] for a in node.args))
        return self._at[x.serial]

    def _shorten(self, node: Node) -> None:
        """Define arguments from which a formula of too many terms would arise."""

        def size(x: Node) -> int:
            return len(list(terms_of(self._at[x.serial])))

        for x in sorted(node.args, key=size, reverse=True):
            sizes = [size(a) for a in node.args]
            together = math.prod(sizes) if node.op == "mul" else sum(sizes)
            if together > self._split and size(x) > 1:
                name = self._spare.get(x.serial, f"x_{len(self.definitions) + 1}")
                self._at[x.serial] = self._defined(name, self._at[x.serial])

    def _define(self, group: Group) -> None:
        """Symbols for the values of a group; numbers stay, and so does a symbol unless it gets another letter."""
        found = [(name, x, self._value(x)) for name, x in group if isinstance(x, Node) and x.serial in self._needed]
        for name, node, value in found:
            letter, known = name.split("_")[0], self._families.setdefault(node.serial, set())
            terms = list(terms_of(value))
            plain = len(terms) == 1 and len(terms[0][0]) == 1 and abs(terms[0][1]) == 1
            if terms and terms[0][0] and letter not in known and (known or not plain):
                self._at[node.serial] = self._defined(name, value)
                known.add(letter)

    def _defined(self, name: str, value: Any) -> Polynomial:
        while name in self._taken:  # another value of the same name
            name += "prime"
        self._taken.add(name)
        one, meaning = symbol((50, len(self.definitions)), name, name), sp.Symbol(name, real=True)
        self.definitions.append((meaning, _factored(self.expression(value))))
        self.meaning[one], self.level[one] = meaning, 3
        return Polynomial.of(one)


def _factored(expression: Any) -> Any:
    """A sum over one denominator as one fraction."""
    if expression.is_Add and all(
        any(f.is_Pow and f.exp.is_negative for f in sp.Mul.make_args(t)) for t in expression.args
    ):
        return sp.factor_terms(expression)
    return expression


def _shaped(port: Port, flat: list[Any]) -> Any:
    if len(port.shape) > 2:
        return sp.ImmutableDenseNDimArray(flat, port.shape)
    if not port.shape:
        return flat[0]
    return sp.ImmutableDenseMatrix(port.shape[0], port.shape[1] if len(port.shape) == 2 else 1, flat)


def _text(expression: Any, latex: bool = False) -> str:
    """An expression as text with the papers' letters, or as LaTeX."""
    shorter = short(expression)
    if latex:
        return str(sp.latex(shorter))
    return _lettered(sp.sstr(shorter, full_prec=False))


def _lettered(text: str) -> str:
    """Names as the papers write them: m̂_3 for mhat_3, f_3x⟨2⟩ for f_3x__2."""
    text = re.sub(r"__(\d+)", r"⟨\1⟩", text)
    return re.sub(rf"\b({'|'.join(LETTERS)})(?=_)", lambda found: LETTERS[found[1]], text)


def _matrix(label: str, matrix: Any, latex: bool) -> Iterator[str]:
    """A matrix in one line of LaTeX, or in lines of text with aligned columns."""
    if latex:
        yield f"{label.replace('^-1', '^{-1}')} = {sp.latex(short(matrix))}"
        return
    cells = [[_text(matrix[i, j]) for j in range(matrix.cols)] for i in range(matrix.rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    head = f"{TITLES.get(label, label)} = "
    for k, row in enumerate(cells):
        padded = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield f"{head if k == 0 else ' ' * len(head)}[{padded}]"


def _entries(label: str, result: Any, latex: bool) -> Iterator[str]:
    """One line per nonzero entry; of a symmetric matrix those above the diagonal."""
    shape: tuple[int, ...] = getattr(result, "shape", ())
    symmetric = len(shape) == 2 and shape[0] == shape[1] and result == result.T
    for place in product(*(range(size) for size in shape)):
        entry = result[place] if shape else result
        if entry == 0 or (symmetric and place[0] > place[1]):
            continue
        shown = place[:1] if len(shape) == 2 and shape[1] == 1 and shape[0] > 1 else place
        at = [k + 1 for k in shown]
        if latex:
            base = label.replace("^-1", "^{-1}")
            name = f"{base}_{{{','.join(map(str, at))}}}" if shape else base
        else:
            name = f"{TITLES.get(label, label)}{at if shape else ''}"
        yield f"{name} = {_text(entry, latex)}"
