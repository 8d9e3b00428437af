"""Choosing the scale of every named sum, so that as many coefficients as possible are one.

A sum may be computed as any multiple of itself if its uses compensate for the factor. Where it is
used with a coefficient anyway, that is free, and one of the sum's own coefficients becomes 1. Where
it is multiplied by a run-time number w, the factor can be moved to w, and κ·w is computed once for all
sums with the same factor: for example, a constant rotation of many vectors followed by a joint's rotation.
"""

from __future__ import annotations

from collections import Counter

from armdyn.graph.polynomials import Polynomials, Product, Sum

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
        found = {atom}.union(*self.parts.sums[atom])
        for user, product in self.uses[atom]:
            found.update(product)
            found.add(self.owner.get(id(user), atom))
        return found.intersection(self.rescalable)

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
        found = set()
        for terms, product in self.uses[atom]:
            if abs(terms[product]) == 1:
                others = [a for a in product if a != atom]
                if not others:
                    return set()
                found.add(others[0])
        return found

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
