"""A kernel as readable SymPy expressions, with sums of angles for parallel axes and like terms collected.

The program is evaluated on polynomials in cosines and sines with exact coefficients, so terms that cancel disappear.
Products of cosines and sines of joints with parallel axes become cosines and sines of sums of angles, as in textbooks.
A quotient, a root or a sign is treated as an atomic factor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

from armdyn.bridges import ARITHMETIC, Source, required
from armdyn.bridges.angles import Angles, parallel_joints
from armdyn.bridges.symbols import Constants, symbolic
from armdyn.errors import InputError, choose
from armdyn.graph import Port, Program
from armdyn.graph.program import interpret
from armdyn.parameters import minimal_parameters
from armdyn.parameters.polynomial import Polynomial, Symbol, cosine_and_sine, symbol, terms_of

sp = required("sympy")

LONGEST = 3000  # terms in a polynomial; a printed page holds about fifty
PAIRS = 200_000  # pairs of terms in a product
Matrix: Any = sp.Matrix
NAMES = {"q": "q", "qd": "qdot", "qdd": "qddot", "tau": "tau", "wrench": "F"}  # SymPy typesets dot and ddot
MOTION = ("qdd", "qd", "tau", "wrench")


class Expressions(Matrix):  # type: ignore[misc]
    """A `sympy.Matrix` that prints cos(q2 + q3) as c23 and numbers with six digits; its entries are exact.

    `parameters` maps the symbols of the arm's constants to their values.
    """

    parameters: dict[Any, Any]

    def _latex(self, printer: Any) -> str:
        return str(printer._print(short(sp.Matrix(self))))

    def __str__(self) -> str:
        return f"Matrix({sp.sstr(short(sp.Matrix(self)).tolist(), full_prec=False)})"

    __repr__ = __str__


def expressions(kernel: Source, parameters: str = "numbers") -> Any:
    """The kernel's outputs: a matrix (a column for a vector), an expression for a scalar, an array for three axes.

    `parameters` is "numbers", or "symbols" for symbols in place of nonzero lengths, masses, centres of mass, inertias
    and gravity.
    """
    choose("parameters", parameters, ("numbers", "symbols"))
    constants = Constants.of(kernel.chain if parameters == "symbols" else None)
    program = kernel.program if parameters == "numbers" else symbolic(kernel, constants)
    polynomials = _Run(kernel, program, constants)
    values = {sp.Symbol(name, real=True): _number(value) for name, value in constants.values.items()}
    found = tuple(
        _shaped(port, flat, values) for port, flat in zip(program.outputs, polynomials.outputs(), strict=True)
    )
    return found[0] if len(found) == 1 else found


def lines(kernel: Source, parameters: str = "numbers", latex: bool = False) -> Iterator[str]:
    """One line per nonzero entry, `H[1, 2] = …`; only the upper triangle of a symmetric matrix."""
    found = expressions(kernel, parameters)
    results = found if isinstance(found, tuple) else (found,)
    for port, result in zip(kernel.program.outputs, results, strict=True):
        shape = port.shape
        symmetric = len(shape) == 2 and shape[0] == shape[1] and result == result.T
        for index in product(*(range(size) for size in shape)):
            entry = result[index if len(shape) != 1 else (*index, 0)] if shape else result
            if entry == 0 or (symmetric and index[0] > index[1]):
                continue
            text = sp.latex(short(entry)) if latex else sp.sstr(short(entry), full_prec=False)
            yield f"{port.name}{[k + 1 for k in index] if shape else ''} = {text}"


def short(expression: Any) -> Any:
    """The expression as printed: c23 for cos(q2 + q3), numbers with six digits."""

    def name(function: Any) -> Any:
        joints = sp.Add.make_args(function.args[0])
        if not all(x.is_Symbol and x.name[:1] == "q" and x.name[1:].isdigit() for x in joints):
            return function
        numbers = sorted(int(x.name[1:]) for x in joints)
        text = ("" if numbers[-1] < 10 else ",").join(map(str, numbers))
        return sp.Symbol(f"{'c' if function.func is sp.cos else 's'}{text}")

    def shorter(x: Any) -> Any:
        x = x.replace(lambda e: isinstance(e, sp.cos | sp.sin), name)
        return x.replace(lambda e: e.is_Float, lambda e: sp.Float(e, 6))

    return expression.applyfunc(shorter) if hasattr(expression, "applyfunc") else shorter(expression)


def _shaped(port: Port, flat: list[Any], values: dict[Any, Any]) -> Any:
    if not port.shape:
        return flat[0]
    if len(port.shape) > 2:
        return sp.ImmutableDenseNDimArray(flat, port.shape)
    columns = port.shape[1] if len(port.shape) == 2 else 1
    matrix = Expressions(port.shape[0], columns, flat)
    matrix.parameters = values
    return matrix


def _number(x: Any) -> Any:
    """An exact rational if it is short, otherwise a float."""
    x = Fraction(x)
    exact = x.denominator == 1 or (x.denominator <= 12 and abs(x.numerator) < 100)
    return sp.Rational(x.numerator, x.denominator) if exact else sp.Float(float(x))


class _Run:
    """Evaluates a program on polynomials and turns the results into SymPy expressions."""

    def __init__(self, kernel: Source, program: Program, constants: Constants) -> None:
        self.kernel, self.program = kernel, program
        self.meaning: dict[Symbol, Any] = {}  # the SymPy expression of each symbol
        self.level: dict[Symbol, int] = {}  # 1: motion, 2: mass, 3: other; the order of collection
        self.angles = Angles(parallel_joints(kernel.chain))
        self.joint_of: dict[Symbol, tuple[int, bool]] = {}  # index in q of a cosine's (True) or sine's (False) angle
        self._whole: dict[Any, Polynomial] = {}
        self._trigonometric: dict[int, tuple[Polynomial, Polynomial]] = {}
        self.constants = constants

    def outputs(self) -> list[list[Any]]:
        """The entries of every output as SymPy expressions."""
        inputs = [self._input(k, port) for k, port in enumerate(self.program.inputs)]
        operations: dict[str, Callable[..., Any]] = {
            **ARITHMETIC,
            "mul": self._product,
            "div": lambda a, b: a * (1 / Fraction(b)) if not isinstance(b, Polynomial) else a * self._kept("div", b),
            "sin": lambda x: self._function(x, 1),
            "cos": lambda x: self._function(x, 0),
            **{op: (lambda x, op=op: self._kept(op, x)) for op in ("sqrt", "sign", "positive")},
        }
        return [[self._expression(x) for x in flat] for flat in interpret(self.program, operations, Fraction, *inputs)]

    def _input(self, place: int, port: Port) -> list[Polynomial]:
        if port.name == "symbols":
            names: Sequence[str] = tuple(self.constants.values)
        elif port.name == "parameters":
            names = minimal_parameters(self.kernel.chain).names
        else:
            names = [f"{NAMES.get(port.name, port.name)}{k + 1}" for k in range(len(port.nodes))]
        found = []
        for k, name in enumerate(names):
            one = symbol((place, k), name, name)
            self.meaning[one] = sp.Symbol(name, real=True)
            self.level[one] = 1 if port.name in MOTION else 2 if name in self.constants.masses else 3
            if port.name == "q":
                cosine, sine = cosine_and_sine((place, k), name, name)
                self.joint_of[cosine], self.joint_of[sine] = (k, True), (k, False)
                self._trigonometric[id(one)] = Polynomial.of(cosine), Polynomial.of(sine)
            found.append(Polynomial.of(one))
        return found

    def _product(self, a: Any, b: Any) -> Any:
        terms = len(a.terms) * len(b.terms) if isinstance(a, Polynomial) and isinstance(b, Polynomial) else 0
        product = a * b if terms <= PAIRS else None
        if product is None or (isinstance(product, Polynomial) and len(product.terms) > LONGEST):
            raise InputError(
                f"{self.kernel.quantity} of this arm has more than {LONGEST} terms, too many for a formula; "
                "print(kernel.program) shows it as code"
            )
        return product

    def _function(self, x: Any, place: int) -> Any:
        """Cosine (0) or sine (1) of a coordinate; of anything else, an atomic factor."""
        terms = list(terms_of(x))
        if len(terms) == 1 and terms[0][1] == 1 and len(terms[0][0]) == 1 and id(terms[0][0][0]) in self._trigonometric:
            return self._trigonometric[id(terms[0][0][0])][place]
        return self._kept(("cos", "sin")[place], x)

    def _kept(self, op: str, x: Any) -> Polynomial:
        """An atomic factor: 1/x, √x, sign x, cos x or sin x; `positive` is 1 wherever it is defined."""
        if op == "positive":
            return 1  # type: ignore[return-value]
        key = (op, frozenset(terms_of(x)))
        if key not in self._whole:
            one = symbol((100, len(self._whole)), f"w{len(self._whole)}", "")
            functions = {"div": lambda e: 1 / e, "sqrt": sp.sqrt, "sign": sp.sign, "cos": sp.cos, "sin": sp.sin}
            self.meaning[one], self.level[one] = functions[op](self._expression(x)), 3
            self._whole[key] = Polynomial.of(one)
        return self._whole[key]

    def _expression(self, x: Any) -> Any:
        """A polynomial as an expression: sums of angles, like terms collected, motion and masses factored out."""
        collected: dict[Any, Fraction] = {}
        for monomial, coefficient in terms_of(x):
            turning = [self.joint_of[s] for s in monomial if s in self.joint_of]
            rest = tuple(s for s in monomial if s not in self.joint_of)
            for waves, part in self.angles.sums(turning):
                collected[rest, waves] = collected.get((rest, waves), Fraction(0)) + coefficient * part
        terms = [(rest, waves, c) for (rest, waves), c in collected.items() if c != 0]
        return self._nested(terms, 1)

    def _nested(self, terms: list[Any], level: int) -> Any:
        if level == 3:
            return sp.Add(*(self._term(rest, waves, c) for rest, waves, c in terms))
        groups: dict[Any, list[Any]] = {}
        for rest, waves, c in terms:
            head = tuple(s for s in rest if self.level[s] == level)
            tail = tuple(s for s in rest if self.level[s] != level)
            groups.setdefault(head, []).append((tail, waves, c))
        parts = (
            sp.Mul(*(self.meaning[s] for s in head), self._nested(group, level + 1)) for head, group in groups.items()
        )
        return sp.Add(*parts)

    def _term(self, rest: tuple[Symbol, ...], waves: Any, coefficient: Fraction) -> Any:
        factors = [self.meaning[s] for s in rest]
        for multiples, cosine in waves:
            angle = sp.Add(*(k * sp.Symbol(f"q{joint + 1}", real=True) for joint, k in multiples))
            factors.append(sp.cos(angle) if cosine else sp.sin(angle))
        return sp.Mul(_number(coefficient), *factors)
