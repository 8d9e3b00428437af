"""Rewriting a program to fewer operations: like terms, common factors, common products, common sums.

The program is decomposed into sums of products (`polynomials`), and the largest saving is applied
repeatedly until there is none:

- a factor that several terms of a sum have in common is factored out,
- two factors that occur together in several products become one product,
- two terms that occur together in several sums, in the same ratio, become one sum.

Then every sum is computed at the scale that leaves the fewest coefficients (`polynomials.rescale`).

This is the greedy search for kernels of polynomials of Hosangadi, Fallah & Kastner (2006), with exact
coefficients. Values are preserved up to rounding. The result is used only if it is shorter.

A factor of a term is an atom, or -k for the k-th absolute value of a coefficient.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from armdyn.graph.passes import compiler_pass
from armdyn.graph.polynomials import Polynomials, Product, Sum, from_polynomials, rescale, to_polynomials
from armdyn.graph.program import Program, check, counts


def factors(product: Product, c: int) -> list[int]:
    """The distinct factors of a term: its atoms, and the absolute value of its coefficient."""
    atoms = list(product if len(product) < 2 else dict.fromkeys(product))
    if product and c != 1 and c != -1:
        atoms.append(-abs(c))
    return atoms


def pairs(product: Product, c: int) -> list[tuple[int, int]]:
    """The distinct pairs of factors of a term."""
    products: list[tuple[int, int]] = []
    if len(product) == 2:
        products.append((product[0], product[1]))
    elif len(product) > 2:
        products.extend(dict.fromkeys([(a, b) for k, a in enumerate(product) for b in product[k + 1 :]]))
    if product and c != 1 and c != -1:
        size = -abs(c)
        products.extend([(size, a) for a in (product if len(product) < 2 else dict.fromkeys(product))])
    return products


def cost(product: Product, c: int) -> int:
    """Multiplications of a term."""
    return max(len(product) - 1, 0) + (product != () and abs(c) != 1)


def has_factor(product: Product, c: int, factor: int) -> bool:
    """Whether a term has the factor."""
    return factor in product if factor >= 0 else product != () and abs(c) == -factor


def has_pair(product: Product, c: int, a: int, b: int) -> bool:
    """Whether a term has both factors."""
    if a < 0:
        return abs(c) == -a and b in product
    return a in product and b in product and (a != b or product.count(a) > 1)


def count_pair(terms: Sum, a: int, b: int) -> int:
    """How many terms have both factors."""
    if 0 <= a != b:
        return sum([a in product and b in product for product in terms])
    return sum([has_pair(product, c, a, b) for product, c in terms.items() if b in product])


def without(product: Product, atom: int) -> Product:
    """The product with this factor taken out once."""
    k = product.index(atom)
    return product[:k] + product[k + 1 :]


Key = tuple[Any, ...]  # ("factor", f), ("product", f, atom) or ("sum", product, product, ratio)
# `terms` defines what a factor is.


@dataclass(frozen=True)
class Rewriting:
    """Limits of the search for savings; measured on the catalogue's arms and general arms of 2 to 8 joints."""

    rounds: int = 3  # a fourth round gained nothing
    expanded_terms: int = 3  # sums of up to this many terms are expanded where they are used, for a second start
    second_start: int = 700  # operations; the second start is tried on programs up to this length
    near: float = 1.02  # programs longer than the best by more than this ratio after a first round are given up
    largest: int = 8000  # operations; above, the search takes seconds and gains less than one operation in a hundred


REWRITING = Rewriting()


SIMPLIFIES = compiler_pass("simplify", counts=counts, check=lambda made, given: check(made), before=check)


def simplify(program: Program) -> Program:
    """The same outputs with fewer operations, or the program itself."""
    return second_start(further_rounds(first_round(program)))


@SIMPLIFIES
def first_round(program: Program) -> Program:
    """One round of `simplify`, which achieves most of the savings."""
    return program if program.operations.total > REWRITING.largest else min(program, _searched(program), key=_cost)


@SIMPLIFIES
def further_rounds(program: Program) -> Program:
    """The rounds of `simplify` after the first."""
    if program.operations.total > REWRITING.largest:
        return program
    return _shortened(program, REWRITING.rounds - 1)


@SIMPLIFIES
def second_start(program: Program) -> Program:
    """The same again, starting with short sums expanded where they are used."""
    if program.operations.total > REWRITING.second_start:
        return program
    other = _searched(program, REWRITING.expanded_terms)
    if other.operations.total > REWRITING.near * program.operations.total:
        return program
    return min(program, _shortened(other, REWRITING.rounds), key=_cost)


def _shortened(program: Program, rounds: int) -> Program:
    for _ in range(rounds):
        shorter = _searched(program)
        if _cost(shorter) >= _cost(program):
            break
        program = shorter
    return program


