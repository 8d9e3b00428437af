"""A program as sums of products: the representation that `simplify` works on.

Every node that is used more than once, or that is the argument of a function, is an *atom*: an input, a
function of sums, or a named sum. A sum is a dict from products (sorted tuples of atoms, the empty
one for the constant) to coefficients; a multiple of an atom is expanded where it is used. This
representation discards the order in which sums and products were formed.

Coefficients are exact, and are represented by integers, because rationals are slow to hash and compare:
±k stands for plus or minus the k-th absolute value met, and ±1 for plus or minus one.

`rescale` chooses the scale of every named sum, so that as many coefficients as possible are one. A sum may be computed
as any multiple of itself if its uses compensate for the factor. Where it is used with a coefficient anyway, that is
free, and one of the sum's own coefficients becomes 1. Where it is multiplied by a run-time number w, the factor can be
moved to w, and κ·w is computed once for all sums with the same factor: for example, a constant rotation of many vectors
followed by a joint's rotation.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction

from armdyn.algebra.scalar import Rational
from armdyn.graph.node import Graph, Node
from armdyn.graph.program import Port, Program

Product = tuple[int, ...]
Sum = dict[Product, int]
Canonical = tuple[tuple[Product, int], ...]


class Coefficients:
    """Exact rationals, represented by integers."""

    def __init__(self) -> None:
        self.sizes: list[Fraction] = [Rational(0), Rational(1)]
        self._numbers = {(0, 1): 0, (1, 1): 1}
        self._known: dict[tuple[str, int, int], int] = {}

    def number(self, value: Fraction) -> int:
        """The number of a value."""
        numerator, denominator = value.numerator, value.denominator
        key = abs(numerator), denominator
        known = self._numbers.get(key)
        if known is None:
            known = self._numbers[key] = len(self.sizes)
            self.sizes.append(abs(value))
        return known if numerator > 0 else -known

    def decades(self, c: int) -> float:
        """The logarithm of a size."""
        numerator, denominator = self.sizes[c].as_integer_ratio()
        return math.log10(numerator) - math.log10(denominator)

    def value(self, c: int) -> Fraction:
        """The value of a number."""
        return self.sizes[c] if c >= 0 else -self.sizes[-c]

    def times(self, a: int, b: int) -> int:
        """The product."""
        if a == 1 or a == -1 or b == 1 or b == -1:
            return a * b
        known = self._known.get(("*", a, b))
        if known is None:
            known = self._known["*", a, b] = self.number(self.value(a) * self.value(b))
        return known

    def over(self, a: int, b: int) -> int:
        """The quotient."""
        if b == 1 or b == -1:
            return a * b
        if a == b or a == -b:
            return 1 if a == b else -1
        known = self._known.get(("/", a, b))
        if known is None:
            known = self._known["/", a, b] = self.number(self.value(a) / self.value(b))
        return known

    def plus(self, a: int, b: int) -> int:
        """The sum."""
        if not a or not b:
            return a + b
        if a == -b:
            return 0
        known = self._known.get(("+", a, b))
        if known is None:
            known = self._known["+", a, b] = self.number(self.value(a) + self.value(b))
        return known


@dataclass
class Polynomials:
    """Atoms in the order they were met, the sums that some of them stand for, and the sums of the outputs."""

    leaves: list[Node | None] = field(default_factory=list)  # the input or function of an atom; None for a named sum
    arguments: list[tuple[Sum, ...]] = field(default_factory=list)  # of a function atom
    sums: dict[int, Sum] = field(default_factory=dict)
    roots: list[Sum] = field(default_factory=list)
    coefficients: Coefficients = field(default_factory=Coefficients)
    _named: dict[Canonical, int] = field(default_factory=dict)

    def atom(self, leaf: Node | None, *arguments: Sum) -> int:
        """A new atom."""
        self.leaves.append(leaf)
        self.arguments.append(arguments)
        return len(self.leaves) - 1

    def name(self, terms: Sum) -> tuple[int, int]:
        """The atom that stands for a sum, and the sign it is taken with."""
        canonical, sign = _canonical(terms)
        if canonical not in self._named:
            self._named[canonical] = self.atom(None)
            self.sums[self._named[canonical]] = dict(canonical)
        return self._named[canonical], sign

    def unregister(self, atom: int) -> None:
        """Forget the canonical form of an atom's sum, before the sum is rewritten.

        A sum found by an outdated canonical form could be rewritten so that it depends on itself.
        """
        canonical, _ = _canonical(self.sums[atom])
        if self._named.get(canonical) == atom:
            del self._named[canonical]

    def as_product(self, terms: Sum) -> tuple[Product, int]:
        """A sum as one product with its coefficient, named if it has several terms."""
        if len(terms) == 1:
            return next(iter(terms.items()))
        atom, sign = self.name(terms)
        return (atom,), sign

    def scaled(self, terms: Sum, factor: int) -> Sum:
        """The terms times a factor."""
        if factor == -1:
            return {product: -c for product, c in terms.items()}
        times = self.coefficients.times
        return {product: times(factor, c) for product, c in terms.items()} if factor else {}

    def add(self, terms: Sum, product: Product, c: int) -> None:
        """Add a term in place."""
        c = self.coefficients.plus(terms.pop(product, 0), c)
        if c:
            terms[product] = c


def _canonical(terms: Sum) -> tuple[Canonical, int]:
    items = sorted(terms.items())
    sign = 1 if items[0][1] > 0 else -1
    return tuple((product, sign * c) for product, c in items), sign


def to_polynomials(program: Program, expand_up_to: int = 0) -> Polynomials:
    """The sums of products of a program.

    A sum that is used several times is named, unless it has at most `expand_up_to` terms and is only added
    to others or multiplied by constants: such a sum is expanded, so that like terms may combine.
    """
    order = program.order
    uses = Counter(a.serial for node in order for a in node.args)
    uses.update({node.serial for port in program.outputs for node in port.nodes})
    factors = _factors(order)
    parts = Polynomials()
    sums: dict[int, Sum] = {}
    for node in order:
        terms = _terms(parts, node, [sums[a.serial] for a in node.args])
        expanded = len(terms) <= expand_up_to and node.serial not in factors
        if uses[node.serial] > 1 and _needs_operations(terms) and not expanded:
            atom, sign = parts.name(terms)
            terms = {(atom,): sign}
        sums[node.serial] = terms
    parts.roots = [sums[node.serial] for port in program.outputs for node in port.nodes]
    return parts


def _needs_operations(terms: Sum) -> bool:
    """Whether computing this takes more than a multiplication by a constant."""
    return len(terms) > 1 or any(len(product) > 1 for product in terms)


def _constant(terms: Sum) -> bool:
    return not terms or (len(terms) == 1 and () in terms)


def _factors(order: tuple[Node, ...]) -> set[int]:
    """The nodes that are factors of non-constant products, or arguments of functions, ignoring signs."""
    factors: set[int] = set()
    for node in reversed(order):
        constant = node.op == "mul" and any(a.op == "const" for a in node.args)
        linear = node.op in ("add", "sub") or constant
        if not linear and (node.op != "neg" or node.serial in factors):
            factors.update(a.serial for a in node.args)
    return factors


def _terms(parts: Polynomials, node: Node, arguments: list[Sum]) -> Sum:
    if node.op == "const":
        return {(): parts.coefficients.number(node.value)} if node.value else {}
    if node.op == "neg":
        return parts.scaled(arguments[0], -1)
    if node.op in ("add", "sub"):
        result, other = dict(arguments[0]), arguments[1]
        for product, c in (other if node.op == "add" else parts.scaled(other, -1)).items():
            if product in result:
                parts.add(result, product, c)
            else:
                result[product] = c
        return result
    if node.op == "mul":
        a, b = arguments
        if _constant(a):
            return parts.scaled(b, a.get((), 0))
        if _constant(b):
            return parts.scaled(a, b.get((), 0))
        (x, c), (y, d) = parts.as_product(a), parts.as_product(b)
        return {tuple(sorted(x + y)): parts.coefficients.times(c, d)}
    return {(parts.atom(node, *arguments),): 1}


def from_polynomials(parts: Polynomials, program: Program) -> Program:
    """A program with the inputs and outputs of `program` that computes the current sums."""
    graph = Graph()
    inputs = tuple(
        Port(p.name, p.shape, tuple(graph.input(str(node.value)) for node in p.nodes)) for p in program.inputs
    )
    builder = _Builder(parts, graph)
    nodes = [builder.sum(terms) for terms in parts.roots]
    flat = iter([node if isinstance(node, Node) else graph.const(node) for node in nodes])
    outputs = tuple(Port(p.name, p.shape, tuple(next(flat) for _ in p.nodes)) for p in program.outputs)
    return Program(program.name, inputs, outputs)


def _place(term: tuple[Product, int]) -> tuple[bool, bool]:
    """The sort key of a term in its sum: positive terms first, constants last."""
    return term[1] < 0, term[0] == ()


class _Builder:
    """Nodes of atoms and sums, each atom once."""

    def __init__(self, parts: Polynomials, graph: Graph) -> None:
        self.parts = parts
        self.graph = graph
        self.made: dict[int, Node | Fraction] = {}

    def atom(self, wanted: int) -> Node | Fraction:
        """The node of an atom, after the nodes it needs; without recursion, because sums are deeply nested."""
        if wanted in self.made:
            return self.made[wanted]
        stack = [wanted]
        while stack:
            atom = stack[-1]
            missing = [a for a in self._needs(atom) if a not in self.made] if atom not in self.made else []
            if missing:
                stack.extend(reversed(missing))
                continue
            stack.pop()
            if atom not in self.made:
                self.made[atom] = self._make(atom)
        return self.made[wanted]

    def _needs(self, atom: int) -> list[int]:
        sums = (self.parts.sums[atom],) if atom in self.parts.sums else self.parts.arguments[atom]
        return list(dict.fromkeys(a for terms in sums for product in terms for a in product))

    def _make(self, atom: int) -> Node | Fraction:
        leaf = self.parts.leaves[atom]
        if leaf is None:
            return self.sum(self.parts.sums[atom])
        if leaf.op == "input":
            return self.graph.input(str(leaf.value))
        made: Node | Fraction = self.graph.make(leaf.op, *(self.sum(a) for a in self.parts.arguments[atom]))
        return made

    def sum(self, terms: Sum) -> Node | Fraction:
        """The node of a sum: positive terms first, so that signs stay free."""
        total: Node | Fraction | None = None
        for product, c in sorted(terms.items(), key=_place) if len(terms) > 1 else terms.items():
            made = self._term(product, abs(c))
            if total is None:
                total = made if c > 0 else -made
                continue
            total = total + made if c > 0 else total - made
        return Rational(0) if total is None else total

    def _term(self, product: Product, c: int) -> Node | Fraction:
        if not product:
            return self.parts.coefficients.value(c)
        made = self.atom(product[0])
        for a in product[1:]:
            made = made * self.atom(a)
        return made if c == 1 else self.parts.coefficients.value(c) * made


Use = tuple[Sum, Product]

DECADES = 9  # no sum is scaled up or down by more


def rescale(parts: Polynomials) -> None:
    """Rescale named sums, one by one and then in groups with a common factor, while that saves products."""
    scales = _Scales(parts)
    scales.rescale_single_sums()
    scales.rescale_groups()


class _Scales:
    def __init__(self, parts: Polynomials) -> None:
        self.parts = parts
        self.times = parts.coefficients.times
        self.over = parts.coefficients.over
        self.uses: dict[int, list[Use]] = {}
        self.multiples: dict[tuple[int, int], int] = {}  # (factor, w): the atom of factor·w
        self.factors: dict[int, dict[int, int]] = {}  # of each sum, as they were when it was last looked at
        self.scale: dict[int, float] = {}  # by how many decades each sum has been divided so far
        seen: set[int] = set()
        for terms in (*parts.sums.values(), *(a for args in parts.arguments for a in args), *parts.roots):
            if id(terms) not in seen:
                seen.add(id(terms))
                for product in terms:
                    for atom in dict.fromkeys(product):
                        self.uses.setdefault(atom, []).append((terms, product))
        once = (a for a in parts.sums if all(product.count(a) == 1 for _, product in self.uses.get(a, [])))
        self.atoms = [a for a in once if a in self.uses]
        self.rescalable = frozenset(self.atoms)
        self.owner = {id(terms): atom for atom, terms in parts.sums.items()}

    def rescale_single_sums(self) -> None:
        """Rescale every sum that gains by itself; a sum is revisited when a coefficient it depends on has changed."""
        waiting = set(self.atoms)
        while waiting:
            for atom in self.atoms:
                if atom in waiting:
                    waiting.remove(atom)
                    gains = self.factors[atom] = self.gains(atom)
                    best = max(gains, key=gains.__getitem__, default=1)
                    if gains.get(best, 0) > 0:
                        self.apply(atom, best)
                        waiting.update(self.touched(atom))

    def touched(self, atom: int) -> set[int]:
        """The sums whose gain depends on a coefficient that rescaling this one has changed."""
        atoms = {atom}.union(*self.parts.sums[atom])
        for user, product in self.uses[atom]:
            atoms.update(product)
            atoms.add(self.owner.get(id(user), atom))
        return atoms.intersection(self.rescalable)

    def gains(self, atom: int) -> dict[int, int]:
        """The factors that would make some coefficient one, with the products they save in the sum and its uses."""
        own = self.sizes(atom)
        used = [abs(terms[product]) for terms, product in self.uses[atom]]
        made_one = {size: (size, self.over(1, size)) for size in own if size != 1}  # by each factor, inside and outside
        for size in used:
            if size != 1:
                made_one[self.over(1, size)] = self.over(1, size), size
        least = own.count(1) + used.count(1) if made_one else 0
        return {
            factor: own.count(inside) + used.count(outside) - least
            for factor, (inside, outside) in made_one.items()
            if self.within_range(atom, factor)
        }

    def sizes(self, atom: int) -> list[int]:
        """The sizes of the coefficients in the sum itself."""
        return [abs(c) for product, c in self.parts.sums[atom].items() if product]

    def within_range(self, atom: int, factor: int) -> bool:
        """Whether the sum stays far from overflow and underflow, however many joints accumulate scales."""
        return abs(self.scale.get(atom, 0.0) + self.parts.coefficients.decades(factor)) <= DECADES

    def inside(self, atom: int, factor: int) -> int:
        """Products saved in the sum itself if it is computed without the factor."""
        sizes = self.sizes(atom)
        return sizes.count(factor) - sizes.count(1)

    def apply(self, atom: int, factor: int) -> None:
        """Compute the sum without the factor, and compensate for it where the sum is used."""
        self._divide(atom, factor)
        for user, product in self.uses[atom]:
            user[product] = self.times(user[product], factor)

    def _divide(self, atom: int, factor: int) -> None:
        terms = self.parts.sums[atom]
        for product, c in terms.items():
            terms[product] = self.over(c, factor)
        self.scale[atom] = self.scale.get(atom, 0.0) + self.parts.coefficients.decades(factor)

    def rescale_groups(self) -> None:
        """Rescale sums by a common factor that is moved to the numbers they are multiplied by."""
        groups: dict[int, list[int]] = {}
        for atom in self.atoms:
            for factor in self.factors[atom]:
                if self.inside(atom, factor) > 0:
                    groups.setdefault(factor, []).append(atom)
        for factor, atoms in groups.items():
            able = [a for a in atoms if self.inside(a, factor) > 0 and self.within_range(a, factor)]
            members = {atom: self.cofactors(atom) for atom in able}
            for atom in self._profitable(factor, {a: w for a, w in members.items() if w}):
                self._move_factor(atom, factor)

    def cofactors(self, atom: int) -> set[int]:
        """The other factor of every product with coefficient one this sum is in; none if it is used bare."""
        beside = set()
        for terms, product in self.uses[atom]:
            if abs(terms[product]) == 1:
                others = [a for a in product if a != atom]
                if not others:
                    return set()
                beside.add(others[0])
        return beside

    def _profitable(self, factor: int, members: dict[int, set[int]]) -> list[int]:
        """Those of the sums that together save more products than there are numbers to be multiplied."""
        while members:
            counts = Counter(w for cofactors in members.values() for w in cofactors)
            new = [w for w in counts if (factor, w) not in self.multiples]
            if sum(self.inside(atom, factor) for atom in members) > len(new):
                break
            # The sum that brings the most cofactors of its own is dropped.
            del members[max(members, key=lambda atom: sum(counts[w] == 1 for w in members[atom]))]
        return list(members)

    def _move_factor(self, atom: int, factor: int) -> None:
        """Compute the sum without the factor; products with coefficient one take factor·w for w."""
        for terms, product in list(self.uses[atom]):
            if abs(terms[product]) == 1:
                w = next(a for a in product if a != atom)
                rest = list(product)
                rest[rest.index(w)] = self._multiple(factor, w)
                self._replace(terms, product, tuple(sorted(rest)))
            else:
                terms[product] = self.times(terms[product], factor)
        self._divide(atom, factor)

    def _multiple(self, factor: int, w: int) -> int:
        if (factor, w) not in self.multiples:
            made = self.multiples[factor, w] = self.parts.atom(None)
            self.parts.sums[made] = {(w,): factor}
            self.uses[w].append((self.parts.sums[made], (w,)))
            self.uses[made] = []
        return self.multiples[factor, w]

    def _replace(self, terms: Sum, old: Product, new: Product) -> None:
        terms[new] = terms.pop(old)
        for atom in dict.fromkeys(old):
            self.uses[atom] = [use for use in self.uses[atom] if use[0] is not terms or use[1] != old]
        for atom in dict.fromkeys(new):
            self.uses[atom].append((terms, new))
