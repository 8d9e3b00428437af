"""A kernel as readable SymPy expressions, with sums of angles for parallel axes and like terms collected.

The program is evaluated on polynomials in cosines and sines with exact coefficients, so terms that cancel disappear.
Products of cosines and sines of joints with parallel axes become cosines and sines of sums of angles, as in textbooks.
A quotient, a root or a sign is treated as an atomic factor.

A symbolic arm has a named symbol for each of its nonzero constants; zeros stay zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

from armdyn.algebra import Sym3, Vec3
from armdyn.bridges import ARITHMETIC, ProgramSource
from armdyn.chain import Chain, Joint, Link
from armdyn.errors import InputError, choose, required
from armdyn.formulations import QUANTITIES
from armdyn.graph import Port, Program
from armdyn.graph.program import interpret, trace
from armdyn.parameters import minimal_parameters
from armdyn.parameters.expression import Polynomial, Symbol, cosine_and_sine, symbol, terms_of

Name = Callable[[str, Any], Any]  # (name, number) -> the number or its symbol
# Formulations that need no precomputed constants; the first of these that a quantity has is used.
PLAIN = ("newton_euler", "reference", "christoffel", "recursive", "definition", "natural")


@dataclass(frozen=True)
class SymbolicConstants:
    """Names and values of an arm's constants, in order."""

    values: dict[str, Any]

    @classmethod
    def of(cls, chain: Chain | None) -> SymbolicConstants:
        """The nonzero constants of a chain; none without a chain."""
        values: dict[str, Any] = {}

        def note(name: str, number: Any) -> Any:
            values[name] = number
            return number

        if chain is not None:
            _named(chain, note)
        return cls(values)

    @property
    def masses(self) -> set[str]:
        """The names of masses."""
        return {name for name in self.values if name[0] == "m"}


def symbolic(kernel: ProgramSource, constants: SymbolicConstants, run: Callable[..., Any] | None = None) -> Program:
    """The expression graph of a kernel, with the arm's constants as a last input; by the formulation `run`."""
    chain, options, entry = kernel.chain, kernel.options, QUANTITIES[kernel.quantity]
    if not chain.plain or options.parameters != "baked" or options.derivatives or options.frame:
        raise InputError(
            "symbols are available for arms without mimic joints or floating base, at the tool; with run-time "
            'parameters, derivatives or frames ask for parameters="numbers"'
        )
    inputs = dict(entry.input_shapes(chain))
    if options.tool_wrench:
        inputs["wrench"] = (6,)
    inputs["symbols"] = (len(constants.values),)

    def function(*arguments: Any) -> Any:
        *given, symbols = arguments
        names = dict(zip(constants.values, symbols, strict=True))
        arm = _named(chain, lambda name, number: names.get(name, number))
        wrench = given.pop() if options.tool_wrench else None
        return entry.physics(run or _plain(kernel.quantity, chain), arm, given, options, wrench)

    return trace(kernel.quantity, function, inputs, entry.output_shapes(chain))


def _plain(quantity: str, chain: Chain) -> Callable[..., Any]:
    methods = {m.key: m for m in QUANTITIES[quantity].methods if m.serves(chain)}
    chosen = next((methods[key] for key in PLAIN if key in methods), None)
    if chosen is None:
        raise InputError(
            f"{quantity} divides by pivots of the inertia matrix, whose symbolic formulas are too long to read in one "
            'line; kernel.derivation(parameters="symbols") defines them one by one'
        )
    return chosen.run


def _named(chain: Chain, name: Name) -> Chain:
    """The chain with `name(…)` in place of its nonzero lengths, masses, inertias, friction and gravity."""

    def unless_0(text: str, x: Any) -> Any:
        return x if x == 0 else name(text, x)

    joints = tuple(_joint(i, joint, unless_0) for i, joint in enumerate(chain.joints, 1))
    links = tuple(_link(i, link, unless_0) for i, link in enumerate(chain.links, 1))
    p, g = chain.tool.p, chain.gravity
    end = len(chain.joints)
    tool = replace(chain.tool, p=Vec3(*(unless_0(f"{t}{end}", x) for t, x in zip(("l", "ly", "lz"), p, strict=True))))
    alone = sum(x != 0 for x in g) == 1
    pulls = (-unless_0("g", -x) if alone and x != 0 else unless_0(f"g{t}", x) for t, x in zip("xyz", g, strict=True))
    return replace(chain, joints=joints, links=links, tool=tool, gravity=Vec3(*pulls))