def _searched(program: Program, expand_up_to: int = 0) -> Program:
    polynomials = to_polynomials(program, expand_up_to)
    _FactorSearch(polynomials).run()
    rescale(polynomials)
    return from_polynomials(polynomials, program)


def _cost(program: Program) -> tuple[int, int]:
    return program.operations.total, program.operations.mul


class _FactorSearch:
    """The sums of a program with an index of their common factors, products and terms."""

    def __init__(self, parts: Polynomials) -> None:
        self.parts = parts
        self.over = parts.coefficients.over
        self.sums: list[Sum] = []
        self.having: list[dict[int, int]] = []  # how many terms of each sum have a factor
        self.atoms: list[int | None] = []  # which atom a sum stands for
        self.first_user: dict[Key, int] = {}  # most keys have no other; a product's is its pair of factors
        self.users_of: dict[Key, dict[int, None]] = {}
        self.first_sum: dict[Any, int] = {}  # the first sum with this term, or with this pair of terms
        self.shared: set[Any] = set()  # terms, and pairs of terms, that have been in several sums
        self.first_seen: dict[Key, int] = {}
        self.heap: list[tuple[int, int, Key]] = []
        for atom, terms in list(parts.sums.items()):
            self.enter(terms, atom)
        seen: set[int] = set()
        for terms in (*(a for arguments in parts.arguments for a in arguments), *parts.roots):
            if id(terms) not in seen:  # the same dict may be several outputs
                seen.add(id(terms))
                self.enter(terms, None)

    def run(self) -> None:
        """Make the largest saving until there is none."""
        while self.heap:
            expected, _, key = heapq.heappop(self.heap)
            gain = self.saving(key)
            if gain <= 0:
                continue
            if gain < -expected:
                heapq.heappush(self.heap, (-gain, self.first_seen[key], key))
                continue
            for at, new in self.make(key):
                self.index(at, new)

    def enter(self, terms: Sum, atom: int | None) -> None:
        """Add a sum to the index."""
        having: dict[int, int] = {}
        for product, c in terms.items():
            for factor in factors(product, c):
                having[factor] = having.get(factor, 0) + 1
        self.sums.append(terms)
        self.having.append(having)
        self.atoms.append(atom)
        self.index(len(self.sums) - 1, terms)

    def index(self, at: int, new: Collection[Product]) -> None:
        """Index what the new terms of a sum may have in common with the sum itself or with others."""
        terms, having = self.sums[at], self.having[at]
        fresh = terms if new is terms else {product: terms[product] for product in new if product in terms}
        if len(terms) > 1:
            candidates = having if fresh is terms else [f for product, c in fresh.items() for f in factors(product, c)]
            for factor in dict.fromkeys(candidates):
                if having[factor] > 1:
                    self._note(("factor", factor), at)
        first_user = self.first_user
        for product, c in fresh.items():
            for pair in pairs(product, c):
                first = first_user.setdefault(pair, at)
                if first != at or ("product", *pair) in self.users_of:
                    self._add_user(("product", *pair), first, at)
        if len(terms) > 1:
            self._index_sums(at, fresh)

    def _index_sums(self, at: int, fresh: Sum) -> None:
        """Index the pairs with a new term; only terms that are in several sums can be common."""
        for product in fresh:
            if product not in self.shared and self.first_sum.setdefault(product, at) != at:
                self.shared.add(product)
                self._note_pairs(self.first_sum[product], {product})
        self._note_pairs(at, fresh)

    def _note_pairs(self, at: int, fresh: Collection[Product]) -> None:
        shared = self.shared
        products = sorted([product for product in self.sums[at] if product in shared])
        for k, one in enumerate(products):
            if one in fresh:
                for other in products[:k]:
                    if other not in fresh:
                        self._note_pair((other, one), at)
                for other in products[k + 1 :]:
                    self._note_pair((one, other), at)

    def _note_pair(self, pair: tuple[Product, Product], at: int) -> None:
        """Index a pair of terms once a second sum has it: only then does the ratio of its coefficients matter."""
        one, other = pair
        if pair not in self.shared:
            first = self.first_sum.setdefault(pair, at)
            if first == at:
                return
            self.shared.add(pair)
            terms = self.sums[first]
            if one in terms and other in terms:
                self._note(("sum", one, other, self.over(terms[other], terms[one])), first)
        terms = self.sums[at]
        self._note(("sum", one, other, self.over(terms[other], terms[one])), at)

    def _note(self, key: Key, at: int) -> None:
        """Record that a sum contains this key."""
        first = self.first_user.setdefault(key, at)
        if first != at or key[0] == "factor" or key in self.users_of:
            self._add_user(key, first, at)

    def _add_user(self, key: Key, first: int, at: int) -> None:
        """Record a further sum that contains this key."""
        users = self.users_of.get(key)
        if users is None:
            users = self.users_of[key] = {first: None}
        users[at] = None
        if len(users) > 1 or key[0] == "factor":
            gain = self.saving(key) if key[0] != "product" else len(users)
            if gain > 0:
                heapq.heappush(self.heap, (-gain, self.first_seen.setdefault(key, len(self.first_seen)), key))

    def saving(self, key: Key) -> int:
        """Operations saved by computing this key once, in the current sums."""
        kind, first = key[0], key[1]
        users = self.users_of[key]
        if kind == "sum":
            for at in [at for at in users if not self.holds(self.sums[at], key)]:
                del users[at]
        else:
            if kind == "factor":
                counts = {at: self.having[at].get(first, 0) for at in users}
            else:
                counts = {at: count_pair(self.sums[at], first, key[2]) for at in users}
            least = 2 if kind == "factor" else 1
            for at, number in counts.items():
                if number < least:
                    del users[at]
            kept = [number for number in counts.values() if number >= least]
            return (max(kept, default=1) if kind == "factor" else sum(kept)) - 1
        if len(users) < 2:
            return 0
        second = key[2]
        spent = [cost(p, self.sums[at][p]) for at in users for p in (first, second)]
        pair = self.sums[next(iter(users))]
        multiples = sum(abs(self.sums[at][first]) != abs(pair[first]) for at in users)
        return sum(spent) + len(users) - 1 - cost(first, pair[first]) - cost(second, pair[second]) - multiples

    def holds(self, terms: Sum, key: Key) -> bool:
        """Whether the sum still contains these two terms in this ratio."""
        _, first, second, ratio = key
        return first in terms and second in terms and self.over(terms[second], terms[first]) == ratio

    def make(self, key: Key) -> list[tuple[int, list[Product]]]:
        """Apply the saving; returns the sums that have changed, each with its new terms."""
        users = list(self.users_of[key])
        if key[0] == "factor":
            at = max(users, key=lambda at: self.having[at].get(key[1], 0))
            return [(at, self._factor(at, key[1]))]
        if key[0] == "product":
            return self._product(users, key[1], key[2])
        return self._sum(users, key[1], key[2])

    def _name(self, terms: Sum) -> tuple[int, int]:
        known = len(self.parts.leaves)
        atom, sign = self.parts.name(terms)
        if atom >= known:
            self.enter(self.parts.sums[atom], atom)
        return atom, sign

    def _rewrite(self, at: int) -> Sum:
        """A sum, to be changed by `_take` and `_put`."""
        atom = self.atoms[at]
        if atom is not None:
            self.parts.unregister(atom)
        return self.sums[at]

    def _take(self, at: int, product: Product) -> int:
        """Remove a term from a sum; its coefficient."""
        c, having = self.sums[at].pop(product), self.having[at]
        for factor in factors(product, c):
            having[factor] -= 1
        return c

    def _put(self, at: int, product: Product, c: int) -> None:
        """Add a term to a sum."""
        terms, having = self.sums[at], self.having[at]
        if product in terms:
            c = self.parts.coefficients.plus(self._take(at, product), c)
        if c:
            terms[product] = c
            for factor in factors(product, c):
                having[factor] = having.get(factor, 0) + 1

    def _factor(self, at: int, factor: int) -> list[Product]:
        inside: Sum = {}
        for product, c in list(self._rewrite(at).items()):
            if has_factor(product, c, factor):
                self._take(at, product)
                if factor >= 0:
                    inside[without(product, factor)] = c
                else:
                    inside[product] = 1 if c > 0 else -1
        atom, sign = self._name(inside)
        new = tuple(sorted((factor, atom))) if factor >= 0 else (atom,)
        self._put(at, new, sign if factor >= 0 else -sign * factor)
        return [new]

    def _product(self, users: list[int], a: int, b: int) -> list[tuple[int, list[Product]]]:
        atom, _ = self._name({tuple(sorted((a, b))): 1} if a >= 0 else {(b,): -a})
        changed = []
        for at in users:
            if self.atoms[at] == atom:
                continue
            new = []
            for product, c in list(self._rewrite(at).items()):
                if has_pair(product, c, a, b):
                    self._take(at, product)
                    rest = without(product, b)
                    if a >= 0:
                        rest = without(rest, a)
                    else:
                        c = 1 if c > 0 else -1
                    new.append(tuple(sorted((*rest, atom))))
                    self._put(at, new[-1], c)
            changed.append((at, new))
        return changed

    def _sum(self, users: list[int], first: Product, second: Product) -> list[tuple[int, list[Product]]]:
        pair = {first: self.sums[users[0]][first], second: self.sums[users[0]][second]}
        atom, sign = self._name(pair)
        changed: list[tuple[int, list[Product]]] = []
        for at in users:
            if self.atoms[at] != atom:
                self._rewrite(at)
                factor = sign * self.over(self._take(at, first), pair[first])
                self._take(at, second)
                self._put(at, (atom,), factor)
                changed.append((at, [(atom,)]))
        return changed