def _joint(i: int, joint: Joint, name: Name) -> Joint:
    """Name b after the length of the previous link, and d after the offset along the joint's own axis."""
    return replace(
        joint,
        b=name(f"l{i - 1}", joint.b),
        d=name(f"d{i}", joint.d),
        shift=name(f"e{i}", joint.shift),
        rotor_inertia=name(f"J_{i}", joint.rotor_inertia),
        viscous=name(f"f_v{i}", joint.viscous),
        coulomb=name(f"f_c{i}", joint.coulomb),
    )


def _link(i: int, link: Link, name: Name) -> Link:
    """Name the mass, the centre of mass and the inertia about it; about the origin, if there is no mass."""

    def named(inertia: Sym3) -> Sym3:
        axes = ("xx", "xy", "yy", "xz", "yz", "zz")
        return Sym3(*(name(f"I_{i}{pair}", x) for pair, x in zip(axes, inertia.entries, strict=True)))

    if link.mass == 0:
        moment = Vec3(*(name(f"k_{i}{axis}", x) for axis, x in zip("xyz", link.moment, strict=True)))
        return replace(link, moment=moment, inertia=named(link.inertia))
    com = link.com
    along = com.y == 0 and com.z == 0
    centre = Vec3(*(name(f"l_c{i}{'' if along else axis}", x) for axis, x in zip("xyz", com, strict=True)))
    return Link.from_com(name(f"m{i}", link.mass), centre, named(link.inertia_about_com))


Turning = tuple[int, bool]  # index of a joint in q; True for its cosine, False for its sine
Multiples = tuple[tuple[int, int], ...]  # pairs (joint, k) of the angle Σ k q
Wave = tuple[Multiples, bool]  # the cosine (True) or sine of an angle


def parallel_joints(chain: Chain) -> tuple[tuple[int, ...], ...]:
    """Groups of joints, as indices into q, whose axes are parallel in every configuration."""
    group: dict[int, int] = {-1: -1}
    members: dict[int, list[int]] = {}
    place = {joint: k for k, joint in enumerate(chain.independent)}
    for i, (joint, parent) in enumerate(zip(chain.joints, chain.parents, strict=True)):
        parallel = parent >= 0 and joint.beta.sin == 0 and joint.gamma.sin == 0
        group[i] = group[parent] if parallel else i
        if joint.revolute and i in place:
            members.setdefault(group[i], []).append(place[i])
    offset = 7 if chain.floating else 0
    return tuple(tuple(offset + k for k in found) for found in members.values() if len(found) > 1)


class Angles:
    """Rewrites products of cosines and sines; `groups` are the joints with parallel axes, whose angles add."""

    def __init__(self, groups: Sequence[Sequence[int]]) -> None:
        self.group = {joint: k for k, joints in enumerate(groups) for joint in joints}

    def sums(self, turning: Sequence[Turning]) -> list[tuple[tuple[Wave, ...], Fraction]]:
        """The product as a sum of products with at most one factor per group: (factors, coefficient)."""
        alone = tuple((((joint, 1),), cosine) for joint, cosine in turning if joint not in self.group)
        together: dict[int, list[Turning]] = {}
        for joint, cosine in turning:
            if joint in self.group:
                together.setdefault(self.group[joint], []).append((joint, cosine))
        parts = [fourier(tuple(sorted(found))) for _, found in sorted(together.items())]
        found = []
        for choice in product(*parts):
            coefficient = Fraction(1)
            waves: list[Wave] = []
            for wave, part in choice:
                coefficient *= part
                if wave is not None:
                    waves.append(wave)
            found.append(((*sorted(waves), *alone), coefficient))
        return found


@cache
def fourier(turning: tuple[Turning, ...]) -> list[tuple[Wave | None, Fraction]]:
    """The Fourier expansion of a product of cosines and sines, by e^(iq) = cos q + i sin q; None is the constant 1."""
    waves: dict[Multiples, tuple[Fraction, Fraction]] = {(): (Fraction(1), Fraction(0))}
    for joint, cosine in turning:
        following: dict[Multiples, tuple[Fraction, Fraction]] = {}
        for multiples, (re, im) in waves.items():
            for sign in (1, -1):
                # cos q = (e^(iq) + e^(-iq)) / 2,  sin q = -i (e^(iq) - e^(-iq)) / 2
                part = (re / 2, im / 2) if cosine else (sign * im / 2, -sign * re / 2)
                key = _plus(multiples, joint, sign)
                old = following.get(key, (Fraction(0), Fraction(0)))
                following[key] = old[0] + part[0], old[1] + part[1]
        waves = following
    found: list[tuple[Wave | None, Fraction]] = []
    for multiples, (re, im) in sorted(waves.items()):
        if not multiples:
            found.append((None, re))
        elif multiples[0][1] > 0:  # the other half is its complex conjugate
            found += [((multiples, True), 2 * re), ((multiples, False), -2 * im)]
    return [(wave, coefficient) for wave, coefficient in found if coefficient != 0]


def _plus(multiples: Multiples, joint: int, sign: int) -> Multiples:
    changed = dict(multiples)
    changed[joint] = changed.get(joint, 0) + sign
    return tuple(sorted((j, k) for j, k in changed.items() if k != 0))


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


def expressions(kernel: ProgramSource, parameters: str = "numbers") -> Any:
    """The kernel's outputs: a matrix (a column for a vector), an expression for a scalar, an array for three axes.

    `parameters` is "numbers", or "symbols" for symbols in place of nonzero lengths, masses, centres of mass, inertias
    and gravity.
    """
    choose("parameters", parameters, ("numbers", "symbols"))
    constants = SymbolicConstants.of(kernel.chain if parameters == "symbols" else None)
    program = kernel.program if parameters == "numbers" else symbolic(kernel, constants)
    polynomials = Evaluation(kernel, program, constants)
    values = {sp.Symbol(name, real=True): _number(value) for name, value in constants.values.items()}
    found = tuple(
        _shaped(port, flat, values) for port, flat in zip(program.outputs, polynomials.outputs(), strict=True)
    )
    return found[0] if len(found) == 1 else found


def lines(kernel: ProgramSource, parameters: str = "numbers", latex: bool = False) -> Iterator[str]:
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


class Evaluation:
    """Evaluates a program on polynomials and turns the results into SymPy expressions."""

    most = LONGEST

    def __init__(self, kernel: ProgramSource, program: Program, constants: SymbolicConstants) -> None:
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
        inputs = [self.input(k, port) for k, port in enumerate(self.program.inputs)]
        found = interpret(self.program, self.operations, Fraction, *inputs)
        return [[self.expression(x) for x in flat] for flat in found]

    @property
    def operations(self) -> dict[str, Callable[..., Any]]:
        """The function of polynomials of every operation."""
        return {
            **ARITHMETIC,
            "mul": self._product,
            "div": lambda a, b: a * (1 / Fraction(b)) if not isinstance(b, Polynomial) else a * self._kept("div", b),
            "sin": lambda x: self._function(x, 1),
            "cos": lambda x: self._function(x, 0),
            **{op: (lambda x, op=op: self._kept(op, x)) for op in ("sqrt", "sign", "positive")},
        }

    def input(self, place: int, port: Port) -> list[Polynomial]:
        """The entries of an input as symbols."""
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
        if product is None or (isinstance(product, Polynomial) and len(product.terms) > self.most):
            raise InputError(
                f"{self.kernel.quantity} of this arm has more than {self.most} terms, too many for a formula; "
                "kernel.derivation() defines intermediate values, print(kernel.program) shows it as code"
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
            self.meaning[one], self.level[one] = functions[op](self.expression(x)), 3
            self._whole[key] = Polynomial.of(one)
        return self._whole[key]

    def expression(self, x: Any) -> Any:
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
